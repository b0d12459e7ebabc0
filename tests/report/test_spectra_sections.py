"""The terminal's account of spectra and phases, and spectra beside published rows."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from gnomon.measure.spectra import Spectra
from gnomon.report.published_spectra import ROWS, nearest_rows, same_model
from gnomon.report.terminal import against, phase, spectra
from gnomon.result import Survey
from gnomon.statistics import Estimate
from tests.oracle.given import finished, view_of, windows_of


def text_of(renderable, width=160):
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def survey_of(headline, datasets=None, name="smollm2-135m"):
    info = {"model": {"name": name}, "scheme": {"kind": "rope"}, "anatomy": {"num_parameters": 135e6}}
    return Survey(info, headline, {key: lambda value=value: value for key, value in (datasets or {}).items()})


@pytest.fixture(scope="module")
def measured():
    rows = np.random.default_rng(0).gamma(0.5, size=(4, 3, 1, 130))
    matrix = np.broadcast_to(rows / rows.sum(-1, keepdims=True), (4, 3, 130, 130)).copy()
    dataset = finished(
        Spectra(num_permutations=19), [view_of(matrix, causal=False)], windows_of([130, 130, 130, 40], 130), causal=False
    )
    return dataset, Spectra().headline(dataset)


def test_section_shows_both_conventions_strata_and_what_is_missing(measured):
    dataset, headline = measured
    shown = text_of(spectra.section(survey_of({"spectra": headline}, {"spectra": dataset})))
    for words in (
        "Low frequencies beyond shuffled positions",
        "calibrated",
        "paper",
        "32-63",
        "128-255",
        "shorter than 128 tokens",
    ):
        assert words in shown
    assert "untrained" not in shown


def test_section_shows_the_untrained_control_when_there_is_one(measured):
    dataset, headline = measured
    control = {key: value._replace(value=0.123) for key, value in headline.items()}
    shown = text_of(spectra.section(survey_of({"spectra": headline, "spectra__untrained": control}, {"spectra": dataset})))
    assert "untrained" in shown
    assert "0.123" in shown


def test_answer_says_why_there_is_none():
    answer = spectra.answer({"calibrated/low_share_excess": Estimate.missing("no text is long enough")})
    assert "unknown (no text is long enough)" in answer.plain


def test_beside_published_rows_marked_as_other_models():
    headline = {"spectra": {"paper/spectral_entropy": Estimate(2.8, 2.7, 2.9, 72)}}
    shown = text_of(against.against_paper(survey_of(headline)), width=220)
    assert "2.8 [2.7, 2.9]" in shown
    assert "Pythia-160M (published, another model)" in shown
    same = text_of(against.against_paper(survey_of(headline, name="EleutherAI/pythia-160m-deduped")), width=220)
    assert "Pythia-160M (published)" in same


def test_without_spectra_it_says_what_to_survey():
    assert "--measures spectra" in text_of(against.against_paper(survey_of({"sinks": {}})))


def test_nearest_rows_prefer_the_model_then_the_scheme_then_the_size():
    assert nearest_rows("openai-community/gpt2", "learned", 124e6)[0].model == "gpt2"
    assert [row.scheme for row in nearest_rows("x", "learned", 3e8, 2)] == ["learned", "learned"]
    assert nearest_rows("x", "rope", 8e9)[0].model == "Llama-3.1-8B"
    assert same_model("meta-llama/Llama-3.2-1B", next(row for row in ROWS if row.model == "Llama-3.2-1B"))
    assert len(ROWS) == 17


def test_phase_section_has_its_three_tables():
    phases = np.linspace(-2, 3, 8)
    names = [f"local_{name}_{planes}_by_text" for name in ("entropy", "peak", "norm") for planes in ("rotary", "other")]
    dataset = xr.Dataset(
        {name: (("sequence", "phase"), np.ones((3, 8))) for name in names}, {"phase": phases}, {"frequencies": "the model's own"}
    )
    headline = {"phase": {"harmonics/added_output": Estimate(0.04, 0.03, 0.05, 12)}}
    shown = text_of(phase.section(survey_of(headline, {"phase": dataset})))
    for words in ("one token repeated", "total harmonic distortion", "0.04 [0.03, 0.05]", "phase in degrees", "other planes"):
        assert words in shown
