"""Values and writes of anchors with known answers."""

import numpy as np
import pytest
import torch

from gnomon.measure.values import ROLES, RoleRule, Values, direction_constancy, roles
from tests.oracle.given import finished, star, view_of


def planted(scale, *, mass=0.6, length=20, batch=4, heads=2):
    """Star heads whose anchor (key 0) has a value ``scale`` times as long as the others' unit values."""
    matrix = np.broadcast_to(star(length, mass), (batch, heads, length, length))
    generator = torch.Generator().manual_seed(0)
    value = torch.randn(batch, heads, length, 5, generator=generator, dtype=torch.float64)
    value = value / value.norm(dim=-1, keepdim=True)
    value[:, :, 0] = scale * torch.eye(5, dtype=torch.float64)[0]
    weight = torch.zeros(10, heads, 5)
    for head in range(heads):
        weight[5 * head : 5 * head + 5, head] = torch.eye(5)
    return view_of(matrix, causal=True, value=value, output_weight=weight)


@pytest.mark.parametrize(("scale", "role"), [(0.1, "no-operation"), (3.0, "broadcast"), (0.8, "mixed")])
def test_role_follows_the_planted_value(scale, role):
    dataset = finished(Values(), [planted(scale)])
    assert float(dataset["value_ratio"][0, 0]) == pytest.approx(scale, rel=1e-5)
    assert float(dataset["write_ratio"][0, 1]) == pytest.approx(scale, rel=1e-5)
    assert ROLES[int(dataset["role_of_head"][0, 0])] == role
    assert float(dataset["role_share"].sel(role=role)[0, 0]) == 1
    headline = Values().headline(dataset)
    assert headline["role_" + role.replace("-", "_")].value == 1
    assert headline["write_ratio"].value == pytest.approx(scale, rel=1e-5)


def test_mass_constancy_and_directions():
    dataset = finished(Values(), [planted(2.0)])
    viewers = np.arange(1, 21)
    assert float(dataset["mass"][0, 0]) == pytest.approx(np.mean(0.6 + 0.4 / viewers), rel=1e-5)
    # the two heads write into disjoint halves of the stream, and always the same thing
    assert float(dataset["alignment"][0]) == pytest.approx(0, abs=1e-6)
    assert float(dataset["direction_constancy"][0, 0]) == pytest.approx(1, abs=1e-5)
    assert 0.9 < float(dataset["weight_constancy"][0, 0]) <= 1
    constant = finished(Values(), [planted(50.0, mass=0.99)])
    assert float(constant["output_constancy"][0, 0]) > 0.99
    assert float(constant["share"][0, 0]) == pytest.approx(1, abs=0.02)


def test_without_mass_there_is_no_sink_and_without_a_map_no_write():
    flat = planted(2.0, mass=0.0)
    dataset = finished(Values(), [flat])
    assert Values().headline(dataset)["role_no_sink"].value == 1
    assert float(dataset["excess"][0, 0]) == pytest.approx(0, abs=1e-6)
    assert Values().headline(dataset)["write_ratio"].is_missing
    view = planted(2.0)
    view.output_weight = None
    headline = Values().headline(finished(Values(), [view]))
    assert headline["share"].is_missing
    assert "no linear map" in headline["share"].reason


def test_rules_at_their_bounds():
    rule = RoleRule()
    out = roles(
        torch.tensor([0.1, 0.15, 0.9, 0.9, 0.9, 0.9]),
        torch.tensor([9.0, 0.5, 1.0, 1.0, 0.6, torch.nan]),
        torch.tensor([1.0, 0.1, 0.8, 0.7, 1.0, 1.0]),
        rule,
    )
    assert out[:5].tolist() == [0, 1, 2, 3, 3]
    assert torch.isnan(out[5])


def test_directions_that_vary_have_no_constancy():
    generator = np.random.default_rng(0)
    sketch = generator.normal(size=(60, 1, 2, 32))
    sketch[:, :, 1] = sketch[:1, :, 1] * generator.uniform(1, 2, size=(60, 1, 1))
    constancy = direction_constancy(sketch)
    assert constancy[0, 0] == pytest.approx(0, abs=0.02)
    assert constancy[0, 1] == pytest.approx(1)
    assert np.isnan(direction_constancy(sketch[:2])).all()
