"""Missing cells: are intervals and edge probabilities calibrated, and what do dropping rows and mean values cost?

    python benchmarks/missing.py [--sets 200] [--nodes 8] [--rows 100] [--share 0.2] [--moves 250000] [--out FILE]

Each truth (graph, weights, noise of the linear model) is drawn from the prior that inference uses, and cells are
missing completely at random. Four ways to the posterior: `drawn` (cells drawn with the graphs by `auto`, two chains
of a few seconds), `dropped` (the exact posterior of the complete rows), `means` (that of the table with column means in
the holes) and `complete` (that of the table before cells were removed, which nobody has).

* `covered`: 90 % intervals of effects that hold the truth, among pairs whose effect is 0 with posterior probability
  below 0.05 (a choice by the posterior alone keeps Bayesian intervals calibrated); `all pairs` beside it.
* `off`: mean difference between the probability of edges and the share of them that is there, over tenths.
* `brier`, `effect error`: mean squared error of edge probabilities and root mean squared error of mean effects.

Rows go to results/missing.csv, one for each data set and way, and are kept: a second call runs the sets that lack.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dagpost as dp
from dagpost.graphs import descendants

RESULTS = Path(__file__).parent / "results" / "missing.csv"
LARGEST_ZERO = 0.05
"""Largest posterior probability of no effect in a pair that counts."""
WAYS = ("drawn", "dropped", "means", "complete")


def posterior(way: str, frame: pd.DataFrame, whole: pd.DataFrame, moves: int, seed: int) -> dp.Posterior:
    """Return the posterior by one of the ways."""
    if way == "drawn":
        auto = dp.Auto(draws=500, precision=0.02, max_moves=moves, ensembles=2)
        return dp.fit(frame, "linear", method=auto, seed=seed, progress=False)
    table = {"dropped": frame.dropna(), "means": frame.fillna(frame.mean()), "complete": whole}[way]
    return dp.fit(table, "linear", method="exact", seed=seed, progress=False)


def rows_of(seed: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what each way makes of one data set."""
    sim = dp.simulate(
        "linear", nodes=options.nodes, observations=options.rows, seed=seed, source="density", test_observations=0,
        interventional_sets=0,
    )  # fmt: skip
    whole = sim.train.frame()
    frame = whole.mask(np.random.default_rng(seed).random(whole.shape) < options.share)
    truth = np.where(descendants(sim.graph), np.linalg.inv(np.eye(options.nodes) - sim.theta * sim.graph), 0.0)
    out = []
    for way in WAYS:
        if way == "dropped" and len(frame.dropna()) < 2:
            continue
        began = time.perf_counter()
        post = posterior(way, frame, whole, options.moves, seed)
        seconds = time.perf_counter() - began
        table = post.effect_table(level=0.9, draws=500, seed=seed)
        i, j = ([post.index(name) for name in table[column]] for column in ("cause", "effect"))
        inside = ((table.lower <= truth[i, j]) & (truth[i, j] <= table.upper)).to_numpy()
        counts = (1 - table.probability < LARGEST_ZERO).to_numpy()
        off_diagonal = ~np.eye(options.nodes, dtype=bool)
        p, there = post.edge_marginals[off_diagonal], sim.graph[off_diagonal]
        tenth = np.minimum((10 * p).astype(int), 9)
        sums = {f"p{k}": p[tenth == k].sum() for k in range(10)} | {
            f"t{k}": int(there[tenth == k].sum()) for k in range(10)
        }
        out.append({
            "seed": seed, "way": way, "pairs": len(table), "pairs_covered": int(inside.sum()),
            "eligible": int(counts.sum()), "covered": int(inside[counts].sum()),
            "brier": ((p - there) ** 2).mean(), "effect_error": np.sqrt(((table["mean"] - truth[i, j]) ** 2).mean()),
            "trusted": post.record.verdict.trusted if post.record.verdict else None, "seconds": seconds, **sums,
        })  # fmt: skip
    return out


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each way; standard errors are those over data sets."""
    rows = {}
    for way in WAYS:
        some = table[table["way"] == way]
        n, share = some["eligible"].sum(), some["covered"].sum() / some["eligible"].sum()
        error = np.sqrt(len(some)) * (some["covered"] - share * some["eligible"]).std() / n
        p, there = (some[[f"{letter}{k}" for k in range(10)]].sum().to_numpy(float) for letter in "pt")
        edges = some["pairs"].sum()
        rows[way] = {
            "sets": len(some), "covered": share, "s.e.": error, "pairs that count": n,
            "all pairs": some["pairs_covered"].sum() / edges, "off": np.abs(p - there).sum() / edges,
            "brier": some["brier"].mean(), "effect error": some["effect_error"].mean(),
            "trusted": some["trusted"].astype(float).mean(), "seconds": some["seconds"].mean(),
        }  # fmt: skip
    return pd.DataFrame(rows).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--share", type=float, default=0.2, help="of cells that are missing")
    parser.add_argument("--moves", type=int, default=250_000, help="of all chains of one run")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = pd.read_csv(options.out).to_dict("records") if options.out.exists() else []
    for seed in sorted({*range(options.sets)} - {row["seed"] for row in rows}):
        rows += rows_of(seed, options)
        if (seed + 1) % 20 == 0:
            print(f"  {seed + 1} data sets", flush=True)
            pd.DataFrame(rows).round(5).to_csv(options.out, index=False)
    table = pd.DataFrame(rows)
    table.round(5).to_csv(options.out, index=False)
    missing = f"{options.share:.0%} of cells missing, d = {options.nodes}, N = {options.rows}"
    print(f"{missing}; 90 % intervals; s.e.: standard error of `covered` over data sets")
    print(summary(table).round(3).to_string())
    some = table[table["way"] == "drawn"]
    p, there = (some[[f"{letter}{k}" for k in range(10)]].sum().to_numpy(float) for letter in "pt")
    print("edges of `drawn` by tenths of their probability: expected and found")
    print(pd.DataFrame({"expected": p, "found": there}).round(1).T.to_string())


if __name__ == "__main__":
    main()
