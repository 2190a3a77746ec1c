"""Hundreds of columns: `auto` within a time limit beside bootstrapped GES on the same data.

    python benchmarks/many_columns.py [--nodes 500 1000] [--models bge linear] [--limit 760] [--penalties 3]

Erdős–Rényi networks with two edges per node, weights of the paper, 200 rows. Prints seconds without compiling, memory,
the verdict, and how near the edge probabilities are to the truth: the Brier score summed over all pairs (the empty
graph has the number of edges), and the area under the ROC curve. Graphs of GES are counted equally, and weighted by
their posterior; its penalty is three times that of BIC. With BIC's own (`--penalties 1`) a search takes minutes.
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

import numpy as np
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
    (penalty,) = options.penalties
    post, seconds = timed(particles=options.resamples, penalty=penalty)
    return [
        row(post, sim, "weighted", seconds) | {"penalty": penalty},
        row(post.weighted("uniform"), sim, f"{len(post)} equal", seconds) | {"penalty": penalty},
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--models", nargs="+", default=["bge", "linear"])
    parser.add_argument("--methods", nargs="+", default=["auto", "bootstrap-ges"])
    parser.add_argument("--limit", type=float, default=760.0)
    parser.add_argument("--resamples", type=int, default=20)
    parser.add_argument("--penalties", type=float, nargs="+", default=[3.0], help="of GES")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", action="store_true", help="measure the first of all in this process")
    options = parser.parse_args()
    wanted = [
        (model, nodes, method, penalty)
        for nodes in options.nodes for model in options.models for method in options.methods
        for penalty in ([np.nan] if method == "auto" else options.penalties)
    ]  # fmt: skip
    if options.one:
        asked = dict(zip(("model", "nodes", "method"), wanted[0]))
        rows = [{**asked, **found} for found in measure(**asked, options=options)]
        known = [pd.read_csv(options.out)] if options.out.exists() else []
        pd.concat([*known, pd.DataFrame(rows)]).to_csv(options.out, index=False, float_format="%.4g")
        return
    keys = ["model", "nodes", "method", "penalty"]
    for model, nodes, method, penalty in wanted:  # each in a process of its own, for its memory
        known = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame(columns=keys)
        if pd.DataFrame([(model, nodes, method, penalty)], columns=keys).merge(known, on=keys).empty:
            command = [sys.executable, __file__, "--one", "--nodes", str(nodes), "--models", model, "--methods", method]
            command += ["--limit", str(options.limit), "--resamples", str(options.resamples), "--out", str(options.out)]
            command += ["--penalties", str(penalty)]
            subprocess.run(command, check=True)
    print(pd.read_csv(options.out).to_string(index=False))


if __name__ == "__main__":
    main()
