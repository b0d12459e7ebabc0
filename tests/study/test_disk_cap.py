"""The cap deletes what a sweep downloaded and is done with, oldest first, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gnomon.study.disk_cap import LEDGER, DiskCap
from tests.study.hub_cache import put_in_cache

REPO = "org/model"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"x" * 1000)
    return folder


def cached(cache: Path) -> set[str]:
    found = {path.name for path in cache.glob("models--*/refs/*")}
    alive = {path.name for path in cache.glob("models--*/snapshots/*")}
    return {name for name in found if (next(cache.glob(f"models--*/refs/{name}"))).read_text() in alive}


def read(cap: DiskCap, cache: Path, revision: str, model: Path) -> None:
    with cap.while_reading(REPO, revision):
        put_in_cache(cache, REPO, revision, model)


def test_the_oldest_of_its_own_go_and_what_was_there_before_stays(tmp_path, model):
    cache = tmp_path / "hub"
    put_in_cache(cache, REPO, "main", model)
    cap = DiskCap(2000, cache)
    with cap.while_reading(REPO, None):
        pass
    for step in ("step0", "step1", "step2", "step3"):
        read(cap, cache, step, model)
    assert cached(cache) == {"main", "step2", "step3"}
    assert sum(file.stat().st_size for file in cache.glob("models--*/blobs/*")) == 3000


def test_what_another_survey_reads_is_not_deleted(tmp_path, model):
    cache = tmp_path / "hub"
    cap = DiskCap(0, cache)
    with cap.while_reading(REPO, "step0"):
        put_in_cache(cache, REPO, "step0", model)
        read(DiskCap(0, cache), cache, "step1", model)
        assert cached(cache) == {"step0"}
    assert cached(cache) == set()


def test_a_killed_survey_leaves_its_download_to_the_sweep(tmp_path, model):
    cache = tmp_path / "hub"
    cap = DiskCap(0, cache)
    cap._begin(REPO, "step0")
    put_in_cache(cache, REPO, "step0", model)
    with DiskCap(0, cache).while_reading(REPO, "step0"):
        assert cached(cache) == {"step0"}
    assert cached(cache) == set()


def test_a_damaged_ledger_costs_nothing_but_its_notes(tmp_path, model):
    cache = tmp_path / "hub"
    cap = DiskCap(0, cache)
    cache.mkdir()
    (cache / LEDGER).write_text("{")
    read(cap, cache, "step0", model)
    assert cached(cache) == set()
    assert json.loads((cache / LEDGER).read_text()) == []


def test_a_download_that_failed_is_no_error_of_its_own(tmp_path):
    cap = DiskCap(0, tmp_path / "hub")
    with pytest.raises(OSError, match="gone"), cap.while_reading(REPO, "step0"):
        raise OSError("gone")
