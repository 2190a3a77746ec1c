"""How do the seconds of `auto` grow with the number of columns and of rows?

    python benchmarks/growth.py [--nodes 10 20 50 100 200] [--rows 100 1000 10000 100000 1000000] [--models bge linear]
    python benchmarks/growth.py --figure docs/images/growth.png

Erdős–Rényi networks with two edges per node and weights of the paper: 200 rows for every number of columns, 20 columns
for every number of rows. Up to 20 columns draws are exact; beyond, each run ends at the default precision (standard
error 0.01 of every edge) or at `--limit` seconds. Compiling is not counted. Rows go to results/growth.csv and are kept:
a second call runs what is missing. `--figure` draws what is there.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import pandas as pd
from repeat import simulated

import dagpost as dp

RESULTS = Path(__file__).parent / "results" / "growth.csv"
ROWS, COLUMNS = 200, 20
"""Rows where columns vary, and columns where rows do."""


def measure(model: str, nodes: int, rows: int, limit: float) -> dict[str, Any]:
    """Return one row of the table: seconds without compiling, moves, the standard error reached, and the verdict."""
    sim = simulated(nodes, model, "erdos-renyi", 0, rows, 0.0)
    small = dp.simulate(nodes=20, observations=50, seed=0, interventional_sets=0).train
    for compiled, start in ((small, "empty"), (sim.train, None)):
        dp.fit(compiled, model, "erdos-renyi", start=start, time_limit=1.0, progress=False)
    post = dp.fit(sim.train, model, "erdos-renyi", time_limit=limit, progress=False)
    info = post.info
    return {
        "model": model, "nodes": nodes, "rows": rows, "cores": len(os.sched_getaffinity(0)), "limit": limit,
        "seconds": info["total_seconds"] - info["compiling"], "moves": info.get("moves"), "error": info.get("error"),
        "trusted": info.get("trusted"),
    }  # fmt: skip


def draw(table: pd.DataFrame, path: Path) -> None:
    """Draw seconds against columns and against rows; open symbols ended at their limit."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained", sharey=True)
    for ax, varied, fixed in zip(axes, ("nodes", "rows"), ({"rows": ROWS}, {"nodes": COLUMNS})):
        ((name, value),) = fixed.items()
        for at, (model, part) in enumerate(table[table[name] == value].groupby("model")):
            part = part.sort_values(varied)
            ended = part["seconds"] < 0.95 * part["limit"]
            ax.plot(part[varied], part["seconds"], "-", color=f"C{at}", label=model)
            ax.plot(part.loc[ended, varied], part.loc[ended, "seconds"], "o", color=f"C{at}")
            ax.plot(part.loc[~ended, varied], part.loc[~ended, "seconds"], "o", color=f"C{at}", fillstyle="none")
        ax.set(xscale="log", yscale="log", xlabel={"nodes": "columns", "rows": "rows"}[varied])
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10, 20, 50, 100, 200])
    parser.add_argument("--rows", type=int, nargs="*", default=[100, 1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--models", nargs="+", default=["bge", "linear"])
    parser.add_argument("--limit", type=float, default=900.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    rows = pd.read_csv(asked.out).to_dict("records") if asked.out.exists() else []
    if asked.figure:
        return draw(pd.DataFrame(rows), asked.figure)
    sizes = [(d, ROWS) for d in asked.nodes] + [(COLUMNS, n) for n in asked.rows]
    done = {(row["model"], row["nodes"], row["rows"]) for row in rows}
    for model in asked.models:
        for nodes, count in sizes:
            if (model, nodes, count) not in done:
                rows.append(measure(model, nodes, count, asked.limit))
                pd.DataFrame(rows).to_csv(asked.out, index=False, float_format="%.4g")
                print(pd.DataFrame(rows[-1:]).round(3).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
