"""Time of the evidence of categorical families, by distinct rows and number of parents.

    python benchmarks/counts.py

Rows are drawn from random categorical networks; the least of several repetitions is printed, microseconds per family.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import dagpost as dp
from dagpost.models.counts import CountTable, count_evidences

FAMILIES = 500


def microseconds(table: CountTable, parents: int, repeats: int) -> float:
    """Return the least time per family of random families with so many parents."""
    rng, d = np.random.default_rng(0), len(table.levels)
    nodes, rows = rng.integers(0, d, FAMILIES), np.zeros((FAMILIES, d), np.bool_)
    for f, node in enumerate(nodes):
        rows[f, rng.choice(np.delete(np.arange(d), node), parents, replace=False)] = True
    times = []
    for _ in range(repeats + 1):  # the first compiles
        began = time.perf_counter()
        count_evidences(table, nodes, rows)
        times.append(time.perf_counter() - began)
    return 1e6 * min(times[1:]) / FAMILIES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    print("| levels | rows | distinct | 1 parent | 3 parents | 6 parents |\n| --- | --- | --- | --- | --- | --- |")
    for levels in (2, 3):
        model = dp.BDeu(simulated_levels=levels)
        for rows in (1000, 10_000):
            table = model.summarise(dp.simulate(model, nodes=12, observations=rows, seed=1).train).shared
            times = [microseconds(table, parents, options.repeats) for parents in (1, 3, 6)]
            cells = " | ".join(f"{t:.1f}" for t in times)
            print(f"| {levels} | {rows:,} | {len(table.weights):,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
