"""A zoo of two members, trained once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.study.training_runs import train_zoo


@pytest.fixture(scope="session")
def trained_zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ``rope`` and ``learned``; never change it, copy it."""
    return train_zoo(tmp_path_factory.mktemp("zoo"), "rope", "learned")


@pytest.fixture
def zoo(trained_zoo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, where ``zoo:NAME`` looks for it."""
    monkeypatch.setenv("GNOMON_ZOO", str(trained_zoo))
    return trained_zoo
