"""The likelihood study on tiny random models: every number against one plain forward pass per sentence."""

import io
import json
from functools import cache

import numpy as np
import pytest
import torch
import transformers as tf

from gnomon.capture import open_model
from gnomon.corpus import FirstToken, Windows, decide_first_token
from gnomon.errors import ConfigError
from gnomon.study.experiment import Context
from gnomon.study.likelihood import Likelihood
from gnomon.study.likelihood.headline import KEYS
from tests.corpus.test_words import trained

SENTENCES = 40
SMALL = {"sentences": SENTENCES, "draws": 99}
WIDTH = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}


@cache
def tokenizer(kind):
    return trained(kind, 900)


def config(name):
    kind = {"bert": "pieces", "distilbert": "pieces", "roberta": "bytes", "llama": "sentence"}[name]
    size = len(tokenizer(kind))
    if name == "distilbert":
        return kind, tf.DistilBertConfig(
            vocab_size=size, dim=32, n_layers=2, n_heads=2, hidden_dim=48, max_position_embeddings=80
        )
    made = {"bert": tf.BertConfig, "roberta": tf.RobertaConfig, "llama": tf.LlamaConfig}[name]
    return kind, made(vocab_size=size, max_position_embeddings=80, pad_token_id=0, bos_token_id=1, eos_token_id=2, **WIDTH)


@cache
def opened(name):
    torch.manual_seed(0)
    kind, settings = config(name)
    auto = tf.AutoModelForCausalLM if name == "llama" else tf.AutoModelForMaskedLM
    hf = auto.from_config(settings, attn_implementation="eager").eval()
    for weight in hf.parameters():
        if weight.dim() > 1:
            weight.data.mul_(8)  # attention and predictions far from uniform
    return open_model(hf, tokenizer=tokenizer(kind))


def windows(model, first=None):
    first = first or decide_first_token(model.tokenizer, "always", encoder=not model.anatomy.causal)
    tokens = np.random.default_rng(0).integers(5, 50, size=(2, 16))
    return Windows(tokens=tokens, lengths=[16, 16], special=np.zeros((2, 16), bool), document=[0, 0], start=[0, 0], source="random",
                   seed=0, first_token=first, pad_id=0)  # fmt: skip


def run(name, context=None, **options):
    model = opened(name)
    return Likelihood(**{**SMALL, **options}).run(model, windows(model), context or Context())


@cache
def default_run(name):
    return run(name)


FAMILIES = ["bert", "distilbert", "roberta", "llama"]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_sentence_agrees_with_a_plain_forward_pass(name):
    model, dataset = opened(name), default_run(name)
    words = _aligned(name)
    assert dataset.sizes["sequence"] == len(words)
    model.hf.set_attn_implementation("eager")
    try:
        for row in range(0, len(words), 5):
            _agrees(model, dataset, words, row)
    finally:
        model.hf.set_attn_implementation("gnomon")


def _aligned(name):
    from gnomon.corpus.words import wordnet_examples

    model = opened(name)
    return Likelihood(**SMALL)._aligned(model, windows(model), wordnet_examples().sample(SENTENCES, 0))


def _agrees(model, dataset, words, row):
    length, first, stop = int(words.lengths[row]), int(words.first[row]), int(words.stop[row])
    tokens = torch.from_numpy(np.array(words.tokens[row : row + 1, :length]))
    with torch.no_grad():
        out = model.hf(tokens, output_attentions=True)
        hidden = tokens.clone()
        hidden[0, first:stop] = model.tokenizer.mask_token_id
        masked = model.hf(hidden)
    for layer, weights in enumerate(out.attentions):
        block = weights[0].double().mean(0)[first:stop, first:stop]
        inner = block[np.tril_indices(stop - first)].mean() if model.anatomy.causal else block.mean()
        assert float(dataset["attention"][row, layer, 0, 0]) == pytest.approx(float(inner), rel=1e-4, abs=1e-6)
    shift = 1 if model.anatomy.causal else 0
    for reading, logits in ((0, out.logits), (1, masked.logits)):
        if reading == 1 and model.anatomy.causal:
            continue
        log_p = logits[0].double().log_softmax(-1)
        each = [float(log_p[place - shift, tokens[0, place]]) for place in range(first, stop)]
        found = dataset["log_likelihood"].values[row, reading]
        np.testing.assert_allclose(found, [sum(each), sum(each) / len(each)], rtol=1e-4, atol=1e-4)
    if model.anatomy.causal:
        assert dataset["reading"].values.tolist() == ["causal"]


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_batch_size_changes_nothing_but_rounding(name):
    one, other = default_run(name), run(name, Context(batch_size=1))
    assert one.data_vars.keys() == other.data_vars.keys()
    for variable in one.data_vars:
        if variable.endswith("_p") or "correlation" in variable or "partial" in variable:
            continue  # ranks of near ties; their inputs are compared
        np.testing.assert_allclose(one[variable].values, other[variable].values, rtol=2e-3, atol=2e-5, err_msg=variable)
    np.testing.assert_allclose(one["correlation"].values, other["correlation"].values, atol=5e-3)


