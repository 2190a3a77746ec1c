"""Intervals of effects cover truths drawn from the prior as often as they say; see benchmarks/coverage.py.

Of each data set one pair counts, drawn among those with a posterior probability of no effect below 0.05. The number of
covered truths is binomial; a test fails by chance with probability 1e-3, and seeds are fixed.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import dagpost as dp

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SPECIFICATION = importlib.util.spec_from_file_location("coverage_of_effects", BENCHMARKS / "coverage.py")
coverage = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(coverage)


def check(covered: list[int], level: float) -> None:
    assert binomtest(sum(covered), len(covered), level).pvalue > 1e-3, np.mean(covered)


@pytest.mark.slow
def test_intervals_of_the_exact_posterior_cover():
    covered, rng = {0.5: [], 0.9: []}, np.random.default_rng(0)
    for seed in range(80):
        sim = dp.simulate(
            "linear", nodes=3, observations=20, seed=seed, source="density", test_observations=0, interventional_sets=0
        )
        post = dp.exact(sim.train, "linear")
        eligible = np.argwhere(post.ancestor_probabilities.to_numpy() > 1 - coverage.LARGEST_ZERO)
        if len(eligible):
            i, j = rng.choice(eligible)
            found, truth = post.effect(int(i), int(j), draws=200, seed=seed), coverage.true_effects(sim)[i, j]
            for level, inside in covered.items():
                inside.append(found.quantile((1 - level) / 2) <= truth <= found.quantile((1 + level) / 2))
    assert len(covered[0.9]) > 30
    for level, inside in covered.items():
        check(inside, level)


def test_the_committed_table():
    table = pd.read_csv(BENCHMARKS / "results" / "coverage.csv")
    counted = table.dropna(subset="covered")
    assert len(counted) == 200 and counted.covered.between(0, 1).all()
    inside = (counted.lower <= counted.truth) & (counted.truth <= counted.upper)
    assert (inside == (counted.covered == 1)).mean() > 0.99  # bounds are rounded
    assert 0.86 <= counted.covered.mean() <= 0.94
    page = (BENCHMARKS.parent / "docs" / "accuracy.md").read_text()
    shares = [counted.covered[counted["N"] == n].mean() for n in coverage.ROWS] + [counted.covered.mean()]
    (row,) = [line for line in page.splitlines() if line.startswith("| one pair for each data set")]
    assert [cell.split()[0] for cell in row.split("|")[2:-1]] == [f"{share:.3f}" for share in shares]


@pytest.mark.long
def test_intervals_of_auto_cover():
    rows = coverage.rows_until(60, nodes=6, moves=200_000, level=0.9)
    check([row["covered"] for row in rows if row["covered"] is not None], 0.9)
