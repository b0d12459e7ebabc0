"""From what was seen of anchors, sequence by sequence, to the dataset and headline of :mod:`gnomon.measure.frames`.

Labels are made from scores averaged over sequences; the share of heads of a kind gets its interval by relabelling every head in every resample of
sequences, so that it carries the uncertainty of the labels themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray

from gnomon.dims import BOUND, HEAD, LAYER, SEQUENCE
from gnomon.measure.averaged import Averages, nan_mean
from gnomon.measure.kinds import KINDS, KindRule, frame_features, kind_scores
from gnomon.measure.protocol import Observed
from gnomon.statistics import Estimate, bootstrap_mean, resample_counts
from gnomon.statistics.bootstrap import MIN_SEQUENCES

Arrays = Mapping[str, NDArray[Any]]
Floats = NDArray[np.floating]
Ints = NDArray[np.int64]

KIND: Final = "kind"
PLACE: Final = "place"
TAU: Final = "tau"
GAMMA: Final = "gamma"
DRAWN: Final = 32
PLACES: Final = ("first", "last", "special", "other")
SHORT: Final = "sequences are too short, or see too little, for any key to be seen from afar"
FEW: Final = f"fewer than {MIN_SEQUENCES} sequences had an answer"


def frames_dataset(
    observed: Observed, rule: KindRule, taus: tuple[float, ...], gammas: tuple[float, ...], delimiters: tuple[int, ...]
) -> xr.Dataset:
    """The dataset of a survey."""
    layers, windows, seed = observed.layers, observed.subject.windows, observed.subject.seed
    causal = observed.subject.anatomy.causal
    lengths = np.asarray(windows.lengths)
    out = Averages(seed)
    score = layers["score"]
    out.mean("score", score[:, :, :-1], (LAYER, HEAD, KIND), "soft score of each kind of frame")
    out.mean("layer_score", score[:, :, -1], (LAYER, KIND), "soft score of each kind, rows averaged over heads")
    model_score = _model_scores(layers, lengths, rule, windows.length, causal=causal)
    out.mean("model_score", model_score, (KIND,), "soft score of each kind, anchors averaged over layers")
    out.add("sequence_score", model_score, (SEQUENCE, KIND), "soft score of each kind for the model, by sequence")
    _features(out, layers)
    _masses(out, layers, causal=causal)
    _sinks(out, layers)
    _stability(out, layers["place"], np.asarray(windows.tokens), lengths, delimiters, seed)
    _depth(out, layers, np.asarray(windows.special), lengths)
    out.add(
        "kind_of_head",
        _argmax(nan_mean(score[:, :, :-1], 0)),
        (LAYER, HEAD),
        "kind of frame of each head; -1 unknown",
        kinds=list(KINDS),
    )
    shares = _share_of_heads(score[:, :, :-1], seed)
    out.add("share", shares, (KIND, BOUND), "share of heads of each kind: value, lower, upper")
    coords = {KIND: list(KINDS), PLACE: list(PLACES), TAU: list(taus), GAMMA: list(gammas)}
    return out.dataset(_attrs(out, model_score, causal=causal), coords)


def headline(dataset: xr.Dataset) -> dict[str, Estimate]:
    """The few numbers that stand for the frames."""
    number = int(dataset.attrs["sequences_answered"])
    missing = str(dataset.attrs.get("missing_scores", ""))
    kind = dataset.attrs["kind"]

    def read(name: str, reason: str = "", **place: Any) -> Estimate:
        value, low, high = (float(dataset[name + suffix].sel(place)) for suffix in ("", "_low", "_high"))
        return Estimate(value, low, high, number) if np.isfinite(value) else Estimate.missing(reason or missing or FEW)

    out = {"score": read("model_score", kind=kind) if kind in KINDS else Estimate.missing(missing or FEW)}
    for name in KINDS:
        value, low, high = (float(number_) for number_ in dataset["share"].sel(kind=name))
        out[f"share_{name}"] = Estimate(value, low, high, number) if np.isfinite(value) else Estimate.missing(missing or FEW)
    out["null_framed"] = read("null_framed_overall")
    out["depth_change"] = read("depth_change", "no two neighbouring layers had a frame in one sequence")
    out["first_mass"] = read("first_mass_overall", "sequences have one token only")
    out["first_uniform"] = read("first_uniform", "sequences have one token only")
    out["effective_anchors"] = read("effective_overall", "no head had an anchor")
    for name in ("same_position", "same_token"):
        out[name] = read(f"{name}_overall", "no head had an anchor in enough sequences")
        out[f"{name}_chance"] = Estimate(float(dataset[f"{name}_chance"]), n=number)
    return out


def _features(out: Averages, layers: Arrays) -> None:
    described = {
        "framed": "share of an average far row that goes to anchors, beyond chance",
        "top": "share of the strongest anchor among anchors",
        "effective": "effective number of anchors",
        "two_ended": "share of anchors balanced between the first and the last token",
    }
    for name, what in described.items():
        out.mean(name, layers[name][:, :, :-1], (LAYER, HEAD), what, "anchors" if name == "effective" else "1")
        out.mean(f"layer_{name}", layers[name][:, :, -1], (LAYER,), f"{what}, rows averaged over heads")
    out.mean(
        "effective_overall",
        nan_mean(layers["effective"][:, :, :-1], (1, 2)),
        (),
        "effective number of anchors of framed heads",
        "anchors",
    )
    out.mean("null_framed", layers["null_framed"], (LAYER,), "mean score of having a frame when rows are shuffled")
    out.mean("null_framed_overall", nan_mean(layers["null_framed"], 1), (), "mean score of having a frame when rows are shuffled")


def _masses(out: Averages, layers: Arrays, *, causal: bool) -> None:
    for name, what in (("first", "position 0"), ("special", "special tokens"), ("last", "the last token")):
        out.mean(f"{name}_mass", layers[f"{name}_mass"], (LAYER, HEAD), f"mean weight on {what}", "1")
    if causal:
        out.variables["last_mass"].attrs["missing"] = "a causal mask hides the last token from all queries but one"
    out.mean("first_mass_overall", nan_mean(layers["first_mass"], (1, 2)), (), "mean weight on position 0 over layers and heads")
    for name in ("first", "special"):
        out.mean(
            f"{name}_uniform",
            nan_mean(layers[f"{name}_uniform"], 1),
            (),
            f"mean weight on {name} token(s) under uniform attention",
        )
    out.mean(
        "received_effective",
        layers["received_effective"],
        (LAYER, HEAD),
        "effective number of keys by received weight per viewer",
        "keys",
    )
    out.mean(
        "received_effective_uniform", layers["received_effective_uniform"], (LAYER,), "the same under uniform attention", "keys"
    )


def _sinks(out: Averages, layers: Arrays) -> None:
    out.mean("sinks", layers["sinks"], (LAYER, HEAD), "number of sinks at tau = 90th percentile, gamma = 0.4", "keys")
    out.mean("sink_first", layers["sink_first"], (LAYER, HEAD), "share of sequences in which position 0 is a sink")
    out.add("sink_curve", layers["sink_curve"].mean(0), (LAYER, TAU, GAMMA), "number of sinks per head by tau and gamma", "keys")
    out.add(
        "sink_first_curve", layers["sink_first_curve"].mean(0), (LAYER, TAU, GAMMA), "share of heads with a sink at position 0"
    )


def _model_scores(layers: Arrays, lengths: Ints, rule: KindRule, width: int, *, causal: bool) -> Floats:
    """Anchors of all layers averaged key by key, sequence by sequence, and judged like a head's."""
    place, weight = layers["anchor_place"].astype(np.int64), np.asarray(layers["anchor_weight"], dtype=np.float64)
    known: NDArray[np.bool_] = np.asarray(np.isfinite(weight).any(2))
    answered: NDArray[np.bool_] = np.asarray(known.any(1))
    answered_layers = np.maximum(known.sum(1), 1)
    pooled = np.zeros((len(place), width))
    np.add.at(pooled, (np.arange(len(place))[:, None, None], place), np.nan_to_num(weight))
    pooled /= answered_layers[:, None]
    sizes = torch.from_numpy(lengths.copy())
    features = frame_features(torch.from_numpy(pooled)[:, None], sizes, causal=causal)
    scores = kind_scores(features, sizes, rule)[:, 0].numpy()
    return np.where(answered[:, None], scores, np.nan)