def test_an_interrupted_run_resumes_and_gives_the_same():
    kept, calls, progress = {}, [], []

    class StoppedError(RuntimeError):
        pass

    def stage(key, function):
        if key not in kept:
            if len(calls) == 4:
                raise StoppedError
            calls.append(key)
            kept[key] = function()
        return kept[key]

    with pytest.raises(StoppedError):
        run("llama", Context(stage=stage))
    before = set(kept)
    calls.clear()
    calls.append("already stopped")
    whole = None
    while whole is None:
        try:
            whole = run("llama", Context(stage=stage, progress=lambda done, total: progress.append((done, total))))
        except StoppedError:
            calls.clear()
    assert before < set(kept)
    assert progress[-1][0] == progress[-1][1]
    assert whole.identical(default_run("llama"))


@pytest.mark.parametrize("name", FAMILIES)
def test_headlines_have_every_key_and_a_reason_for_what_is_missing(name):
    dataset = default_run(name)
    headline = Likelihood().headline(dataset)
    assert tuple(headline) == KEYS
    best = headline["correlation"]
    table = dataset["correlation"].sel(aggregate="mean", condition="all_keys", mode="inner").isel(reading=0).values
    assert abs(best.value) == pytest.approx(np.abs(table).max())
    assert best.low < best.value < best.high
    assert headline["perturbed_lowest_minus_highest"].n == dataset.attrs["replaced_sentences"]
    for key, estimate in headline.items():
        assert not estimate.is_missing or estimate.reason, key
    assert headline["correlation_masked"].is_missing == (name == "llama")
    assert all({"long_name", "units"} <= set(variable.attrs) for variable in dataset.data_vars.values())


def test_likelier_replacements_are_likelier():
    drawn = default_run("llama")["drawn_log_likelihood"].values
    assert (np.diff(drawn[:5]) > 0).all()


def test_replacing_can_be_left_out():
    dataset = run("llama", replace=False)
    assert "contrast" not in dataset
    headline = Likelihood().headline(dataset)
    assert headline["perturbed_trend"].reason == "words were not replaced"
    assert not headline["correlation"].is_missing


def test_what_is_left_out_is_counted():
    left_out = json.loads(default_run("llama").attrs["left_out"])
    model = opened("llama")
    none = FirstToken(policy="never", placed=False, id=None, text=None, special=False, why="asked for")
    bare = Likelihood(**SMALL).run(model, windows(model, none), Context())
    without = json.loads(bare.attrs["left_out"])
    assert without["nothing precedes the word"] > 0
    assert "nothing precedes the word" not in left_out
    assert bare.sizes["sequence"] + sum(without.values()) == SENTENCES


def test_encoders_without_a_head_are_refused_in_words():
    kind, settings = config("bert")
    model = open_model(tf.BertModel._from_config(settings).eval(), tokenizer=tokenizer(kind))
    dataset = Likelihood(**SMALL).run(model, windows(model), Context())
    headline = Likelihood().headline(dataset)
    assert tuple(headline) == KEYS
    assert all("without a language-model head" in estimate.reason for estimate in headline.values())


def test_too_few_sentences_give_a_reason(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("".join(f"one of the {word} sat down\t{word}\n" for word in ("cats", "dogs", "men")))
    model = opened("llama")
    dataset = Likelihood(words=path, draws=99).run(model, windows(model), Context())
    assert dataset.attrs["missing"].startswith("3 sentences could be used")
    assert all(estimate.is_missing for estimate in Likelihood().headline(dataset).values())


def test_unusable_options_are_refused():
    with pytest.raises(ConfigError, match="`sentences` must be at least 10, got 3"):
        Likelihood(sentences=3)
    with pytest.raises(ConfigError, match="`draws` must be at least 99"):
        Likelihood(draws=10)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_the_terminal_shows_layers_bands_and_what_was_left_out(name):
    page = _printed(default_run(name))
    for text in ("correlation_held_out", "WordNet 3.0 example sentences", "p, corrected", "lowest, matched", "contrast"):
        assert text in page
    assert f"{'unmasked' if name == 'bert' else 'causal'} log-likelihood" in page
    rows = [line for line in page.splitlines() if line[:2].strip(" *").isdigit()]
    assert len(rows) == 2
    assert sum("*" in row for row in rows) == 1


def test_the_terminal_gives_the_reason_for_a_refusal():
    page = _printed(Likelihood()._missing("it has no head"))
    assert page.strip() == "missing: it has no head"


def _printed(dataset):
    from types import SimpleNamespace

    from rich.console import Console

    from gnomon.report.terminal.likelihood import section

    class Survey(SimpleNamespace):
        def __getitem__(self, measure):
            return self.datasets[measure]

    survey = Survey(datasets={"likelihood": dataset}, headline={"likelihood": Likelihood().headline(dataset)}, labels={})
    console = Console(width=200, record=True, markup=False, highlight=False, file=io.StringIO())
    console.print(section(survey))
    return console.export_text()
