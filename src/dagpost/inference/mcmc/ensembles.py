"""Ensembles of tempered chains, run in parallel.

An ensemble holds one DAG per level of a ladder `1 = heat_0 > heat_1 > …`; level k samples
`[p(G) p(D | G)]^heat_k q(G)^(1 - heat_k)` with a sparse reference q (`scoring.py`); where the prior is a mixture, p(G)
is that of a component, which is redrawn after the moves.
A round makes a number of moves at every level, then neighbouring levels exchange regions of their DAGs (`swaps.py`;
pairs 0-1, 2-3, … and 1-2, 3-4, … in turn; Syed et al., 2022), and the DAG at level 0, which samples the posterior, is
recorded.
Ensembles share nothing, not even a cache, so a run does not depend on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import repeat
from typing import NamedTuple

import numpy as np

from dagpost._util.clock import Clock
from dagpost._util.compiled import njit
from dagpost._util.environment import available_cores
from dagpost._util.numerics import log_add
from dagpost.inference.checkpoints import NULL_SECTION, Section
from dagpost.inference.mcmc.exchange import exchange_move
from dagpost.inference.mcmc.moves import edge_move, parents_move, reversal_move
from dagpost.inference.mcmc.parent_sets import ACCEPTED, MISSING, Affinity, affinity_of, scratch_for, uniform
from dagpost.inference.mcmc.relocation import relocation_move
from dagpost.inference.mcmc.scoring import (
    FamilyCache,
    Scoring,
    empty_cache,
    log_density,
    log_posterior,
    score,
    scoring_scratch,
    store,
    temper_of,
)
from dagpost.inference.mcmc.structure import Structure, copy_row, holds, structure_of, words_for
from dagpost.inference.mcmc.swaps import swap_regions, swap_scratch
from dagpost.typing import Graphs

KINDS = ("pair", "neighbour", "approximate neighbour", "parents", "reversal", "exchange", "relocation", "near pair")
UNTEMPERED = np.ones(1)  # ladder of a single chain
NEVER = np.zeros(1, np.bool_)  # a flag to stop that nobody sets


class Recipe(NamedTuple):
    """Moves of each kind that a level makes in a round, and the most parents a drawn set may have."""

    counts: np.ndarray  # (kinds,)
    most: int
    affinity: Affinity  # weights of pairs, for near pairs, exchanges and relocations


def recipe(most: int = 0, affinity: Affinity | None = None, **counts: int) -> Recipe:
    """Return a recipe from moves by name, with `_` for a space: `recipe(pair=100)`. Near pairs need an affinity."""
    if affinity is None:
        assert not counts.get("near_pair"), "near pairs need an affinity"
        affinity = affinity_of(np.ones((2, 2)))
    return Recipe(np.array([counts.get(kind.replace(" ", "_"), 0) for kind in KINDS]), most, affinity)


class Ensemble(NamedTuple):
    """State and counters of one ensemble of k levels. Arrays are changed in place."""

    parents: np.ndarray  # (k, d, words)
    ancestors: np.ndarray  # (k, d, words)
    scores: np.ndarray  # (k, d, 2) of every family: tempered part and number of counted parents
    component: np.ndarray  # (k,) of the prior
    rng: np.ndarray  # (1,)
    clock: np.ndarray  # (4,) rounds of this call; level and move at which a round was interrupted; rounds in total
    wanted: np.ndarray  # (1 + words,) the family that Python has to score
    cache: FamilyCache
    tried: np.ndarray  # (k, kinds)
    accepted: np.ndarray  # (k, kinds)
    swaps_tried: np.ndarray  # (k - 1,)
    swaps_accepted: np.ndarray  # (k - 1,) sums of acceptance probabilities
    occupancy: np.ndarray  # (d, d) rounds in which level 0 has the edge


class Record(NamedTuple):
    """Record of level 0 of every ensemble in one call of `advance`."""

    rounds: int  # complete ones
    log_posterior: np.ndarray  # (e, rounds)
    graphs: Graphs  # (e, kept, d, d)


@njit(inline="always")
def _repeat_move(kind, times, dag, scores, scorer, cache, temper, rng, scratch, recipe):
    """Make `times` moves of one kind; return how many were made before a family was missing, and how many accepted."""
    accepted = 0
    for done in range(times):
        if kind <= 2 or kind == 7:
            among_all = kind == 1 or kind == 2
            status = edge_move(
                dag, scores, scorer, cache, temper, rng, scratch, among_all, kind == 1, recipe.affinity, kind == 7
            )
        elif kind == 3:
            status = parents_move(dag, scores, scorer, cache, temper, rng, scratch, recipe.most)
        elif kind == 4:
            status = reversal_move(dag, scores, scorer, cache, temper, rng, scratch, recipe.most)
        elif kind == 5:
            status = exchange_move(dag, scores, scorer, cache, temper, rng, scratch, recipe.affinity)
        else:
            status = relocation_move(dag, scores, scorer, cache, temper, rng, scratch, recipe.affinity)
        if status == MISSING:
            return done, accepted
        accepted += status == ACCEPTED
    return times, accepted


@njit
def _draw_component(scorer, scores, component, k, heat, rng):
    """Redraw the component of the prior at level k given its DAG: each replaces the choice so far with probability
    weight / sum so far."""
    if scorer.tilts.shape[0] == 1:
        return
    total = -np.inf
    for c in range(scorer.tilts.shape[0]):
        weight = heat * log_density(scorer, scores, c)
        total = log_add(total, weight)
        if uniform(rng) < np.exp(weight - total):
            component[k] = c


@njit
def _record(ensemble, scorer, here, thin, trace, kept):
    """Record the DAG of level 0 in round `here`: edge counts, log posterior, and every `thin`-th graph."""
    d = ensemble.occupancy.shape[0]
    parents = ensemble.parents[0]
    for j in range(d):
        for i in range(d):
            if holds(parents, j, i):
                ensemble.occupancy[i, j] += 1
    trace[here] = log_posterior(scorer, ensemble.scores[0])
    if (here + 1) % thin == 0:
        for j in range(d):
            copy_row(kept[(here + 1) // thin - 1, j], parents, j)


@njit(_nrt=False)  # pyright: ignore[reportCallIssue]
def _rounds(ensemble, scorer, heats, recipe, rounds, thin, trace, kept, stop, scratch, stale, swapping):
    """Run until `rounds` rounds are done; return False if a family has to be scored by Python first. If `stop` is set,
    return between levels, in an incomplete round.

    Compiled without numba's runtime (`_nrt`): nothing is allocated here, and the runtime would count references.
    """
    levels = ensemble.parents.shape[0]
    clock = ensemble.clock
    while clock[0] < rounds:
        while clock[1] < levels:
            if stop[0]:
                return True
            k = clock[1]
            dag = Structure(ensemble.parents[k], ensemble.ancestors[k], stale)
            temper = temper_of(scorer, heats[k], ensemble.component[k])
            end = 0
            for kind in range(recipe.counts.shape[0]):
                end += recipe.counts[kind]
                if clock[2] >= end:
                    continue
                done, accepted = _repeat_move(
                    kind, end - clock[2], dag, ensemble.scores[k], scorer, ensemble.cache, temper, ensemble.rng,
                    scratch, recipe,
                )  # fmt: skip
                clock[2] += done
                ensemble.tried[k, kind] += done
                ensemble.accepted[k, kind] += accepted
                if clock[2] < end:
                    return False
            _draw_component(scorer, ensemble.scores[k], ensemble.component, k, heats[k], ensemble.rng)
            clock[2] = 0
            clock[1] += 1
        clock[1] = 0
        swap_regions(ensemble, scorer, heats, clock[3] % 2, swapping)
        _record(ensemble, scorer, clock[0], thin, trace, kept)
        clock[0] += 1
        clock[3] += 1
    return True


@njit(nogil=True)
def _advance(ensemble, scorer, heats, recipe, rounds, thin, trace, kept, stop):
    """Allocate scratch memory and call `_rounds`, without the GIL."""
    _, d, words = ensemble.parents.shape
    scratch, stale = scratch_for(ensemble.wanted, scorer, d, words), np.zeros(words, np.uint64)
    swapping = swap_scratch(d, words)
    return _rounds(ensemble, scorer, heats, recipe, rounds, thin, trace, kept, stop, scratch, stale, swapping)


@njit
def _score_families(parents, scores, scorer, cache, wanted, from_node):
    """Fill in the family scores of one DAG; return the node whose family is missing, or d."""
    d = parents.shape[0]
    scratch = scoring_scratch(scorer)
    for j in range(from_node, d):
        at = score(scorer, cache, j, parents[j], wanted, scratch)
        if at < 0:
            return j
        scores[j, 0], scores[j, 1] = cache.scores[at, 0], cache.scores[at, 1]
    return d


def start(graphs: Graphs, scoring: Scoring, seed: int, slots: int | None = None) -> Ensemble:
    """Return an ensemble that starts at these DAGs, (k, d, d), one per level; `slots` is the size of its cache."""
    k, d, _ = graphs.shape
    words, kinds = words_for(d), len(KINDS)
    structures = [structure_of(graph) for graph in graphs]
    out = Ensemble(
        np.stack([s.parents for s in structures]), np.stack([s.ancestors for s in structures]), np.zeros((k, d, 2)),
        np.zeros(k, np.int64), np.array([seed], np.uint64), np.zeros(4, np.int64), np.zeros(1 + words, np.uint64),
        empty_cache(d, slots),
        np.zeros((k, kinds), np.int64), np.zeros((k, kinds), np.int64), np.zeros(k - 1), np.zeros(k - 1),
        np.zeros((d, d)),
    )  # fmt: skip
    _score_all(out, scoring)
    return out


def _score_all(ensemble: Ensemble, scoring: Scoring) -> None:
    """Score the current families of every level."""
    d = ensemble.parents.shape[1]
    for parents, scores in zip(ensemble.parents, ensemble.scores):
        at = 0
        while at < d:
            at = _score_families(parents, scores, scoring.scorer, ensemble.cache, ensemble.wanted, at)
            if at < d:
                _score_wanted(ensemble, scoring)


def with_levels(ensemble: Ensemble, levels: np.ndarray) -> Ensemble:
    """Return the ensemble on a ladder that takes over the DAGs of these levels, with counters at zero."""
    k, d, kinds = len(levels), ensemble.parents.shape[1], len(KINDS)
    states = {f: getattr(ensemble, f)[levels] for f in ("parents", "ancestors", "scores", "component")}
    counters = {f: np.zeros((k, kinds), np.int64) for f in ("tried", "accepted")}
    swaps = {f: np.zeros(k - 1) for f in ("swaps_tried", "swaps_accepted")}
    return ensemble._replace(**states, **counters, **swaps, occupancy=np.zeros((d, d)))


def rescore_all(ensemble: Ensemble, scoring: Scoring) -> None:
    """Forget the scores of an ensemble, whose data have changed, and score its families anew."""
    ensemble.cache.keys[:, 0] = 0
    ensemble.cache.used[0] = 0
    _score_all(ensemble, scoring)


def advance_chain(ensemble: Ensemble, scoring: Scoring, recipe: Recipe, rounds: int) -> float:
    """Run a single untempered chain for so many rounds in this thread; return the log posterior of its last DAG."""
    trace, kept = np.empty(rounds), np.empty((0, *ensemble.parents.shape[1:]), np.uint64)
    ensemble.clock[0] = 0
    while not _advance(ensemble, scoring.scorer, UNTEMPERED, recipe, rounds, rounds + 1, trace, kept, NEVER):
        _score_wanted(ensemble, scoring)
    return float(trace[-1])


def _score_wanted(ensemble: Ensemble, scoring: Scoring) -> None:
    """Score the family that the ensemble stopped at, in Python, and store it in the cache."""
    node, words = int(ensemble.wanted[0]) - 1, ensemble.wanted[1:].copy()
    store(ensemble.cache, node, words, *scoring.in_python(node, words))


def advance(
    ensembles: Sequence[Ensemble], scoring: Scoring, heats: np.ndarray, recipe: Recipe, rounds: int, thin: int = 1,
    section: Section = NULL_SECTION, clock: Clock | None = None,
) -> Record:  # fmt: skip
    """Run every ensemble for this many rounds, or until the clock expires, possibly within a round; counters and
    occupancy accumulate."""
    size, (d, words) = len(ensembles), ensembles[0].parents.shape[1:]
    if recipe.counts[KINDS.index("near pair")] and recipe.affinity.share.shape[1] != d:
        raise ValueError(f"the affinity is one of {recipe.affinity.share.shape[1]} nodes, and graphs have {d}")
    heats = np.asarray(heats, dtype=np.float64)
    traces, kept = np.zeros((size, rounds)), np.zeros((size, rounds // thin, d, words), np.uint64)
    stop = np.zeros(1, np.bool_)

    def one(e: int, until: int) -> None:
        ensemble = ensembles[e]
        while not _advance(ensemble, scoring.scorer, heats, recipe, until, thin, traces[e], kept[e], stop):
            if section.stopping or (clock is not None and clock.expired):
                return
            _score_wanted(ensemble, scoring)

    for ensemble in ensembles:
        ensemble.clock[0] = 0
    with ThreadPoolExecutor(min(size, available_cores())) as pool, _stop_at_expiry(clock, stop):
        until = 0
        for part in section.parts(rounds, clock):
            until += part
            list(pool.map(one, range(size), repeat(until)))
            section.check()
    made = min(int(ensemble.clock[0]) for ensemble in ensembles)
    return Record(made, traces[:, :made], graphs_of(kept[:, : made // thin]))


@contextmanager
def _stop_at_expiry(clock: Clock | None, stop: np.ndarray) -> Iterator[None]:
    """Context in which a thread sets `stop` when the clock expires."""
    if clock is None or clock.limit is None:
        yield
        return
    over = threading.Event()

    def watch() -> None:
        while not over.wait(min(max(clock.left, 0.01), 0.2)):
            if clock.expired:
                stop[0] = True
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run_moves(
    chains: Sequence[Ensemble], scoring: Scoring, kind: str, moves: int, section: Section = NULL_SECTION,
    clock: Clock | None = None,
) -> Graphs:  # fmt: skip
    """Return the DAGs of untempered chains after this many moves of one kind, or as many as the clock allows."""
    for part in section.parts(moves, clock):
        advance(chains, scoring, UNTEMPERED, recipe(0, None, **{kind: part}), 1, section=section)
    return graphs_of(np.stack([chain.parents[0] for chain in chains]))


# ---- checkpoints of an ensemble; the cache is not saved, since its scores can be computed again

SAVED = tuple(field for field in Ensemble._fields if field not in ("wanted", "cache"))


def ensembles_to_arrays(ensembles: Sequence[Ensemble]) -> dict[str, np.ndarray]:
    """Return copies of everything needed to continue the ensembles."""
    return {field: np.stack([getattr(e, field) for e in ensembles]) for field in SAVED}


def ensembles_from_arrays(arrays: Mapping[str, np.ndarray]) -> list[Ensemble]:
    """Return the ensembles that `ensembles_to_arrays` saved."""
    size, _, d, words = arrays["parents"].shape
    return [
        Ensemble(
            wanted=np.zeros(1 + words, np.uint64), cache=empty_cache(d),
            **{field: np.ascontiguousarray(arrays[field][e]) for field in SAVED},
        )
        for e in range(size)
    ]  # fmt: skip


def graphs_of(parents: np.ndarray) -> Graphs:
    """Return adjacency matrices from sets of parents (…, d, words)."""
    d = parents.shape[-2]
    bits = np.unpackbits(np.ascontiguousarray(parents).view(np.uint8), axis=-1, bitorder="little")
    return np.swapaxes(bits[..., :d], -1, -2).astype(np.bool_)


def reset_counters(ensembles: Sequence[Ensemble]) -> None:
    """Reset the counters after warm-up."""
    for e in ensembles:
        for counts in (e.tried, e.accepted, e.swaps_tried, e.swaps_accepted, e.occupancy):
            counts[:] = 0
