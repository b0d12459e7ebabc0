"""Evolution: the same sequences for every checkpoint, what emerged and when, and a damaged checkpoint named while the rest goes on."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gnomon.errors import ConfigError, ModelError, RunError
from gnomon.report.terminal import print_survey
from gnomon.result import Survey, open_run
from gnomon.statistics import Estimate
from gnomon.study.checkpoints import Checkpoint, of_folder, of_revisions, of_zoo, revision_step, step_of
from gnomon.study.evolution import equal_starts, evolution_of, headline_of
from gnomon.study.evolve import evolve
from tests.families.configs import FAMILIES
from tests.study.hub_cache import put_in_cache
from tests.study.training_runs import MEASURES, SPEC

STEPS = (0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0)


def series(curves: dict[str, np.ndarray], *, groups: int = 8, noise: float = 0.02, seed: int = 0) -> list[Survey]:
    """A survey per checkpoint whose quantities follow given curves, with noise by group of sequences."""
    generator = np.random.default_rng(seed)
    by_group = {key: curve + noise * generator.normal(size=(groups, len(curve))) for key, curve in curves.items()}
    out = []
    for place in range(len(next(iter(curves.values())))):
        numbers, kept = {}, {}
        for key, values in by_group.items():
            column = values[:, place]
            numbers[key] = Estimate(float(column.mean()), float(column.mean() - noise), float(column.mean() + noise), groups)
            kept[key] = ((column.sum() - column) / (groups - 1)).tolist()
        info = {"corpus": {"digest": "d"}, "replicates": {"groups": groups, "values": {"sinks": kept}}}
        info["labels"] = {"frames": {"kind": "none" if place < 3 else "centralized"}}
        out.append(Survey(info, {"sinks": numbers}, {}))
    return out


def steps(values=STEPS) -> list[Checkpoint]:
    return [Checkpoint(name=f"step{value:g}", model="org/model", step=value) for value in values]


def test_planted_change_points_are_found_in_order():
    early, late = (1 / (1 + np.exp(-4 * (np.log1p(STEPS) - np.log1p(middle)))) for middle in (30, 3000))
    peak = np.array([0.0, 0.0, 0.8, 0.5, 0.1, 0.0])
    surveys = series({"early": early, "late": 1 - late, "still": np.full(6, 0.5), "peak": peak})
    dataset = evolution_of(steps(), surveys)
    at = {name.removeprefix("sinks/"): dataset.sel(quantity=name) for name in dataset["quantity"].values.tolist()}
    assert float(at["early"]["emergence"]) == pytest.approx(30, rel=0.35)
    assert float(at["late"]["emergence"]) == pytest.approx(3000, rel=0.35)
    for name in ("early", "late"):
        assert float(at[name]["emergence_low"]) <= float(at[name]["emergence"]) <= float(at[name]["emergence_high"])
        assert float(at[name]["emergence_after"]) < float(at[name]["emergence"]) < float(at[name]["emergence_before"])
    assert [int(at[name]["rank"]) for name in ("early", "late", "still", "peak")] == [0, 1, -1, -1]
    assert float(at["early"]["before_next"]) == 1.0
    assert math.isnan(float(at["still"]["emergence"]))
    assert float(at["peak"]["turning"]) == 10
    assert math.isnan(float(at["early"]["turning"]))
    headline = headline_of(dataset)
    assert headline["sinks/early"].n == 8
    assert "not beyond chance" in headline["sinks/still"].reason
    assert dataset["word"].values.tolist() == [["none"] * 3 + ["centralized"] * 3]


def test_chance_alone_makes_nothing_emerge():
    found = 0
    for seed in range(30):
        dataset = evolution_of(steps(), series({f"q{i}": np.zeros(6) for i in range(12)}, seed=seed))
        found += int((dataset["rank"].values >= 0).any() or np.isfinite(dataset["turning"].values).any())
    assert found <= 6


def test_checkpoints_without_a_step_or_a_run_do_not_count():
    curve = np.array([0.0, 0.0, 0.5, 1.0, 1.0, 1.0])
    surveys: list = series({"mass": curve})
    whole = headline_of(evolution_of(steps(), surveys))["sinks/mass"]
    surveys[1] = None
    dataset = evolution_of(steps((*STEPS[:5], math.nan)), surveys)
    assert np.isnan(dataset["value"].values[0, 1])
    assert headline_of(dataset)["sinks/mass"].value == pytest.approx(whole.value, rel=0.5)
    few = evolution_of(steps((0.0, 1.0, math.nan, math.nan, math.nan, math.nan)), surveys)
    assert "3 are needed" in headline_of(few)["sinks/mass"].reason


def test_pythia_starts_equal_and_it_is_said_when_not():
    surveys = series({"mass": np.array([0.0, 0.0, 1.0])})
    surveys[1] = surveys[0]
    names = [Checkpoint(name=f"step{step}", model="EleutherAI/pythia-70m", step=step) for step in (0, 1, 2)]
    assert "are equal in all 1 numbers" in equal_starts(names, surveys)
    surveys[1] = surveys[2]
    assert "must be equal for Pythia" in equal_starts(names, surveys)
    assert not equal_starts([Checkpoint(name=one.name, model="org/other", step=one.step) for one in names], surveys)


def test_a_zoo_member_evolves_and_a_damaged_checkpoint_is_named(trained_zoo, tmp_path, monkeypatch, capsys):
    shutil.copytree(trained_zoo / "rope", tmp_path / "zoo" / "rope")
    monkeypatch.setenv("GNOMON_ZOO", str(tmp_path / "zoo"))
    weights = tmp_path / "zoo" / "rope" / "step-5" / "weights.int8.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-9])
    found = of_zoo("zoo:rope")
    assert [one.step for one in found] == [0, 5, 20, 40]
    given = {"out": tmp_path / "out", "corpus": SPEC, "measures": MEASURES}
    summary = evolve(found, **given)
    assert list(summary.info["evolve"]["failures"]) == ["step-5"]
    assert "SHA-256" in summary.info["evolve"]["failures"]["step-5"]
    dataset = summary["evolution"]
    assert dataset["step"].values.tolist() == [0, 5, 20, 40]
    assert np.isnan(dataset["value"].sel(checkpoint="step-5")).all()
    runs = [open_run(tmp_path / "out" / "checkpoints" / name) for name in ("step-0", "step-20", "last")]
    assert len({run.info["corpus"]["digest"] for run in runs}) == 1
    for run, name in zip(runs, ("step-0", "step-20", "last"), strict=True):
        value = float(dataset["value"].sel(quantity="attention/entropy", checkpoint=name))
        assert value == run.headline["attention"]["entropy"].value
    print_survey(summary)
    page = capsys.readouterr().out
    assert "step-5: the weights in" in page
    assert "attention/relative_entropy" in page
    times = {run.path: (run.path / "run.json").stat().st_mtime_ns for run in runs}
    weights.write_bytes(whole)
    mended = evolve(found, **given)
    assert not mended.info["evolve"]["failures"]
    assert np.isfinite(mended["evolution"]["value"].sel(quantity="attention/entropy").values).all()
    assert {path: (path / "run.json").stat().st_mtime_ns for path in times} == times
    assert evolve(found, **given).headline == mended.headline == open_run(tmp_path / "out" / "summary").headline
    with pytest.raises(RunError, match="another text"):
        evolve(found, **{**given, "corpus": SPEC.with_(seed=1)})


def test_folders_as_trainers_leave_them(tmp_path):
    family = FAMILIES["llama"]
    for name in ("checkpoint-10", "checkpoint-9"):
        family.build().save_pretrained(tmp_path / name)
        family.tokenizer().save_pretrained(tmp_path / name)
    (tmp_path / "runs").mkdir()
    (tmp_path / "checkpoint-30").mkdir()
    shutil.copytree(tmp_path / "checkpoint-10", tmp_path, dirs_exist_ok=True)
    (tmp_path / "trainer_state.json").write_text(json.dumps({"global_step": 40}))
    assert [(one.name, one.step) for one in of_folder(tmp_path)] == [
        ("checkpoint-9", 9), ("checkpoint-10", 10), ("checkpoint-30", 30), ("last", 40),
    ]  # fmt: skip


def test_steps_are_read_from_names():
    names = {"step3000": 3000, "step-64": 64, "checkpoint-500": 500, "iter_0003000": 3000, "global_step12": 12, "7": 7}
    assert {name: step_of(name) for name in names} == names
    assert math.isnan(step_of("main"))
    assert math.isnan(step_of("v2"))
    assert revision_step("EleutherAI/pythia-70m", "main") == 143000
    assert math.isnan(revision_step("org/model", "main"))
    ordered = of_revisions("EleutherAI/pythia-70m", ["main", "step512", "step0"])
    assert [one.name for one in ordered] == ["step0", "step512", "main"]
    assert ordered[1].loading == {"revision": "step512"}


def test_bad_input_is_named(zoo, tmp_path):
    with pytest.raises(ConfigError, match="`revisions` must be different"):
        of_revisions("m", ["a", "a"])
    with pytest.raises(ConfigError, match="no folder"):
        of_folder(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="without any"):
        of_folder(tmp_path)
    with pytest.raises(ModelError, match="must be a zoo model that is here"):
        of_zoo("zoo:sundial")
    with pytest.raises(ConfigError, match="leave out @5"):
        of_zoo("zoo:rope@5")
    with pytest.raises(ConfigError, match="at least two"):
        evolve(of_zoo("zoo:rope")[:1], out=tmp_path / "out")
    gone = [Checkpoint(name=name, model="zoo:rope@77") for name in "ab"]
    with pytest.raises(ModelError, match="got none of 2"):
        evolve(gone, out=tmp_path / "out", corpus=SPEC, measures=MEASURES)


def test_revisions_of_a_hub_model_from_the_command_line(tmp_path):
    """Pythia's conventions on a stand-in in the hub's cache: revisions by name, steps 0 and 1 equal, a missing one named."""
    family, cache, folder = (
        FAMILIES["gpt-neox"] if "gpt-neox" in FAMILIES else FAMILIES["llama"],
        tmp_path / "home" / "hub",
        tmp_path / "m",
    )
    model = family.build()
    family.tokenizer().save_pretrained(folder)
    for revision, scale in {"step0": 1.0, "step1": 1.0, "step512": 1.3, "main": 1.6}.items():
        for parameter in model.parameters():
            parameter.data.mul_(scale)
        model.save_pretrained(folder)
        put_in_cache(cache, "EleutherAI/pythia-tiny", revision, folder)
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("HF_HUB_CACHE", None)
    command = [
        sys.executable,
        "-m",
        "gnomon",
        "evolve",
        "EleutherAI/pythia-tiny",
        "--revisions",
        "main,step0,step1,step512,step9",
    ]
    command += [
        "--sequences",
        "6",
        "--length",
        "32",
        "--measures",
        "sinks",
        "--out",
        str(tmp_path / "out"),
        "--disk-cap",
        "0",
        "-q",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "steps 0 and 1 are equal in all" in done.stdout
    summary = open_run(tmp_path / "out" / "summary")
    assert summary["evolution"]["checkpoint"].values.tolist() == ["step0", "step1", "step9", "step512", "main"]
    assert list(summary.info["evolve"]["failures"]) == ["step9"]
    assert summary["evolution"]["step"].values[-1] == 143000
    assert len(list(Path(cache).glob("models--*/snapshots/*"))) == 4
