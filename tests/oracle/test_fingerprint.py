"""Fingerprints with known answers."""

import numpy as np

from gnomon.study.fingerprint import accuracy, fingerprint, principal_coordinates, spreads


def vectors(within, tokens=5, contexts=6, features=40, seed=0):
    generator = np.random.default_rng(seed)
    means = generator.standard_normal((tokens, 1, 1, features))
    return means + within * generator.standard_normal((tokens, contexts, 2, features))


def test_identical_contexts_name_every_token():
    exact = vectors(0.0)
    within, between = spreads(exact, exact)
    np.testing.assert_allclose(within, 0, atol=1e-12)
    assert (between > 0.5).all()
    interval = accuracy(exact)
    assert (interval.value == 1).all()
    assert (interval.low == 1).all()


def test_noise_alone_is_named_at_chance():
    generator = np.random.default_rng(1)
    values = [accuracy(generator.standard_normal((5, 6, 1, 20))).value[0] for _ in range(200)]
    assert abs(np.mean(values) - 0.2) < 4 * np.std(values) / np.sqrt(200)


def test_the_spread_within_is_unbiased():
    generator = np.random.default_rng(2)
    values = []
    for _ in range(400):
        one = generator.standard_normal((1, 4, 1, 30)) * 0.5 + 10
        values.append(spreads(one, one)[0][0] ** 2 * (one**2).sum(-1).mean())
    assert abs(np.mean(values) - 30 * 0.25) < 4 * np.std(values) / np.sqrt(400)


def test_coordinates_of_a_plane_are_the_plane():
    generator = np.random.default_rng(3)
    flat = generator.standard_normal((6, 2))
    flat -= flat.mean(0)
    basis = np.linalg.qr(generator.standard_normal((9, 2)))[0]
    coordinates, share = principal_coordinates((flat @ basis.T)[:, None])
    np.testing.assert_allclose(share, 1.0)
    np.testing.assert_allclose(coordinates[0] @ coordinates[0].T, flat @ flat.T, atol=1e-12)


def test_a_shared_difference_between_contexts_does_not_hide_the_token():
    generator = np.random.default_rng(4)
    token = 0.1 * generator.standard_normal((5, 1, 1, 30))
    context = 10 * generator.standard_normal((1, 6, 1, 30))
    site = token + context
    dataset = fingerprint({"hidden": site, "key": site, "value": site, "later": site})
    assert float(dataset["later_accuracy"][0]) == 1
    assert float(dataset["hidden_accuracy"][0]) < 1
    assert dataset.attrs["chance"] == 0.2


def test_one_context_gives_no_accuracy():
    assert np.isnan(accuracy(vectors(0.1, contexts=1)).value).all()
