"""The estimate: linear where it must be, never quadratic in memory, and a refusal that names what would fit."""

import re
from dataclasses import dataclass

import pytest

from gnomon.errors import ResourceError
from gnomon.study.budget import FIXED_BYTES, check_fits, estimate, fitting_batch, readable_bytes, readable_seconds


@dataclass(frozen=True)
class Shape:
    num_layers: int = 30
    num_heads: int = 9
    num_kv_heads: int = 3
    head_dim: int = 64
    value_dim: int = 64
    hidden_size: int = 576
    intermediate_size: int | None = 1536
    vocab_size: int = 49152
    num_parameters: int = 134_515_008
    causal: bool = True


def test_memory_grows_with_tokens_and_not_with_their_square():
    short = estimate(Shape(), length=1024, sequences=8, batch_size=1)
    long = estimate(Shape(), length=32768, sequences=8, batch_size=1)
    assert (long.batch_bytes - FIXED_BYTES) / (short.batch_bytes - FIXED_BYTES) == pytest.approx(32, rel=1e-3)
    assert short.weight_bytes == 4 * 134_515_008
    assert short.total_bytes == short.weight_bytes + short.batch_bytes


def test_work_is_two_operations_per_parameter_and_attention_quadratic():
    shape = Shape(num_heads=0)
    assert estimate(shape, length=100, sequences=3, batch_size=1).operations == 300 * 2 * shape.num_parameters
    attention = [estimate(Shape(num_parameters=0), length=n, sequences=1, batch_size=1).operations for n in (1000, 2000)]
    assert attention[1] / attention[0] == pytest.approx(4)
    both = [
        estimate(Shape(num_parameters=0, causal=causal), length=99, sequences=1, batch_size=1).operations
        for causal in (True, False)
    ]
    assert both[1] == 2 * both[0]


def test_a_batch_is_never_larger_than_the_sample():
    assert estimate(Shape(), length=64, sequences=4, batch_size=99) == estimate(Shape(), length=64, sequences=4, batch_size=4)


def test_fitting_batch_is_the_largest_that_fits():
    available = 400 * 2**20
    batch = fitting_batch(Shape(), length=512, sequences=64, available=available)
    assert 1 <= batch < 64
    assert estimate(Shape(), length=512, sequences=64, batch_size=batch).batch_bytes <= available
    assert estimate(Shape(), length=512, sequences=64, batch_size=batch + 1).batch_bytes > available
    assert fitting_batch(Shape(), length=512, sequences=64, available=0) == 0


def test_refusal_names_a_batch_that_then_passes():
    plan = {"length": 512, "sequences": 64, "available": 400 * 2**20}
    with pytest.raises(ResourceError, match="must fit into memory") as caught:
        check_fits(Shape(), batch_size=64, **plan)
    batch = int(re.search(r"`batch_size` (\d+) would fit", str(caught.value))[1])
    assert check_fits(Shape(), batch_size=batch, **plan).batch_bytes <= plan["available"]


def test_refusal_names_a_length_where_no_batch_fits():
    plan = {"sequences": 4, "batch_size": 1, "available": 300 * 2**20}
    with pytest.raises(ResourceError, match="one window of at most") as caught:
        check_fits(Shape(), length=100_000, **plan)
    length = int(re.search(r"at most (\d+) tokens", str(caught.value))[1])
    assert check_fits(Shape(), length=length, **plan).batch_bytes <= plan["available"]
    with pytest.raises(ResourceError, match="smaller model"):
        check_fits(Shape(), length=8, sequences=1, batch_size=1, available=0)


def test_unknown_memory_is_not_refused():
    assert check_fits(Shape(), length=10**6, sequences=1, batch_size=1, available=None).tokens == 10**6


def test_logits_and_narrow_numbers_count():
    plain = estimate(Shape(), length=256, sequences=1, batch_size=1)
    assert estimate(Shape(), length=256, sequences=1, batch_size=1, logits=True).batch_bytes > plain.batch_bytes + 256 * 8 * 49152
    assert estimate(Shape(), length=256, sequences=1, batch_size=1, bytes_per_number=2).weight_bytes == plain.weight_bytes // 2


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (59, "59 s"), (150, "2 min"), (7200, "2.0 h")])
def test_readable_seconds(seconds, text):
    assert readable_seconds(seconds) == text


def test_readable_bytes():
    assert [readable_bytes(count) for count in (12, 2048, 3 * 2**20, 1.5 * 2**30)] == ["12 bytes", "2 kB", "3 MB", "1.5 GB"]
