"""Every branch of every claim's rule, on made-up runs with known numbers."""

import json

import numpy as np
import pytest
import xarray as xr

from gnomon.errors import ConfigError
from gnomon.statistics import Estimate
from gnomon.study.claims import LEDGER, VERDICTS, Evidence, Verdict, choose_claims, judge
from gnomon.study.claims.plan import claims_json, read_runs, write_claims
from tests.claims.made_up import BANDS, LEARNED, NTK, ROPE, WINDOW, bounded, frames_run, leakage_run, number, run

YES, NO, OPEN, NONE = VERDICTS
HEADS = ("layer", "head")
ALIBI = {"kind": "alibi", "rope_layers": [False], "windows": [None]}


def verdict(claim: str, *surveys) -> Verdict:
    """The last verdict on a claim: that on all models or on a training where there is one."""
    return judge(surveys, choose_claims(claim))[-1]


def sinks_run(first: float, count: float, untrained: float | None = None):
    """Sinks at position 0 and anywhere, the same in every head."""
    datasets = {}
    for name, share in {"frames": first, "frames__untrained": untrained}.items():
        if share is not None:
            made = {
                **bounded("sink_first", np.full((4, 4), share), HEADS, 0.005),
                **bounded("sinks", np.full((4, 4), count), HEADS, 0.005),
            }
            datasets[name] = xr.Dataset(made, attrs={"sequences_answered": 32})
    return run({key: {} for key in datasets}, datasets, kind="sentences")


def phase(entropy: float, norm: float, scheme=ROPE):
    numbers = {
        "alignment/local_entropy_quarter_beyond_other": number(entropy),
        "alignment/local_norm_quarter_beyond_other": number(norm),
        "oscillation/stream_contrast_after_first": number(entropy),
        "harmonics/added_output": number(entropy),
    }
    return run({"phase": numbers}, scheme=scheme)


def spectra(
    untrained: float | None = 0.98, low: float = 0.7, slope: float = -0.2, rho: float = -0.5, shuffled: float = -0.97, drift=0.0
):
    rng = np.random.default_rng(0)
    window = 0.85 + drift * np.array([0, 0.5, 1]) + rng.normal(0, 0.003, (24, 3))
    window[:6, 2] = np.nan
    dataset = xr.Dataset({"paper_window_entropy_by_text": (("sequence", "window"), window)}, {"window": [16, 32, 64]})
    numbers = {
        "paper/low_share": number(low),
        "paper/low_share_shuffled": number(0.4),
        "paper/mid_share": number(0.2),
        "paper/high_share": number(0.1),
        "paper/low_share_depth": number(slope),
        "paper/rho": number(rho),
        "paper/rho_shuffled": number(shuffled),
        "paper/reconstruction_error": Estimate(1.3e-7, 1.2e-7, 1.4e-7, 24),
        "paper/reconstruction_error_float64": Estimate(4e-16, 3e-16, 5e-16, 24),
    }
    headline = {"spectra": numbers}
    if untrained is not None:
        headline["spectra__untrained"] = {"paper/low_share": number(untrained), "paper/low_share_depth": number(-0.05)}
    return run(headline, {"spectra": dataset}, kind="passages")


def likelihood(plain: float, partial: float, matched: float, trend: float, p: float = 0.001, **facts):
    numbers = {
        "correlation_held_out": number(plain),
        "partial_held_out": number(partial),
        "correlation": number(plain),
        "correlation_p": Estimate(p, n=300),
        "perturbed_lowest_minus_highest_matched": number(matched),
        "perturbed_trend_matched": number(trend),
    }
    return run({"likelihood": numbers}, **facts)


def invariance(error: float, tolerance: float = 5e-4, scheme=ROPE):
    dataset = xr.Dataset(
        {"logit_error": (("shift", "layer"), np.full((2, 4), error)), "tolerance": (("shift",), np.full(2, tolerance))},
        {"shift": [1, 32]},
    )
    return run({"invariance": {"logit_error": Estimate(error, n=4)}}, {"invariance": dataset}, scheme=scheme)