def _stability(out: Averages, place: NDArray[Any], tokens: Ints, lengths: Ints, delimiters: tuple[int, ...], seed: int) -> None:
    """Whether the top anchor is the same from input to input, against a key drawn at random; the modal choice is held fixed in the intervals."""
    heads: Ints = place[:, :, :-1].astype(np.int64)
    drawn: Ints = (np.random.default_rng(seed).random((len(heads), 1, DRAWN)) * lengths[:, None, None]).astype(np.int64)
    position, token, ids, modal_token = _agreement(heads, tokens, lengths)
    chance_position, chance_token, _, _ = _agreement(drawn, tokens, lengths)
    for name, values, chance, what in (
        ("same_position", position, chance_position, "stands at the modal place"),
        ("same_token", token, chance_token, "is the modal token"),
    ):
        out.mean(name, values, (LAYER, HEAD), f"share of framed sequences whose top anchor {what}")
        out.mean(f"{name}_overall", nan_mean(values, (1, 2)), (), f"share of framed heads whose top anchor {what}")
        out.add(f"{name}_chance", nan_mean(chance, (0, 1, 2)), (), f"share of sequences in which a key drawn at random {what}")
    out.add("anchor_token", modal_token, (LAYER, HEAD), "modal token id of the top anchor; -1 where there is none", "token id")
    known = np.isin(ids, delimiters) if delimiters else np.full(ids.shape, np.nan)
    out.mean(
        "delimiter_share",
        np.where(ids >= 0, known, np.nan),
        (LAYER, HEAD),
        "share of framed sequences whose top anchor is a delimiter",
    )
    if not delimiters:
        out.variables["delimiter_share"].attrs["missing"] = "no delimiter token ids were given"


