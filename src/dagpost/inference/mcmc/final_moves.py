"""The moves with which particles of DiBS end: untempered chains from given DAGs, with the moves of `auto`.

With 20 nodes and the linear model 400 moves per node bring DAGs as near to the posterior as 10,000 additions, deletions
and reversals of single edges; with BGe a little less near (`benchmarks/final_moves.py`). Families that Python scores
have moves of single edges alone, and need more of them.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dagpost._util.clock import Clock
from dagpost._util.environment import available_cores
from dagpost._util.numerics import generator
from dagpost._util.progress import Advance
from dagpost.inference.checkpoints import NULL_SECTION, Section, State
from dagpost.inference.mcmc.ensembles import UNTEMPERED, Recipe, advance, recipe, run_moves, start
from dagpost.inference.mcmc.ladder import LARGE, standard_recipe
from dagpost.inference.mcmc.scoring import Scoring, scorer_for
from dagpost.models import Model, Statistics
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Key


def final_round(d: int, scoring: Scoring) -> Recipe:
    """Return the moves of a round: with many nodes fewer of single edges than in tempered chains, since they take most
    of the time and the larger ones decide how near DAGs come to the posterior."""
    if d < LARGE or not scoring.scorer.compiled:
        return standard_recipe(d, scoring)
    return recipe(pair=d // 2, relocation=d // 4, exchange=d // 4)


def equilibrate(
    graphs: Graphs, moves: int, model: Model, prior: GraphPrior, stats: Statistics, key: Key,
    advance_bar: Advance = lambda amount: None, section: Section = NULL_SECTION, clock: Clock | None = None,
) -> tuple[Graphs, int]:  # fmt: skip
    """Move each DAG by moves of its own, which leave `p(G | D)` invariant: as many rounds (`final_round`) as fit, then
    moves of single edges.

    Parameters
    ----------
    graphs
        DAGs to start from.
    moves
        Moves per DAG; fewer if the clock leaves no time for all.
    model, prior, stats
        Model with evidence, prior that decomposes, and statistics of the data.
    key
        Random key.
    advance_bar
        Called with the number of DAGs done.
    section, clock
        Checkpoint and time limit.

    Returns
    -------
    tuple
        The DAGs after their moves, and the smallest number of moves that one of them made.
    """
    scoring = scorer_for(model, prior, stats, graphs.shape[-1])
    seeds = generator(key).integers(2**63, size=len(graphs))
    at_once = 2 * available_cores()
    a_round = final_round(graphs.shape[-1], scoring)
    rounds, rest = divmod(moves, int(a_round.counts.sum()))
    out = np.empty((0, *graphs.shape[1:]), np.bool_) if section.found is None else section.found.arrays["graphs"]
    advance_bar(len(out))
    fewest = moves
    while len(out) < len(graphs):
        share = at_once / (len(graphs) - len(out))
        timer = None if clock is None else clock.until(min(share, 0.95))
        some = slice(len(out), len(out) + at_once)
        chains = [start(graph[None], scoring, seed, 1 << 15) for graph, seed in zip(graphs[some], seeds[some])]
        if rounds:
            advance(chains, scoring, UNTEMPERED, a_round, rounds, rounds + 1, section, timer)
        out = np.concatenate([out, run_moves(chains, scoring, "pair", rest, section, timer)])
        fewest = min(fewest, *(int(chain.tried.sum()) for chain in chains))
        advance_bar(len(chains))
        section.reached(partial(State, {"graphs": out}, {}))
    return out, fewest