def trajectory(deviation: float = 0.0, accuracy: float = 0.6, **facts):
    dataset = xr.Dataset(
        {"value_between": (("layer",), [0.1, 0.2]), "value_within": (("layer",), [0.0, 0.0])},
        attrs={"tolerance": 5e-5, "chance": 0.1},
    )
    numbers = {"deviation": Estimate(deviation, n=8), "accuracy_later": number(accuracy, 0.1, 6)}
    return run({"trajectory": numbers}, {"trajectory": dataset}, **facts)


def intervention(removed: float, beyond: float, loss: float, control: float = 0.1, kind: str = "windows"):
    labels = ["none", "bos=mean", "bos=noise", "top:2", "top:2 control"]
    made = {}
    for end, shift in (("", 0.0), ("_low", -0.01), ("_high", 0.01)):
        gone = np.full((5, 3), np.nan)
        gone[1:, 0] = removed
        against = np.full((5, 3), np.nan)
        against[3, 0] = beyond
        made[f"removed_residual{end}"] = (("condition", "query_band"), gone + shift)
        made[f"beyond_control{end}"] = (("condition", "query_band"), against + shift)
        made[f"loss_change{end}"] = (("condition",), np.array([np.nan, 0.2, 0.2, loss, control]) + shift)
    dataset = xr.Dataset(made, {"condition": labels, "query_band": BANDS})
    dataset["num_sequences"] = 32
    return run({"intervention": {"bos=mean/removed_early": number(removed)}}, {"intervention": dataset}, kind=kind)


