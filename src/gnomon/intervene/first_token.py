"""Replacing the embedding of the token at position 0.

Position 0 attends only to itself, so its whole trajectory through the layers follows from its embedding (A5).
Replacing that one vector, and nothing else, asks how much of what the model knows of position comes from there (A8).
What it is replaced by matters, so several replacements are offered, each with its control:

- ``mean``: the mean embedding over the vocabulary. It has a much smaller norm than a token's own; ``mean_rescaled``
  is the same direction at the norm of the embedding that it replaces.
- ``zero``: nothing.
- ``noise``: a Gaussian direction, the same for all sequences, at the norm of the embedding that it replaces: the control
  for any change at all.
- ``random``: the embedding of a random ordinary token; ``token:ID``: of a token by number.

Embeddings are taken as the embedding module gives them (scaled where a model scales them), before a position vector is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gnomon.errors import ConfigError
from gnomon.intervene.change import Applied, Change
from gnomon.model import PositionModel

CHUNK = 4096


@dataclass(frozen=True)
class ReplaceFirst(Change):
    """The embedding at position 0 replaced.

    Attributes:
        by: ``mean``, ``mean_rescaled``, ``zero``, ``noise``, ``random`` or ``token:ID``.
        seed: of the noise and of the random token.
    """

    by: str
    seed: int = 0
    kind: ClassVar[str] = "first_token"

    def __post_init__(self) -> None:
        if self.by not in REPLACEMENTS and not self._token_number():
            raise ConfigError(
                f"`bos` must be among {', '.join(REPLACEMENTS)} or token:ID, got {self.by!r}; name one or more, joined by commas."
            )

    @property
    def label(self) -> str:
        """See :class:`Change`."""
        return f"bos={self.by}"

    @contextmanager
    def applied(self, model: PositionModel) -> Iterator[Applied]:
        """See :class:`Change`."""
        replacement = self.replacement(model)

        def replace(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            first = replacement(output[:, 0])
            return torch.cat([first[:, None].to(output.dtype), output[:, 1:]], dim=1)

        handle = model.embedding.register_forward_hook(replace)
        try:
            yield Applied()
        finally:
            handle.remove()

    def replacement(self, model: PositionModel) -> Callable[[Tensor], Tensor]:
        """A function from the embeddings at position 0, ``[B, E]``, to those that take their place."""
        if self.by == "zero":
            return torch.zeros_like
        if self.by == "mean":
            return _always(mean_embedding(model))
        direction = self._direction(model)
        if self.by in ("mean_rescaled", "noise"):
            return lambda first: (direction / direction.norm() * first.double().norm(dim=-1, keepdim=True)).to(first)
        return _always(direction)

    def _direction(self, model: PositionModel) -> Tensor:
        if self.by == "mean_rescaled":
            return mean_embedding(model)
        generator = torch.Generator().manual_seed(self.seed)
        if self.by == "noise":
            return torch.randn(model.anatomy.hidden_size, generator=generator, dtype=torch.float64).to(model.device)
        return embeddings_of(model, torch.tensor([self._token(model, generator)]))[0]

    def _token(self, model: PositionModel, generator: torch.Generator) -> int:
        size = model.anatomy.vocab_size
        if self.by == "random":
            special = set(getattr(model.tokenizer, "all_special_ids", None) or ())
            ordinary = [token for token in range(size) if token not in special]
            return ordinary[int(torch.randint(len(ordinary), (1,), generator=generator))]
        token = int(self.by.removeprefix("token:"))
        if token >= size:
            raise ConfigError(f"`bos` must name a token below the vocabulary's size of {size}, got {self.by!r}; choose another.")
        return token

    def _token_number(self) -> bool:
        return self.by.startswith("token:") and self.by.removeprefix("token:").isdecimal()


REPLACEMENTS = ("mean", "mean_rescaled", "zero", "noise", "random")


@torch.no_grad()
def embeddings_of(model: PositionModel, tokens: Tensor) -> Tensor:
    """Embeddings of tokens ``[n]`` as the module gives them, in double precision, ``[n, E]``."""
    embedded: Tensor = model.embedding(tokens.to(model.device)[None])[0]
    return embedded.double()


@torch.no_grad()
def mean_embedding(model: PositionModel) -> Tensor:
    """Mean embedding over the vocabulary, ``[E]``, in double precision."""
    total = torch.zeros(model.anatomy.hidden_size, dtype=torch.float64, device=model.device)
    for tokens in torch.split(torch.arange(model.anatomy.vocab_size), CHUNK):
        total += embeddings_of(model, tokens).sum(0)
    return total / model.anatomy.vocab_size


def _always(vector: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda first: vector.to(first).expand_as(first)
