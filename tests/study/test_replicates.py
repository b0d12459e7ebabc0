"""Headlines with groups left out: they are what a survey without those sequences says, and give the intervals of paired differences."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon.corpus import CorpusSpec, build_corpus
from gnomon.measure.protocol import Measure
from gnomon.statistics.jackknife import jackknife_mean
from gnomon.study.opening import open_model
from gnomon.study.registry import BUILT_IN, make
from gnomon.study.replicates import group_of_each, record_of, replicated
from gnomon.study.survey import survey
from tests.families.configs import FAMILIES

FAMILY = FAMILIES["llama"]
OBSERVING = ["sinks", "attention", "norms", "leakage", "reads", "frames", "matrix"]


@pytest.fixture(scope="module")
def model():
    return open_model(FAMILY.build(), tokenizer=FAMILY.tokenizer())


@pytest.fixture(scope="module", params=["windows", "passages"])
def windows(request):
    lengths = {"shortest": 20, "longest": 90} if request.param == "passages" else {}
    return build_corpus(CorpusSpec(kind=request.param, sequences=8, length=80, **lengths), FAMILY.tokenizer())


@pytest.fixture(scope="module")
def run(model, windows):
    return survey(model, corpus=windows, measures=OBSERVING, replicates=True)


def test_every_headline_with_bounds_has_a_value_without_each_group(run):
    kept = run.info["replicates"]
    assert kept["groups"] == 8
    for measure in OBSERVING:
        bounded = {key for key, number in run.headline[measure].items() if np.isfinite([number.low, number.high]).all()}
        assert set(kept["values"][measure]) == bounded
        assert all(len(values) == 8 for values in kept["values"][measure].values())


def test_they_are_what_a_survey_of_the_other_sequences_says(model, windows, run):
    others = windows.take(np.flatnonzero(np.arange(8) != 3))
    expected = survey(model, corpus=others, measures=["sinks", "attention"]).headline
    for measure in ("sinks", "attention"):
        for key, values in run.info["replicates"]["values"][measure].items():
            assert values[3] == pytest.approx(expected[measure][key].value, abs=1e-6), key


def test_the_mean_over_sequences_is_jackknifed_as_it_should_be(run, model, windows):
    each = [
        survey(model, corpus=windows.take([index]), measures=["attention"]).headline["attention"]["entropy"].value
        for index in range(8)
    ]
    kept = run.info["replicates"]["values"]["attention"]["entropy"]
    np.testing.assert_allclose(kept, jackknife_mean(np.array(each)).without, atol=1e-5)


def test_measures_look_at_the_same_places_with_a_part_of_the_text(model, windows):
    """The grid of leakage is laid out for all windows, also where the longest are left out."""
    longest = int(windows.lengths.argmax())
    run = survey(model, corpus=windows, measures=["leakage"], replicates=True)
    dataset = run["leakage"]
    kept = run.info["replicates"]["values"]["leakage"]
    assert np.isfinite([kept["total_early"][longest]]).all()
    assert kept["total_early"][longest] == pytest.approx(float(dataset["model_total"].isel(query_band=0)), rel=2)


def test_every_measure_finishes_on_a_part(model):
    """Whatever looks on can be replicated, so that every comparison of it is paired."""
    from gnomon.study.observing import observe

    class Memory(dict):
        has_part = dict.__contains__
        read_part = dict.__getitem__
        write_part = dict.__setitem__

    windows = build_corpus(CorpusSpec(sequences=4, length=40), FAMILY.tokenizer())
    names = [name for name, entry in BUILT_IN.items() if issubclass(entry.load(), Measure) and name != "spectra"]
    measures = make(names)
    seen = observe(model, windows, measures, batch_size=4, seed=0, parts=Memory())
    for name, measure in measures.items():
        headline = measure.headline(measure.finish(seen[name]))
        kept = replicated(measure, seen[name], headline)
        assert all(len(values) == 4 for values in kept.values()), name
        assert kept or not any(np.isfinite(number.low) for number in headline.values()), name


def test_groups_are_dealt_evenly_and_too_few_sequences_have_none():
    assert np.bincount(group_of_each(32)).tolist() == [2] * 16
    assert sorted(np.bincount(group_of_each(20)).tolist()) == [1] * 12 + [2] * 4
    assert group_of_each(4).tolist() == [0, 1, 2, 3]
    assert not len(group_of_each(3))
    assert record_of(3, {}) == {"groups": 0, "values": {}}


def test_a_run_without_them_is_another_run(model, tmp_path):
    from gnomon.errors import RunError

    spec = CorpusSpec(sequences=4, length=24)
    survey(model, corpus=spec, measures="sinks", out=tmp_path / "run")
    with pytest.raises(RunError, match="another replicates"):
        survey(model, corpus=spec, measures="sinks", out=tmp_path / "run", replicates=True)
