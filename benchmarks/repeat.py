"""Do two runs of `auto` agree, and how good are they? Sizes at which no exact posterior is at hand.

    python benchmarks/repeat.py [--nodes 20 50] [--priors erdos-renyi scale-free] [--methods dibs mc3]
    python benchmarks/repeat.py --goals [--nodes 20 50 100 200]

Prints the largest difference of an edge probability between two runs with different seeds, the time of each, E-SHD and
AUROC beside those of other methods. `--goals` prints a table instead: two runs one after the other, 200 rows, a time
limit that depends on the number of nodes, and the largest difference that is wanted there; `work` is the number of
moves, or the share of accepted orders where draws are exact; `--write` puts the rows into
benchmarks/results/repeat.csv. Compiling is not counted. On a busy machine compare CPU seconds of a run with twice the
limit, which is what two idle cores give.
"""

from __future__ import annotations

import argparse
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import dagpost as dp

RESULTS = Path(__file__).parent / "results" / "repeat.csv"
GOALS = {20: (10, 0.03), 50: (60, 0.05), 100: (180, 0.05), 200: (900, 0.10)}
"""Seconds of a run, and the largest difference of an edge probability between two seeds, by number of nodes."""


def timed(sim: dp.Simulation, model: str, prior: str, method: str, seed: int, **options):
    started = time.perf_counter()
    post = dp.fit(sim.train, model, prior, method, seed=seed, progress=False, **{"time_limit": None, **options})
    return post, time.perf_counter() - started


def quality(post, sim: dp.Simulation) -> str:
    by_class = "bootstrap" in post.info["method"]
    shd, auroc = dp.metrics.expected_shd(post, sim.graph), dp.metrics.auroc(post, sim.graph, by_class=by_class)
    return f"E-SHD {shd:.1f}, AUROC {auroc:.3f}"


def agreement(sim: dp.Simulation, model: str, prior: str, options: argparse.Namespace) -> None:
    limits = {"max_moves": options.max_moves, "time_limit": options.time_limit, "ensembles": options.ensembles}
    limits["start"] = "empty"  # chains: on few nodes it would be exact by itself
    run = partial(timed, sim, model, prior, "auto", **limits)
    with ThreadPoolExecutor(2 if options.at_once else 1) as pool:
        (one, took_1), (two, took_2) = pool.map(run, (1, 2))
    apart = np.abs(one.edge_marginals - two.edge_marginals).max()
    print(f"  two runs of auto differ by {apart:.3f} ({took_1:.0f} and {took_2:.0f} s)", flush=True)
    print(f"  auto: {quality(one, sim)}, {one.info['moves'] / 1e6:,.0f} million moves. {one.info['verdict']}")


def _work(info: dict) -> str:
    """Return the moves of chains, or the share of orders that were accepted where draws are exact."""
    return f"{info['moves'] / 1e6:.0f}M" if "moves" in info else f"{info['acceptance']:.1%}"


def goals(options: argparse.Namespace) -> None:
    """Print a table of two runs within the time of `GOALS` for every number of nodes and model."""
    headings = (
        "nodes", "model", "set", "seconds", "CPU", "work", "largest difference", "wanted", "99 % of edges",
        "root mean square", "error", "trusted",
    )  # fmt: skip
    print("| " + " | ".join(headings) + " |\n" + "| --- " * len(headings) + "|", flush=True)
    for d, model, number in itertools.product(options.nodes, options.models, range(options.sets)):
        seconds, wanted = GOALS[d]
        sim = simulated(d, model, "erdos-renyi", number, 200, options.shift)
        limits = {"time_limit": options.time_limit or seconds, "ensembles": options.ensembles}
        limits |= {"precision": options.precision} if options.precision else {}
        few = simulated(16, model, "erdos-renyi", number, 200, options.shift)
        for compiled in (few, sim)[: 1 if d <= 20 else 2]:
            timed(compiled, model, "erdos-renyi", "auto", 0, **{**limits, "time_limit": 1.0})
        used = time.process_time()
        runs = [timed(sim, model, "erdos-renyi", "auto", seed, **limits)[0] for seed in (1, 2)]
        used = time.process_time() - used
        apart = np.abs(runs[0].edge_marginals - runs[1].edge_marginals)[~np.eye(d, dtype=bool)]
        infos = [run.info for run in runs]
        row = {
            "nodes": d, "model": model, "set": number,
            "seconds": " ".join(f"{info['total_seconds']:.0f}" for info in infos), "cpu": f"{used / 2:.0f}",
            "work": " ".join(_work(info) for info in infos), "largest": f"{apart.max():.3f}", "wanted": wanted,
            "most": f"{np.quantile(apart, 0.99):.3f}", "root_mean_square": f"{np.sqrt((apart**2).mean()):.4f}",
            "error": " ".join(f"{np.max(info['edge_errors']):.3f}" for info in infos),
            "trusted": " ".join(str(info["trusted"]) for info in infos),
        }  # fmt: skip
        print("| " + " | ".join(map(str, row.values())) + " |", flush=True)
        if options.write:
            known = [pd.read_csv(RESULTS, dtype=str)] if RESULTS.exists() else []
            both = pd.concat([*known, pd.DataFrame([row]).astype(str)])
            both.drop_duplicates(["nodes", "model", "set"], keep="last").to_csv(RESULTS, index=False)


def simulated(d: int, model: str, prior: str, number: int, rows: int, shift: float) -> dp.Simulation:
    """Data set of this number; weights as in the paper, if they are not shifted."""
    return dp.simulate(
        model, prior, nodes=d, observations=rows, seed=80_000 + number, weight_shift=shift, interventional_sets=0
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--models", nargs="+", default=["bge", "linear"])
    parser.add_argument("--priors", nargs="+", default=["erdos-renyi", "scale-free"])
    parser.add_argument("--sets", type=int, default=1)
    parser.add_argument("--methods", nargs="*", default=["dibs", "mc3", "bootstrap-ges"], help="to show beside auto")
    parser.add_argument("--only-beside", action="store_true", help="not auto, only --methods")
    parser.add_argument("--max-moves", type=int, help="of auto")
    parser.add_argument("--time-limit", type=float, help="of a run of auto, in seconds")
    parser.add_argument("--ensembles", type=int, default=4, help="of auto; one core each")
    parser.add_argument("--shift", type=float, default=0.0, help="of weights away from zero; the paper has none")
    parser.add_argument("--at-once", action="store_true", help="both runs of auto, on twice as many cores")
    parser.add_argument("--goals", action="store_true", help="the table of goals")
    parser.add_argument("--precision", type=float, help="of auto, with --goals")
    parser.add_argument("--write", action="store_true", help="the rows of --goals to benchmarks/results/repeat.csv")
    options = parser.parse_args()
    if options.goals:
        return goals(options)
    cases = itertools.product(options.nodes, options.models, options.priors, range(options.sets))
    for d, model, prior, number in cases:
        sim = simulated(d, model, prior, number, 100, options.shift)
        print(f"\nd {d} {model} {prior} set {number}", flush=True)
        if not options.only_beside:
            agreement(sim, model, prior, options)
        for method in options.methods:
            post, took = timed(sim, model, prior, method, 1)
            print(f"  {method}: {quality(post, sim)} ({took:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
