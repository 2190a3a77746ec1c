"""Do bands of edge functions (`post.mechanism`) of the additive model cover the true functions as often as they say?

    python benchmarks/band_coverage.py [--sets 200] [--nodes 3] [--rows 50] [--level 0.9]

Each truth (graph, functions, noise) is drawn from the model and the prior that inference uses, with every column
standardised before its children are drawn, and the posterior is the exact sum over all graphs. The band of an edge is
that of its function given that the edge is there, so that the edges of the true graph count, whatever their posterior
probability. Of each, the share of the points of the curve at which the band contains the true function (mean 0 over the
rows, as the curve) is a row of results/band_coverage.csv. The mean over edges is printed, with its standard error over
data sets: points and edges of one data set depend on each other.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from nonlinear_calibration import rows_in_standard_units

import dagpost as dp

RESULTS = Path(__file__).parent / "results" / "band_coverage.csv"
LIKELY = 0.5
"""Edges with a larger posterior probability are counted separately too."""


def rows_of(seed: int, nodes: int, rows: int, level: float, draws: int = 400) -> list[dict[str, Any]]:
    """Return how far the bands of one data set cover, for each edge of its true graph."""
    sim = dp.simulate(
        "additive", nodes=nodes, observations=0, seed=seed, source="density", test_observations=0, interventional_sets=0
    )
    data, spread = rows_in_standard_units(sim, rows)
    post, found = dp.exact(data, "additive"), []
    for i, j in np.argwhere(sim.graph).tolist():
        curve = post.mechanism(i, j, level=level, draws=draws, seed=seed)
        weights = sim.theta.weights[i, j] / spread[j]
        truth = sim.model.basis(curve.values) @ weights - (sim.model.basis(data.values[:, i]) @ weights).mean()
        inside = (curve.lower <= truth) & (truth <= curve.upper)
        figures = {"probability": curve.probability, "covered": inside.mean(), "size": truth.std(),
                   "width": (curve.upper - curve.lower).mean()}  # fmt: skip
        found.append({"seed": seed, "cause": i, "effect": j, **{k: round(float(v), 4) for k, v in figures.items()}})
    return found


def coverage(table: pd.DataFrame) -> tuple[float, float]:
    """Return the mean share of covered points over edges, and its standard error over data sets."""
    mean = table["covered"].mean()
    sums = (table["covered"] - mean).groupby(table["seed"]).sum()
    return mean, float(np.sqrt((sums**2).sum()) / len(table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    found = [row for seed in range(asked.sets) for row in rows_of(seed, asked.nodes, asked.rows, asked.level)]
    table = pd.DataFrame(found)
    table.to_csv(asked.out, index=False)
    likely = table[table["probability"] > LIKELY]
    for what, part in (("edges of the truth", table), (f"with posterior probability above {LIKELY}", likely)):
        mean, error = coverage(part)
        sets = part["seed"].nunique()
        print(f"{what}: {mean:.3f} ± {error:.3f} of the points, {len(part)} edges of {sets} data sets")


if __name__ == "__main__":
    main()
