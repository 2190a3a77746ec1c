"""Diagnostics on chains whose behaviour is known."""

import numpy as np
import pytest

from dagpost.mcmc.diagnostics import diagnose


def draws(rng, probability, e=4, n=500):
    """Independent edges on three nodes, each chain with its own probabilities (e, 3, 3)."""
    return rng.random((e, n, 3, 3)) < np.broadcast_to(probability, (e, 3, 3))[:, None]


def batches(graphs, b=50):
    e, n = graphs.shape[:2]
    return graphs.reshape(e, b, n // b, 3, 3).mean(axis=2)


def judge(graphs, seed=0):
    density = np.random.default_rng(seed).standard_normal(graphs.shape[:2])
    return diagnose(graphs, density, batches(graphs))


def test_independent_draws_are_trusted_and_their_error_is_right():
    found = judge(draws(np.random.default_rng(1), 0.5))
    assert found.trusted
    assert found.rhat < 1.03
    assert found.ess == pytest.approx(2000, rel=0.3)
    assert found.error == pytest.approx(np.sqrt(0.25 / 2000), rel=0.35)  # the largest of nine
    assert "agree" in found.verdict


def test_chains_in_different_places_are_not():
    probability = np.full((4, 3, 3), 0.5)
    probability[0, 0, 1] = 0.9
    found = judge(draws(np.random.default_rng(2), probability))
    assert found.rhat > 1.05
    assert not found.trusted
    assert "Do not trust" in found.verdict


def test_chains_that_stand_still_apart_have_no_finite_rhat():
    graphs = np.zeros((4, 500, 3, 3), dtype=bool)
    graphs[0, :, 0, 1] = True
    found = judge(graphs)
    assert np.isinf(found.rhat)
    assert not found.trusted


def test_slow_chains_have_few_effective_samples():
    rng = np.random.default_rng(3)
    slow = np.repeat(draws(rng, 0.5, n=10), 50, axis=1)
    found = judge(slow)
    assert found.ess < 150
    assert not found.trusted
    assert found.error > 0.03


def test_a_certain_posterior_is_trusted():
    found = judge(np.ones((4, 500, 3, 3), dtype=bool))
    assert found.trusted
    assert found.error == 0
