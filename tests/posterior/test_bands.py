"""Bands of edge functions cover truths drawn from the prior as often as they say; see benchmarks/band_coverage.py."""

import importlib
import sys
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from dagpost.data import Dataset
from dagpost.models import Additive

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def bands(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module("band_coverage")
    for name in ("band_coverage", "nonlinear_calibration"):
        sys.modules.pop(name, None)


def test_functions_drawn_from_the_posterior_cover_the_truth():
    """One known edge, truths from the prior: the truth is among the outermost of 19 draws at 10 % of the points, within
    four standard errors over data sets."""
    model, graph, points = Additive(), np.array([[False, True], [False, False]]), np.linspace(-1.5, 1.5, 7)
    rng, covered = np.random.default_rng(0), []
    for seed in range(40):
        truth_key, *keys = jax.random.split(jax.random.key(seed), 20)
        theta = model.sample_parameters(truth_key, graph)
        x, noise = rng.normal(size=(2, 100))
        y = model.basis(x) @ theta.weights[0, 1] + np.sqrt(theta.variance[1]) * noise
        stats = model.summarise(Dataset(np.column_stack([x, y])))
        draws = [model.draw_theta(key, graph, stats) for key in keys]

        truth = model.basis(points) @ theta.weights[0, 1]
        curves = [model.basis((points - t.shift[0, 1]) / t.scale[0, 1]) @ t.weights[0, 1] for t in draws]
        curves = np.array(curves) - np.mean(curves, axis=1, keepdims=True)
        # of 19 draws and the truth, 20 exchangeable values, the truth is one of the 2 outermost with chance 0.1
        rank = (curves < truth - truth.mean()).sum(axis=0)
        covered.append(((rank > 0) & (rank < 19)).mean())
    error = np.std(covered) / np.sqrt(len(covered))
    assert error < 0.04
    assert abs(np.mean(covered) - 0.9) < 4 * error


@pytest.mark.slow  # the parameters of additive models compile long
def test_bands_of_the_exact_posterior_cover(bands):
    """Within four standard errors of the level, which are about 0.025 here; bands of half the width cover about 0.6."""
    table = pd.DataFrame([row for seed in range(40) for row in bands.rows_of(seed, 2, 50, 0.9, draws=200)])
    mean, error = bands.coverage(table)
    assert len(table) >= 15 and error < 0.04
    assert abs(mean - 0.9) < 4 * error


def test_the_committed_bands(bands):
    table = pd.read_csv(bands.RESULTS)
    assert table["seed"].nunique() >= 150 and table["covered"].between(0, 1).all()
    mean, error = bands.coverage(table)
    assert 0.86 <= mean <= 0.94 and error < 0.02
    assert f"{mean:.3f} ± {error:.3f}" in (BENCHMARKS.parent / "docs" / "nonlinear.md").read_text()