@pytest.mark.parametrize(
    ("claim", "survey", "expected"),
    [
        ("A1", invariance(1e-6), YES),
        ("A1", invariance(0.1), NO),
        ("A1", invariance(0.3, scheme=LEARNED), NO),
        ("A1", invariance(0.01, tolerance=0.25), OPEN),
        ("A1", invariance(0.0, scheme=ALIBI), NONE),
        ("A2", leakage_run(number(0.1)), YES),
        ("A2", leakage_run(number(0.1), p=0.3), OPEN),
        ("A2", leakage_run(Estimate(0.1, -0.1, 0.3, 32)), OPEN),
        ("A2", leakage_run(Estimate(0.0, -2e-4, 2e-4, 32)), NO),
        ("A2", leakage_run(number(0.1), kind="passages"), OPEN),
        ("A2", leakage_run(number(0.1), scheme=LEARNED), NONE),
        ("A2", leakage_run(number(0.1), causal=False), NONE),
        ("A3", leakage_run(number(0.1)), YES),
        ("A3", leakage_run(number(0.1), causal=False), NONE),
        ("A4", leakage_run(number(0.1)), YES),
        ("A4", leakage_run(number(-0.1)), NO),
        ("A5", trajectory(), YES),
        ("A5", trajectory(deviation=0.5), NO),
        ("A5", trajectory(deviation=0.5, causal=False), NONE),
        ("A6", intervention(0.3, 0.2, 0.5), YES),
        ("A6", intervention(0.3, -0.2, 0.5), YES),
        ("A6", intervention(0.3, 0.2, 0.11), OPEN),
        ("A6", intervention(0.3, 0.0, 0.5), NO),
        ("A6", intervention(0.3, 0.2, -0.5), NO),
        ("A8", intervention(0.3, 0.2, 0.5), YES),
        ("A8", intervention(-0.3, 0.2, 0.5), NO),
        ("A8", intervention(0.005, 0.2, 0.5), OPEN),
        ("A8", intervention(0.3, 0.2, 0.5, kind="sentences"), OPEN),
        ("A9", trajectory(), YES),
        ("A9", trajectory(accuracy=0.15), OPEN),
        ("B1", frames_run("centralized", number(0.9)), YES),
        ("B1", frames_run("none", number(0.9)), NO),
        ("B1", sinks_run(0.05, 1.0), OPEN),
        ("B1", sinks_run(0.5, 1.0, untrained=0.1), YES),
        ("B1", sinks_run(0.5, 1.0, untrained=0.5), OPEN),
        ("B2", run({"sinks": {"position_0_mass": number(0.4), "position_0_uniform": number(0.03)}}), YES),
        ("B2", run({"sinks": {"position_0_mass": number(0.2), "position_0_uniform": number(0.03)}}), NO),
        ("B2", run({"sinks": {"position_0_mass": number(0.3), "position_0_uniform": number(0.03)}}), OPEN),
        ("B2", run({"sinks": {"position_0_mass": number(0.01), "position_0_uniform": number(0.1)}}), NO),
        ("B3", frames_run("distributed", number(0.9)), YES),
        ("B3", frames_run("none", number(0.9)), NO),
        ("B3", frames_run("centralized", number(0.5)), OPEN),
        ("B4", frames_run("centralized", number(0.9)), YES),
        ("B4", frames_run("none", number(0.9)), OPEN),
        ("B5", frames_run("centralized", number(0.9)), YES),
        ("B6", run({"values": {"write_ratio": number(0.3)}}), YES),
        ("B6", run({"values": {"write_ratio": number(1.0)}}), NO),
        ("B6", run({"values": {"write_ratio": number(1.0, 0.3)}}), OPEN),
        ("B7", frames_run("centralized", number(0.9)), OPEN),
        ("B7", frames_run("distributed", number(0.9)), NO),
        ("B7", frames_run("centralized", number(0.9), scheme=ALIBI), NONE),
        ("C1", spectra(), NO),
        ("C1", spectra(untrained=0.5), YES),
        ("C1", spectra(untrained=0.5, low=0.95), NO),
        ("C1", spectra(untrained=None), OPEN),
        ("C2", spectra(), YES),
        ("C2", spectra(slope=-0.025), NO),
        ("C2", spectra(slope=0.2), NO),
        ("C2", spectra(untrained=None), OPEN),
        ("C3", spectra(), NO),
        ("C3", spectra(shuffled=-0.1), YES),
        ("C3", spectra(shuffled=-0.51), OPEN),
        ("C6", spectra(), NO),
        ("C7", spectra(), YES),
        ("C7", spectra(drift=-0.2), NO),
        ("P1", phase(0.4, 0.1), YES),
        ("P1", phase(-0.4, 0.1), NO),
        ("P1", phase(0.4, 0.1, ALIBI), NONE),
        ("P2", phase(0.4, 0.1, ALIBI), YES),
        ("P2", phase(-0.4, 0.1), NO),
        ("P3", phase(-0.4, 0.1), YES),
        ("P3", phase(0.4, 0.1), NO),
        ("P3", phase(-0.4, 0.0), OPEN),
        ("P3", phase(-0.4, 0.1, ALIBI), NONE),
        ("D1", likelihood(0.5, 0.3, 0, 0), YES),
        ("D1", likelihood(0.5, 0.3, 0, 0, p=0.2), OPEN),
        ("D1", likelihood(0.5, -0.3, 0, 0), NO),
        ("D1", likelihood(0.5, 0.0, 0, 0), NO),
        ("D1", likelihood(0.5, 0.3, 0, 0, head=None), NONE),
        ("D2", likelihood(0, 0, -0.1, -0.1), YES),
        ("D2", likelihood(0, 0, -0.1, 0.0), OPEN),
        ("D2", likelihood(0, 0, 0.1, -0.1), NO),
        ("D2", likelihood(0, 0, -0.1, -0.1, kind="windows", head=None), NONE),
    ],
)
def test_each_branch(claim, survey, expected):
    found = verdict(claim, survey)
    assert found.verdict == expected, found.why
    assert found.why
    assert found.rule == next(one.rule for one in LEDGER if one.id == claim)
    if expected in (YES, NO):
        assert found.sources, "a verdict says where it was read"
        assert found.effect is not None


