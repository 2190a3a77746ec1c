"""The ladder of heats, the moves of a round, and what adapts both before chains are recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from dagpost._util.clock import Clock
from dagpost.inference.checkpoints import NULL_SECTION, Section, State
from dagpost.inference.mcmc.elsewhere import advance
from dagpost.inference.mcmc.ensembles import Ensemble, Recipe, graphs_of, recipe, reset_counters, start
from dagpost.inference.mcmc.parent_sets import affinity_of
from dagpost.inference.mcmc.scoring import Scoring
from dagpost.typing import Graphs

LARGE = 16  # fewest nodes for short rounds of pairs, relocations and exchanges; with 12, drawing parents pays
UNIFORM = 0.5  # added, over all pairs of a node, to its weights of near pairs, so that none is left out
REJECTED = 0.5  # share of regions whose exchange between levels Metropolis rejects
ANNEALED = 500  # fewest nodes for annealing
LONGEST = (0.1, 0.2, 60.0)  # largest shares of a time limit for annealing and for adapting, and seconds for the latter
ROUNDS = 80  # of a pass that adapts the ladder, after half as many of warm-up
LONGEST_ROUND = 2000  # most moves of a round where families are scored in Python


def pair_weights(
    frequencies: Float[np.ndarray, "d d"], errors: Float[np.ndarray, "d d"] | None = None,
    before: Float[np.ndarray, "d d"] | None = None,
) -> Float[np.ndarray, "d d"]:  # fmt: skip
    """Return weights of near pairs by an earlier run: the standard deviations of their edges; or, with the standard
    errors of `frequencies` in that run and its own weights, more for what is slow.

    If the variance c of a frequency falls with the weight w as `e² = c / w`, then `sqrt(w) e = sqrt(c)`, the weights
    with the smallest sum of all variances.
    """
    spread = np.sqrt(frequencies * (1 - frequencies))
    spread = np.hypot(spread, spread.T)
    if errors is None or before is None:
        return spread
    errors = np.nan_to_num(errors, nan=0.5)  # of chains that do not move
    slow = np.sqrt(before + UNIFORM / len(before)) * np.hypot(errors, errors.T)
    return slow * spread.sum() / max(slow.sum(), 1e-300)


def standard_recipe(d: int, scoring: Scoring, weights: Float[np.ndarray, "d d"] | None = None) -> Recipe:
    """Return the moves of a round, if families are scored by compiled code with relocations and other larger moves.

    With many nodes a round is short, a few moves per node, since exchanges between levels are cheap. Near pairs are
    drawn by `weights` (`pair_weights`). What is slowest with 20 and 50 nodes is turning an edge between nodes that have
    to exchange parents as well: hence the exchanges. `benchmarks/mcmc.py` compares recipes.
    """
    pairs = max(20, d * (d - 1) // 2)
    if not scoring.scorer.compiled:
        return recipe(pair=min(pairs, LONGEST_ROUND))
    if d < LARGE:
        return recipe(most=3, pair=pairs, parents=1, reversal=2)
    few = d // 4
    if weights is None:
        return recipe(pair=2 * d, relocation=few, exchange=few)
    affinity = affinity_of(weights + UNIFORM / d)
    return recipe(affinity=affinity, near_pair=2 * d, pair=few, relocation=d // 8, exchange=few)


def hottest_level(d: int, rows: int) -> float:
    """Return the smallest heat, at which the evidence is worth 50 rows with up to 10 nodes and 25 rows with 20 or more;
    with fewer than 100 rows, 1/2 and 1/4 of them.

    Small graphs need little tempering, but many rows need no less: with half of the evidence for 11 nodes and 7,466
    rows (the protein data, linear) all chains agreed on the wrong graphs. With 50 nodes a ladder that ends at the
    evidence of 40 or 75 rows has fewer levels and looks better in a short run, but its chains stay apart: which nodes
    have 20 parents is decided at hotter levels. `benchmarks/ladders.py` compares ladders.
    """
    return float(np.interp(d, (10, 20), (0.5, 0.25))) * min(1.0, 100 / max(rows, 1))


def rounds_per_heat(d: int) -> int:
    """Return the rounds that annealing makes at each heat, if time allows."""
    return 2 * d // 5


def anneal(
    empty: Graphs, scoring: Scoring, seeds: np.ndarray, heats: np.ndarray, clock: Clock | None = None,
    section: Section = NULL_SECTION, advanced: Callable[[], None] = lambda: None,
) -> Graphs:  # fmt: skip
    """Return DAGs, (seeds * heats, d, d): for each seed those of one chain as it is cooled, the coldest first.

    A chain with hundreds of nodes that starts without edges takes in thousands of wrong ones, between nodes that are
    joined by paths of edges still missing, and is slow to remove them. At a small heat the strongest edges come first
    and keep those out. `benchmarks/annealing.py` compares: with 200 nodes nothing is gained. Heats below those of the
    ladder only take time. `advanced` is called after each heat.
    """
    chains = [start(empty, scoring, int(seed)) for seed in seeds]
    d, reached = empty.shape[-1], []
    moves = standard_recipe(d, scoring)
    for left, heat in zip(range(len(heats), 0, -1), heats[::-1]):
        timer = None if clock is None else clock.until(1 / left)
        advance(chains, scoring, np.array([heat]), moves, rounds_per_heat(d), section=section, clock=timer)
        reached.append([graphs_of(chain.parents)[0] for chain in chains])
        advanced()
    return np.stack(reached[::-1], axis=1).reshape(-1, d, d)


def spaced(ensembles: Sequence[Ensemble], heats: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return heats between which exchanges are equally likely, by the exchanges that the ensembles have counted, and
    the nearest old level of each.

    The sum of rejection rates along the ladder hardly depends on its levels (Syed et al., 2022): it tells where to put
    them, and how many are needed for the rate `REJECTED` of regions.
    """
    tried, accepted = (np.sum([getattr(e, f"swaps_{n}") for e in ensembles], axis=0) for n in ("tried", "accepted"))
    rejected = np.maximum((tried - accepted) / np.maximum(tried, 1), 0.01)
    barrier = np.concatenate([[0.0], np.cumsum(rejected)])
    levels = int(np.clip(np.ceil(barrier[-1] / REJECTED) + 1, 3, 40))
    new = np.interp(np.linspace(0, barrier[-1], levels), barrier, heats)
    return new, np.abs(heats[None, :] - new[:, None]).argmin(axis=1)


