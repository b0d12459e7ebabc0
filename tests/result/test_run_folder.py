"""A run folder is whole or resumable at every moment, and never opened as what it is not."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
import xarray as xr

import gnomon.result.atomic as atomic
from gnomon.errors import ResourceError, RunError
from gnomon.result import RunWriter, open_run
from gnomon.statistics import Estimate

FINGERPRINT = {"weights": "abc", "corpus": "def", "measures": ["sinks"], "seed": 0}
HEADLINE = {"sinks": {"head_share_03": Estimate(0.5, 0.4, 0.6, 8), "late": Estimate.missing("too few queries")}}


def dataset() -> xr.Dataset:
    mass = np.array([[0.1, np.nan, 0.3], [0.4, 0.5, 0.9]], np.float32)
    return xr.Dataset(
        {
            "mass": (("layer", "head"), mass, {"long_name": "mass on position 0", "units": "1", "limit": float("inf")}),
            "kind": (("layer",), np.array(["centralized", "none"])),
            "is_sink": (("layer", "head"), mass > 0.3),
            "empty": (("layer", "band"), np.zeros((2, 0))),
        },
        coords={"layer": [0, 1], "head": [0, 1, 2], "group": ("head", ["a", "bb", "c"])},
        attrs={"missing": "head 1 never saw it", "edges": (1, 2, 4)},
    )


def finished(folder, info=None):
    with RunWriter.start(folder, FINGERPRINT, info or {"model": {"name": "tiny"}, "seed": 0}) as writer:
        return writer.finish({"sinks": dataset()}, HEADLINE)


def test_what_is_written_is_read_back(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finished(tmp_path / "run")
        survey = open_run(tmp_path / "run")
        survey.verify()
    expected = dataset()
    assert list(survey) == ["sinks"]
    assert list(survey["sinks"].data_vars) == list(expected.data_vars)
    for name in expected.variables:
        np.testing.assert_array_equal(survey["sinks"][name].values, expected[name].values)
        assert survey["sinks"][name].values.dtype.kind == expected[name].values.dtype.kind
    assert survey["sinks"]["mass"].dtype == np.float32
    assert survey["sinks"].attrs == {"missing": "head 1 never saw it", "edges": [1, 2, 4]}
    assert survey["sinks"]["mass"].attrs["limit"] is None
    assert survey.headline["sinks"]["head_share_03"] == Estimate(0.5, 0.4, 0.6, 8)
    assert survey.headline["sinks"]["late"].is_missing
    assert survey.headline["sinks"]["late"].reason == "too few queries"
    assert survey.info["status"] == "complete"
    assert survey.info["versions"]["numpy"] == np.__version__
    assert not (tmp_path / "run" / "parts").exists()


def test_everything_written_as_json_is_strict(tmp_path):
    finished(tmp_path / "run", {"model": {"name": "tiny", "factor": float("nan")}, "far": float("inf"), "dtype": np.float32(1.5)})

    def refuse(name):
        raise AssertionError(name)

    for path in tmp_path.rglob("*.json"):
        json.loads(path.read_text(), parse_constant=refuse)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["model"]["factor"] is None
    assert record["missing"] == {"model.factor": "not a number", "far": "infinite"}
    assert record["dtype"] == 1.5


def test_in_memory_and_saved_later(tmp_path):
    survey = finished(None)
    assert survey.path is None
    xr.testing.assert_identical(survey["sinks"], dataset())
    saved = survey.save(tmp_path / "run")
    assert saved.headline == survey.headline or repr(saved.headline) == repr(survey.headline)
    assert open_run(tmp_path / "run").info["model"] == {"name": "tiny"}


def test_interrupted_run_resumes_with_its_parts(tmp_path):
    with pytest.raises(KeyboardInterrupt), RunWriter.start(tmp_path / "run", FINGERPRINT, {}) as writer:  # noqa: PT012
        writer.write_part("batch-0/sinks", {"layers/first": np.arange(3.0), "flags": np.array([True])})
        raise KeyboardInterrupt
    with pytest.raises(RunError, match="complete run, but its status is 'interrupted' with 1 parts"):
        open_run(tmp_path / "run")
    with RunWriter.start(tmp_path / "run", FINGERPRINT, {}) as writer:
        assert writer.resumed
        assert writer.parts.keys() == ["batch-0/sinks"]
        assert not writer.has_part("batch-1/sinks")
        np.testing.assert_array_equal(writer.read_part("batch-0/sinks")["layers/first"], np.arange(3.0))
        writer.finish({"sinks": dataset()}, HEADLINE)
    assert len(open_run(tmp_path / "run").info["times"]["resumed"]) == 1


def test_failed_run_keeps_reason_and_parts(tmp_path):
    with pytest.raises(ValueError, match="boom"), RunWriter.start(tmp_path / "run", FINGERPRINT, {}) as writer:  # noqa: PT012
        writer.write_part("a", {"x": np.zeros(1)})
        raise ValueError("boom")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["status"], record["reason"]) == ("failed", "boom")
    with RunWriter.start(tmp_path / "run", FINGERPRINT, {}) as writer:
        assert writer.has_part("a")


def test_the_same_command_on_a_finished_run_gives_it_back(tmp_path):
    finished(tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    writer = RunWriter.start(tmp_path / "run", FINGERPRINT, {"model": "other words"})
    assert writer.survey is not None
    assert repr(writer.survey.headline) == repr(HEADLINE)
    assert (tmp_path / "run" / "run.json").read_bytes() == before


@pytest.mark.parametrize("state", ["complete", "interrupted"])
def test_another_survey_is_never_mixed_in(tmp_path, state):
    if state == "complete":
        finished(tmp_path / "run")
    else:
        RunWriter.start(tmp_path / "run", FINGERPRINT, {}).interrupt()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="another corpus, seed; choose another folder"):
        RunWriter.start(tmp_path / "run", {**FINGERPRINT, "corpus": "zzz", "seed": 1}, {})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_fingerprints_compare_by_value_whatever_their_types(tmp_path):
    RunWriter.start(tmp_path / "run", {"options": {"k": (1, 2)}, "seed": np.int64(3)}, {}).interrupt()
    assert RunWriter.start(tmp_path / "run", {"seed": 3, "options": {"k": [1, 2]}}, {}).survey is None


def test_two_writers_exclude_each_other(tmp_path):
    writer = RunWriter.start(tmp_path / "run", FINGERPRINT, {})
    with pytest.raises(RunError, match="another process is writing"):
        RunWriter.start(tmp_path / "run", FINGERPRINT, {})
    writer.interrupt()
    RunWriter.start(tmp_path / "run", FINGERPRINT, {}).interrupt()


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match="holds other files"):
        RunWriter.start(tmp_path, FINGERPRINT, {})
    with pytest.raises(RunError, match="must be a folder, got the file"):
        RunWriter.start(tmp_path / "thesis.tex", FINGERPRINT, {})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def _no_folder(run):
    import shutil

    shutil.rmtree(run)


def _no_record(run):
    (run / "run.json").unlink()


def _cut_record(run):
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text[: len(text) // 2])


def _nan_record(run):
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace("0.5", "NaN"))


def _binary_record(run):
    (run / "run.json").write_bytes(b"\xff\xfe\x00")


def _list_record(run):
    (run / "run.json").write_text("[1, 2]")


def _changed(key, value):
    def change(run):
        record = json.loads((run / "run.json").read_text())
        record[key] = value
        (run / "run.json").write_text(json.dumps(record))

    return change


def _no_store(run):
    import shutil

    shutil.rmtree(run / "survey.zarr")


def _flipped(run):
    chunk = run / "survey.zarr" / "sinks" / "mass" / "c" / "0" / "0"
    data = bytearray(chunk.read_bytes())
    data[-1] ^= 1
    chunk.write_bytes(bytes(data))


def _lost_chunk(run):
    (run / "survey.zarr" / "sinks" / "mass" / "c" / "0" / "0").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_no_folder, "no such folder"),
        (_no_record, "a folder without one"),
        (_cut_record, "damaged"),
        (_nan_record, "NaN is not JSON"),
        (_binary_record, "damaged"),
        (_list_record, "names no schema"),
        (_changed("schema", 999), "newer gnomon"),
        (_changed("schema", 0), "older gnomon"),
        (_changed("status", "running"), "its status is 'running'"),
        (_changed("status", "done"), "statuses"),
        (_changed("headline", 3), "damaged"),
        (_changed("headline", {"sinks": {"x": 1}}), "damaged"),
        (_changed("store", None), "damaged"),
        (_no_store, "missing"),
        (_flipped, "damaged or missing"),
        (_lost_chunk, "damaged or missing"),
    ],
)
def test_damage_is_one_sentence(tmp_path, damage, message):
    finished(tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(RunError, match=message) as caught:
        open_run(tmp_path / "run").verify()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_damaged_parts_are_not_trusted(tmp_path):
    writer = RunWriter.start(tmp_path / "run", FINGERPRINT, {})
    writer.write_part("a", {"x": np.arange(1000.0)})
    path = tmp_path / "run" / "parts" / "a.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert not writer.has_part("a")
    path.write_bytes(whole.replace(np.float64(500).tobytes(), np.float64(501).tobytes()))
    assert writer.has_part("a")
    with pytest.raises(RunError, match="delete that file"):
        writer.read_part("a")


def test_pickles_are_refused_both_ways(tmp_path):
    writer = RunWriter.start(tmp_path / "run", FINGERPRINT, {})
    with pytest.raises(TypeError, match="object array"):
        writer.write_part("a", {"x": np.array([{}], dtype=object)})
    (tmp_path / "run" / "parts").mkdir(exist_ok=True)
    np.savez(tmp_path / "run" / "parts" / "evil.npz", x=np.array([{}], dtype=object))
    with pytest.raises(RunError, match="cannot be read"):
        writer.read_part("evil")


def _full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_full_disk_loses_nothing(tmp_path, monkeypatch):
    with pytest.raises(ResourceError, match="space left"), RunWriter.start(tmp_path / "run", FINGERPRINT, {}) as writer:  # noqa: PT012
        writer.write_part("a", {"x": np.arange(3.0)})
        monkeypatch.setattr(atomic.os, "fsync", _full)
        writer.write_part("b", {"x": np.arange(3.0)})
    monkeypatch.undo()
    assert not list(tmp_path.rglob(".tmp-*"))
    with RunWriter.start(tmp_path / "run", FINGERPRINT, {}) as writer:
        assert writer.parts.keys() == ["a"]
        with monkeypatch.context() as patch:
            patch.setattr(atomic.os, "fsync", _full)
            with pytest.raises(ResourceError, match="space left"):
                writer.finish({"sinks": dataset()}, HEADLINE)
        assert writer.has_part("a")
        writer.finish({"sinks": dataset()}, HEADLINE)
    open_run(tmp_path / "run").verify()


def test_read_only_place_is_a_sentence(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(RunError, match="writable"):
        RunWriter.start(tmp_path / "run", FINGERPRINT, {})


SLOW_SURVEY = textwrap.dedent(
    """
    import sys, time
    import numpy as np, xarray as xr
    from gnomon.result import RunWriter
    from gnomon.statistics import Estimate

    folder, batches, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    computed = 0
    with RunWriter.start(folder, {"batches": batches}, {}) as writer:
        for batch in range(batches):
            key = f"{batch:03d}"
            if not writer.has_part(key):
                time.sleep(pause)
                writer.write_part(key, {"x": np.full(4, float(batch))})
                computed += 1
                print("wrote", key, flush=True)
        values = np.stack([writer.read_part(f"{batch:03d}")["x"] for batch in range(batches)])
        writer.finish({"m": xr.Dataset({"x": (("sequence", "layer"), values)})}, {"m": {"mean": Estimate(float(values.mean()))}})
    print("computed", computed, flush=True)
    """
)


def _run_slow(folder, batches, pause):
    return subprocess.Popen(
        [sys.executable, "-c", SLOW_SURVEY, str(folder), str(batches), str(pause)], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_killed_run_resumes_where_it_stopped_and_gives_the_same_numbers(tmp_path, stop):
    process = _run_slow(tmp_path / "run", 6, 0.3)
    written = [process.stdout.readline(), process.stdout.readline()]
    os.kill(process.pid, stop)
    written += process.stdout.readlines()
    process.wait(10)
    done = sum(line.startswith("wrote") for line in written)
    assert process.returncode != 0
    assert 2 <= done < 6
    with pytest.raises(RunError, match="complete run"):
        open_run(tmp_path / "run")
    out, _ = _run_slow(tmp_path / "run", 6, 0).communicate(timeout=30)
    assert f"computed {6 - done}" in out
    np.testing.assert_array_equal(open_run(tmp_path / "run")["m"]["x"].values, np.arange(6.0)[:, None].repeat(4, 1))


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_a_run_or_the_means_to_finish_it(tmp_path):
    pauses = np.linspace(0.3, 1.0, 6)
    for index, pause in enumerate(pauses):
        folder = tmp_path / f"run-{index}"
        process = _run_slow(folder, 40, 0.002)
        time.sleep(float(pause))
        process.kill()
        process.wait(10)
        out, _ = _run_slow(folder, 40, 0).communicate(timeout=30)
        assert "computed" in out
        open_run(folder).verify()
        assert not list(folder.rglob(".tmp-*"))
