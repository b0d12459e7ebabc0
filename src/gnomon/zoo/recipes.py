"""The recipes: which models the zoo has, and what they share.

All recipes train the same body on the same windows in the same order for the same number of steps; what a recipe names is the positional scheme and the seed
of the initial weights. A difference between two of them is a difference of scheme, and the second seeds say how large a difference of chance is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from gnomon.errors import ConfigError

CONTEXT: Final = 512
WINDOW: Final = 64


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long and how fast, the same for all.

    Attributes:
        steps: optimizer steps.
        batch: windows per step.
        context: tokens per window, BOS and the like included.
        peak_rate: learning rate after warm-up.
        warmup: steps of linear warm-up; afterwards a cosine down to a tenth.
        weight_decay: of AdamW, on matrices alone.
        clip: largest norm of the gradient.
        data_seed: of the order of windows.
    """

    steps: int = 30000
    batch: int = 16
    context: int = CONTEXT
    peak_rate: float = 2e-3
    warmup: int = 500
    weight_decay: float = 0.1
    clip: float = 1.0
    data_seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One member of the zoo.

    Attributes:
        name: as in ``zoo:NAME``.
        summary: its scheme in a few words.
        settings: what the body's configuration takes for this scheme.
        seed: of the initial weights.
        masked: whether it predicts masked tokens, with CLS first and SEP last, instead of next ones with BOS first.
        checkpoints: steps at which its weights are kept beside the last.
        schedule: training.
        sizes: of the body.
    """

    name: str
    summary: str
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    masked: bool = False
    checkpoints: tuple[int, ...] = ()
    schedule: Schedule = Schedule()
    sizes: dict[str, int] = field(default_factory=dict)

    def config(self, vocab_size: int) -> dict[str, Any]:
        """Arguments of the body's configuration."""
        sizes = {"max_position_embeddings": self.schedule.context, **self.sizes}
        return {"vocab_size": vocab_size, **sizes, **self.settings, "bidirectional": self.masked}

    def to_json(self) -> dict[str, Any]:
        """For the model card."""
        return asdict(self)

    def scaled(self, *, sizes: dict[str, int] | None = None, **schedule: Any) -> Recipe:
        """The same scheme at another size or length of training."""
        return replace(self, sizes={**self.sizes, **(sizes or {})}, schedule=replace(self.schedule, **schedule))


def log_spaced(last: int) -> tuple[int, ...]:
    """Checkpoints: the start, powers of two from 64, and denser (half octaves) from 2048 on, where sinks emerge."""
    early = [0, *(2**power for power in range(6, 12))]
    late = [round(2048 * 2 ** (half / 2)) for half in range(1, 12)]
    return tuple(step for step in (*early, *late) if step < last)


def _recipe(name: str, summary: str, *, checkpointed: bool = False, **options: Any) -> Recipe:
    steps = Schedule().steps
    return Recipe(name=name, summary=summary, checkpoints=log_spaced(steps) if checkpointed else (), **options)


def _rope(**parameters: Any) -> dict[str, Any]:
    return {"position": "rope", "rope_parameters": parameters}


_LIST: Final = (
    _recipe("rope", "plain RoPE, base 1e4", settings=_rope(rope_theta=1e4), checkpointed=True),
    _recipe("rope-2", "plain RoPE, second seed", settings=_rope(rope_theta=1e4), seed=1),
    _recipe("rope_ntk", "RoPE with base 1e6 (NTK-scaled)", settings=_rope(rope_theta=1e6), checkpointed=True),
    _recipe("rope_ntk-2", "RoPE with base 1e6, second seed", settings=_rope(rope_theta=1e6), seed=1),
    _recipe(
        "rope_dynamic",
        "RoPE with transformers' dynamic NTK scaling beyond 128 tokens",
        settings={**_rope(rope_theta=1e4, rope_type="dynamic", factor=4.0), "max_position_embeddings": 128},
    ),
    _recipe("rope_partial", "RoPE on a quarter of each head", settings=_rope(rope_theta=1e4, partial_rotary_factor=0.25)),
    _recipe(
        "rope_swa",
        f"RoPE with a window of {WINDOW}",
        settings={**_rope(rope_theta=1e4), "sliding_window": WINDOW},
        checkpointed=True,
    ),
    _recipe(
        "rope_swa-2", "RoPE with a window, second seed", settings={**_rope(rope_theta=1e4), "sliding_window": WINDOW}, seed=1
    ),
    _recipe("nope", "no positional encoding", settings={"position": "none"}),
    _recipe("learned", "learned absolute positions", settings={"position": "learned"}, checkpointed=True),
    _recipe("learned-2", "learned absolute positions, second seed", settings={"position": "learned"}, seed=1),
    _recipe("alibi", "ALiBi", settings={"position": "alibi"}),
    _recipe("t5", "T5's relative bias", settings={"position": "relative"}),
    _recipe("sinks", "RoPE with learned sink logits", settings={**_rope(rope_theta=1e4), "learned_sinks": True}),
    _recipe("mlm", "bidirectional, learned absolute positions, masked tokens", settings={"position": "learned"}, masked=True),
)

RECIPES: Final[dict[str, Recipe]] = {recipe.name: recipe for recipe in _LIST}


def recipe_named(name: str) -> Recipe:
    """The recipe of that name."""
    if name not in RECIPES:
        raise ConfigError(f"`recipe` must be one of {', '.join(RECIPES)}, got {name!r}.")
    return RECIPES[name]
