"""How much faster are the ensembles of `auto` on more cores? Threads of one process, processes, a Dask cluster.

    python benchmarks/workers.py [--cores 1 2 4 8 16] [--nodes 20] [--ensembles 16] [--million-moves 40] [--dask]

Every run makes the same moves, bound to so many cores (where the system can bind processes), and must end with the same
graphs, bit for bit. Starting processes and compiling are left out: a short run comes first. Prints a line for each
number of cores, and writes the table as CSV to --out.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import time
from contextlib import nullcontext

import dagpost as dp
from dagpost._util.workers import LocalWorkers, use_workers
from dagpost.inference import fit as fit_module


def bind(cores: int) -> None:
    """Let this process and its children use so many cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(ALL)[:cores])


ALL = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


SMALL = dp.simulate(nodes=4, observations=20, seed=0, interventional_sets=0)


def run(sim: dp.Simulation, moves: int, ensembles: int) -> tuple[float, str]:
    """Return the seconds that the chains took, and a digest of their graphs."""
    began = time.perf_counter()
    post = dp.fit(
        sim.train, "bge", ensembles=ensembles, max_moves=moves, precision=1e-9, draws=200, time_limit=None,
        progress=False,
    )  # fmt: skip
    took = time.perf_counter() - began - post.info["compiling"]
    return took, hashlib.sha256(post.graphs.tobytes()).hexdigest()[:12]


def measured(sim: dp.Simulation, options: argparse.Namespace, workers, cores: int) -> tuple[float, str]:
    """Run with these workers, None for threads; a small problem comes first, to start them."""
    usual = fit_module.use_workers  # `fit` would close them at its end
    fit_module.use_workers = lambda _: nullcontext()
    try:
        with use_workers(workers):
            run(SMALL, 1, max(2, cores))
            return run(sim, options.million_moves * 10**6, options.ensembles)
    finally:
        fit_module.use_workers = usual


def dask_workers(cores: int):
    """Return the workers of a cluster on this machine."""
    from distributed import LocalCluster

    from dagpost._util.workers import DaskWorkers

    cluster = LocalCluster(n_workers=cores, threads_per_worker=1, dashboard_address=None)
    return DaskWorkers(cluster.scheduler_address)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--ensembles", type=int, default=16)
    parser.add_argument("--million-moves", type=int, default=40)
    parser.add_argument("--dask", action="store_true", help="also on a Dask cluster of this machine")
    parser.add_argument("--out", help="CSV file for the table")
    options = parser.parse_args()
    sim = dp.simulate(nodes=options.nodes, observations=200, seed=0, interventional_sets=0)
    kinds = {"threads": lambda cores: None, "processes": LocalWorkers}
    if options.dask:
        kinds["dask"] = dask_workers
    rows, first, digests = [], {}, set()
    print(f"{options.nodes} nodes, {options.ensembles} ensembles, {options.million_moves} million moves")
    for cores in [cores for cores in options.cores if cores <= len(ALL)]:
        for kind, make in kinds.items():
            bind(cores)
            seconds, digest = measured(sim, options, make(cores), cores)
            first.setdefault(kind, seconds * cores)
            rows.append(
                {"cores": cores, "on": kind, "seconds": round(seconds, 2), "speed-up": round(first[kind] / seconds, 2)}
            )
            digests.add(digest)
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    print("all runs end with the same graphs" if len(digests) == 1 else f"DIFFERENT GRAPHS: {sorted(digests)}")
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    raise SystemExit(len(digests) != 1)


if __name__ == "__main__":
    main()