def _agreement(where: Ints, tokens: Ints, lengths: Ints) -> tuple[Floats, Floats, Ints, Ints]:
    """Per sequence, whether the place (from the better end) and the token are the modal ones (NaN without an anchor); the tokens; the modal token."""
    rows = np.arange(len(where))[:, None, None]
    none = where < 0
    ids: Ints = np.where(none, -1, tokens[rows, where.clip(0)])
    from_end: Ints = np.where(none, -1, lengths[:, None, None] - 1 - where)
    start_place, start_share = _modal(where)
    end_place, end_share = _modal(from_end)
    at_end = np.nan_to_num(end_share) > np.nan_to_num(start_share)
    same_place = np.where(at_end, from_end == end_place, where == start_place)
    modal_token, token_share = _modal(ids)
    missing = none | ~np.isfinite(token_share)
    return np.where(missing, np.nan, same_place), np.where(missing, np.nan, ids == modal_token), ids, modal_token


def _modal(values: Ints) -> tuple[Ints, Floats]:
    """Modal value over axis 0 with its share, ignoring -1; NaN below three values."""
    ordered = np.sort(values, axis=0)
    starts = np.ones(ordered.shape, bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    index = np.arange(len(ordered)).reshape(-1, *[1] * (ordered.ndim - 1))
    run = index - np.maximum.accumulate(np.where(starts, index, 0), axis=0) + 1
    run = np.where(ordered >= 0, run, 0)
    best = run.argmax(0)
    modal = np.take_along_axis(ordered, best[None], 0)[0]
    number = (values >= 0).sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(number >= MIN_SEQUENCES, run.max(0) / number, np.nan)
    return np.where(number > 0, modal, -1), share


def _depth(out: Averages, layers: Arrays, special: NDArray[np.bool_], lengths: Ints) -> None:
    """Where each layer's top anchor stands, and how often it moves between neighbouring framed layers."""
    place: Ints = layers["place"][:, :, -1].astype(np.int64)
    framed = np.asarray(layers["score"][:, :, -1, 0] < 0.5) & (place >= 0)
    rows = np.arange(len(place))[:, None]
    is_first, is_last = place == 0, (place == lengths[:, None] - 1) & (place > 0)
    is_special = np.asarray(special[rows, place.clip(0)]) & ~is_first & ~is_last
    kinds = np.stack([is_first, is_last, is_special, ~is_first & ~is_last & ~is_special], -1) & framed[..., None]
    answered: NDArray[np.bool_] = np.asarray(np.isfinite(layers["score"][:, :, -1, 0]))
    out.mean(
        "anchor_at",
        np.where(answered[..., None], kinds, np.nan),
        (LAYER, PLACE),
        "share of sequences whose top anchor of the layer stands there",
    )
    both = framed[:, 1:] & framed[:, :-1]
    moved = np.where(both, place[:, 1:] != place[:, :-1], np.nan)
    empty = moved.shape[1] == 0
    change = np.full(len(place), np.nan) if empty else nan_mean(moved, 1)
    out.mean("depth_change", change, (), "share of neighbouring framed layers whose top anchors differ")
    change_at = np.full(place.shape, np.nan)
    change_at[:, 1:] = moved
    out.mean("change_at", change_at, (LAYER,), "share of sequences in which the top anchor differs from the layer before")


def _share_of_heads(score: Floats, seed: int) -> Floats:
    """Share of heads by label, ``[kind, 3]``: value, lower, upper over resamples of sequences."""
    flat = np.asarray(score, dtype=np.float64).reshape(len(score), -1, len(KINDS))
    finite = np.isfinite(flat[..., 0])
    filled = np.nan_to_num(flat)
    heads = flat.shape[1]

    def shares(weights: Floats) -> Floats:
        total = (weights @ filled.reshape(len(flat), -1)).reshape(len(weights), heads, len(KINDS))
        known = (weights @ finite.astype(np.float64)) > 0
        label = np.where(known, total.argmax(-1), -1)
        count = np.maximum(known.sum(-1), 1)
        return np.stack([(label == kind).sum(-1) / count for kind in range(len(KINDS))], -1)

    value = shares(np.ones((1, len(flat))))[0]
    if not finite.any():
        return np.full((len(KINDS), 3), np.nan)
    if int(finite.any(1).sum()) < MIN_SEQUENCES:
        return np.stack([value, np.full_like(value, np.nan), np.full_like(value, np.nan)], -1)
    draws = np.concatenate([shares(part) for part in np.array_split(resample_counts(len(flat), seed=seed), 10)])
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    return np.stack([value, low, high], -1)


def _argmax(score: Floats) -> NDArray[np.int8]:
    known = np.isfinite(score).all(-1)
    return np.where(known, np.nan_to_num(score).argmax(-1), -1).astype(np.int8)


def _attrs(out: Averages, model_score: Floats, *, causal: bool) -> dict[str, Any]:
    """Labels in words, and why anything is missing."""
    layer = _argmax(out.variables["layer_score"].values)
    names = [KINDS[index] if index >= 0 else "unknown" for index in layer]
    whole = int(_argmax(bootstrap_mean(model_score, num_resamples=2).value))
    attrs: dict[str, Any] = {
        "kind": KINDS[whole] if whole >= 0 else "unknown",
        "kinds_by_layer": names,
        "sequences_answered": int(np.isfinite(model_score[:, 0]).sum()),
        "causal": int(causal),
        "definitions": "anchors, kinds, scores and thresholds are ours; the sink criterion (tau, gamma) is the paper's, tau per head and sequence ours",
    }
    if whole < 0:
        attrs["missing_scores"] = SHORT
    attrs["missing"] = f"scores: {SHORT}; top, effective, two_ended, same_*: heads without an anchor; bounds: {FEW}"
    return attrs


__all__ = ["GAMMA", "KIND", "PLACE", "PLACES", "TAU", "frames_dataset", "headline"]
