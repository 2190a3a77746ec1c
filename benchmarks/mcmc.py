"""Speed of structure MCMC: moves a second on one core, beside a plain Python loop and beside DiBS.

    python benchmarks/mcmc.py [--nodes 20] [--moves 1000000]

Also effective samples a second of tempered chains by recipe of moves: what each kind of large move is worth.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from dibs_lib import simulated

import dagpost as dp
from dagpost.graphs import is_acyclic
from dagpost.inference.mcmc.diagnostics import diagnose
from dagpost.inference.mcmc.ensembles import advance, recipe, reset_counters, start
from dagpost.inference.mcmc.ladder import adapt_ladder, hottest_level, pair_weights, standard_recipe
from dagpost.inference.mcmc.refine import BATCHES, run_block
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.models import as_model

PYTHON_MOVES = 2000


def plain_python(model, prior, stats, d: int, moves: int, seed: int = 0) -> float:
    """Seconds for add, delete and reverse in plain Python: whole-graph acyclicity, no cache of families."""
    rng = np.random.default_rng(seed)
    log_prior = prior.column_table(d).by_count[0]
    graph = np.zeros((d, d), dtype=bool)

    def score(g, j):
        parents = np.flatnonzero(g[:, j])
        return model.log_evidence(j, parents, stats) + log_prior[len(parents)]

    started = time.perf_counter()
    for _ in range(moves):
        i, j = rng.choice(d, 2, replace=False)
        other = graph.copy()
        if graph[i, j]:
            other[i, j] = False
            other[j, i] = rng.random() < 0.5
        else:
            other[i, j], other[j, i] = True, False
        if is_acyclic(other[None])[0]:
            gain = sum(score(other, k) - score(graph, k) for k in (i, j))
            if np.log(rng.random()) < gain:
                graph = other
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bge")
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--moves", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each recipe; 0 leaves them out")
    options = parser.parse_args()
    d, model, prior = options.nodes, as_model(options.model), dp.ErdosRenyi()
    sim = simulated(options.model, d, 1000, options.rows)
    stats = model.summarise(sim.train)
    scoring = scorer_for(model, prior, stats, d)
    chain = start(np.zeros((1, d, d), dtype=bool), scoring, 0)
    advance([chain], scoring, [1.0], recipe(pair=100_000), 1)
    started = time.perf_counter()
    advance([chain], scoring, [1.0], recipe(pair=options.moves), 1)
    took = time.perf_counter() - started
    plain_python(model, prior, stats, d, 10)  # compiles the scores
    by_hand = plain_python(model, prior, stats, d, PYTHON_MOVES) * options.moves / PYTHON_MOVES
    for _ in range(2):  # the first run compiles
        started = time.perf_counter()
        dp.fit(sim.train, options.model, method="dibs", moves=0, progress=False)
        dibs = time.perf_counter() - started
    print(f"{options.model}, d = {d}: {options.moves:,} moves on one core in {took:.2f} s")
    print(f"  plain Python {by_hand:.0f} s (from {PYTHON_MOVES} moves): ratio {by_hand / took:.0f}")
    print(f"  one DiBS run of 30 particles without moves {dibs:.2f} s: ratio {dibs / took:.1f}")
    if not options.seconds:
        return
    pairs, most = d * (d - 1) // 2, 3 if d <= 25 else 2
    empty, hottest = np.zeros((1, d, d), dtype=bool), hottest_level(d, options.rows)
    heats, at_levels, frequencies = adapt_ladder(empty, scoring, np.arange(4), hottest)
    near = standard_recipe(d, scoring, pair_weights(frequencies))
    recipes = {
        "pairs alone": recipe(pair=pairs),
        "and 1 drawing of parents": recipe(most, pair=pairs, parents=1),
        "and 2 reversals": recipe(most, pair=pairs, reversal=2),
        "and both": recipe(most, pair=pairs, parents=1, reversal=2),
        "and four times both": recipe(most, pair=pairs, parents=4, reversal=8),
        "both, exchanges, relocations": recipe(
            most, pair=pairs, parents=1, reversal=2, exchange=pairs // 80, relocation=pairs // 50
        ),
        "short rounds": standard_recipe(d, scoring),
        "short rounds, near pairs": near,
    }
    print("effective samples a second (two cores, 4 ensembles; the worst edge; the log posterior)")
    for name, moves in recipes.items():
        ensembles = [start(graphs, scoring, seed) for seed, graphs in enumerate(at_levels)]
        started = time.perf_counter()
        run_block(ensembles, scoring, heats, moves, 5)
        rounds = max(5, round(5 * options.seconds / (time.perf_counter() - started)))
        run_block(ensembles, scoring, heats, moves, rounds)
        reset_counters(ensembles)
        started = time.perf_counter()
        block, _ = run_block(ensembles, scoring, heats, moves, rounds)
        took = time.perf_counter() - started
        found = diagnose(block.frequencies, rounds, block.log_posterior)
        worst = 0.25 / found.error**2 / took
        print(
            f"  {name:28}{len(heats):>3} levels, {BATCHES * rounds:>6} rounds: {worst:>8.1f}"
            f"{found.ess_log_posterior / took:>8.1f}   R̂ {found.rhat:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
