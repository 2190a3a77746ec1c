"""Which ladder pays? Tempered chains with several hottest levels and rates of rejection, the same number of moves each.

    python benchmarks/ladders.py [--nodes 50] [--prior scale-free] [--hottest 0.25 0.5 0.75 0.9] [--moves 100]
    python benchmarks/ladders.py --hottest 0.25 --rejected 0.2 0.3 0.5 0.6 [--nodes 100] [--rows 200] [--shift 0]

For each: seconds, the root mean square of the edges' standard errors within a run, and how far two runs with different
seeds are apart (root mean square over all edges, and the largest difference). Runs that are further apart than their
standard errors say have missed something: a ladder too short.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

import dagpost as dp
from dagpost.inference.mcmc import ladder
from dagpost.inference.mcmc.diagnostics import edge_errors
from dagpost.inference.mcmc.ensembles import start
from dagpost.inference.mcmc.ladder import adapt_ladder, pair_weights, standard_recipe
from dagpost.inference.mcmc.refine import BATCHES, run_block
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.models import as_model
from dagpost.priors import as_prior

ENSEMBLES = 4


def run(scoring, d: int, hottest: float, moves: float, seed: int):
    """Edge probabilities, their standard errors, the number of levels, and seconds; half of the moves are warm-up."""
    began = time.perf_counter()
    seeds = np.arange(ENSEMBLES) + 100 * seed
    heats, graphs, frequencies = adapt_ladder(np.zeros((1, d, d), dtype=bool), scoring, seeds, hottest)
    recipe = standard_recipe(d, scoring, pair_weights(frequencies))
    ensembles = [start(each, scoring, int(s) + 50) for each, s in zip(graphs, seeds)]
    rounds = max(1, round(moves / (2 * ENSEMBLES * BATCHES * len(heats) * int(recipe.counts.sum()))))
    run_block(ensembles, scoring, heats, recipe, rounds)
    block, _ = run_block(ensembles, scoring, heats, recipe, rounds)
    errors = np.nan_to_num(edge_errors(block.frequencies), nan=0.5)
    return block.frequencies.mean(axis=(0, 1)), errors, len(heats), time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bge")
    parser.add_argument("--prior", default="erdos-renyi")
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--hottest", type=float, nargs="+", default=[0.25, 0.5, 0.75, 0.9])
    parser.add_argument("--rejected", type=float, nargs="+", default=[ladder.REJECTED], help="between two levels")
    parser.add_argument("--moves", type=float, default=100, help="million, of all chains of one run")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--shift", type=float, default=0.5, help="of weights away from zero; the paper has none")
    options = parser.parse_args()
    d, model, prior = options.nodes, as_model(options.model), as_prior(options.prior)
    sim = dp.simulate(
        options.model, options.prior, nodes=d, observations=options.rows, seed=80_000, weight_shift=options.shift,
        interventional_sets=0,
    )  # fmt: skip
    scoring = scorer_for(model, prior, model.summarise(sim.train), d)
    print(f"{options.model}, {options.prior}, d = {d}, {options.moves:g} million moves")
    for hottest, ladder.REJECTED in itertools.product(options.hottest, options.rejected):
        (one, errors, levels, took), (two, *_) = (
            run(scoring, d, hottest, 1e6 * options.moves, seed) for seed in (1, 2)
        )
        apart = one - two
        print(
            f"  hottest {hottest:.2f}, rejected {ladder.REJECTED:.2f}, {levels:>2} levels: {took:>4.0f} s,"
            f" standard errors {_rms(errors):.4f}, apart {_rms(apart):.4f}, at most {np.abs(apart).max():.3f}",
            flush=True,
        )


def _rms(x) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


if __name__ == "__main__":
    main()
