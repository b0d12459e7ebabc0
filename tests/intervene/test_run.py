"""The measures and experiments on position in a run folder: written, read back, resumed and printed."""

import io

import numpy as np
import pytest
from rich.console import Console

from gnomon.capture import install
from gnomon.model import PositionModel
from gnomon.report.terminal.sections import section_of
from gnomon.result import open_run
from gnomon.study.survey import survey
from tests.claims.test_position import windows
from tests.families.configs import FAMILIES

MEASURES = ["leakage", "reads", "invariance", "trajectory", "intervention"]
OPTIONS = {"intervention": {"bos": "zero", "ablate_sink_reads": "0.1,2.3"}}


@pytest.fixture(scope="module")
def model():
    family = FAMILIES["llama"]
    return install(PositionModel.of(family.build(), tokenizer=family.tokenizer(), name="llama"))


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "position"
    survey(model, corpus=windows(6), measures=MEASURES, options=OPTIONS, out=path, batch_size=6)
    return path


def test_every_section_prints_its_numbers(folder):
    run = open_run(folder)
    console = Console(file=io.StringIO(), width=160)
    for name in MEASURES:
        console.print(section_of(name, run))
    text = console.file.getvalue()
    for expected in ("residual", "carriers", "closed system", "invariant", "bos=zero", "reads=0.1,2.3 control", "128 on"):
        assert expected in text


def test_what_is_read_back_is_what_was_measured(folder, model):
    run = open_run(folder)
    again = survey(model, corpus=windows(6), measures=MEASURES, options=OPTIONS, batch_size=6)
    for name, variable in (("leakage", "residual"), ("reads", "carried"), ("intervention", "loss_change")):
        np.testing.assert_array_equal(run[name][variable].values, again[name][variable].values)
    assert run.headline["leakage"]["residual_late"].is_missing
    assert "do not reach" in run.headline["leakage"]["residual_late"].reason
    assert np.isfinite(run.headline["leakage"]["mask_early"].value)
