"""Do two runs of `auto` agree, and how good are they? Sizes at which no exact posterior is at hand.

    python benchmarks/repeat.py [--nodes 20 50] [--priors erdos-renyi scale-free] [--methods dibs mc3]

Prints the largest difference of an edge probability between two runs with different seeds, the time of each, E-SHD and
AUROC beside those of other methods.
"""

from __future__ import annotations

import argparse
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

import dagpost as dp


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
    options = parser.parse_args()
    cases = itertools.product(options.nodes, options.models, options.priors, range(options.sets))
    for d, model, prior, number in cases:
        sim = dp.simulate(
            model,
            prior,
            nodes=d,
            observations=100,
            seed=80_000 + number,
            weight_shift=options.shift,
            interventional_sets=0,
        )
        print(f"\nd {d} {model} {prior} set {number}", flush=True)
        if not options.only_beside:
            agreement(sim, model, prior, options)
        for method in options.methods:
            post, took = timed(sim, model, prior, method, 1)
            print(f"  {method}: {quality(post, sim)} ({took:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
