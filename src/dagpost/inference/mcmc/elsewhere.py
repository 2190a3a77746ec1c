"""Ensembles in other processes: `advance` as in `ensembles.py`, by the workers of the run if it has any.

A task advances one ensemble for a few seconds and returns its state. The ensembles stay here between tasks, so that a
lost worker costs the last task of its ensemble and nothing else. Ensembles share nothing and bring their own random
numbers: the result is the same, bit for bit, wherever and in however many parts they run.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from dagpost._util.clock import Clock
from dagpost._util.workers import current_workers
from dagpost.inference.checkpoints import NULL_SECTION, Section
from dagpost.inference.mcmc import ensembles as here
from dagpost.inference.mcmc.ensembles import (
    Ensemble,
    Recipe,
    Record,
    ensembles_from_arrays,
    ensembles_to_arrays,
    recipe,
)
from dagpost.inference.mcmc.scoring import FamilyCache, Score, Scoring

SECONDS = 2.0
"""How long a task runs; it ends after the round in which the next graph is kept."""
MOST_CACHES = 8
"""Family-score caches that a worker keeps between tasks."""


class Part(NamedTuple):
    """A task: one ensemble, and how far it is to run."""

    name: str  # of scores and ensemble, for the cache
    state: dict[str, np.ndarray]
    scoring: Scoring
    heats: np.ndarray
    recipe: Recipe
    rounds: int
    thin: int
    seconds: float | None  # until the clock of the run expires


class Advanced(NamedTuple):
    """What a task returns."""

    state: dict[str, np.ndarray]
    rounds: int
    log_posterior: np.ndarray  # (rounds,)
    graphs: np.ndarray  # (kept, bits) of the graphs, packed


_caches: OrderedDict[str, FamilyCache] = OrderedDict()


def perform_part(part: Part) -> Advanced:
    """Advance an ensemble by its rounds, or by those that fit into `SECONDS`."""
    (ensemble,) = ensembles_from_arrays(part.state)
    cache = _caches.pop(part.name, ensemble.cache)  # taken out: threads of a worker must not share one
    ensemble = ensemble._replace(cache=cache)
    limit, task = Clock(part.seconds), Clock(SECONDS)
    records: list[Record] = []
    made = 0
    while made < part.rounds and not limit.expired and (made == 0 or not task.expired):
        step = min(part.thin, part.rounds - made)  # graphs are kept after every `thin` rounds, counted from the first
        clock = None if part.seconds is None else limit
        records.append(here.advance([ensemble], part.scoring, part.heats, part.recipe, step, part.thin, clock=clock))
        made += records[-1].rounds
        if records[-1].rounds < step:
            break
    _caches[part.name] = cache
    while len(_caches) > MOST_CACHES:
        _caches.popitem(last=False)
    d = ensemble.occupancy.shape[0]
    kept = [record.graphs[0] for record in records] or [np.zeros((0, d, d), np.bool_)]
    trace = [record.log_posterior[0] for record in records] or [np.zeros(0)]
    graphs = np.packbits(np.concatenate(kept).reshape(-1, d * d), axis=1)
    return Advanced(ensembles_to_arrays([ensemble]), made, np.concatenate(trace), graphs)


def advance(
    ensembles: Sequence[Ensemble], scoring: Scoring, heats: np.ndarray, recipe: Recipe, rounds: int, thin: int = 1,
    section: Section = NULL_SECTION, clock: Clock | None = None,
) -> Record:  # fmt: skip
    """Run every ensemble for this many rounds, or until the clock expires, as `ensembles.advance` does."""
    workers = current_workers()
    if workers is None:
        return here.advance(ensembles, scoring, heats, recipe, rounds, thin, section, clock)
    if not _compiled:
        _compile(ensembles[0], scoring, heats)
    scoring, name = _sendable(scoring)
    size, d = len(ensembles), ensembles[0].occupancy.shape[0]
    made = np.zeros(size, np.int64)
    traces: list[list[np.ndarray]] = [[] for _ in ensembles]
    kept: list[list[np.ndarray]] = [[] for _ in ensembles]

    def part(e: int) -> Part:
        left = None if clock is None or clock.limit is None else max(clock.left, 1e-3)
        state = ensembles_to_arrays([ensembles[e]])
        return Part(f"{name}-{e}", state, scoring, heats, recipe, rounds - int(made[e]), thin, left)

    def stopping() -> bool:
        return section.stopping or (clock is not None and clock.expired)

    def take(e: int, found: Advanced) -> Part | None:
        for field, values in found.state.items():
            getattr(ensembles[e], field)[...] = values[0]
        made[e] += found.rounds
        ensembles[e].clock[0] = made[e]  # rounds of this call, of which the task made some
        traces[e].append(found.log_posterior)
        kept[e].append(found.graphs)
        cut_short = found.rounds % thin != 0  # by the worker's clock: graphs that are kept later would not be in step
        return None if made[e] == rounds or cut_short or stopping() else part(e)

    for _ in workers.results(perform_part, [part(e) for e in range(size)], take, stopping):
        pass
    section.check()
    fewest = int(made.min())
    log_posterior, graphs = np.zeros((size, fewest)), np.zeros((size, fewest // thin, d, d), np.bool_)
    for e in range(size if fewest else 0):
        log_posterior[e] = np.concatenate(traces[e])[:fewest]
        bits = np.concatenate(kept[e])[: fewest // thin]
        graphs[e] = np.unpackbits(bits, axis=1, count=d * d).reshape(-1, d, d)
    return Record(fewest, log_posterior, graphs)


def _sendable(scoring: Scoring) -> tuple[Scoring, str]:
    """Return the scoring without what compiled code does not need, and a name that no other scoring has."""
    if not scoring.scorer.compiled:
        return scoring, uuid.uuid4().hex
    digest = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(scoring.scorer):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return Scoring(scoring.scorer, _not_needed), digest.hexdigest()


def _not_needed(node: int, words: np.ndarray) -> Score:
    raise AssertionError("compiled code scores all families")


_compiled: list[bool] = []


def _compile(ensemble: Ensemble, scoring: Scoring, heats: np.ndarray) -> None:
    """Compile the chains in this process by a round without moves: it counts as compiling, and the processes of this
    machine find the result on disk."""
    (copy,) = ensembles_from_arrays(ensembles_to_arrays([ensemble]))
    here.advance([copy], scoring, heats, recipe(), 1)
    _compiled.append(True)
