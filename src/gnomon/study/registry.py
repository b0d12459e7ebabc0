"""Every measure and experiment by name, loaded when used.

A measure looks on while the survey's text runs through the model once; an experiment has passes of its own. Packages outside gnomon add theirs
through the entry point group ``gnomon.measures``: a name and a class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from gnomon.errors import ConfigError

GROUP: Final = "gnomon.measures"


@dataclass(frozen=True)
class Entry:
    """Where a measure lives, whether a survey runs it unasked, and what it answers."""

    path: str
    default: bool
    answers: str

    def load(self) -> type:
        """The class."""
        module, _, name = self.path.partition(":")
        found: type = getattr(import_module(module), name)
        return found


BUILT_IN: Final[dict[str, Entry]] = {
    "sinks": Entry("gnomon.measure.sinks:Sinks", True, "which heads put their weight on position 0 or on special tokens"),
    "attention": Entry("gnomon.measure.attention:Attention", True, "how concentrated and how far attention is"),
    "rows": Entry("gnomon.measure.rows:Rows", True, "what a few rows of every head look like, and how alike they are over texts"),
    "norms": Entry("gnomon.measure.norms:Norms", True, "norms of states, keys and values by position; massive activations"),
    "leakage": Entry(
        "gnomon.measure.leakage:Leakage", True, "how much absolute position leaks into attention, and from which source"
    ),
    "reads": Entry("gnomon.measure.reads:Reads", True, "what each head carries from position 0"),
    "frames": Entry("gnomon.measure.frames:Frames", True, "what kind of reference frame heads, layers and model build"),
    "graph": Entry("gnomon.measure.graph:Graph", False, "attention as a graph: connectivity, centralization"),
    "topology": Entry("gnomon.measure.topology:Topology", False, "persistent homology of attention"),
    "geometry": Entry("gnomon.measure.geometry:Geometry", False, "distances between rows, heads and layers"),
    "values": Entry("gnomon.measure.values:Values", False, "whether a sink is a no-operation or a broadcast"),
    "matrix": Entry("gnomon.measure.matrix:Matrix", False, "random-matrix statistics of attention"),
    "spectra": Entry("gnomon.measure.spectra:Spectra", False, "spectra and wavelets of heads, paper and calibrated conventions"),
    "rotary": Entry("gnomon.measure.rotary:Rotary", False, "which rotary frequencies each head uses"),
    "scale": Entry("gnomon.study.scale:Scale", False, "how attention changes when text is shortened"),
    "phase": Entry("gnomon.study.phase:Phase", False, "oscillation, harmonics, and aligned against opposed phases"),
    "invariance": Entry("gnomon.study.invariance:Invariance", False, "whether a shift of all positions changes anything"),
    "trajectory": Entry("gnomon.study.trajectory:Trajectory", False, "position 0 through the layers, alone and in context"),
    "intervention": Entry("gnomon.study.intervene:Intervention", False, "what replacing BOS or cutting sink reads does"),
    "likelihood": Entry("gnomon.study.likelihood:Likelihood", False, "attention against token likelihood"),
    "fisher": Entry("gnomon.study.fisher:Fisher", False, "Fisher information by parameter group"),
}


def entries() -> dict[str, Entry]:
    """All measures: gnomon's own, then those of installed packages."""
    found = dict(BUILT_IN)
    for point in entry_points(group=GROUP):
        if point.name in found:
            raise ConfigError(
                f"the package of {point.value} adds a measure named {point.name!r}, which exists; rename one of them."
            )
        found[point.name] = Entry(point.value, False, f"from {point.value}")
    return found


def choose(names: str | Iterable[str]) -> list[str]:
    """Names of measures from ``default``, ``all``, ``default,spectra``, or a sequence of names, in the order of the registry."""
    known = entries()
    asked = names.split(",") if isinstance(names, str) else list(names)
    wanted: set[str] = set()
    for name in (name.strip() for name in asked):
        if name == "default":
            wanted |= {known_name for known_name, entry in known.items() if entry.default}
        elif name == "all":
            wanted |= set(known)
        elif name in known:
            wanted.add(name)
        else:
            raise ConfigError(f"`measures` must be names among {', '.join(known)}, or default or all, got {name!r}.")
    return [name for name in known if name in wanted]


def make(names: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Instances of the measures, each with its own options."""
    known, options = entries(), options or {}
    unknown = set(options) - set(names)
    if unknown:
        raise ConfigError(
            f"`options` must be for measures that run ({', '.join(names)}), got some for {', '.join(sorted(unknown))}."
        )
    made = {}
    for name in names:
        try:
            made[name] = known[name].load()(**options.get(name, {}))
        except TypeError as reason:
            raise ConfigError(f"`options` of {name} do not fit: {reason}.") from reason
    return made
