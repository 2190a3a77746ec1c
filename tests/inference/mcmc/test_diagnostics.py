"""Diagnostics on chains whose behaviour is known."""

import numpy as np
import pytest
from arviz_stats.base.array import array_stats

from dagpost.inference.mcmc.diagnostics import LARGEST_RHAT, Convergence, diagnose, split_rhat, standard_errors

BATCHES = 50


def draws(rng, probability, e=4, n=500):
    """Independent edges on three nodes, each chain with its own probabilities (e, 3, 3)."""
    return rng.random((e, n, 3, 3)) < np.broadcast_to(probability, (e, 3, 3))[:, None]


def batches(graphs, b=BATCHES):
    e, n = graphs.shape[:2]
    return graphs.reshape(e, b, n // b, 3, 3).mean(axis=2)


def judge(graphs, seed=0):
    density = np.random.default_rng(seed).standard_normal(graphs.shape[:2])
    return diagnose(batches(graphs), graphs.shape[1] // BATCHES, density)


def test_independent_draws_are_trusted_and_their_error_is_right():
    found = judge(draws(np.random.default_rng(1), 0.5))
    assert found.trusted
    assert found.rhat < LARGEST_RHAT
    assert 1200 < found.ess <= 2000  # the smallest of nine; no more than there are
    assert found.error == pytest.approx(np.sqrt(0.25 / 2000), rel=0.35)  # the largest of nine
    assert "agree" in found.verdict()


def test_split_rhat_of_means_is_that_of_all_draws():
    """ArviZ is given every draw; here the means of batches are enough, since 0/1 draws have no other variance."""
    probability = np.full((4, 3, 3), 0.5)
    probability[0, 0, 1] = 0.8
    graphs = draws(np.random.default_rng(5), probability, n=1000)
    edges = np.moveaxis(graphs.reshape(4, 1000, -1), -1, 0).astype(float)
    expected = np.asarray(array_stats.rhat(edges, chain_axis=1, draw_axis=2, method="split")).reshape(3, 3)
    found = split_rhat(batches(graphs), 1000 // BATCHES)
    np.testing.assert_allclose(found, np.maximum(expected, 1.0), rtol=1e-9)
    assert found[0, 1] > LARGEST_RHAT > found[1, 2]


def test_chains_in_different_places_are_not():
    probability = np.full((4, 3, 3), 0.5)
    probability[0, 0, 1] = 0.9
    found = judge(draws(np.random.default_rng(2), probability))
    assert found.rhat > 1.05
    assert not found.trusted
    assert "Do not trust" in found.verdict() and "disagree" in found.verdict()


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


def test_too_few_batches_tell_nothing():
    found = diagnose(np.full((4, 2, 3, 3), 0.5), 1, np.zeros((4, 2)))
    assert not found.trusted and found.error == 0.5


def test_the_rule_is_todays():
    """Vehtari et al. (2021): 1.01, and 400 draws worth."""
    good = Convergence(1.009, 401.0, 0.01, 1.009, 401.0)
    assert good.trusted
    assert not good._replace(rhat=1.02).trusted
    assert not good._replace(rhat_log_posterior=1.02).trusted
    assert "1.020" in good._replace(rhat=1.02).verdict() and "effective" not in good._replace(rhat=1.02).verdict()
    short = good._replace(ess=30.0)
    assert not short.trusted and "too short (effective sample size 30" in short.verdict()


@pytest.mark.parametrize("name", ["rhat", "rhat_log_posterior", "ess", "ess_log_posterior"])
def test_what_could_not_be_computed_is_not_trusted(name):
    unknown = Convergence(1.0, 1000.0, 0.01, 1.0, 1000.0)._replace(**{name: np.nan})
    assert not unknown.trusted and "Do not trust" in unknown.verdict() and "R̂ nan" not in unknown.verdict()


def test_standard_errors_are_those_of_arviz():
    rng = np.random.default_rng(7)
    noise = rng.standard_normal((40, 4, 60))
    correlated = np.zeros_like(noise)
    for t in range(60):
        correlated[..., t] = 0.7 * (correlated[..., t - 1] if t else 0) + noise[..., t]
    correlated[20:] += rng.standard_normal((20, 4, 1))  # chains that disagree
    for draws in (noise, correlated):
        expected = np.asarray(array_stats.mcse(draws, chain_axis=1, draw_axis=2))
        # ArviZ keeps one autocorrelation more at the end of the positive sequence
        np.testing.assert_allclose(standard_errors(draws), expected, rtol=0.15)
        assert np.mean(standard_errors(draws) / expected) == pytest.approx(1.0, abs=0.03)
