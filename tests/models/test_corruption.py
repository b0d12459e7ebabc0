"""Whatever happened to a model's folder, loading it gives a model or one sentence, never a traceback of somebody else's."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.errors import GnomonError
from gnomon.model import PositionModel, load
from tests.families.configs import FAMILIES, byte_tokenizer


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model as transformers saves it."""
    folder = tmp_path_factory.mktemp("whole")
    FAMILIES["llama"].build().save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


def damaged(data: bytes, kind: str, place: float, fill: bytes) -> bytes | None:
    """The bytes of a file after an accident; ``None`` when it is gone."""
    at = int(place * len(data))
    return {
        "gone": None,
        "empty": b"",
        "cut": data[:at],
        "overwritten": data[:at] + fill + data[at + len(fill) :],
        "longer": data + fill,
    }[kind]


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(
        ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"]
    ),
    kind=st.sampled_from(["gone", "empty", "cut", "overwritten", "longer"]),
    place=st.floats(0, 0.999),
    fill=st.binary(min_size=1, max_size=64),
)
def test_an_accident_gives_a_model_or_a_sentence(whole: Path, name: str, kind: str, place: float, fill: bytes) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        shutil.copytree(whole, folder)
        after = damaged((folder / name).read_bytes(), kind, place, fill)
        if after is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(after)
        said = None
        try:
            model = load(folder)
        except GnomonError as error:
            said = str(error)
    if said is None:
        assert isinstance(model, PositionModel)
    else:
        assert said.strip()
        assert "\n" not in said
