"""Runs that no model made: datasets with the names and dimensions of real ones, of any size, with holes where asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gnomon.result import RunWriter, Survey
from gnomon.statistics import Estimate

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\u202egnorw\u200b\x00'\"`{{7*7}}"
BANDS = ["early", "middle", "late"]
SINK_BANDS = [*BANDS, "from_32", "all"]


def bounded(
    name: str, values: np.ndarray, dims: tuple[str, ...], label: str, units: str = "1", spread: float = 0.03
) -> dict[str, Any]:
    """A variable with its interval."""
    values = np.asarray(values, dtype=np.float32)
    return {
        name: (dims, values, {"long_name": label, "units": units}),
        f"{name}_low": (dims, values - spread, {"long_name": f"{label}, lower bound", "units": units}),
        f"{name}_high": (dims, values + spread, {"long_name": f"{label}, upper bound", "units": units}),
    }


def sinks(layers: int, heads: int, rng: np.random.Generator) -> xr.Dataset:
    """Weight on position 0."""
    mass = np.clip(rng.beta(0.6, 0.8, (layers, heads)), 0.03, 0.95)
    by_band = np.clip(mass[..., None] + np.array([0.04, 0.0, -0.02, -0.01, 0.0]), 0, 1)
    thresholds = np.round(np.arange(1, 10) / 10, 1)
    above = np.stack([(mass > t).mean(1) for t in thresholds], -1)
    overall = np.stack(
        [[(part > t).mean() if len(part) else np.nan for t in thresholds] for part in (mass, *np.array_split(mass, 3))]
    )
    head = ("layer", "head")
    uniform = np.full((layers, 5), 0.02) + np.array([0.08, 0.01, 0, 0, 0.02])
    return xr.Dataset(
        {
            **bounded("position_0_mass", mass, head, "mean weight on position 0, queries from 1 on"),
            **bounded("position_0_mass_by_band", by_band, (*head, "query_band"), "mean weight on position 0 by band of queries"),
            **bounded("position_0_uniform_by_band", uniform, ("layer", "query_band"), "uniform weight", spread=0.0),
            **bounded("alpha_0", mass, head, "mean weight that position 0 gets"),
            **bounded(
                "layer_position_0_mass", by_band.mean(1), ("layer", "query_band"), "mean weight on position 0, mean over heads"
            ),
            **bounded("layer_head_share", above, ("layer", "threshold"), "share of heads", spread=0.02),
            **bounded("head_share", overall, ("depth", "threshold"), "share of heads", spread=0.02),
            **bounded("sink_rate", overall[0], ("threshold",), "sink rate", spread=0.02),
        },
        coords={
            "query_band": SINK_BANDS,
            "threshold": thresholds,
            "depth": ["all", "first_third", "middle_third", "last_third"],
        },
        attrs={"missing": "no query of this band sees position 0", "sequences": 8},
    )


def attention(layers: int, heads: int, rng: np.random.Generator) -> xr.Dataset:
    """Concentration and reach."""
    offsets = [0, 1, 2, 4, 8, 16, 32, 64]
    mass = rng.dirichlet(np.ones(8), (layers, heads))
    head = ("layer", "head")
    uniform = np.tile(np.array([1, 1, 2, 4, 8, 16, 32, 64]) / 128, (layers, 1))
    return xr.Dataset(
        {
            **bounded("relative_entropy", rng.uniform(0.1, 1, (layers, heads)), head, "entropy over its maximum"),
            **bounded("offset_mean", rng.uniform(1, 60, (layers, heads)), head, "mean offset", "tokens"),
            **bounded("offset_mass", mass, (*head, "offset_band"), "mean weight by octave of the offset"),
            **bounded("offset_mass_uniform", uniform, ("layer", "offset_band"), "the same under uniform attention", spread=0.0),
        },
        coords={"offset_band": ("offset_band", offsets, {"long_name": "smallest offset of the octave", "units": "tokens"})},
    )


def leakage(layers: int, heads: int, rng: np.random.Generator) -> xr.Dataset:
    """Components of positional leakage; the late band was not reached."""
    offsets, queries = np.array([1, 2, 4, 8, 16, 32]), np.unique(np.geomspace(2, 120, 18).astype(int))
    cell = ("layer", "head", "query_band", "offset")
    made: dict[str, Any] = {}
    for name, size in (("residual", 0.15), ("mask", 0.03), ("total", 0.2)):
        values = rng.gamma(1, size, (layers, heads, 3, 6)) * np.array([1, 0.3, np.nan])[:, None]
        made |= bounded(name, values, cell, f"{name} component", "nat^2", 0.01)
        made |= bounded(
            f"layer_{name}",
            np.where(np.isnan(values).all((1, 3)), np.nan, values.mean((1, 3))),
            ("layer", "query_band"),
            name,
            "nat^2",
            0.01,
        )
        made |= bounded(f"model_{name}", values.mean((0, 1, 3)), ("query_band",), name, "nat^2", 0.01)
    profile = np.log(queries) + rng.normal(0, 0.1, (layers, heads, len(queries)))
    made["denominator_profile"] = (
        ("layer", "head", "query"),
        profile.astype(np.float32),
        {"long_name": "mean log-denominator", "units": "nat"},
    )
    return xr.Dataset(
        made, coords={"query_band": BANDS, "offset": offsets, "query": queries}, attrs={"missing": "late: not reached"}
    )


def frames(layers: int, heads: int, rng: np.random.Generator) -> xr.Dataset:
    """Kinds of frame."""
    kinds = ["none", "centralized", "distributed", "bidirectional"]
    score = rng.dirichlet([1, 2, 0.5, 0.1], (layers, heads))
    share = np.array([[(score.argmax(-1) == k).mean() + d for d in (0, -0.02, 0.02)] for k in range(4)])
    return xr.Dataset(
        {
            **bounded("score", score, ("layer", "head", "kind"), "soft score"),
            **bounded("layer_score", score.mean(1), ("layer", "kind"), "soft score"),
            "kind_of_head": (("layer", "head"), score.argmax(-1).astype(np.int8), {"kinds": kinds}),
            "share": (("kind", "bound"), share),
            **bounded("effective", rng.uniform(1, 4, (layers, heads)), ("layer", "head"), "effective number of anchors"),
        },
        coords={"kind": kinds},
    )


def rows(layers: int, heads: int, rng: np.random.Generator) -> xr.Dataset:
    """Rows of 128 keys: eight by themselves, 48 bins, eight offsets."""
    queries = np.array([3, 5, 9, 15, 25, 44, 75, 127])
    first, last, offset = np.full((3, 64), np.nan)
    first[:8], last[:8] = np.arange(8), np.arange(8)
    edges = np.round(np.linspace(8, 128, 49)).astype(int)
    first[8:56], last[8:56] = edges[:-1], edges[1:] - 1
    offset[56:] = np.arange(7, -1, -1)
    seen = np.where(np.isnan(offset), first <= queries[:, None] - 8 * (first >= 8), queries[:, None] - np.nan_to_num(offset) >= 8)
    made: dict[str, Any] = {}
    for name in ("row", "row_example"):
        weights = rng.gamma(0.2, size=(layers, heads, 8, 64)) * seen
        weights[..., 0] += 0.5
        values = np.where(seen, weights / weights.sum(-1, keepdims=True), np.nan).astype(np.float32)
        made[name] = (("layer", "head", "query", "key_bin"), values, {"long_name": "weight", "units": "1"})
    made["row_example"][2]["sequence"] = 2
    for name, values in (("first", first), ("last", last), ("offset", offset)):
        made[f"bin_{name}"] = (("key_bin",), values.astype(np.float32), {"units": "tokens"})
    made |= bounded("likeness", rng.uniform(0.3, 1, (layers, heads)), ("layer", "head"), "likeness")
    made |= bounded("likeness_other_heads", rng.uniform(0.2, 0.7, layers), ("layer",), "likeness of two heads")
    attrs = {"bins": "keys 0 to 7 by themselves; offsets 7 to 0 by themselves", "missing": "the query sees no key of the bin"}
    return xr.Dataset(made, coords={"query": queries, "key_bin": np.arange(64)}, attrs=attrs)


def spectra(layers: int, heads: int, rng: np.random.Generator) -> xr.Dataset:
    """A calibrated spectrum of 33 bins."""
    power = rng.dirichlet(np.ones(33), (layers, heads))
    return xr.Dataset(bounded("calibrated_spectrum", power, ("layer", "head", "bin"), "share of power", spread=0.005))


def rotary(layers: int, heads: int, rng: np.random.Generator) -> xr.Dataset:
    """Sixteen rotary pairs, the first layer without rotation."""
    frequency = np.tile(10000.0 ** -(np.arange(16) / 16), (layers, 1))
    frequency[0] = np.nan if layers > 1 else frequency[0]
    shares = np.where(np.isnan(frequency)[:, None], np.nan, rng.dirichlet(np.ones(16), (layers, heads)))
    pair = ("rotary_pair",)
    return xr.Dataset(
        {
            "rotary_frequency": (("layer", *pair), frequency.astype(np.float32), {"units": "radians per token"}),
            **bounded("share", shares, ("layer", "head", *pair), "share of the variance of the logits"),
        }
    )


MAKERS = {"sinks": sinks, "attention": attention, "rows": rows, "leakage": leakage, "frames": frames}
MORE_MAKERS = {**MAKERS, "spectra": spectra, "rotary": rotary}


def headline(layers: int, heads: int) -> dict[str, dict[str, Estimate]]:
    """Numbers that go with the datasets."""
    return {
        "sinks": {
            "head_share_03": Estimate(0.41, 0.39, 0.43, 8),
            "sink_rate_03": Estimate(0.42, 0.4, 0.44, 8),
            "position_0_mass": Estimate(0.33, 0.32, 0.35, 8),
            "position_0_uniform": Estimate(0.04, 0.04, 0.04, 8),
            "other_special_mass": Estimate.missing("the text has no special token that these queries see"),
        },
        "leakage": {
            **{f"{part}_early": Estimate(0.15, 0.13, 0.18, 8) for part in ("residual", "mask", "total")},
            **{f"{part}_middle": Estimate(0.04, 0.03, 0.05, 8) for part in ("residual", "mask", "total")},
            **{f"{part}_late": Estimate.missing("not reached by this text") for part in ("residual", "mask", "total")},
        },
        "frames": {"score": Estimate(0.9, 0.85, 0.94, 8), "share_centralized": Estimate(0.6, 0.57, 0.64, 8)},
    }


def info(layers: int, heads: int, *, name: str = "made-up", hostile: bool = False) -> dict[str, Any]:
    """What the record says."""
    text = HOSTILE if hostile else "<s>"
    return {
        "command": f"gnomon survey {name}",
        "model": {"name": HOSTILE if hostile else name, "revision": None, "weights": "0" * 64},
        "anatomy": {
            "architecture": "MadeUpForCausalLM",
            "num_layers": layers,
            "num_heads": heads,
            "num_kv_heads": 1,
            "head_dim": 64,
            "causal": True,
        },
        "scheme": {"description": f"RoPE, base 10000 {HOSTILE}" if hostile else "RoPE, base 10000", "kind": "rope"},
        "corpus": {
            "source": HOSTILE if hostile else "prose",
            "digest": "1" * 64,
            "sequences": 8,
            "length": 128,
            "tokens": 1024,
            "example": {"sequence": 2, "tokens": [text, *(f"tok{i}" for i in range(1, 128))]},
            "first_token": {
                "policy": "auto",
                "placed": True,
                "id": 1,
                "text": text,
                "special": True,
                "why": "the tokenizer puts it in front of every text.",
                "warning": HOSTILE if hostile else None,
            },
        },
        "dtype": "torch.float32",
        "device": "cpu",
        "backend": "blockwise",
        "seed": 0,
        "labels": {"frames": {"kind": HOSTILE if hostile else "centralized", "layers": "none 0; centralized 1-3"}},
    }


def make_run(
    path: Path,
    layers: int = 4,
    heads: int = 6,
    *,
    measures: tuple[str, ...] = tuple(MAKERS),
    hostile: bool = False,
    name: str = "made-up",
    seed: int = 0,
    more: dict[str, Any] | None = None,
) -> Survey:
    """A complete run folder."""
    rng = np.random.default_rng(seed)
    datasets = {measure: MORE_MAKERS[measure](layers, heads, rng) for measure in measures}
    if hostile and "sinks" in datasets:
        datasets["sinks"]["position_0_mass"].attrs["long_name"] = HOSTILE
        datasets["sinks"]["position_0_mass"].values[0, 0] = np.nan
        datasets["sinks"].attrs["missing"] = HOSTILE
    numbers = {measure: values for measure, values in headline(layers, heads).items() if measure in measures}
    facts = {**info(layers, heads, name=name, hostile=hostile), **(more or {})}
    writer = RunWriter.start(path, {"made": name, "seed": seed, "shape": [layers, heads]}, facts)
    return writer.finish(datasets, numbers)
