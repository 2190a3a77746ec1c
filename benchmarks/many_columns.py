"""Hundreds of columns: `auto` within a time limit beside bootstrapped GES on the same data.

    python benchmarks/many_columns.py [--nodes 500 1000] [--models bge linear] [--limit 900] [--penalties 1 3]

Erdős–Rényi networks with two edges per node, weights of the paper, 200 rows. Prints seconds without compiling, memory,
the verdict, and how near the edge probabilities are to the truth: the Brier score summed over all pairs (the empty
graph has the number of edges), and the area under the ROC curve. Graphs of GES are counted equally, and weighted by
their posterior; its penalty is that of BIC, with which graphs have thousands of false edges, and three times as much.
Rows go to results/many_columns.csv and are kept: a second call runs what is missing.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
from repeat import simulated

import dagpost as dp
from dagpost.metrics import auroc, brier_score

RESULTS = Path(__file__).parent / "results" / "many_columns.csv"


def row(post: dp.Posterior, sim: dp.Simulation, way: str, seconds: float) -> dict[str, Any]:
    """Return one row of the table."""
    d, info = len(sim.graph), post.info
    return {
        "way": way, "seconds": seconds, "cores": len(os.sched_getaffinity(0)),
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, "edges": int(sim.graph.sum()),
        "brier": brier_score(post, sim.graph) * d * (d - 1), "auroc": auroc(post, sim.graph),
        "error": info.get("error"), "rhat": info.get("rhat"), "trusted": info.get("trusted"),
        "moves": info.get("moves"),
    }  # fmt: skip


def measure(model: str, nodes: int, method: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of one method; a small network compiles first."""
    sim = simulated(nodes, model, "erdos-renyi", 0, 200, 0.0)
    small = dp.simulate(nodes=20, observations=50, seed=0, interventional_sets=0).train

    def timed(**chosen: Any) -> tuple[dp.Posterior, float]:
        dp.fit(small, model, "erdos-renyi", method, time_limit=1.0, progress=False, **chosen)
        began = time.perf_counter()
        post = dp.fit(sim.train, model, "erdos-renyi", method, time_limit=options.limit, **chosen)
        return post, time.perf_counter() - began

    if method == "auto":
        post, seconds = timed(draws=200, start="empty")
        print(post.info["verdict"], flush=True)
        return [row(post, sim, "auto", seconds)]
    rows = []
    for penalty in options.penalties:
        post, seconds = timed(particles=options.resamples, penalty=penalty)
        name = f"{method}, penalty {penalty:g}"
        rows += [
            row(post, sim, f"{name}, weighted", seconds),
            row(post.weighted("uniform"), sim, f"{name}, {len(post)} equal", seconds),
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--models", nargs="+", default=["bge", "linear"])
    parser.add_argument("--methods", nargs="+", default=["auto", "bootstrap-ges"])
    parser.add_argument("--limit", type=float, default=900.0)
    parser.add_argument("--resamples", type=int, default=20)
    parser.add_argument("--penalties", type=float, nargs="+", default=[1.0, 3.0], help="of GES")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", action="store_true", help="measure the first of all in this process")
    options = parser.parse_args()
    wanted = [(m, d, way) for d in options.nodes for m in options.models for way in options.methods]
    if options.one:
        model, nodes, method = wanted[0]
        rows = [{"model": model, "nodes": nodes, "method": method, **found} for found in measure(*wanted[0], options)]
        known = [pd.read_csv(options.out)] if options.out.exists() else []
        pd.concat([*known, pd.DataFrame(rows)]).to_csv(options.out, index=False, float_format="%.4g")
        return
    for model, nodes, method in wanted:  # each in a process of its own, for its memory
        known = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame(columns=["model", "nodes", "method"])
        if not ((known[["model", "nodes", "method"]] == [model, nodes, method]).all(axis=1)).any():
            command = [sys.executable, __file__, "--one", "--nodes", str(nodes), "--models", model, "--methods", method]
            command += ["--limit", str(options.limit), "--resamples", str(options.resamples), "--out", str(options.out)]
            command += ["--penalties", *map(str, options.penalties)]
            subprocess.run(command, check=True)
    print(pd.read_csv(options.out).to_string(index=False))


if __name__ == "__main__":
    main()
