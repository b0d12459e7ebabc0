"""Random attention problems over everything the interface can hand over."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from gnomon.kernels import MOMENTS, AlibiBias, AttentionProblem, DenseBias, MaskStructure, Needs

ALL_NEEDS = Needs(
    moments=frozenset(MOMENTS),
    first_keys=3,
    special=True,
    offset_edges=(0, 1, 2, 4, 8, 16),
    received=True,
    above=(0.05, 0.3),
)


@st.composite
def problems(draw: st.DrawFn) -> tuple[AttentionProblem, torch.Tensor]:
    """A problem and which of its tokens are special."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    batch, kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 4]))
    length = draw(st.sampled_from([1, 2, 3, 7, 16, 31, 64, 65, 70]))
    heads, width = kv_heads * group, draw(st.sampled_from([2, 8]))
    short = draw(st.booleans())
    lengths = (
        torch.randint(1, length + 1, (batch,), generator=generator) if short else torch.full((batch,), length, dtype=torch.long)
    )

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    bias = draw(st.sampled_from(["none", "alibi", "shared", "own"]))
    problem = AttentionProblem(
        query=normal(batch, heads, length, width) * 2,
        key=normal(batch, kv_heads, length, width) * 2,
        value=normal(batch, kv_heads, length, 5),
        scaling=0.5,
        mask=MaskStructure(
            causal=draw(st.booleans()),
            lengths=lengths,
            window=draw(st.sampled_from([None, None, 1, 3, 9, 40])),
            chunk=draw(st.sampled_from([None, None, None, 8])),
        ),
        softcap=draw(st.sampled_from([None, 5.0])),
        bias={
            "none": None,
            "alibi": AlibiBias(torch.rand(heads, generator=generator)),
            "shared": DenseBias(normal(1, heads, length, length)),
            "own": DenseBias(normal(batch, heads, length, length)),
        }[bias],
        sinks=normal(heads) if draw(st.booleans()) else None,
    )
    return problem, torch.rand(batch, length, generator=generator) < 0.2
