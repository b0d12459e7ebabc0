"""Rows and logits at chosen places equal the reference's entries."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from torch.testing import assert_close

from gnomon.kernels import Needs, reference
from gnomon.kernels.sampling import logits_at, rows_of
from tests.kernels.problems import problems


@settings(max_examples=80, deadline=None)
@given(drawn=problems())
def test_rows_and_logits(drawn):
    problem, special = drawn
    scores = reference.dense_logits(problem)
    lse = reference.attention_statistics(problem, Needs(), special).lse
    queries = torch.unique(torch.tensor([0, problem.length // 2, problem.length - 1]))
    real = (queries[None] < problem.mask.lengths[:, None])[:, None, :, None]
    expected = torch.where(real, torch.exp(scores[:, :, queries] - lse[:, :, queries, None]), torch.nan)
    assert_close(rows_of(problem, lse.float(), queries).double(), expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    offsets = torch.tensor([0, 1, 3, -1])
    got = logits_at(problem, queries, offsets).double()
    for p, query in enumerate(queries.tolist()):
        for r, offset in enumerate(offsets.tolist()):
            key = query - offset
            for b, length in enumerate(problem.mask.lengths.tolist()):
                inside = 0 <= key < length and query < length
                want = scores[b, :, query, key] if inside else torch.full((problem.num_heads,), -torch.inf, dtype=torch.float64)
                want = torch.where(torch.isfinite(want), want, torch.nan)
                assert_close(got[b, :, p, r], want, rtol=1e-4, atol=1e-4, equal_nan=True)
