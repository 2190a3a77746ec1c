"""Of targets with probability p, a share p is there, where everything is drawn from the model and the priors of
inference; see benchmarks/unknown_targets.py."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import dagpost as dp

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module("unknown_targets")
    sys.modules.pop("unknown_targets", None)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["soft", "hard"])
@pytest.mark.parametrize(("d", "sets"), [(7, 50), pytest.param(10, 50, marks=pytest.mark.long)])
def test_target_probabilities_are_calibrated(benchmark, change, d, sets):
    """Data sets are independent, targets of one are not: the error of a share comes from sums over data sets."""
    probability, there = [], []
    for seed in range(sets):
        data, labels, _, hit = benchmark.simulated(change, d, 20, seed)
        targets = dp.Targets(change, benchmark.PROBABILITY)
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
