"""Runs that no model made, with the few numbers that a rule reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from gnomon.result import Survey
from gnomon.statistics import Estimate

ROPE = {"kind": "rope", "rope_layers": [True], "rope_bases": [1e4], "windows": [None]}
NTK = {**ROPE, "rope_bases": [1e6]}
WINDOW = {**ROPE, "windows": [64]}
LEARNED = {"kind": "learned", "rope_layers": [False], "windows": [None]}
BANDS = ["early", "middle", "late"]
KINDS = ["none", "centralized", "distributed", "bidirectional"]


def number(value: float, half: float = 0.01, n: int = 32) -> Estimate:
    """A value with its interval."""
    return Estimate(value, value - half, value + half, n)


def run(
    headline: Mapping[str, Mapping[str, Estimate]] | None = None,
    datasets: Mapping[str, xr.Dataset] | None = None,
    *,
    name: str = "made-up",
    scheme: Mapping[str, Any] = ROPE,
    kind: str = "windows",
    labels: Mapping[str, Mapping[str, str]] | None = None,
    step: float | None = None,
    **anatomy: Any,
) -> Survey:
    """A survey with these numbers and a record as real ones have."""
    info: dict[str, Any] = {
        "model": {"name": name, "weights": f"{name}{step}"},
        "anatomy": {"causal": True, "head": "lm_head", "kind": "decoder", "num_layers": 4, "num_heads": 4, **anatomy},
        "scheme": dict(scheme),
        "corpus": {"length": 256, "sequences": 32, "first_token": {"placed": False}},
        "arguments": {"corpus": {"kind": kind}},
        "labels": labels or {},
    }
    if step is not None:
        info["checkpoint"] = {"step": step, "family": name}
    made = {key: (lambda dataset=dataset: dataset) for key, dataset in (datasets or {}).items()}
    return Survey(info, headline or {}, made)


def leakage_run(
    residual: Estimate, *, p: float = 0.001, total: Estimate | None = None, growth: float = 0.0, **facts: Any
) -> Survey:
    """Leakage in the early band, its growth over four layers, and a mask of 0.02."""
    total = total or residual
    headline = {
        "residual_early": residual,
        "total_early": total,
        "p_residual_early": Estimate(p, n=residual.n),
        "p_total_early": Estimate(p, n=residual.n),
    }
    layers = np.array([0.1, 0.1, 0.1 + growth, 0.1 + growth])[:, None] * np.ones(3)
    made: dict[str, Any] = {"num_sequences": (("query_band",), np.full(3, residual.n))}
    for end, shift in (("", 0.0), ("_low", -0.005), ("_high", 0.005)):
        made[f"layer_residual{end}"] = (("layer", "query_band"), layers + shift)
        made[f"model_mask_alone{end}"] = (("query_band",), np.full(3, 0.02) + shift)
        made[f"model_mask_effect{end}"] = (("query_band",), np.full(3, 0.03) + shift)
    return run({"leakage": headline}, {"leakage": xr.Dataset(made, {"query_band": BANDS})}, **facts)


def frames_run(kind: str, score: Estimate, **facts: Any) -> Survey:
    """A model of one kind; 4 x 4 heads, half of them of that kind, the others without a frame; a star and far from uniform where framed."""
    place = KINDS.index(kind)
    label = np.full((4, 4), place)
    label[2:] = 0
    framed = (label > 0).astype(float)
    scores = {end: np.zeros(4) for end in ("", "_low", "_high")}
    for end, value in zip(scores, score[:3], strict=True):
        scores[end][place] = value
        scores[{"": "", "_low": "_high", "_high": "_low"}[end]][(place + 1) % 4 if place else 1] = 1 - value
    if place:
        for end, value in zip(scores, (1 - score.value, 1 - score.high, 1 - score.low), strict=True):
            scores[end][0] = value
    frames = xr.Dataset(
        {
            "kind_of_head": (("layer", "head"), label),
            **{f"model_score{end}": (("kind",), values) for end, values in scores.items()},
            **bounded("sinks", framed, ("layer", "head"), 0.02),
            **bounded("sink_first", framed, ("layer", "head"), 0.02),
        },
        {"kind": KINDS},
        {"sequences_answered": score.n},
    )
    graph = xr.Dataset(
        bounded("star", framed[..., None] * 0.8, ("layer", "head", "threshold"), 0.05),
        {"threshold": [0.05]},
        {"sequences": 32, "headline_threshold": 0.05},
    )
    geometry = xr.Dataset(bounded("kl_visible", framed + 0.5, ("layer", "head"), 0.1), attrs={"sequences": 32})
    headline = {
        "frames": {"score": score, "null_framed": number(0.02)},
        "graph": {"centralization": number(0.8), "centralization_shuffled": number(0.2)},
        "geometry": {"js_heads": number(0.2), "js_heads_shuffled": number(0.5)},
    }
    datasets = {"frames": frames, "graph": graph, "geometry": geometry}
    return run(headline, datasets, labels={"frames": {"kind": kind}}, **{"kind": "sentences", **facts})


def bounded(name: str, values: np.ndarray, dims: tuple[str, ...], half: float) -> dict[str, Any]:
    """A variable with its bounds."""
    return {f"{name}{end}": (dims, values + shift) for end, shift in (("", 0.0), ("_low", -half), ("_high", half))}
