"""The examples run, and give numbers that are known."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import gnomon
from gnomon.corpus import CorpusSpec
from gnomon.errors import ConfigError
from tests.families.configs import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
CORPUS = CorpusSpec(sequences=4, length=32)


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def model():
    family = FAMILIES["llama"]
    return gnomon.load(family.build(), tokenizer=family.tokenizer())


def test_a_measure_of_ones_own_is_surveyed_as_an_object(model, tmp_path):
    mine = example("my_measure").PreviousToken()
    survey = gnomon.survey(model, corpus=CORPUS, measures=["sinks", mine], out=tmp_path / "run")
    assert survey.measures == ("sinks", "previous_token")
    number = survey.headline["previous_token"]["mass"]
    assert number.low <= number.value <= number.high
    assert 0 < number.value < 1
    uniform = np.mean([1 / (query + 1) for query in range(1, 32)])
    np.testing.assert_allclose(survey["previous_token"]["uniform"].values, uniform, rtol=1e-5)
    again = gnomon.survey(model, corpus=CORPUS, measures=["sinks", mine], out=tmp_path / "run")
    assert again.headline == survey.headline


def test_its_number_is_the_dense_one(model):
    import torch

    from gnomon.corpus import build_corpus

    windows = build_corpus(CORPUS, model.tokenizer)
    found = gnomon.survey(model, corpus=windows, measures=[example("my_measure").PreviousToken()])["previous_token"]["mass"]
    eager = FAMILIES["llama"].build("eager")
    rows = torch.stack(eager(torch.from_numpy(windows.tokens.copy()), output_attentions=True).attentions)
    dense = rows.diagonal(offset=-1, dim1=-2, dim2=-1).mean((1, 3))
    np.testing.assert_allclose(found.values, dense.numpy(), atol=1e-5)


def test_what_is_no_measure_is_a_sentence(model):
    cls = example("my_measure").PreviousToken
    with pytest.raises(ConfigError, match="give an instance"):
        gnomon.survey(model, corpus=CORPUS, measures=[cls])
    with pytest.raises(ConfigError, match="different names"):
        gnomon.survey(model, corpus=CORPUS, measures=[cls(), cls()])


def test_a_measure_of_another_package_is_found_by_its_entry_point(monkeypatch):
    from importlib.metadata import EntryPoint

    from gnomon.study import registry

    example("my_measure")
    point = EntryPoint("previous_token", "example_my_measure:PreviousToken", "gnomon.measures")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == "gnomon.measures" else [])
    assert registry.choose("sinks,previous_token") == ["sinks", "previous_token"]
    assert registry.make(["previous_token"])["previous_token"].title == "Attention to the previous token"
