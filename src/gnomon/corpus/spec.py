"""What text a survey is made on, as data, and the one function that turns it into windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from gnomon.corpus.assembly import check_at_least
from gnomon.corpus.crops import crop_windows
from gnomon.corpus.excerpts import PASSAGE_BOUNDS, SENTENCE_BOUNDS, passages, sentence_windows
from gnomon.corpus.first_token import BosPolicy, check_policy
from gnomon.corpus.sources import open_source
from gnomon.corpus.synthetic import random_windows, repeated_windows, shuffled_windows
from gnomon.corpus.windows import Windows
from gnomon.errors import ConfigError

Kind = Literal["windows", "passages", "sentences", "random", "repeated", "shuffled"]
NATURAL_BOUNDS: Final = {"passages": PASSAGE_BOUNDS, "sentences": SENTENCE_BOUNDS}
WITHOUT_TEXT: Final = ("random", "repeated")


@dataclass(frozen=True, kw_only=True)
class CorpusSpec:
    """What windows to make of what text.

    Attributes:
        text: ``None`` for the built-in prose, a path, ``hf:dataset``, a string that is itself a text, or several of these.
        kind: ``windows`` (random crops of equal length), ``passages``, ``sentences``, ``random`` tokens, one token ``repeated``,
            or ``shuffled`` crops.
        sequences: how many.
        length: tokens of each window, special ones included; not used by passages and sentences.
        shortest: tokens of the shortest passage or sentence; ``None`` for the default of the kind, which it becomes.
        longest: tokens of the longest; likewise.
        bos: what stands at position 0: ``auto`` (as the tokenizer does), ``always`` or ``never``.
        seed: of the choice.
        field: field or column that holds the text in JSONL, Parquet and hub datasets.
    """

    text: str | Path | tuple[str | Path, ...] | None = None
    kind: Kind = "windows"
    sequences: int = 32
    length: int = 256
    shortest: int | None = None
    longest: int | None = None
    bos: BosPolicy = "auto"
    seed: int = 0
    field: str = "text"

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ConfigError(f"`kind` must be one of {', '.join(get_args(Kind))}, got {self.kind!r}; choose one of them.")
        given: Any = self.text
        if isinstance(given, list):
            object.__setattr__(self, "text", tuple(given))
        elif not (given is None or isinstance(given, (str, Path, tuple))):
            raise ConfigError(
                f"`text` must be None, a path, a string or several of them, got {type(given).__name__}; give a path."
            )
        if self.text is not None and self.kind in WITHOUT_TEXT:
            raise ConfigError(
                f"`text` must be left out for kind {self.kind!r}, which uses none, got {self.text!r}; choose another kind."
            )
        check_policy(self.bos)
        check_at_least("sequences", self.sequences, 1)
        check_at_least("length", self.length, 2)
        check_at_least("seed", self.seed, 0)
        self._settle_bounds()

    def _settle_bounds(self) -> None:
        defaults = NATURAL_BOUNDS.get(self.kind)
        if defaults is None:
            if self.shortest is not None or self.longest is not None:
                raise ConfigError(
                    f"`shortest` and `longest` must be left out for kind {self.kind!r}, got {self.shortest} and {self.longest}; "
                    "they are for passages and sentences, use `length` here."
                )
            return
        shortest = defaults[0] if self.shortest is None else self.shortest
        longest = max(defaults[1], shortest) if self.longest is None else self.longest
        check_at_least("shortest", shortest, 2)
        check_at_least("longest", longest, shortest, " (`shortest`)")
        object.__setattr__(self, "shortest", shortest)
        object.__setattr__(self, "longest", longest)

    def with_(self, **changes: Any) -> CorpusSpec:
        """The same specification with some fields changed."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a result file; paths become strings."""
        tree = asdict(self)
        if isinstance(self.text, tuple):
            tree["text"] = [str(item) for item in self.text]
        elif self.text is not None:
            tree["text"] = str(self.text)
        return tree

    @classmethod
    def from_json(cls, tree: dict[str, Any]) -> CorpusSpec:
        """The inverse of :meth:`to_json`."""
        return cls(**tree)


def build_corpus(spec: CorpusSpec, tokenizer: Any, *, encoder: bool = False) -> Windows:
    """The windows that a specification asks for.

    Args:
        spec: what text and what windows.
        tokenizer: a tokenizer in the manner of transformers.
        encoder: whether the model is an encoder, whose windows are opened by CLS and closed by SEP.

    Raises:
        CorpusError: the text is missing, unreadable or too short, or the tokenizer has no token to put first where one was
            demanded.
    """
    common: dict[str, Any] = {"bos": spec.bos, "seed": spec.seed, "encoder": encoder}
    equal: dict[str, Any] = {"sequences": spec.sequences, "length": spec.length, **common}
    if spec.kind == "random":
        return random_windows(tokenizer, **equal)
    if spec.kind == "repeated":
        return repeated_windows(tokenizer, **equal)
    source = open_source(spec.text, field=spec.field)
    if spec.kind in NATURAL_BOUNDS:
        maker: Callable[..., Windows] = passages if spec.kind == "passages" else sentence_windows
        return maker(source, tokenizer, count=spec.sequences, shortest=spec.shortest, longest=spec.longest, **common)
    cropper: Callable[..., Windows] = shuffled_windows if spec.kind == "shuffled" else crop_windows
    return cropper(source, tokenizer, **equal)
