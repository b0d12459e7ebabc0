"""Attention and its statistics in blocks of queries: exact, in memory that grows with T and not with T * T.

For a block of queries the logits against all visible keys fit in the cache. They are normalised once, and every statistic is read off
while they are there: the output is one product, sums over offsets read the block along its diagonals through a skewed view, attention
received is the block's column sum, the entropy is ``Z - sum p s``. Query heads that share a key head are stacked into one product, so
grouped keys are never repeated.

The skewed view: row r of a block that starts at query ``q0`` and key ``k0`` holds key ``k0 + c`` in column c, at offset ``q0 + r - k0 - c``. Reading
row r from column ``r + u`` puts offset ``q0 - k0 - u`` into column u of *every* row. With rows ``stride`` entries apart this is a view with strides
``(stride + 1, 1)``; rows are padded with zeros on the left so that what falls before the first key reads as no weight.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gnomon.kernels.problem import AttentionProblem, MaskStructure
from gnomon.kernels.quantities import Needs, Quantities
from gnomon.kernels.sampling import finish_logits

HIDDEN = -1e30  # finite, so that 0 * HIDDEN is 0 and not NaN
CACHE_BYTES = 6 << 20
MAX_BLOCK = 128
SHORT_BLOCK, SHORT = 64, 512  # short texts waste less on the diagonal with smaller blocks
MIN_BLOCK = 8


class Workspace:
    """Scratch memory kept between layers, since fresh pages cost more than the arithmetic on them."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}

    def take(self, name: str, size: int, like: Tensor) -> Tensor:
        """A flat buffer of ``size`` entries of the kind of ``like``, with whatever it last held."""
        key = (name, like.dtype, like.device)
        held = self._buffers.get(key)
        if held is None or held.numel() < size:
            held = self._buffers[key] = torch.empty(size, dtype=like.dtype, device=like.device)
        return held[:size]

    def clear(self) -> None:
        """Give the memory back."""
        self._buffers.clear()


class Block(NamedTuple):
    """Queries ``[q0, q1)`` against keys ``[k0, k1)``; keys in ``[clear0, clear1)`` are visible to every one of them."""

    q0: int
    q1: int
    k0: int
    k1: int
    clear0: int
    clear1: int


def plan_blocks(mask: MaskStructure, length: int, size: int) -> Iterator[Block]:
    """Blocks of at most ``size`` queries with the keys they need, skipping padding and what lies outside windows and chunks."""
    positions = torch.arange(length)
    first, last = (bounds.tolist() for bounds in mask.key_range(positions))
    longest, shortest = int(mask.lengths.max()), int(mask.lengths.min())
    edge = length if mask.causal else shortest
    stop = length if mask.causal else longest
    for q0 in range(0, longest, size):
        q1 = min(q0 + size, length)
        k0, k1 = min(first[q0:q1]), min(max(last[q0:q1]) + 1, stop)
        clear0, clear1 = max(first[q0:q1]), min(min(last[q0:q1]) + 1, edge)
        yield Block(q0, q1, k0, max(k1, k0 + 1), min(clear0, k1), clear1)


def attention_statistics(
    problem: AttentionProblem, needs: Needs, special: Tensor, workspace: Workspace | None = None, *, block: int | None = None
) -> Quantities:
    """Output and everything in ``needs``, equal to the reference to rounding.

    Args:
        problem: one layer's inputs.
        needs: what to compute besides output and log-denominators.
        special: which tokens are special, ``[B, T]``.
        workspace: scratch memory to reuse.
        block: queries per block; chosen by cache size when not given.
    """
    task = _Task(problem, needs, special, workspace or Workspace(), block)
    for chunk in task.chunks():
        for piece in task.blocks:
            task.run(chunk, piece)
    return task.quantities()


@dataclass
class _Stacked:
    """Inputs with batch and key head folded into one axis N and the R heads of a group stacked along queries."""

    query_NRTD: Tensor
    key_NDT: Tensor
    value_NTD: Tensor


