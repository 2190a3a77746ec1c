"""How far is each method's posterior from the exact one? Largest error of an edge probability, over many data sets.

    python benchmarks/accuracy.py [--nodes 5 8 12] [--sets 2] [--methods auto dibs mc3 dibs-paper …]

For BGe and linear data, Erdős–Rényi and uniform priors, and N from 20 to 1,000. Prints the largest and the median error
over data sets, and the time, for each method; and the mean error with the method's own weights and with
`weighted("posterior")`, where that is offered: draws of the posterior leave their weights as they are. Code that is
compiled once and kept on disk is compiled before. `--table` prints the tables of the committed rows.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import dagpost as dp
from dagpost.errors import WeightingWarning

RESULTS = Path(__file__).parent / "results" / "accuracy.csv"
OPTIONS = {
    "auto": {"draws": 1000, "start": "empty"},  # its chains: by itself it would be exact here
    "dibs": {"particles": 30},
    "dibs-paper": {"particles": 30},
    "mc3": {"particles": 30},
    "m-mc3": {"particles": 30},
    "g-mc3": {"particles": 30},
    "bootstrap-ges": {"particles": 30},
    "bootstrap-pc": {"particles": 30},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["auto", "dibs", "mc3"], choices=OPTIONS)
    parser.add_argument("--nodes", type=int, nargs="+", default=[5, 8, 12])
    parser.add_argument("--rows", type=int, nargs="+", default=[20, 100, 1000])
    parser.add_argument("--sets", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=10.0, help="of auto")
    parser.add_argument("--out", help="write one row for each run")
    parser.add_argument("--table", action="store_true", help="run nothing, print what the committed rows say")
    options = parser.parse_args()
    if options.table:
        show(pd.read_csv(RESULTS))
        return
    small = dp.simulate("bge", nodes=4, observations=20, interventional_sets=0).train
    for method in options.methods:  # compiled code is kept on disk: compile it before the clock runs
        steps = {"steps": 2} if method in ("auto", "dibs", "dibs-paper") else {}
        dp.fit(small, "linear" if method[1:] == "-mc3" else "bge", method=method, particles=2, progress=False, **steps)
    rows = []
    cases = itertools.product(
        options.nodes, ("bge", "linear"), ("erdos-renyi", "uniform"), options.rows, range(options.sets)
    )
    for d, model, prior, count, seed in cases:
        sim = dp.simulate(model, nodes=d, observations=count, seed=70_000 + seed, interventional_sets=0)
        exact = dp.exact(sim.train, model, prior).edge_marginals
        for method in options.methods:
            if method in ("m-mc3", "g-mc3") and model == "bge":
                continue  # no parameters to sample
            extra = {"time_limit": options.time_limit} if method == "auto" else {}
            started = time.perf_counter()
            post = dp.fit(sim.train, model, prior, method, seed=seed, progress=False, **OPTIONS[method], **extra)
            took = time.perf_counter() - started
            error = float(np.abs(post.edge_marginals - exact).max())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", WeightingWarning)
                plus = float(np.abs(post.weighted("posterior").edge_marginals - exact).max())
            rows.append({"d": d, "model": model, "prior": prior, "N": count, "set": seed, "method": method,
                         "error": error, "weighted_error": plus, "seconds": took,
                         "trusted": post.info.get("trusted")})  # fmt: skip
        latest = [
            r for r in rows if (r["d"], r["model"], r["prior"], r["N"], r["set"]) == (d, model, prior, count, seed)
        ]
        told = "  ".join(f"{r['method']} {r['error']:.3f} ({r['seconds']:.1f} s)" for r in latest)
        print(f"d {d:>2} {model:6} {prior:11} N {count:>4}: {told}", flush=True)
        if options.out:
            pd.DataFrame(rows).to_csv(options.out, index=False)
    show(pd.DataFrame(rows))


def show(table: pd.DataFrame) -> None:
    """Print what the rows say."""
    summary = table.groupby(["method", "d"]).agg(
        sets=("error", "size"), largest=("error", "max"), median=("error", "median"), seconds=("seconds", "max")
    )
    print(summary.round(3))
    print(table.groupby("method").agg(own_weights=("error", "mean"), weighted=("weighted_error", "mean")).round(4))


if __name__ == "__main__":
    main()
