"""Which surveys the chosen claims need of a model, and making them.

Claims want different text: those about position need windows that start at random places, those about frames and spectra were published for sentences and
passages. So a model is surveyed in parts, each a run folder of its own whose name tells its text and measures and changes with every option that
decides a number. Parts are the same whichever claims are chosen, so that asking for more claims later finds the earlier parts done; an interrupted part
resumes as every run does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gnomon.corpus import CorpusSpec
from gnomon.errors import ConfigError, CorpusError, UnsupportedModelError
from gnomon.report.claims import CLAIMS_FILE, read_claims
from gnomon.result import Survey, is_run, open_run
from gnomon.result.atomic import disk_errors, write_text
from gnomon.result.strict_json import digest
from gnomon.study.claims.claim import Claim
from gnomon.study.claims.evidence import CONTROL
from gnomon.study.claims.ledger import IDS
from gnomon.study.claims.verdict import Verdict
from gnomon.study.opening import open_model
from gnomon.study.survey import survey

if TYPE_CHECKING:
    from gnomon.model import PositionModel
    from gnomon.study.observing import Progress

REPLACEMENTS: Final = "mean,zero,noise,random"
CUT_SHARE: Final = 0.1
DEPTH: Final = 3


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much text.

    Attributes:
        sequences, length: windows of so many tokens.
        sentences: sentences of 6 to 50 tokens for frames.
        passages: passages of 16 to 200 tokens for spectra.
        words: sentences of the likelihood study.
        bos: what stands at position 0.
        seed: of everything random.
        text: instead of the built-in prose.
    """

    sequences: int = 32
    length: int = 256
    sentences: int = 100
    passages: int = 72
    words: int = 1000
    bos: Any = "auto"
    seed: int = 0
    text: Any = None

    def corpus(self, kind: str, most: int | None = None) -> CorpusSpec:
        """Text of a kind, of at most ``most`` tokens."""
        common: dict[str, Any] = {"text": self.text, "bos": self.bos, "seed": self.seed}
        if kind == "windows":
            return CorpusSpec(sequences=self.sequences, length=min(self.length, most or self.length), **common)
        counts = {"sentences": self.sentences, "passages": self.passages}
        spec = CorpusSpec(kind=kind, sequences=counts[kind], **common)  # type: ignore[arg-type]
        return spec if most is None or (spec.longest or 0) <= most else spec.with_(longest=most)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One survey.

    Attributes:
        name: of its folder.
        kind: of its text.
        measures: what it measures.
        options: of the measures.
        untrained: whether the measures are made on untrained weights too.
    """

    name: str
    kind: str
    measures: tuple[str, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    untrained: bool = False

    @property
    def gives(self) -> frozenset[str]:
        """What can be read from it."""
        controls = {f"{measure}{CONTROL}" for measure in self.measures} if self.untrained else set()
        return frozenset({*self.measures, *controls})


def parts_for(claims: Sequence[Claim], sizes: Sizes, *, num_heads: int, causal: bool = True) -> list[Part]:
    """The parts that give any measure that these claims need.

    Args:
        claims: which.
        sizes: how much text.
        num_heads: heads of the whole model, a tenth of which are cut for A6.
        causal: whether the model is; claims that rest on interventions do not apply otherwise.
    """
    wanted = {measure for claim in claims for measure in claim.measures}
    cut = f"top:{max(1, round(CUT_SHARE * num_heads))}"
    parts = (
        Part(name="position", kind="windows", measures=("sinks", "norms", "leakage", "reads")),
        Part(name="checks", kind="windows", measures=("invariance", "trajectory")),
        Part(
            name="intervention",
            kind="windows",
            measures=("intervention",),
            options={"intervention": {"bos": REPLACEMENTS, "ablate_sink_reads": cut, "seed": sizes.seed}},
        ),
        Part(name="phase", kind="windows", measures=("phase",)),
        Part(name="frames", kind="sentences", measures=("frames", "graph", "geometry", "values"), untrained=True),
        Part(name="spectra", kind="passages", measures=("spectra",), untrained=True),
        Part(name="scale", kind="passages", measures=("scale",)),
        Part(name="likelihood", kind="windows", measures=("likelihood",), options={"likelihood": {"sentences": sizes.words}}),
    )
    fitting = [part for part in parts if part.gives & wanted and (causal or part.name != "intervention")]
    return fitting or [parts[0]]


def survey_for(
    model: str,
    claims: Sequence[Claim],
    *,
    out: str | Path,
    sizes: Sizes | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
    on_failure: Callable[[str], None] | None = None,
    **loading: Any,
) -> list[Survey]:
    """Make, resume or read the surveys of one model.

    Args:
        model: what to open.
        claims: which claims they are for.
        out: folder of the parts.
        sizes: how much text.
        batch_size: sequences per forward pass.
        progress: called with (stage, done, total).
        on_failure: called with a sentence when a part cannot be made of this model or text, and the others go on; without it the
            error is raised.
        **loading: as :func:`gnomon.load` takes them.
    """
    sizes = sizes or Sizes()
    opened = open_model(model, **loading)
    anatomy = opened.anatomy
    parts = parts_for(claims, sizes, num_heads=anatomy.num_layers * anatomy.num_heads, causal=anatomy.causal)
    made = []
    for part in parts:
        try:
            made.append(_make(part, opened, sizes, Path(out), batch_size, progress))
        except (CorpusError, UnsupportedModelError) as reason:
            if on_failure is None:
                raise
            on_failure(f"{opened.name}, {part.name}: {' '.join(str(reason).split())}")
    return made


def read_runs(path: str | Path) -> list[Survey]:
    """The run in a folder, or all runs below it; checkpoints of a sweep get the steps that its summary gives them.

    Raises:
        RunError: a run is damaged or unfinished.
        ConfigError: there is none.
    """
    root = Path(path)
    if is_run(root):
        return [open_run(root)]
    found = {folder.resolve(): open_run(folder) for folder in _run_folders(root, DEPTH)}
    if not found:
        raise ConfigError(f"`{path}` must be a model, a run or a folder of runs, got a folder without runs; name another.")
    for folder, summary in found.items():
        sweep = summary.info.get("evolve")
        if isinstance(sweep, Mapping):
            _tell_steps(sweep, summary.model_name.partition(" over ")[0], folder.parent, found)
    return list(found.values())


def write_claims(verdicts: Sequence[Verdict], folder: str | Path, *, keep: bool = False) -> Path:
    """Keep verdicts as ``claims.json``, whole or not at all.

    Args:
        verdicts: what to keep.
        folder: where to.
        keep: keep the file's verdicts on other claims too, as when some claims were judged anew.
    """
    path = Path(folder) / CLAIMS_FILE
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    anew = {verdict.id for verdict in verdicts}
    earlier = [Verdict.from_json(row) for row in read_claims(path)] if keep and path.is_file() else []
    listed = [*verdicts, *(verdict for verdict in earlier if verdict.id not in anew)]
    write_text(path, claims_json(sorted(listed, key=lambda verdict: IDS.index(verdict.id) if verdict.id in IDS else len(IDS))))
    return path


def claims_json(verdicts: Sequence[Verdict]) -> str:
    """Verdicts as a strict JSON list."""
    return json.dumps([verdict.to_json() for verdict in verdicts], indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _make(part: Part, model: PositionModel, sizes: Sizes, out: Path, batch_size: int | None, progress: Progress | None) -> Survey:
    corpus = sizes.corpus(part.kind, model.anatomy.max_length)
    asked = {
        "model": model.name,
        "corpus": corpus.to_json(),
        "measures": part.measures,
        "options": part.options,
        "untrained": part.untrained,
        "batch_size": batch_size,
        "dtype": str(model.dtype),
    }
    folder = out / f"{part.name}-{digest(asked)[:8]}"

    def told(stage: str, done: int, total: int) -> None:
        if progress is not None:
            progress(f"{part.name} {stage}", done, total)

    return survey(
        model,
        corpus=corpus,
        measures=list(part.measures),
        options=part.options,
        out=folder,
        batch_size=batch_size,
        seed=sizes.seed,
        untrained=part.untrained,
        progress=told,
        arguments={**asked, "out": str(folder)},
    )


def _run_folders(root: Path, depth: int) -> Iterator[Path]:
    if is_run(root):
        yield root
    elif depth and root.is_dir():
        for entry in sorted(root.iterdir()):
            yield from _run_folders(entry, depth - 1)


def _tell_steps(sweep: Mapping[str, Any], family: str, root: Path, found: Mapping[Path, Survey]) -> None:
    """Give the checkpoints of a sweep their steps and one family."""
    steps = sweep.get("steps") or {}
    for name, place in (sweep.get("runs") or {}).items():
        survey_of = found.get((root / str(place)).resolve())
        if survey_of is not None and isinstance(steps.get(name), int | float):
            survey_of.info["checkpoint"] = {"step": steps[name], "family": family}
