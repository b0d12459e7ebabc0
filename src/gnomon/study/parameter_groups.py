"""Which parameters do what: embedding, queries, keys, values, output, feed-forward, norms, by layer, and which rows of queries and keys are rotated.

Groups are found by the anatomy's module names and the names of projections. Queries, keys and values kept in one matrix are taken apart where the
layout is known (one after another, or head by head); other layouts are one group, ``fused``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from gnomon.model import PositionModel

GROUPS: Final = (
    "embedding",
    "query_rotated",
    "query_plain",
    "key_rotated",
    "key_plain",
    "value",
    "fused",
    "output",
    "feed_forward",
    "norm",
    "head",
    "other",
)
_QUERY: Final = re.compile(r"^(q|q_proj|query|q_lin|wq|q_b_proj)$")
_KEY: Final = re.compile(r"^(k|k_proj|key|k_lin|wk)$")
_VALUE: Final = re.compile(r"^(v|v_proj|value|v_lin|wv)$")
_FUSED: Final = re.compile(r"^(c_attn|query_key_value|qkv|qkv_proj|Wqkv|W_pack|in_proj)$")
_BY_HEAD: Final = frozenset({"gpt_neox", "bloom"})

Squares = Callable[[Tensor], dict[str, Tensor]]


@dataclass(frozen=True)
class Part:
    """One parameter: its layer (-1 outside the layers) and how its squared gradient divides over groups."""

    layer: int
    split: Squares


def parts_of(model: PositionModel) -> dict[str, Part]:
    """Every floating parameter by name."""
    owners = _owners(model)
    return {
        name: _part(name, parameter, model, owners)
        for name, parameter in model.hf.named_parameters()
        if parameter.is_floating_point()
    }


def _owners(model: PositionModel) -> list[tuple[str, int, str]]:
    """Module names with layer and group, longest first, so that the innermost decides."""
    anatomy = model.anatomy
    found = [(anatomy.embedding, -1, "embedding")]
    found += [(name, layer, "layer") for layer, name in enumerate(anatomy.layers)]
    found += [(name, layer, "attention") for layer, name in enumerate(anatomy.attentions)]
    found += [(name, layer, "output") for layer, name in enumerate(anatomy.outputs)]
    found += [(name, layer, "feed_forward") for layer, name in enumerate(anatomy.feed_forwards)]
    found += [(name, layer, "norm") for layer, names in enumerate(anatomy.norms) for name in names]
    found += [(name, -1, group) for name, group in ((anatomy.final_norm, "norm"), (anatomy.head, "head")) if name]
    return sorted(found, key=lambda owner: -len(owner[0]))


def _part(name: str, parameter: Tensor, model: PositionModel, owners: list[tuple[str, int, str]]) -> Part:
    layer, role = next(((layer, role) for owner, layer, role in owners if name.startswith(owner + ".")), (-1, "other"))
    if role == "attention":
        return Part(layer, _projection(name.split(".")[-2], layer, model))
    if role == "layer":
        # What belongs to a block and to none of its known parts: dense maps are the feed-forward, vectors the norms.
        role = "feed_forward" if parameter.ndim > 1 else "norm"
    return Part(layer, lambda squares: {role: squares.sum()})


def _projection(name: str, layer: int, model: PositionModel) -> Squares:
    anatomy, rotated = model.anatomy, model.scheme.rotary_width if model.scheme.rope_layers[layer] else 0
    widths = (
        anatomy.num_heads * anatomy.head_dim,
        anatomy.num_kv_heads * anatomy.head_dim,
        anatomy.num_kv_heads * anatomy.value_dim,
    )

    def rows(squares: Tensor) -> Tensor:
        """Squared gradient by output feature."""
        transposed = name == "c_attn" and squares.ndim == 2
        return squares if squares.ndim == 1 else squares.sum(0 if transposed else 1)

    def halves(group: str, by_row: Tensor) -> dict[str, Tensor]:
        by_head = by_row.reshape(-1, anatomy.head_dim)
        return {f"{group}_rotated": by_head[:, :rotated].sum(), f"{group}_plain": by_head[:, rotated:].sum()}

    def fused(squares: Tensor) -> dict[str, Tensor]:
        by_row = rows(squares)
        if len(by_row) != sum(widths) or (name == "query_key_value" and model.anatomy.model_type not in _BY_HEAD):
            return {"fused": squares.sum()}
        if name == "query_key_value":
            query, key, value = by_row.reshape(anatomy.num_heads, 3, -1).unbind(1)
        else:
            query, key, value = torch.split(by_row, list(widths))
        return {**halves("query", query.reshape(-1)), **halves("key", key.reshape(-1)), "value": value.sum()}

    if _FUSED.match(name):
        return fused
    for group, pattern, width in (("query", _QUERY, widths[0]), ("key", _KEY, widths[1])):
        if pattern.match(name):
            # Norms of queries or keys, and low-rank factors, have other widths and are not divided.
            return lambda squares: halves(group, rows(squares)) if len(rows(squares)) == width else {"other": squares.sum()}
    if _VALUE.match(name):
        return lambda squares: {"value": squares.sum()}
    return lambda squares: {"norm" if squares.ndim == 1 else "other": squares.sum()}


def sizes_of(model: PositionModel, parts: dict[str, Part]) -> Tensor:
    """Number of parameters by layer (the last row: outside the layers) and group."""
    out = torch.zeros(model.anatomy.num_layers + 1, len(GROUPS), dtype=torch.float64)
    for name, part in parts.items():
        add_to(out, part, torch.ones_like(model.hf.get_parameter(name), dtype=torch.float32))
    return out


def add_to(totals_LG: Tensor, part: Part, squares: Tensor) -> None:
    """Adds the squares of one parameter to the totals by layer and group."""
    for group, value in part.split(squares).items():
        totals_LG[part.layer, GROUPS.index(group)] += value.double().cpu()


__all__ = ["GROUPS", "Part", "add_to", "parts_of", "sizes_of"]
