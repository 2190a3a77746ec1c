"""Does the time limit hold? Requested and taken seconds of `dp.fit`, for many nodes.

    python benchmarks/time_limits.py [--nodes 20 50 100 200] [--models bge linear mlp] [--limit 30]

Data of the paper's protocol, 200 rows. "taken" is the time of the whole call without compiling, "compiling" what came
on top of it; both are measured here, from outside. Writes `benchmarks/results/time_limits.csv`.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import pandas as pd

import dagpost as dp

RESULTS = Path(__file__).parent / "results" / "time_limits.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[20, 50, 100, 200])
    parser.add_argument("--models", nargs="+", default=["bge", "linear", "mlp"])
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--out", default=RESULTS)
    options = parser.parse_args()
    rows = []
    for model, d in itertools.product(options.models, options.nodes):
        sim = dp.simulate(model, nodes=d, observations=200, seed=60_000, interventional_sets=0)
        began = time.perf_counter()
        post = dp.fit(sim.train, model, time_limit=options.limit, progress=False)
        elapsed, compiling = time.perf_counter() - began, post.info["compiling"]
        rows.append({"model": model, "d": d, "requested": options.limit, "taken": elapsed - compiling,
                     "compiling": compiling, "ended_by": post.info["ended_by"],
                     "trusted": post.info.get("trusted", False)})  # fmt: skip
        print(f"{model:7} d {d:>3}: {elapsed - compiling:5.1f} s, compiling {compiling:5.1f} s. {post.info['verdict']}")
        pd.DataFrame(rows).round(2).to_csv(options.out, index=False)
    print(pd.DataFrame(rows).pivot(index="d", columns="model", values="taken").round(1).to_string())


if __name__ == "__main__":
    main()
