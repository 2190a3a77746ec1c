"""Does DiBS pay before the chains of `auto`? Time to a standard error of 0.01 on every edge, by where they start.

    python benchmarks/starts.py [--nodes 12 20 50] [--sets 3] [--limit 150] [--jobs 16] [--out FILE]

`auto` starts from DiBS particles, from graphs that greedy search (GES) finds, from the empty graph, and from random
graphs of the prior; BGe and linear models, both priors, data of the paper's protocol (N = 100, weights not shifted).
Each run has one core. Seconds are those of the whole run without compiling. A run that does not get there within the
limit has the seconds it would need, its standard error falling with the root of time; `reached` counts the others.
"""

from __future__ import annotations

import argparse
import itertools
import os
from pathlib import Path
from typing import Any

import pandas as pd
from pinned import run_pinned

from dagpost.studies.comparisons import START_PRECISION, STARTS, seconds_needed

RESULTS = Path(__file__).parent / "results" / "starts.csv"
FIRST_SEED = 90_000


def timed(case: tuple[int, str, str, int, str], limit: float, core: int | None = None) -> dict[str, Any]:
    """One run on one core."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    import dagpost as dp

    d, model, prior, number, start = case
    sim = dp.simulate(model, prior, nodes=d, observations=100, seed=FIRST_SEED + number, interventional_sets=0)
    post = dp.fit(
        sim.train, model, prior, start=start, precision=START_PRECISION, time_limit=limit, seed=number, progress=False
    )
    told = {name: post.info[name] for name in ("error", "rhat", "trusted", "moves", "ended_by")}
    return {
        "d": d, "model": model, "prior": prior, "set": number, "start": start,
        "seconds": post.info["total_seconds"], "starting": post.info["total_seconds"] - post.info["seconds"], **told,
    }  # fmt: skip


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Medians over data sets; a start has reached the precision where all of its runs have."""
    table = table.assign(needed=table.apply(seconds_needed, axis=1), reached=table["error"] <= START_PRECISION)
    return table.groupby(["d", "model", "prior", "start"], sort=False).agg(
        needed=("needed", "median"), starting=("starting", "median"), reached=("reached", "sum"), runs=("set", "size")
    )


def _in_pool(argument: tuple[tuple[int, str, str, int, str], float]) -> dict[str, Any]:
    return timed(*argument)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[12, 20, 50])
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--starts", nargs="+", default=STARTS)
    parser.add_argument("--limit", type=float, default=150.0, help="seconds of a run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", default=RESULTS, help="one row for each run; those that it has are kept")
    parser.add_argument("--table", action="store_true", help="run nothing, print the table of what is there")
    options = parser.parse_args()
    out = Path(options.out)
    rows = pd.read_csv(out).to_dict("records") if out.exists() else []
    done = {(r["d"], r["model"], r["prior"], r["set"], r["start"]) for r in rows}
    cases = itertools.product(
        options.nodes, ("bge", "linear"), ("erdos-renyi", "scale-free"), range(options.sets), options.starts
    )
    todo = [] if options.table else [case for case in cases if case not in done]
    if todo:
        for row in run_pinned(_in_pool, [(case, options.limit) for case in todo], options.jobs):
            rows.append(row)
            pd.DataFrame(rows).to_csv(out, index=False)
            print(".", end="", flush=True)
        print()
    table = summary(pd.DataFrame(rows))
    print(table.round(1).to_string())
    print(table["needed"].unstack("start")[list(STARTS)].round(1).to_string())


if __name__ == "__main__":
    main()
