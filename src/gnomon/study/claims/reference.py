"""Claims B1 to B6 on one model: sinks, frames, and where frames show.

Two kinds of bounds are read here. Means over all heads have intervals of their own. Means over *chosen* heads (those that the frames measure calls framed)
do not, so theirs are the means of the heads' own bounds, which is at least as wide as the interval of the mean whatever the heads have in common;
and differences of two such means add their half-widths. Both err towards ``inconclusive``.

Definitions of kinds, anchors and roles are ours where the paper's are not known in full.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.result.survey import format_estimate
from gnomon.statistics import Estimate
from gnomon.study.claims.claim import Answer, Claim, undecided
from gnomon.study.claims.evidence import CONTROL, Reader, needs
from gnomon.study.claims.rules import Finding, all_of, contrast, interval_rule
from gnomon.study.claims.verdict import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED

SENTENCES: Final = ("sentences",)
KINDS: Final = ("centralized", "distributed", "bidirectional")
FEWEST_HEADS: Final = 3
PUBLISHED_SHARE: Final = 0.30
SURE: Final = 0.5
CHANCE: Final = 0.06
UNTRAINED: Final = f"frames{CONTROL}"
OURS: Final = "thresholds and scores are ours; the paper's are not known in full"


def judge_sinks(read: Reader) -> Answer:
    """B1: position 0 gets unusually much from many queries."""
    dataset = read.dataset("frames", SENTENCES)
    if dataset is None:
        return undecided(needs("frames"))
    read.note("frames", "sink_first", SENTENCES)
    read.note("frames", "sinks", SENTENCES)
    share, count = mean_over_heads(dataset, "sink_first", None), mean_over_heads(dataset, "sinks", None)
    finding = interval_rule(share, "above", null=CHANCE, name="position 0 is a sink in a share of")
    control = read.dataset(UNTRAINED, SENTENCES)
    if control is not None:
        read.note(UNTRAINED, "sink_first", SENTENCES)
        untrained = mean_over_heads(control, "sink_first", None)
        finding = all_of(finding, interval_rule(share, "above", null=untrained, name="and against untrained weights"))
    if finding.verdict == NOT_SUPPORTED and not count.high < CHANCE:
        finding = Finding(INCONCLUSIVE, f"{finding.why}; keys elsewhere may be sinks, and chance makes some")
    return Answer(
        finding=Finding(finding.verdict, f"{finding.why}; sinks of any key per head and text: {format_estimate(count)}"),
        effect=share,
        quantity="share of heads and texts in which position 0 is a sink",
        null=CHANCE,
    )


def judge_first(read: Reader) -> Answer:
    """B2: the first token takes a large share of attention, whatever it means."""
    mass, uniform = read.number("sinks", "position_0_mass"), read.number("sinks", "position_0_uniform")
    if mass.is_missing:
        return undecided(mass.reason or needs("sinks"))
    finding = interval_rule(mass, "above", null=uniform, name="weight on position 0:")
    if finding.verdict == SUPPORTED and mass.high < PUBLISHED_SHARE:
        finding = Finding(NOT_SUPPORTED, f"{finding.why}; above uniform, but below the published {PUBLISHED_SHARE:.0%}")
    elif finding.verdict == SUPPORTED and mass.low < PUBLISHED_SHARE:
        finding = Finding(INCONCLUSIVE, f"{finding.why}; the interval covers the published {PUBLISHED_SHARE:.0%}")
    survey = read.subject.holding("sinks")
    corpus = (survey.info.get("corpus") if survey is not None else None) or {}
    token = corpus.get("first_token") if isinstance(corpus, dict) else None
    placed = bool(isinstance(token, dict) and token.get("placed"))
    meaning = (
        "every text begins with the same token here, so that nothing is said of other first tokens"
        if placed
        else "texts begin with different tokens, so that their meaning averages out"
    )
    other = read.number("sinks", "other_special_mass")
    beside = "" if other.is_missing else f"; other special tokens take {other.value:.2g}"
    return Answer(
        finding=Finding(finding.verdict, f"{finding.why}; {meaning}{beside}"),
        effect=mass,
        quantity="mean weight on position 0, over layers, heads and queries from 1 on",
        null=uniform,
    )


def judge_kinds(read: Reader) -> Answer:
    """B3: the model has one of the three kinds."""
    kind, score = read.label("frames", "kind", SENTENCES), read.number("frames", "score", SENTENCES)
    if kind is None:
        return undecided(score.reason or needs("frames"))
    null = read.number("frames", "null_framed", SENTENCES)
    finding = interval_rule(score, "above", null=SURE, name=f"{kind}, score")
    shares = [(name, read.number("frames", f"share_{name}", SENTENCES)) for name in KINDS]
    listed = ", ".join(f"{number.value:.0%} {name}" for name, number in shares if not number.is_missing)
    beside = f"; heads: {listed}" if listed else ""
    if kind in KINDS:
        finding = all_of(finding, interval_rule(score, "above", null=null, name="and against shuffled rows,"))
    elif finding.verdict == SUPPORTED:
        finding = Finding(NOT_SUPPORTED, f"no frame of any kind: {finding.why}")
    return Answer(
        finding=Finding(finding.verdict, finding.why + beside),
        effect=score,
        quantity=f"score of the kind found ({kind}), 0 to 1",
        null=SURE,
        null_is="a score of one half; also the score of having a frame when rows are shuffled",
    )


def judge_graph(read: Reader) -> Answer:
    """B4: centralized heads have star-like graphs."""
    if (reason := _absent(read, "frames", "graph")) is not None:
        return undecided(reason)
    frames, graph = read.dataset("frames", SENTENCES), read.dataset("graph", SENTENCES)
    if frames is None or graph is None:
        return undecided(needs("frames", "graph"))
    level = float(graph.attrs.get("headline_threshold", 0.05))
    read.note("frames", "kind_of_head", SENTENCES)
    read.note("graph", "star", SENTENCES, threshold=level)
    nearest = graph.isel(threshold=int(np.abs(graph["threshold"].values - level).argmin()))
    effect, chosen = _between_heads(frames, nearest, "star", ("centralized",))
    if effect.is_missing:
        return undecided(str(effect.reason), quantity="star-likeness of centralized heads less that of the others", null=0.0)
    centre, shuffled = (
        read.number("graph", "centralization", SENTENCES),
        read.number("graph", "centralization_shuffled", SENTENCES),
    )
    finding = all_of(
        interval_rule(effect, "above", name=f"star-likeness of {chosen} centralized heads less that of the others:"),
        interval_rule(centre, "above", null=shuffled, name="centralization of all heads, against shuffled rows:"),
    )
    return Answer(
        finding=finding,
        effect=effect,
        quantity=f"star-likeness at threshold {level:g} of centralized heads less that of the others",
        null=0.0,
    )


def judge_geometry(read: Reader) -> Answer:
    """B5: heads with a frame are further from uniform, and heads look more alike than shuffled ones."""
    if (reason := _absent(read, "frames", "geometry")) is not None:
        return undecided(reason)
    frames, geometry = read.dataset("frames", SENTENCES), read.dataset("geometry", SENTENCES)
    if frames is None or geometry is None:
        return undecided(needs("frames", "geometry"))
    read.note("frames", "kind_of_head", SENTENCES)
    read.note("geometry", "kl_visible", SENTENCES)
    effect, chosen = _between_heads(frames, geometry, "kl_visible", KINDS)
    if effect.is_missing:
        return undecided(
            str(effect.reason), quantity="KL from causal-uniform of framed heads less that of the others, nats", null=0.0
        )
    alike, shuffled = read.number("geometry", "js_heads", SENTENCES), read.number("geometry", "js_heads_shuffled", SENTENCES)
    finding = all_of(
        interval_rule(effect, "above", name=f"KL from causal-uniform of {chosen} framed heads less that of the others:"),
        interval_rule(alike, "below", null=shuffled, name="divergence between heads, against shuffled rows:"),
    )
    return Answer(
        finding=finding, effect=effect, quantity="KL from causal-uniform of framed heads less that of the others, nats", null=0.0
    )


def judge_values(read: Reader) -> Answer:
    """B6: a sink's value is not like another token's."""
    ratio = read.number("values", "write_ratio", SENTENCES)
    name = "what the sink's value writes, over the median of the others:"
    quantity = "norm of what the sink's value writes over the median of the other tokens"
    if ratio.is_missing and read.has("values"):
        ratio = read.number("values", "value_ratio", SENTENCES)
        name, quantity = (
            "the sink's value, over the median of the others:",
            "norm of the sink's value over the median of the others",
        )
    finding = interval_rule(ratio, "apart", null=1.0, negligible=0.1, name=name)
    silent, loud = (read.number("values", f"role_{role}", SENTENCES) for role in ("no_operation", "broadcast"))
    roles = "" if silent.is_missing or loud.is_missing else f"; {silent.value:.0%} no-operations, {loud.value:.0%} broadcasts"
    state = read.number("norms", "hidden_ratio")
    norm = "" if state.is_missing else f"; the state at position 0 is {state.value:.3g} times the others' in norm"
    return Answer(finding=Finding(finding.verdict, f"{finding.why}{roles}{norm}"), effect=ratio, quantity=quantity, null=1.0)


def mean_over_heads(dataset: xr.Dataset, name: str, heads: NDArray[np.bool_] | None) -> Estimate:
    """Mean over (chosen) heads of a variable ``[layer, head]`` and of its bounds."""
    if name not in dataset:
        return Estimate.missing(f"no {name} in this run")
    parts = [dataset[name + end].transpose("layer", "head").values for end in ("", "_low", "_high")]
    known = np.isfinite(parts[0]) if heads is None else np.isfinite(parts[0]) & heads
    if not known.any():
        return Estimate.missing("no head has a value")
    value, low, high = (float(part[known].mean()) for part in parts)
    number = int(dataset.attrs.get("sequences", dataset.attrs.get("sequences_answered", 0)))
    return Estimate(value, low, high, number)


def _between_heads(frames: xr.Dataset, other: xr.Dataset, name: str, kinds: tuple[str, ...]) -> tuple[Estimate, int]:
    """A quantity of the heads of some kinds less that of all others, and how many heads those are."""
    variable = frames["kind_of_head"].transpose("layer", "head")
    names = [str(kind) for kind in frames["kind"].values] if "kind" in frames.coords else list(variable.attrs.get("kinds", ()))
    label = variable.values
    chosen = np.isin(label, [names.index(kind) for kind in kinds if kind in names])
    rest = (label >= 0) & ~chosen
    for group, what in ((chosen, " or ".join(kinds)), (rest, "other")):
        if group.sum() < FEWEST_HEADS:
            return Estimate.missing(f"{int(group.sum())} {what} heads, and at least {FEWEST_HEADS} are needed to compare"), 0
    return contrast(mean_over_heads(other, name, chosen), mean_over_heads(other, name, rest)), int(chosen.sum())


def _absent(read: Reader, *measures: str) -> str | None:
    absent = read.absent(*measures)
    return needs(*absent) if absent else None


CLAIMS: Final = (
    Claim(
        id="B1",
        statement="Some tokens are sinks: at least a share of 0.4 of the queries that see them put weight above the 90th percentile on them.",
        rule=f"Supported when the share of heads and texts in which position 0 is such a key, with the mean of the heads' own bounds, lies above {CHANCE:g} and above that of untrained weights where these were measured; not "
        f"supported when there are fewer than {CHANCE:g} sinks per head, of any key. {CHANCE:g} is the most that rows of independent logits gave, of any spread and of 6 to 256 tokens; counted over all keys chance makes up to 1.7, so "
        "that the mere number of sinks says little.",
        null="rows of independent logits, and untrained weights",
        measures=("frames",),
        kinds=SENTENCES,
        published="a definition; no figure at hand",
        differs="the percentile is taken per head and text here; position 0 stands for all sinks",
        judge=judge_sinks,
    ),
    Claim(
        id="B2",
        statement="First tokens take 30 to 40 % of attention, whatever they mean.",
        rule="Supported when the interval of the mean weight on position 0 lies above uniform attention and above 0.30; not supported when it lies below either; inconclusive when it covers one.",
        null="uniform attention over visible keys",
        measures=("sinks",),
        kinds=("windows",),
        published="0.30 to 0.40",
        differs="the weight depends on the length of the text and on what stands at position 0",
        judge=judge_first,
    ),
    Claim(
        id="B3",
        statement="Reference frames are of three kinds: centralized, distributed, bidirectional.",
        rule="Supported when the model's kind is one of the three and the interval of its score lies above one half and above the score of shuffled rows; not supported when no kind is found with such certainty; else "
        "inconclusive. That all three exist takes models of each.",
        null="a score of one half, and shuffled rows",
        measures=("frames",),
        kinds=SENTENCES,
        published="Llama centralized, Qwen distributed, BERT and XLM-R bidirectional",
        differs=OURS,
        judge=judge_kinds,
    ),
    Claim(
        id="B4",
        statement="The kinds show in the attention graph.",
        rule="Supported when centralized heads are more star-like than the others (bounds of the two groups of heads must not touch) and all heads together are more centralized than with shuffled rows; not supported when either is "
        "the other way round; inconclusive with fewer than three heads in a group.",
        null="other heads, and shuffled rows",
        measures=("frames", "graph"),
        kinds=SENTENCES,
        published="no figure at hand",
        differs="star-likeness and the threshold of 0.05 are ours; heads are labelled by the same texts",
        judge=judge_graph,
    ),
    Claim(
        id="B5",
        statement="The kinds show in information geometry.",
        rule="Supported when heads with a frame are further (KL) from causal-uniform rows than heads without, and heads diverge less from each other than shuffled ones; not supported when either is the other way round. KL from "
        "uniform by itself has no null by shuffling, which leaves it unchanged.",
        null="heads without a frame, and shuffled rows",
        measures=("frames", "geometry"),
        kinds=SENTENCES,
        published="no figure at hand",
        differs="the contrast is ours; heads may be alike by looking at neighbours too",
        judge=judge_geometry,
    ),
    Claim(
        id="B6",
        statement="The kinds show in value space: a sink's value is not like another token's.",
        rule="Supported when the interval of the norm of what the sink's value writes, over the median of the other tokens, excludes 1 on either side; not supported when it lies within 0.1 of 1.",
        null="a token like any other: 1",
        measures=("values",),
        kinds=SENTENCES,
        published="no figure at hand",
        differs="which side is not known from what we have of the paper; roles are ours",
        judge=judge_values,
    ),
)