def family(residual: float, growth: float, scheme, name: str, **facts):
    return leakage_run(number(residual), growth=growth, scheme=scheme, name=name, **facts)


def test_a7_orders_schemes():
    plain, ntk, window = family(0.2, 0.1, ROPE, "p"), family(0.1, 0.1, NTK, "n"), family(0.2, 0.4, WINDOW, "w")
    assert verdict("A7", plain, ntk, window).verdict == YES
    assert verdict("A7", plain, ntk, window, family(0.15, 0.1, NTK, "n2")).verdict == YES
    assert verdict("A7", plain, ntk).verdict == OPEN, "nothing is said of windows"
    assert verdict("A7", plain, family(0.5, 0.1, NTK, "n"), window).verdict == NO
    assert verdict("A7", plain, ntk, family(0.2, 0.0, WINDOW, "w")).verdict == NO
    assert verdict("A7", plain, family(0.195, 0.1, NTK, "n"), window).verdict == OPEN
    assert verdict("A7", plain, family(0.1, 0.1, NTK, "n", num_layers=8), window).verdict == OPEN, "another shape"
    assert verdict("A7", plain).verdict == NONE
    assert verdict("A7", plain, family(0.1, 0.1, ALIBI, "a")).verdict == NONE


def test_b7_over_schemes():
    centre, spread = (
        frames_run("centralized", number(0.9), name="a"),
        frames_run("distributed", number(0.9), name="b", scheme=NTK),
    )
    ends = frames_run("bidirectional", number(0.9), name="c", scheme=LEARNED, causal=False)
    assert verdict("B7", centre, spread, ends).verdict == YES
    assert len(judge([centre, spread, ends], choose_claims("B7"))) == 4
    wrong = frames_run("centralized", number(0.9), name="c", scheme=LEARNED, causal=False)
    assert verdict("B7", centre, spread, wrong).verdict == NO
    assert verdict("B7", centre, frames_run("distributed", number(0.5), name="b", scheme=NTK)).verdict == OPEN
    assert verdict("B7", centre, frames_run("centralized", number(0.9), name="d")).verdict == NONE, "one scheme only"


def training(framed: list[bool], steps: list[int]):
    made = []
    for there, step in zip(framed, steps, strict=True):
        made.append(frames_run("centralized" if there else "none", number(0.9), name="t", step=step))
    return made


def test_b8_emergence():
    early = verdict("B8", *training([False, False, True, True, True], [0, 8, 64, 512, 1000]))
    assert early.verdict == YES
    assert (early.low, early.effect, early.high, early.null) == (8, 64, 64, 100)
    assert verdict("B8", *training([False, False, False, True, True], [0, 8, 64, 512, 1000])).verdict == OPEN, (
        "between 64 and 512"
    )
    assert verdict("B8", *training([False, False, True, False, True], [0, 8, 64, 512, 1000])).verdict == NO, "it did not stay"
    assert verdict("B8", *training([False] * 5, [0, 8, 64, 512, 1000])).verdict == NO
    assert verdict("B8", *training([False, True, True], [0, 8, 64])).verdict == OPEN
    assert verdict("B8", *training([True], [1000])).verdict == NONE


def checkpoints(entropy: list[float], selectivity: list[float]):
    return [
        run(
            {"spectra": {"paper/spectral_entropy": number(e), "paper/selectivity": number(s)}},
            kind="passages",
            name="t",
            step=step,
        )
        for step, (e, s) in enumerate(zip(entropy, selectivity, strict=True))
    ]


