"""A command line in this process, and a tiny real model in a folder."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from gnomon.cli import main


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def gnomon(monkeypatch, tmp_path) -> Callable[..., Outcome]:
    """Runs ``gnomon ARGUMENTS`` in an empty folder; an error that escapes fails the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def run(*arguments: str) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            try:
                main([str(argument) for argument in arguments])
                code = 0
            except SystemExit as stop:
                code = int(stop.code or 0)
        return Outcome(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """A random Llama of three layers with its tokenizer, saved to a folder."""
    from tests.families.configs import FAMILIES

    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    family = FAMILIES["llama"]
    family.build().save_pretrained(folder)
    family.tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def broken(tmp_path_factory) -> Path:
    """The same with a weight that is not a number."""
    import torch

    from tests.families.configs import FAMILIES

    folder = tmp_path_factory.mktemp("models") / "nan-llama"
    family = FAMILIES["llama"]
    model = family.build()
    with torch.no_grad():
        next(iter(model.parameters())).fill_(float("nan"))
    model.save_pretrained(folder)
    family.tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def without_bos(tmp_path_factory) -> Path:
    """A model whose tokenizer has no token to put at position 0."""
    from tests.families.configs import FAMILIES

    folder = tmp_path_factory.mktemp("models") / "no-bos"
    family = FAMILIES["qwen2"]
    family.build().save_pretrained(folder)
    family.tokenizer().save_pretrained(folder)
    return folder