class _Task:
    """One call: inputs folded, results allocated, one block at a time."""

    def __init__(self, problem: AttentionProblem, needs: Needs, special: Tensor, workspace: Workspace, block: int | None) -> None:
        self.problem, self.needs, self.workspace = problem, needs, workspace
        batch, heads, length, width = problem.query.shape
        kv_heads, group = problem.num_kv_heads, problem.group
        self.batch, self.heads, self.length, self.kv_heads, self.group = batch, heads, length, kv_heads, group
        dtype = torch.float64 if problem.query.dtype == torch.float64 else torch.float32
        plain = problem.softcap is None and problem.bias is None
        self.scaled_early = plain
        query = problem.query.to(dtype)
        query = query * problem.scaling if plain else query
        self.inputs = _Stacked(
            query_NRTD=query.reshape(batch * kv_heads, group, length, width),
            key_NDT=problem.key.to(dtype).reshape(batch * kv_heads, length, width).transpose(1, 2),
            value_NTD=problem.value.to(dtype).reshape(batch * kv_heads, length, -1),
        )
        self.value_width = self.inputs.value_NTD.shape[-1]
        device = query.device
        self.real_BT = torch.arange(length, device=device) < problem.mask.lengths.to(device)[:, None]
        self.padded = not bool(self.real_BT.all())
        self.special_BT = special.to(device)
        self.special_columns = self.special_BT.any(0).nonzero().flatten().tolist() if needs.special else []
        self._choose_sizes(block, dtype)
        self.blocks = list(plan_blocks(problem.mask, length, self.block))
        self._allocate(dtype, device)

    def _choose_sizes(self, block: int | None, dtype: torch.dtype) -> None:
        """Queries per block and folded heads per chunk, so that a block of weights stays in the cache."""
        reach = min(self.length, self.problem.mask.window * 2 if self.problem.mask.window else self.length)
        row_bytes = self.group * (reach + MAX_BLOCK) * dtype.itemsize
        fitting = max(MIN_BLOCK, CACHE_BYTES // row_bytes)
        largest = SHORT_BLOCK if self.length < SHORT else MAX_BLOCK
        self.block = min(block or min(largest, 1 << (int(fitting).bit_length() - 1)), self.length)
        folded = self.batch * self.kv_heads
        self.per_chunk = max(1, min(folded, CACHE_BYTES // (row_bytes * self.block)))
        if not self.scaled_early or not self.problem.mask.causal or self.padded:
            whole = max(1, self.per_chunk // self.kv_heads)  # whole sequences, so that masks and biases line up
            self.per_chunk = min(folded, whole * self.kv_heads)

    def _allocate(self, dtype: torch.dtype, device: torch.device) -> None:
        folded, group, length, needs = self.batch * self.kv_heads, self.group, self.length, self.needs

        def empty(*tail: int) -> Tensor:
            return torch.empty(folded, group, length, *tail, dtype=dtype, device=device)

        self.output = empty(self.value_width)
        if self.padded:
            self.output.zero_()  # padding that no block reaches must not carry NaN into later layers
        self.lse = empty()
        self.moments = {name: empty() for name in sorted(needs.moments)}
        self.first = empty(needs.first_keys) if needs.first_keys else None
        self.special = empty() if needs.special else None
        self.offset_mass = empty(len(needs.offset_edges)) if needs.offset_edges else None
        self.received = empty().zero_() if needs.received else None
        self.above = empty(len(needs.above)).zero_() if needs.above else None

    def chunks(self) -> Iterator[slice]:
        """Ranges of the folded axis."""
        folded = self.batch * self.kv_heads
        self.reach = max(piece.k1 - piece.k0 for piece in self.blocks)
        self.stride = self.block + self.reach
        for start in range(0, folded, self.per_chunk):
            chunk = slice(start, min(start + self.per_chunk, folded))
            rows = (chunk.stop - chunk.start) * self.group * self.block
            self.weights = self.workspace.take("weights", rows * self.stride + self.block, self.inputs.query_NRTD)
            self.weights.zero_()
            self.width_before = 0
            yield chunk

    def run(self, chunk: slice, piece: Block) -> None:
        """All of one block for one range of folded heads."""
        rows_per_head, width = piece.q1 - piece.q0, piece.k1 - piece.k0
        count = chunk.stop - chunk.start
        scores = self._scores(chunk, piece, count, rows_per_head, width)
        weights = self._weight_view(count, rows_per_head, width)
        top = scores.amax(-1)
        torch.softmax(scores, -1, out=weights)
        peak = weights.amax(-1)
        lse = top - peak.log()
        queries = slice(piece.q0, piece.q1)
        shape = (count, self.group, rows_per_head)
        product = torch.bmm(weights, self.inputs.value_NTD[chunk, piece.k0 : piece.k1])
        factor = self._sink_factor(chunk, lse.view(shape))
        self.output[chunk, :, queries] = _times(product.view(*shape, -1), factor, 1)
        self.lse[chunk, :, queries] = lse.view(shape) if factor is None else lse.view(shape) - factor.log()
        self._by_query(chunk, piece, scores, weights, lse, peak, factor)
        self._by_key(chunk, piece, weights, factor)

    def _scores(self, chunk: slice, piece: Block, count: int, rows_per_head: int, width: int) -> Tensor:
        query = self.inputs.query_NRTD[chunk, :, piece.q0 : piece.q1].reshape(count, self.group * rows_per_head, -1)
        key = self.inputs.key_NDT[chunk, :, piece.k0 : piece.k1]
        flat = self.workspace.take("scores", count * self.group * rows_per_head * width, query)
        scores = flat.view(count, self.group * rows_per_head, width)
        torch.bmm(query, key, out=scores)
        if not self.scaled_early:
            by_head = self._by_head(scores, chunk, rows_per_head, width)
            device = scores.device
            queries = torch.arange(piece.q0, piece.q1, device=device)
            finish_logits(self._part(chunk), by_head, queries, torch.arange(piece.k0, piece.k1, device=device))
            if self.problem.bias is not None:
                scores.clamp_(min=HIDDEN)  # a bias may hide keys by minus infinity
        self._hide(scores, chunk, piece, rows_per_head, width)
        return scores

    def _by_head(self, scores: Tensor, chunk: slice, rows_per_head: int, width: int) -> Tensor:
        """Folded scores as ``[b, H, q, k]``; a chunk holds whole sequences, or part of one sequence's heads."""
        return scores.view(-1, min(self.heads, (chunk.stop - chunk.start) * self.group), rows_per_head, width)

    def _part(self, chunk: slice) -> AttentionProblem:
        """The problem whose bias fits this chunk: its sequences, if the bias differs by sequence."""
        bias = self.problem.bias
        matrix = getattr(bias, "matrix", None)
        if bias is None or matrix is None or matrix.shape[0] == 1:
            return self.problem
        from dataclasses import replace

        sequences = slice(chunk.start // self.kv_heads, -(-chunk.stop // self.kv_heads))
        return replace(self.problem, bias=replace(bias, matrix=matrix[sequences]))  # type: ignore[type-var]

    def _hide(self, scores: Tensor, chunk: slice, piece: Block, rows_per_head: int, width: int) -> None:
        """Hide what structure hides, touching only the tiles at the edges of the block."""
        device = scores.device
        queries = torch.arange(piece.q0, piece.q1, device=device)
        edges = [(piece.k0, piece.k1)] if piece.clear0 >= piece.clear1 else [(piece.k0, piece.clear0), (piece.clear1, piece.k1)]
        for start, stop in edges:
            if start >= stop:
                continue
            visible_BQK = self.problem.mask.visible(queries, torch.arange(start, stop, device=device))
            if self.problem.mask.causal:
                # Padding lies on the right: a real query never reaches it, and what padded queries see is thrown away.
                visible_BQK = self._structural(queries, start, stop)[None]
            else:
                visible_BQK = visible_BQK.repeat_interleave(self.kv_heads, 0)[chunk]
            tile = scores.view(-1, self.group, rows_per_head, width)[..., start - piece.k0 : stop - piece.k0]
            tile.masked_fill_(~visible_BQK[:, None], HIDDEN)

    def _structural(self, queries: Tensor, start: int, stop: int) -> Tensor:
        first, last = self.problem.mask.key_range(queries)
        keys = torch.arange(start, stop, device=queries.device)
        return (keys >= first[:, None]) & (keys <= last[:, None])

    def _weight_view(self, count: int, rows_per_head: int, width: int) -> Tensor:
        rows = self.group * rows_per_head
        if width < self.width_before:
            self.weights.zero_()  # what the skewed view would read beyond the last key
        self.width_before = width
        return self.weights.as_strided((count, rows, width), (rows * self.stride, self.stride, 1), self.block)

    def _skewed(self, count: int, rows_per_head: int, span: int) -> Tensor:
        """The block along its diagonals, ``[N * R, q, u]``: column u is offset ``q0 - k0 + q - 1 - u``."""
        lead = self.block - (rows_per_head - 1)
        size = (count * self.group, rows_per_head, span)
        return self.weights.as_strided(size, (rows_per_head * self.stride, self.stride + 1, 1), lead)

    def _sink_factor(self, chunk: slice, lse: Tensor) -> Tensor | None:
        """Share of each row that stays on the sequence when there are learned sinks, ``[N, R, q]``."""
        if self.problem.sinks is None:
            return None
        sinks = self.problem.sinks.to(lse.dtype).reshape(self.kv_heads, self.group).repeat(self.batch, 1)[chunk]
        return torch.sigmoid(lse - sinks[..., None])

    def _by_query(
        self, chunk: slice, piece: Block, scores: Tensor, weights: Tensor, lse: Tensor, peak: Tensor, factor: Tensor | None
    ) -> None:
        queries = slice(piece.q0, piece.q1)
        shape = (chunk.stop - chunk.start, self.group, piece.q1 - piece.q0)
        if "peak" in self.moments:
            self.moments["peak"][chunk, :, queries] = _times(peak.view(shape), factor)
        if "entropy" in self.moments:
            entropy = (lse - scores.mul_(weights).sum(-1)).view(shape)
            if factor is not None:
                entropy = factor * (entropy - factor.log())
            self.moments["entropy"][chunk, :, queries] = entropy
        if self.first is not None:
            held = slice(piece.k0, max(piece.k0, min(self.needs.first_keys, piece.k1)))
            part = torch.zeros(*shape, self.needs.first_keys, dtype=weights.dtype, device=weights.device)
            part[..., held] = weights[..., : held.stop - held.start].reshape(*shape, held.stop - held.start)
            self.first[chunk, :, queries] = _times(part, factor, 1)
        if self.special is not None:
            self.special[chunk, :, queries] = _times(self._special_mass(chunk, piece, weights, shape), factor)
        if self.offset_mass is not None or self.moments.keys() & {"offset_mean", "offset_square", "self_mass"}:
            self._along_diagonals(chunk, piece, shape, factor)

    def _special_mass(self, chunk: slice, piece: Block, weights: Tensor, shape: tuple[int, int, int]) -> Tensor:
        columns = [column for column in self.special_columns if piece.k0 <= column < piece.k1]
        flags_BC = self.special_BT[:, columns].to(weights.dtype).repeat_interleave(self.kv_heads, 0)[chunk]
        picked = weights[..., [column - piece.k0 for column in columns]]
        return (picked * flags_BC[:, None]).sum(-1).view(shape)

    def _along_diagonals(self, chunk: slice, piece: Block, shape: tuple[int, int, int], factor: Tensor | None) -> None:
        count, _, rows_per_head = shape
        queries = slice(piece.q0, piece.q1)
        largest = piece.q1 - 1 - piece.k0  # offset in column 0
        smallest = 0 if self.problem.mask.causal else piece.q0 - (piece.k1 - 1)
        span = largest - smallest + 1
        skewed = self._skewed(count, rows_per_head, span)
        if self.moments.keys() & {"offset_mean", "offset_square"}:
            offsets = torch.arange(largest, smallest - 1, -1, device=skewed.device).abs().to(skewed.dtype)
            product = self.workspace.take("product", skewed.numel(), skewed).view(skewed.shape)
            torch.mul(skewed, offsets, out=product)
            for name in ("offset_mean", "offset_square"):
                if name in self.moments:
                    self.moments[name][chunk, :, queries] = _times(product.sum(-1).view(shape), factor)
                if name == "offset_mean" and "offset_square" in self.moments:
                    product.mul_(offsets)
        if "self_mass" in self.moments:
            self.moments["self_mass"][chunk, :, queries] = _times(skewed[..., largest].view(shape), factor)
        if self.offset_mass is not None:
            self.offset_mass[chunk, :, queries] = _times(
                self._band_sums(skewed, largest, smallest).reshape(*shape, -1), factor, 1
            )

    def _band_sums(self, skewed: Tensor, largest: int, smallest: int) -> Tensor:
        edges = [*self.needs.offset_edges, 1 << 62]
        sums = skewed.new_zeros(len(self.needs.offset_edges), *skewed.shape[:2])
        for band, (low, high) in enumerate(itertools.pairwise(edges)):
            for turn, (start, stop) in enumerate(_columns(low, high, largest, smallest)):
                if turn == 0:
                    torch.sum(skewed[..., start:stop], -1, out=sums[band])
                else:
                    sums[band] += skewed[..., start:stop].sum(-1)
        return sums.movedim(0, -1)

    def _by_key(self, chunk: slice, piece: Block, weights: Tensor, factor: Tensor | None) -> None:
        if self.received is None and self.above is None:
            return
        count, rows_per_head, width = chunk.stop - chunk.start, piece.q1 - piece.q0, piece.k1 - piece.k0
        by_head = weights.as_strided(
            (count * self.group, rows_per_head, width), (rows_per_head * self.stride, self.stride, 1), self.block
        )
        keep = self.real_BT[:, piece.q0 : piece.q1].to(weights.dtype).repeat_interleave(self.kv_heads, 0)[chunk, None]
        keep = keep.expand(count, self.group, rows_per_head) if factor is None else keep * factor
        keep = keep.reshape(count * self.group, 1, rows_per_head)
        keys = slice(piece.k0, piece.k1)
        if self.received is not None:
            self.received[chunk, :, keys] += torch.bmm(keep, by_head).view(count, self.group, width)
        if self.above is not None:
            scaled = by_head * keep.transpose(1, 2)
            for index, threshold in enumerate(self.needs.above):
                self.above[chunk, :, keys, index] += (scaled > threshold).sum(1).view(count, self.group, width)

    def quantities(self) -> Quantities:
        """Results in head order, NaN where a query is padding."""
        needs = self.needs

        def by_head(values: Tensor | None) -> Tensor | None:
            if values is None:
                return None
            values = values.view(self.batch, self.heads, self.length, *values.shape[3:])
            if self.padded:
                keep = self.real_BT[:, None].reshape(self.batch, 1, self.length, *([1] * (values.ndim - 3)))
                values = values.masked_fill_(~keep, torch.nan)
            return values

        lse = by_head(self.lse)
        assert lse is not None
        moments = {name: by_head(values) for name, values in self.moments.items()}
        output = self.output.view(self.batch, self.heads, self.length, self.value_width)
        return Quantities(
            output=output.to(self.problem.value.dtype),
            lse=lse,
            moments={name: values for name, values in moments.items() if values is not None},
            first=by_head(self.first),
            special=by_head(self.special),
            offset_mass=by_head(self.offset_mass),
            received=by_head(self.received),
            above=by_head(self.above) if needs.above else None,
        )


def _times(values: Tensor, factor: Tensor | None, extra: int = 0) -> Tensor:
    if factor is None:
        return values
    return values * factor.reshape(*factor.shape, *([1] * extra))


def _columns(low: int, high: int, largest: int, smallest: int) -> Iterator[tuple[int, int]]:
    """Column ranges of the skewed view whose |offset| lies in ``[low, high)``; column 0 holds offset ``largest``."""
    ranges = [(low, high - 1)] if smallest >= 0 or low == high - 1 == 0 else [(max(low, 0), high - 1), (1 - high, -max(low, 1))]
    for least, most in ranges:
        least, most = max(least, smallest), min(most, largest)
        if least <= most:
            yield largest - most, largest - least + 1
