"""Targets, graphs, mechanisms and rows drawn from the model and the priors of inference: of targets with probability p,
a share p is there."""

import jax
import numpy as np
import pytest

import dagpost as dp

EXPERIMENTS, PROBABILITY, ROWS = 2, 0.3, 20


def drawn(d, change, seed):
    """Data, conditions and targets (experiments, d)."""
    rng, model = np.random.default_rng(seed), dp.BGe(alpha_w=d + 4)
    keys = jax.random.split(jax.random.key(seed), 3 + 2 * EXPERIMENTS)
    graph = np.asarray(dp.ErdosRenyi().sample_density(keys[0], d), dtype=bool)
    theta = model.sample_parameters(keys[1], graph)
    parts = [model.sample_rows(keys[2], graph, theta, ROWS).values]
    hit = rng.random((EXPERIMENTS, d)) < PROBABILITY
    for targets, first, second in zip(hit, keys[3::2], keys[4::2]):
        under = graph & ~targets if change == "hard" else graph
        new = model.sample_parameters(first, under)
        mixed = type(theta)(*(np.where(targets, there, here) for there, here in zip(new, theta)))
        parts.append(model.sample_rows(second, under, mixed, ROWS).values)
    labels = np.repeat(["none", *(f"experiment {k}" for k in range(EXPERIMENTS))], ROWS)
    return dp.Dataset(np.concatenate(parts)), labels, hit


@pytest.mark.slow
@pytest.mark.parametrize("change", ["soft", "hard"])
@pytest.mark.parametrize(("d", "sets"), [(7, 50), pytest.param(10, 50, marks=pytest.mark.long)])
def test_target_probabilities_are_calibrated(change, d, sets):
    """Data sets are independent, targets of one are not: the error of a share comes from sums over data sets."""
    probability, there = [], []
    for seed in range(sets):
        data, labels, hit = drawn(d, change, seed)
        targets = dp.Targets(change, PROBABILITY)
        post = dp.exact(data, dp.BGe(alpha_w=d + 4), "erdos-renyi", conditions=labels, targets=targets, draws=1)
        probability.append(post.record.targets.probability)
        there.append(hit)
    p, there = np.array(probability), np.array(there)
    for low, high in [(0.0, 0.15), (0.15, 0.6), (0.6, 1.01)]:
        inside = (p >= low) & (p < high)
        gaps = ((there - p) * inside).sum(axis=(1, 2))
        assert inside.sum() > 20
        assert abs(gaps.sum()) < 4 * np.sqrt((gaps**2).sum())
    assert p[there].mean() > p[~there].mean() + 0.3