def adapt_ladder(
    graphs: Graphs, scoring: Scoring, seeds: np.ndarray, hottest: float, clock: Clock | None = None,
    times: int = 4, section: Section = NULL_SECTION, annealed: bool = False,
    advanced: Callable[[], None] = lambda: None,
) -> tuple[np.ndarray, Graphs, Float[np.ndarray, "d d"]]:  # fmt: skip
    """Return a first ladder of heats (`spaced`) from short runs, starting DAGs for every level of every ensemble, and
    frequencies of edges at level 0 in the last run. If `annealed` is set, chains with many nodes are annealed first,
    from the first of the graphs.

    Only a share of the time that `clock` has left is used (`LONGEST`). When it is up, the ladder of the last complete
    run is returned, with the current DAGs of the chains. `advanced` is called after each run.
    """
    d, clock = graphs.shape[-1], clock or Clock()
    heats, frequencies = np.geomspace(1.0, hottest, 10), np.full((d, d), 0.5)
    done = 0
    moves = standard_recipe(d, scoring)
    for_annealing, for_runs, seconds = LONGEST
    if annealed and section.found is None and d >= ANNEALED and scoring.scorer.compiled:
        graphs = anneal(graphs[:1], scoring, seeds + times, heats, clock.until(for_annealing), section, advanced)
    timer = clock.within(None if clock.limit is None else min(for_runs * clock.left, seconds))
    at_levels = graphs
    if section.found is not None:
        heats, at_levels, frequencies = (section.found.arrays[name] for name in ("heats", "graphs", "frequencies"))
        done = section.found.facts["done"]
        graphs, seeds = at_levels.reshape(-1, d, d), seeds + done
    for run in range(done, times):
        picks = np.arange(len(seeds) * len(heats)).reshape(len(seeds), -1) % len(graphs)
        ensembles = [start(graphs[pick], scoring, int(seed)) for pick, seed in zip(picks, seeds)]
        advance(ensembles, scoring, heats, moves, ROUNDS // 2, section=section, clock=timer)
        reset_counters(ensembles)
        rounds = advance(ensembles, scoring, heats, moves, ROUNDS, section=section, clock=timer).rounds
        if rounds < ROUNDS or timer.expired:
            return heats, np.stack([graphs_of(e.parents) for e in ensembles]), frequencies
        frequencies = np.mean([e.occupancy for e in ensembles], axis=0) / rounds
        heats, nearest = spaced(ensembles, heats)
        at_levels = np.stack([graphs_of(e.parents[nearest]) for e in ensembles])
        graphs = at_levels.reshape(-1, d, d)
        seeds = seeds + 1
        state = {"heats": heats, "graphs": at_levels, "frequencies": frequencies}
        section.reached(partial(State, state, {"done": run + 1}))
        advanced()
    return heats, at_levels, frequencies
