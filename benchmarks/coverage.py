"""Do intervals of causal effects cover the true effects as often as they say?

    python benchmarks/coverage.py [--sets 200] [--nodes 8] [--moves 300000] [--level 0.9] [--out coverage.csv]

Each truth is drawn from the prior that inference uses: graph, weights N(0, 1) and noise of the linear model. `auto`
runs for about a second. Of each data set one pair of nodes counts, drawn at random among those whose effect is 0 with
posterior probability below 0.05: a choice by the posterior alone keeps Bayesian intervals calibrated, and intervals of
pairs that surely have no effect would cover for nothing. A data set without such a pair is replaced by the next one.
Coverage over all pairs is printed beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

import dagpost as dp
from dagpost.graphs import descendants

ROWS = (30, 50, 100)
LARGEST_ZERO = 0.05
"""Largest posterior probability of no effect in a pair that counts."""


def true_effects(sim: dp.Simulation) -> np.ndarray:
    """Total effects of a linear network, `(I - W)^-1`, and 0 where no path leads."""
    effects = np.linalg.inv(np.eye(len(sim.graph)) - sim.theta * sim.graph)
    return np.where(descendants(sim.graph), effects, 0.0)


def row_of(seed: int, nodes: int, moves: int, level: float) -> dict[str, Any]:
    """What the intervals of one data set do; `covered` is None where no pair counts."""
    observations = ROWS[seed % len(ROWS)]
    sim = dp.simulate(
        "linear", nodes=nodes, observations=observations, seed=seed, source="density", test_observations=0,
        interventional_sets=0,
    )  # fmt: skip
    options = {"particles": 5, "steps": 20, "max_moves": moves, "progress": False}
    post = dp.fit(sim.train, "linear", method="auto", seed=seed, **{"time_limit": None, **options})
    truth = true_effects(sim)
    table = post.effect_table(level=level, draws=1000, seed=seed)
    i, j = ([post.index(name) for name in table[column]] for column in ("cause", "effect"))
    inside = (table.lower <= truth[i, j]) & (truth[i, j] <= table.upper)
    row = {
        "seed": seed, "d": nodes, "N": observations, "trusted": post.info["trusted"], "pairs": len(table),
        "pairs_covered": int(inside.sum()),
    }  # fmt: skip
    eligible = np.flatnonzero(1 - table.probability < LARGEST_ZERO)
    if len(eligible) == 0:
        return {**row, "eligible": 0, "covered": None}
    chosen = np.random.default_rng(seed).choice(eligible)
    found = table.iloc[chosen]
    figures = {"truth": truth[i[chosen], j[chosen]], "mean": found["mean"], "lower": found.lower, "upper": found.upper}
    return {
        **row, "eligible": len(eligible), "cause": found.cause, "effect": found.effect,
        **{name: round(float(value), 6) for name, value in figures.items()}, "covered": int(inside[chosen]),
    }  # fmt: skip


def rows_until(sets: int, nodes: int, moves: int, level: float) -> Iterator[dict[str, Any]]:
    """Rows of data sets, seed by seed, until `sets` of them have a pair that counts."""
    counted = 0
    for seed in count():
        row = row_of(seed, nodes, moves, level)
        yield row
        counted += row["covered"] is not None
        if counted == sets:
            return


def table_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per data set; `covered` is 0, 1 or missing."""
    return pd.DataFrame(rows).astype({"covered": "Int64"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--moves", type=int, default=300_000, help="of all chains of one run")
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--out", help="CSV file with a row for each data set")
    options = parser.parse_args()
    rows = []
    for row in rows_until(options.sets, options.nodes, options.moves, options.level):
        rows.append(row)
        if len(rows) % 20 == 0:
            print(f"  {len(rows)} data sets", flush=True)
        if options.out:
            table_of(rows).to_csv(options.out, index=False)
    table = table_of(rows)
    print(f"intervals of {options.level:.0%}, d = {options.nodes}; s.e.: standard error of the share")
    print(f"{'N':>4}  {'data sets':>9}  {'covered':>7}  {'s.e.':>5}  {'all pairs':>9}  {'trusted':>7}")
    for name, some in [*((str(n), table[table["N"] == n]) for n in ROWS), ("all", table)]:
        used = some.covered.dropna().astype(float)
        share = used.mean()
        error = np.sqrt(share * (1 - share) / len(used))
        over_all = some.pairs_covered.sum() / some.pairs.sum()
        print(f"{name:>4}  {len(used):>9}  {share:>7.3f}  {error:>5.3f}  {over_all:>9.3f}  {some.trusted.mean():>7.2f}")
    print(f"{table.covered.isna().sum()} data sets without a pair that counts were replaced")


if __name__ == "__main__":
    main()
