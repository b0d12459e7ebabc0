"""What a head carries from position 0, against its definition in float64."""

import numpy as np
import torch

from gnomon.measure.reads import head_reads, late_queries


def by_definition(weights_BHQK, value_BHKD, output_weight):
    projected = torch.einsum("bhkd,ehd->bhke", value_BHKD, output_weight)
    output = torch.einsum("bhqk,bhke->bhqe", weights_BHQK, projected)
    read = weights_BHQK[..., :1] * projected[:, :, :1]
    carried = read.norm(dim=-1) / output.norm(dim=-1)
    share = (read * output).sum(-1) / output.square().sum(-1)
    ratio = projected[:, :, 0].norm(dim=-1) / projected.norm(dim=-1).mean(-1)
    return weights_BHQK[..., 0].mean(-1), carried.mean(-1), share.mean(-1), ratio


def case(seed=0):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.softmax(torch.randn(2, 3, 7, 7, generator=generator, dtype=torch.float64), -1)
    value = torch.randn(2, 3, 7, 4, generator=generator, dtype=torch.float64)
    output_weight = torch.randn(10, 3, 4, generator=generator, dtype=torch.float64)
    return weights, value, output_weight


def reads(weights, value, output_weight, real=None):
    return head_reads(
        weights=weights[..., 0],
        outputs=weights @ value,
        first_value=value[:, :, 0],
        values=value,
        real=torch.ones(2, 7, dtype=torch.bool) if real is None else real,
        output_weight=output_weight,
    )


def test_it_equals_its_definition():
    weights, value, output_weight = case()
    got = reads(weights, value, output_weight)
    for name, expected in zip(
        ("mass", "carried", "share", "value_ratio"), by_definition(weights, value, output_weight), strict=True
    ):
        np.testing.assert_allclose(got[name].numpy(), expected.numpy(), rtol=1e-5, err_msg=name)


def test_a_pure_reader_carries_everything_and_a_silent_sink_nothing():
    weights, value, output_weight = case()
    pure = torch.zeros_like(weights)
    pure[..., 0] = 1
    got = reads(pure, value, output_weight)
    for name in ("mass", "carried", "share"):
        np.testing.assert_allclose(got[name].numpy(), 1.0, rtol=1e-5)
    silent = value.clone()
    silent[:, :, 0] = 0
    got = reads(weights, silent, output_weight)
    for name in ("carried", "share", "value_ratio"):
        np.testing.assert_allclose(got[name].numpy(), 0.0, atol=1e-7)


def test_without_a_projection_lengths_are_those_of_values():
    weights, value, _ = case()
    identity = torch.stack([torch.eye(4, dtype=torch.float64)] * 3, 1)
    expected = by_definition(weights, value, identity)
    np.testing.assert_allclose(reads(weights, value, None)["carried"].numpy(), expected[1].numpy(), rtol=1e-5)


def test_queries_beyond_a_sequence_do_not_count():
    weights, value, output_weight = case()
    real = torch.ones(2, 7, dtype=torch.bool)
    real[1, 3:] = False
    got = reads(weights, value, output_weight, real)
    np.testing.assert_allclose(got["mass"][1].numpy(), weights[1, :, :3, 0].mean(-1).numpy(), rtol=1e-6)


def test_late_queries_are_late_and_within_the_text():
    assert late_queries(256).min() == 32
    assert late_queries(256).max() == 255
    assert late_queries(40).min() == 10
    assert late_queries(3).tolist() == [1, 2]