def test_c5_phases():
    peak = verdict("C5", *checkpoints([2.2, 3.5, 3.2, 3.0], [0.7, 0.2, 0.3, 0.4]))
    assert peak.verdict == YES
    assert (peak.low, peak.effect, peak.high) == (0, 1, 2)
    assert verdict("C5", *checkpoints([2.2, 2.5, 3.2, 3.5], [0.7, 0.2, 0.3, 0.4])).verdict == NO
    assert verdict("C5", *checkpoints([2.2, 3.01, 2.9, 3.0], [0.7, 0.2, 0.3, 0.4])).verdict == OPEN
    assert verdict("C5", *checkpoints([2.2, 3.5, 3.0], [0.7, 0.2, 0.4])).verdict == OPEN


def scaled(value: float, scheme, name: str, **facts):
    return run({"scale": {"calibrated/0.5": number(value)}}, kind="passages", scheme=scheme, name=name, **facts)


def test_c4_scale():
    rope, other = scaled(0.1, ROPE, "r"), scaled(0.4, ALIBI, "a")
    assert verdict("C4", rope, other).verdict == YES
    assert verdict("C4", rope, other, scaled(0.05, LEARNED, "l")).verdict == NO
    assert verdict("C4", rope, scaled(0.105, ALIBI, "a")).verdict == OPEN
    assert verdict("C4", rope, scaled(0.4, ALIBI, "a", hidden_size=8)).verdict == OPEN, "another shape"
    assert verdict("C4", rope, scaled(0.4, LEARNED, "b", causal=False)).verdict == NONE, "another mask"


def sized(value: float, size: float):
    headline = {"spectra": {"paper/spectral_entropy": number(value)}}
    return run(headline, kind="passages", name=f"m{size}", num_parameters=size, architecture="Neo")


def test_c8_size():
    assert verdict("C8", sized(2.0, 1e6), sized(2.4, 1e7), sized(2.8, 1e8)).verdict == YES
    assert verdict("C8", sized(2.0, 1e6), sized(2.4, 1e7), sized(2.005, 1e8)).verdict == NO
    assert verdict("C8", sized(2.0, 1e6), sized(2.4, 1e7)).verdict == NONE


def test_what_was_not_measured_is_inconclusive_and_says_so():
    found = judge(run(), LEDGER)
    assert {one.verdict for one in found} == {OPEN, NONE}
    for one in found:
        assert one.why.startswith(("not measured: needs", "needs several")), f"{one.id}: {one.why}"
    assert [one.id for one in found] == [claim.id for claim in LEDGER]


def test_every_claim_is_whole():
    assert len({claim.id for claim in LEDGER}) == len(LEDGER) == 30
    for claim in LEDGER:
        assert claim.judge or claim.judge_models or claim.judge_training
        assert "upported when" in claim.rule or "upported only when" in claim.rule or "As A2" in claim.rule, claim.id
        assert claim.null
        assert claim.published
        assert claim.differs
        assert claim.measures


def test_choosing():
    assert [claim.id for claim in choose_claims("B2,A1")] == ["A1", "B2"]
    assert {claim.id[0] for claim in choose_claims("p")} == {"P"}
    assert choose_claims(None) == LEDGER
    with pytest.raises(ConfigError, match="`only` must name claims among A1"):
        choose_claims("A1,Z9")


def test_runs_of_one_model_answer_together():
    several = [leakage_run(number(0.1)), invariance(1e-6), frames_run("centralized", number(0.9))]
    assert len(Evidence.of(several).subjects) == 1
    found = {one.id: one.verdict for one in judge(several, choose_claims("A1,A2,B3"))}
    assert found == {"A1": YES, "A2": YES, "B3": YES}


def test_leakage_is_read_from_windows_where_there_are_any():
    wrong, right = leakage_run(number(-0.1), kind="passages"), leakage_run(number(0.1))
    assert verdict("A4", wrong, right).verdict == YES


