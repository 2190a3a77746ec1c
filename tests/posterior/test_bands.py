"""Bands of edge functions cover truths drawn from the prior as often as they say; see benchmarks/band_coverage.py."""

import importlib
import sys
from pathlib import Path

import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def bands(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module("band_coverage")
    for name in ("band_coverage", "nonlinear_calibration"):
        sys.modules.pop(name, None)


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
