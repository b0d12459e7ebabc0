"""A reversible change to a model or to what it is given.

A change is used as a context: within it the model is changed, and on leaving it the model is what it was, bit for
bit, also when the body raised. Three places can be changed: buffers of the module, the embedding of the first token
(by a hook), and a layer's attention problem before it is computed (an *edit*, which the engine applies). Position ids
belong to the input of a pass. The context therefore yields an :class:`Applied`, which says what a pass must be given:

    with change.applied(model) as applied:
        capture_pass(model, tokens, lengths, edit=applied.edit, position_ids=applied.position_ids(tokens))

Weights are never written to. Claims A6, A7, A8.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gnomon.kernels.problem import AttentionProblem
from gnomon.model import PositionModel

Edit = Callable[[int, AttentionProblem], AttentionProblem]


@dataclass(frozen=True)
class Applied:
    """What a pass must be given while a change holds.

    Attributes:
        edit: applied to each layer's attention problem, or ``None``.
        shift: added to every position id, 0 for none.
    """

    edit: Edit | None = None
    shift: int = 0

    def position_ids(self, tokens: Tensor) -> Tensor | None:
        """Position ids for ``tokens [B, T]``, ``None`` where they are the usual ones."""
        if not self.shift:
            return None
        return (torch.arange(tokens.shape[1], device=tokens.device) + self.shift).expand_as(tokens)


class Change(ABC):
    """One reversible change; subclasses are frozen dataclasses of their parameters."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def label(self) -> str:
        """Its name in results, stable and short."""

    @abstractmethod
    def applied(self, model: PositionModel) -> AbstractContextManager[Applied]:
        """The context in which the change holds.

        Raises:
            ConfigError: on entering, if this model cannot be changed so; nothing is changed then.
        """


@dataclass(frozen=True)
class Unchanged(Change):
    """No change: the baseline of a comparison."""

    kind: ClassVar[str] = "none"

    @property
    def label(self) -> str:
        """See :class:`Change`."""
        return "none"

    def applied(self, model: PositionModel) -> AbstractContextManager[Applied]:
        """See :class:`Change`."""
        return nullcontext(Applied())


@dataclass(frozen=True)
class Together(Change):
    """Several changes at once, edits in order.

    Attributes:
        changes: what to change.
    """

    changes: tuple[Change, ...]
    kind: ClassVar[str] = "together"

    @property
    def label(self) -> str:
        """See :class:`Change`."""
        return "+".join(change.label for change in self.changes) or Unchanged().label

    @contextmanager
    def applied(self, model: PositionModel) -> Iterator[Applied]:
        """See :class:`Change`."""
        with ExitStack() as stack:
            parts = [stack.enter_context(change.applied(model)) for change in self.changes]
            edits = [part.edit for part in parts if part.edit is not None]
            yield Applied(edit=_in_turn(edits) if edits else None, shift=sum(part.shift for part in parts))


def _in_turn(edits: Sequence[Edit]) -> Edit:
    def edit(layer: int, problem: AttentionProblem) -> AttentionProblem:
        for one in edits:
            problem = one(layer, problem)
        return problem

    return edit
