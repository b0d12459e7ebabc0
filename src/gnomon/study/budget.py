"""What a survey will need, before it is started: memory, time, and what would fit where it does not.

**Memory.** Weights are counted exactly. One batch of ``B`` windows of ``T`` tokens holds, at the layer where it needs most,

- a few copies of the residual stream, ``B T E`` each, and the widest of the feed-forward, ``B T F``;
- queries, keys, values and the output of attention, once in the model's type and once in single precision;
- what the kernel returns per head and token: the log-denominator and ``COLUMNS`` numbers, in single precision;
- logits ``B T V`` where a study scores the text, in single precision and once more for the softmax.

There is no term in ``T * T``: blocks of weights stay within a fixed cache, which ``FIXED_BYTES`` holds together with what the program itself loads. The estimate leans to the large side by ``MARGIN``.

**Time.** Two operations per parameter and token, ``4 L H D T`` per token for attention (half of it under a causal mask) and about as
much again for the statistics, divided by the speed of a matrix product on this device.

**What it cannot show.** Memory that other programs take after the check, and what measures keep for their own small arrays. Speed
is measured on one product, so the time is right within a factor of two or so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

from gnomon.errors import ResourceError

MARGIN: Final = 1.25
COLUMNS: Final = 24
STREAM_COPIES: Final = 6
FIXED_BYTES: Final = 192 * 2**20
STATISTICS_FACTOR: Final = 2.0


class Shape(Protocol):
    """The counts of a model that decide what a pass costs; an Anatomy has them."""

    @property
    def num_layers(self) -> int:
        """Attention layers."""

    @property
    def num_heads(self) -> int:
        """Query heads."""

    @property
    def num_kv_heads(self) -> int:
        """Key/value heads."""

    @property
    def head_dim(self) -> int:
        """Features of a query."""

    @property
    def value_dim(self) -> int:
        """Features of a value."""

    @property
    def hidden_size(self) -> int:
        """Width of the residual stream."""

    @property
    def intermediate_size(self) -> int | None:
        """Width inside the feed-forward."""

    @property
    def vocab_size(self) -> int:
        """Tokens."""

    @property
    def num_parameters(self) -> int:
        """Weights."""

    @property
    def causal(self) -> bool:
        """Whether later keys are hidden."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """An estimate.

    Attributes:
        weight_bytes: the model itself.
        batch_bytes: what one batch adds at its worst.
        operations: floating-point operations of all passes.
        tokens: tokens of all passes.
    """

    weight_bytes: int
    batch_bytes: int
    operations: float
    tokens: int

    @property
    def total_bytes(self) -> int:
        """Memory at the worst moment."""
        return self.weight_bytes + self.batch_bytes

    def seconds(self, operations_per_second: float) -> float:
        """How long the passes take at a speed."""
        return self.operations / operations_per_second


def estimate(
    shape: Shape,
    *,
    length: int,
    sequences: int,
    batch_size: int,
    bytes_per_number: int = 4,
    logits: bool = False,
) -> Budget:
    """Memory and work of a survey.

    Args:
        shape: counts and widths of the model.
        length: tokens of a window.
        sequences: windows.
        batch_size: windows per pass.
        bytes_per_number: size of a weight and of an activation.
        logits: whether a pass also gives logits.
    """
    batch = max(1, min(batch_size, sequences))
    tokens = batch * length
    stream = STREAM_COPIES * shape.hidden_size + 2 * (shape.intermediate_size or 4 * shape.hidden_size)
    heads = shape.num_heads * (shape.head_dim + shape.value_dim) + shape.num_kv_heads * (shape.head_dim + shape.value_dim)
    per_token = stream * bytes_per_number + heads * (bytes_per_number + 4) + shape.num_heads * (COLUMNS + 1) * 4
    if logits:
        per_token += 2 * 4 * shape.vocab_size
    all_tokens = sequences * length
    seen = length / 2 if shape.causal else float(length)
    attention = 2.0 * shape.num_layers * shape.num_heads * (shape.head_dim + shape.value_dim) * seen * STATISTICS_FACTOR
    return Budget(
        weight_bytes=shape.num_parameters * bytes_per_number,
        batch_bytes=math.ceil(MARGIN * tokens * per_token) + FIXED_BYTES,
        operations=all_tokens * (2.0 * shape.num_parameters + attention),
        tokens=all_tokens,
    )


def fitting_batch(
    shape: Shape, *, length: int, sequences: int, available: int, bytes_per_number: int = 4, logits: bool = False
) -> int:
    """The most windows per pass that ``available`` bytes hold beside the weights; 0 when not even one fits."""

    def fits(batch: int) -> bool:
        budget = estimate(
            shape, length=length, sequences=sequences, batch_size=batch, bytes_per_number=bytes_per_number, logits=logits
        )
        return budget.batch_bytes <= available

    low, high = 0, sequences
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def check_fits(
    shape: Shape,
    *,
    length: int,
    sequences: int,
    batch_size: int,
    available: int | None,
    bytes_per_number: int = 4,
    logits: bool = False,
) -> Budget:
    """The estimate, refused when a batch needs more than there is; the weights are taken to be loaded already.

    Args:
        shape: counts and widths of the model.
        length: tokens of a window.
        sequences: windows.
        batch_size: windows per pass.
        available: free bytes on the device, ``None`` when not known.
        bytes_per_number: size of an activation.
        logits: whether a pass also gives logits.

    Raises:
        ResourceError: saying what would fit.
    """
    budget = estimate(
        shape, length=length, sequences=sequences, batch_size=batch_size, bytes_per_number=bytes_per_number, logits=logits
    )
    if available is None or budget.batch_bytes <= available:
        return budget
    needed, free = readable_bytes(budget.batch_bytes), readable_bytes(available)
    batch = fitting_batch(
        shape, length=length, sequences=sequences, available=available, bytes_per_number=bytes_per_number, logits=logits
    )
    if batch:
        remedy = f"`batch_size` {batch} would fit"
    else:
        one = estimate(shape, length=1, sequences=1, batch_size=1, bytes_per_number=bytes_per_number, logits=logits)
        room = max(0, available - FIXED_BYTES) // max(1, one.batch_bytes - FIXED_BYTES)
        remedy = f"one window of at most {room} tokens would fit" if room >= 2 else "free memory or use a smaller model"
    raise ResourceError(
        f"a batch of {batch_size} windows of {length} tokens must fit into memory, got a need of about {needed} "
        f"and {free} free; {remedy}."
    )


def readable_bytes(count: float) -> str:
    """Bytes for people."""
    for size, unit in ((2**40, "TB"), (2**30, "GB"), (2**20, "MB"), (2**10, "kB")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"


def readable_seconds(seconds: float) -> str:
    """A duration for people, rounded as its accuracy deserves."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