def test_of_a_training_the_last_step_is_judged():
    first, last = leakage_run(number(-0.1), name="t", step=0), leakage_run(number(0.1), name="t", step=10)
    found = judge([last, first], choose_claims("A4"))
    assert [(one.verdict, one.model) for one in found] == [(YES, "t, step 10")]


def test_strict_json_round_trip():
    found = judge([leakage_run(number(0.1)), trajectory()])
    text = claims_json(found)
    tree = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [Verdict.from_json(row) for row in tree] == found
    assert {"id", "verdict", "effect", "low", "high", "null", "n", "published", "rule", "sources", "why", "differs"} <= set(
        tree[0]
    )


def test_a_run_of_another_version_says_nothing():
    old = run(
        {"frames": {"score": number(0.9)}}, {"frames": xr.Dataset()}, kind="sentences", labels={"frames": {"kind": "centralized"}}
    )
    graph = run({"graph": {}}, {"graph": xr.Dataset()}, kind="sentences")
    found = verdict("B4", old, graph)
    assert found.verdict == OPEN
    assert "another version" in found.why


def test_a_verdict_is_one_of_four_words():
    with pytest.raises(ValueError, match="`verdict` must be one of supported"):
        Verdict(id="A1", paper="", statement="", model="m", verdict="perhaps", rule="", why="")


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("spread", [0.05, 0.3, 1.0, 3.0])
def test_chance_of_a_sink_at_position_0_is_what_the_rule_says(causal, spread):
    import torch

    from gnomon.kernels.problem import MaskStructure
    from gnomon.measure.anchors import sampled_queries, sink_shares, visible_rows
    from gnomon.study.claims.reference import CHANCE

    generator = torch.Generator().manual_seed(0)
    shares = []
    for length in (6, 9, 14, 22, 36, 50, 128):
        mask = MaskStructure(causal=causal, lengths=torch.tensor([length]))
        queries = sampled_queries(mask, length)
        visible = visible_rows(mask, queries, length)
        logits = spread * torch.randn(1, 300, len(queries), length, generator=generator)
        rows = torch.softmax(logits.masked_fill(~visible[:, None], -1e9), -1) * visible[:, None]
        shares.append(float((sink_shares(rows, visible, (0.9,))[0][..., 0] >= 0.4).float().mean()))
    assert np.mean(shares) < CHANCE


def test_claims_judged_anew_replace_themselves_alone(tmp_path):
    write_claims(judge([trajectory()], choose_claims("A1,A5,D1")), tmp_path)
    path = write_claims(judge([trajectory(deviation=0.5)], choose_claims("A5")), tmp_path, keep=True)
    kept = json.loads(path.read_text())
    assert [(row["id"], row["verdict"]) for row in kept] == [("A1", OPEN), ("A5", NO), ("D1", OPEN)]
    write_claims(judge([trajectory()], choose_claims("A5")), tmp_path)
    assert [row["id"] for row in json.loads(path.read_text())] == ["A5"]


def test_checkpoints_of_a_sweep_get_their_steps(tmp_path):
    from gnomon.result import RunWriter

    def written(folder, headline, **info):
        with RunWriter.start(tmp_path / "sweep" / folder, {"of": folder}, info) as writer:
            writer.finish({}, headline)

    for name in ("first", "last"):
        written(f"checkpoints/{name}", {"sinks": {"x": number(1)}}, model={"name": f"/models/{name}", "weights": name})
    sweep = {"runs": {"first": "checkpoints/first", "last": "checkpoints/last"}, "steps": {"first": 0, "last": 100}}
    written("summary", {"evolution": {}}, model={"name": "mine over 2 checkpoints"}, evolve=sweep)
    evidence = Evidence.of(read_runs(tmp_path / "sweep"))
    assert [subject.label for subject in evidence.trainings[0]] == ["mine, step 0", "mine, step 100"]
    assert [subject.label for subject in evidence.models] == ["mine, step 100"]
    assert len(evidence.subjects) == 2, "the summary is no model"
