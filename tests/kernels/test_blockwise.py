"""The blockwise kernel equals the float64 reference on everything the interface can hand over."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from gnomon.kernels import AttentionProblem, DenseBias, MaskStructure, Needs, attention_output, blockwise, reference
from tests.kernels.problems import ALL_NEEDS, problems

TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}


@settings(max_examples=150, deadline=None)
@given(drawn=problems(), block=st.sampled_from([None, 1, 5, 64]), cache=st.sampled_from([1 << 10, 1 << 14, 6 << 20]))
def test_every_quantity_equals_the_reference(drawn, block, cache):
    problem, special = drawn
    expected = reference.attention_statistics(problem, ALL_NEEDS, special)
    held = blockwise.CACHE_BYTES
    blockwise.CACHE_BYTES = cache
    try:
        got = blockwise.attention_statistics(problem, ALL_NEEDS, special, block=block)
    finally:
        blockwise.CACHE_BYTES = held
    real = (torch.arange(problem.length) < problem.mask.lengths[:, None])[:, None, :, None]
    assert_close(torch.where(real, got.output, 0).double(), torch.where(real, expected.output, 0), **TOLERANCE)
    for name in ("lse", "first", "special", "offset_mass", "received", "above"):
        assert_close(getattr(got, name).double(), getattr(expected, name), equal_nan=True, msg=name, **TOLERANCE)
    for name, values in expected.moments.items():
        assert_close(got.moments[name].double(), values, equal_nan=True, msg=name, rtol=1e-4, atol=2e-5)
    assert torch.isfinite(got.output).all()


def test_a_workspace_serves_layers_of_different_shapes():
    workspace = blockwise.Workspace()
    generator = torch.Generator().manual_seed(0)
    for length, window in ((70, None), (33, 5), (70, 9), (20, None)):
        query = torch.randn(2, 4, length, 8, generator=generator)
        key = torch.randn(2, 2, length, 8, generator=generator)
        mask = MaskStructure(causal=True, lengths=torch.tensor([length, length]), window=window)
        problem = AttentionProblem(query=query, key=key, value=key, scaling=1.0, mask=mask)
        special = torch.zeros(2, length, dtype=torch.bool)
        expected = reference.attention_statistics(problem, ALL_NEEDS, special)
        got = blockwise.attention_statistics(problem, ALL_NEEDS, special, workspace)
        assert_close(got.offset_mass.double(), expected.offset_mass, **TOLERANCE)
        assert_close(got.moments["offset_square"].double(), expected.moments["offset_square"], rtol=1e-4, atol=1e-4)


def test_a_uniform_causal_layer_has_the_closed_forms():
    length = 50
    zeros = torch.zeros(1, 1, length, 4)
    mask = MaskStructure(causal=True, lengths=torch.tensor([length]))
    problem = AttentionProblem(query=zeros, key=zeros, value=zeros, scaling=1.0, mask=mask)
    got = blockwise.attention_statistics(problem, ALL_NEEDS, torch.zeros(1, length, dtype=torch.bool))
    counts = torch.arange(1, length + 1, dtype=torch.float32)
    assert_close(got.lse[0, 0], counts.log())
    assert_close(got.moments["entropy"][0, 0], counts.log(), rtol=1e-5, atol=1e-5)
    assert_close(got.moments["offset_mean"][0, 0], (counts - 1) / 2)
    assert_close(got.first[0, 0, :, 0], 1 / counts)
    assert_close(got.received[0, 0, 0], (1 / counts).sum())


def test_a_learned_sink_takes_its_share():
    zeros = torch.zeros(1, 1, 3, 4)
    mask = MaskStructure(causal=True, lengths=torch.tensor([3]))
    problem = AttentionProblem(query=zeros, key=zeros, value=zeros + 1, scaling=1.0, mask=mask, sinks=torch.zeros(1))
    got = blockwise.attention_statistics(problem, ALL_NEEDS, torch.zeros(1, 3, dtype=torch.bool))
    assert_close(got.output[0, 0, :, 0], torch.tensor([1 / 2, 2 / 3, 3 / 4]))
    assert_close(got.lse[0, 0], torch.tensor([2.0, 3.0, 4.0]).log())
    assert_close(got.moments["entropy"][0, 0, 2], torch.tensor(3 * 0.25 * math.log(4)))


@settings(max_examples=60, deadline=None)
@given(drawn=problems())
def test_the_output_alone_is_the_same(drawn):
    problem, _ = drawn
    expected = reference.attention_statistics(problem, Needs(), torch.zeros(0)).output
    real = (torch.arange(problem.length) < problem.mask.lengths[:, None])[:, None, :, None]
    assert_close(torch.where(real, attention_output(problem), 0).double(), torch.where(real, expected, 0), **TOLERANCE)


def test_needs_join():
    joined = Needs(moments=frozenset({"peak"}), first_keys=2, above=(0.1,)) | Needs(first_keys=1, above=(0.3,), received=True)
    assert joined == Needs(moments=frozenset({"peak"}), first_keys=2, above=(0.1, 0.3), received=True)
    with pytest.raises(ValueError, match="offset_edges must agree"):
        Needs(offset_edges=(0, 1)) | Needs(offset_edges=(0, 2))


def test_visible_counts_agree_with_the_mask():
    for causal in (True, False):
        for window, chunk in ((None, None), (3, None), (None, 4), (3, 4)):
            mask = MaskStructure(causal=causal, lengths=torch.tensor([9, 6]), window=window, chunk=chunk)
            positions = torch.arange(9)
            assert_close(mask.counts(9), mask.visible(positions, positions).sum(-1))


def test_blocks_skip_what_lies_outside_a_window():
    mask = MaskStructure(causal=True, lengths=torch.tensor([256]), window=16)
    widths = [block.k1 - block.k0 for block in blockwise.plan_blocks(mask, 256, 32)]
    assert max(widths) == 32 + 15


def test_half_precision_keeps_statistics_in_single():
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(1, 2, 40, 8, generator=generator).bfloat16()
    mask = MaskStructure(causal=True, lengths=torch.tensor([40]))
    problem = AttentionProblem(query=query, key=query, value=query, scaling=0.3, mask=mask)
    got = blockwise.attention_statistics(problem, ALL_NEEDS, torch.zeros(1, 40, dtype=torch.bool))
    expected = reference.attention_statistics(replace(problem), ALL_NEEDS, torch.zeros(1, 40, dtype=torch.bool))
    assert got.output.dtype == torch.bfloat16
    assert got.lse.dtype == torch.float32
    assert_close(got.moments["entropy"].double(), expected.moments["entropy"], rtol=1e-4, atol=1e-4)


def test_a_bias_may_hide_a_key():
    generator = torch.Generator().manual_seed(2)
    query = torch.randn(1, 2, 9, 4, generator=generator)
    hidden = torch.zeros(1, 2, 9, 9)
    hidden[:, 0, 1:, 0] = -torch.inf
    mask = MaskStructure(causal=True, lengths=torch.tensor([9]))
    problem = AttentionProblem(query=query, key=query, value=query, scaling=1.0, mask=mask, bias=DenseBias(hidden))
    special = torch.zeros(1, 9, dtype=torch.bool)
    got = blockwise.attention_statistics(problem, ALL_NEEDS, special)
    expected = reference.attention_statistics(problem, ALL_NEEDS, special)
    assert (got.first[0, 0, 1:, 0] == 0).all()
    for name, values in expected.moments.items():
        assert_close(got.moments[name].double(), values, rtol=1e-4, atol=1e-5)
