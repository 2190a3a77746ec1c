"""Tempered chains from given starting points to the posterior itself, for as long as their diagnostics ask for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dagpost.checkpoints import NOWHERE, Section, State
from dagpost.checkpoints.section import Sections, section_of
from dagpost.errors import positive, whole_number
from dagpost.mcmc.diagnostics import Diagnostics, diagnose, edge_errors
from dagpost.mcmc.ensembles import (
    KINDS,
    Ensemble,
    Recipe,
    advance,
    forget,
    graphs_of,
    recipe,
    restored,
    saved,
    start,
)
from dagpost.mcmc.scoring import Scoring, scorer_for
from dagpost.models import Model, Statistics
from dagpost.posterior.chains import CHAIN_LENGTHS
from dagpost.priors import GraphPrior
from dagpost.progress import progress_bar
from dagpost.randomness import generator
from dagpost.typing import Graphs, Key

BATCHES = 40  # of a block; their means tell how precise its average is
KEPT = 500  # graphs that each ensemble keeps of a block, about
MOVES_PER_NODE = 15_000_000
MOVES_PER_PAIR = 750_000  # of nodes; the same as the above with 20 nodes
MOST_FOR_PAIRS = 2_000_000_000
PATIENCE = 3  # times that for chains that are not settled
SETTLED = 0.01  # standard error of an edge probability
LARGE = 16  # nodes from which on exchanges and relocations pay; with 12 they take time from moves that do more


@dataclass(frozen=True)
class Effort:
    """How long to run: until the largest standard error of an edge probability falls below `precision` and the chains
    agree, but for no more than `max_moves` moves of all chains (None: as `allowed` has it) and no longer than
    `time_limit` seconds. Where `max_moves` is not set, chains that do not agree, or to less than `SETTLED`, go on for
    `PATIENCE` times as long. A run that a clock has ended need not end there a second time; the other limits repeat.
    """

    precision: float = 0.004
    max_moves: int | None = None
    time_limit: float | None = None
    ensembles: int = 4

    def __post_init__(self):
        positive("precision", self.precision)
        if self.max_moves is not None:
            whole_number("max_moves", self.max_moves, least=1)
        if self.time_limit is not None:
            positive("time_limit", self.time_limit)
        whole_number("ensembles", self.ensembles, least=2)

    def allowed(self, d: int, settled: bool) -> float:
        """Moves: 300 million with 20 nodes, 1.9 thousand million with 50, if that is enough."""
        if self.max_moves is not None:
            return self.max_moves
        usual = max(MOVES_PER_NODE * d, min(MOVES_PER_PAIR * d**2, MOST_FOR_PAIRS))
        return usual if settled else PATIENCE * usual

    def share(self, d: int, settled: bool, moves: float, seconds: float) -> float:
        """How much of what is allowed so many moves and seconds are; 1 is all of it."""
        by_moves = moves / self.allowed(d, settled)
        if self.time_limit is None:
            return by_moves
        return max(by_moves, seconds / (0.95 * self.time_limit))  # blocks do not end to the second


@dataclass(frozen=True)
class Refined:
    """Draws of equal weight, edge probabilities over every round, and what the chains say of themselves."""

    graphs: Graphs
    marginals: Float[np.ndarray, "d d"]
    diagnostics: Diagnostics
    info: dict[str, Any]


def refine(
    graphs: Graphs, model: Model, prior: GraphPrior, stats: Statistics, key: Key, *,
    rows: int, draws: int = 1000, effort: Effort | None = None, progress: bool | None = None,
    checkpoint: Sections | None = None, callback: Callable[[ChainSnapshot], None] | None = None,
) -> Refined:  # fmt: skip
    """Sample `p(G | D)` with ensembles of tempered chains that start at `graphs`; `rows` is the number of observations.

    Blocks double in length: each is as long as all before it, which are its warm-up. So half of all moves count, and
    nobody has to choose a burn-in. What is left at the end goes on with the last block, if its chains agreed, else it
    is a block of its own. `callback` looks on after every batch.
    """
    effort = effort or Effort()
    began = time.perf_counter()
    d = graphs.shape[-1]
    scoring = scorer_for(model, prior, stats, d)
    seeds = generator(key).integers(2**63, size=2 * effort.ensembles)
    moves, hottest = standard_recipe(d, scoring), hottest_level(d, rows)
    made = 0  # moves in blocks before this one
    found: Diagnostics | None = None
    settled = True  # as far as is known, the usual number of moves is enough
    with progress_bar("refining", 1.0, progress) as advance_bar:
        shown = 0.0

        def tell() -> None:
            nonlocal shown
            now = effort.share(d, settled, made + moves_of(ensembles), time.perf_counter() - began)
            advance_bar(now - shown)
            shown = now

        ladder, chains = section_of(checkpoint, "ladder"), section_of(checkpoint, "chains")
        heats, at_levels = adapted_ladder(graphs, scoring, moves, seeds[: effort.ensembles], hottest, section=ladder)
        ensembles = [start(at_levels[e], scoring, seed) for e, seed in enumerate(seeds[effort.ensembles :].tolist())]
        rounds, batches = 5, BATCHES  # of a batch; of a block
        begun: Block | None = None
        if chains.found is not None:
            ensembles, begun = restored(chains.found.arrays), Block(*(chains.found.arrays[f] for f in Block._fields))
            rounds, batches, made, seconds = (
                chains.found.facts[name] for name in ("rounds", "batches", "made", "seconds")
            )
            began -= seconds

        def reached(parts: list[Block]) -> None:
            facts = {"rounds": rounds, "batches": batches, "made": made, "seconds": time.perf_counter() - began}
            chains.reached(partial(_state, saved(ensembles), list(parts), facts))
            tell()
            if callback is not None:
                so_far = np.concatenate([b.frequencies for b in parts], axis=1).mean(axis=(0, 1))
                callback(ChainSnapshot(made + moves_of(ensembles), shown, so_far, found, effort.precision))

        while True:
            if begun is None:
                made += moves_of(ensembles)
                forget(ensembles)
            since, anew = time.perf_counter(), batches - batches_of(begun)
            block = run_block(ensembles, scoring, heats, moves, rounds, batches, begun, reached, chains)
            found = judged(block)
            now, own = time.perf_counter(), moves_of(ensembles)
            enough = found.trusted and found.error <= effort.precision
            settled = found.trusted and found.error <= SETTLED
            left = 1 - effort.share(d, settled, made + own, now - began)
            batches_left = int(left / effort.share(d, settled, own / batches, (now - since) / max(anew, 1)))
            if enough or batches_left < (1 if found.trusted else batches):
                break
            if found.trusted and batches_left < 4 * batches:
                begun, batches = block, batches + batches_left
            else:
                longer = 2 if batches_left >= 4 * batches else batches_left / batches
                begun, batches, rounds = None, BATCHES, int(rounds * batches / BATCHES * longer)
    flat = block.graphs.reshape(-1, d, d)  # ensemble by ensemble, each in order of time
    chosen = np.linspace(0, len(flat) - 1, draws).round().astype(int)
    ensemble = chosen // block.graphs.shape[1]
    info = {
        **figures(ensembles, heats),
        "rounds": batches * rounds,
        "moves": made + own,
        "seconds": now - began,
        "ended_by": "diagnostics" if enough else "limit",
        "edge_errors": np.nan_to_num(edge_errors(block.frequencies), nan=0.5).round(6).tolist(),
        CHAIN_LENGTHS: np.bincount(ensemble, minlength=len(ensembles)).tolist(),
    }
    return Refined(flat[chosen], block.frequencies.mean(axis=(0, 1)), found, info)


class Block(NamedTuple):
    """What all ensembles did in one block."""

    graphs: Graphs  # (e, n, d, d) draws that were kept
    log_posterior: Float[np.ndarray, "e n"]  # of those
    frequencies: Float[np.ndarray, "e b d d"]  # of edges, over the rounds of each batch


class ChainSnapshot(NamedTuple):
    """What a callback sees after every batch of the chains."""

    moves: int
    share: float
    """Of the moves or seconds that are allowed; chains that agree end sooner."""
    edge_probabilities: Float[np.ndarray, "d d"]
    """Over the rounds of this block so far."""
    diagnostics: Diagnostics | None
    """Of the last whole block; None during the first."""
    precision: float
    """The wanted standard error of an edge probability."""


def run_block(
    ensembles: list[Ensemble], scoring: Scoring, heats: np.ndarray, moves: Recipe, rounds: int, batches: int = BATCHES,
    begun: Block | None = None, reached: Callable[[list[Block]], None] = lambda batches: None,
    section: Section = NOWHERE,
) -> Block:  # fmt: skip
    """So many batches of this many rounds, those in `begun` included; `reached` hears of each."""
    thin = max(1, BATCHES * rounds // KEPT)
    parts = [] if begun is None else [begun]
    before = np.stack([e.occupancy for e in ensembles])
    for _ in range(batches_of(begun), batches):
        record = advance(ensembles, scoring, heats, moves, rounds, thin, section)
        after = np.stack([e.occupancy for e in ensembles])
        trace = record.log_posterior[:, thin - 1 :: thin]
        parts.append(Block(record.graphs, trace, ((after - before) / rounds)[:, None]))
        before = after
        reached(parts)
    return joined(parts)


def batches_of(block: Block | None) -> int:
    """That it has."""
    return 0 if block is None else block.frequencies.shape[1]


def judged(block: Block) -> Diagnostics:
    """From about as many draws, however long the block is."""
    some = slice(None, None, max(1, batches_of(block) // BATCHES))
    return diagnose(block.graphs[:, some], block.log_posterior[:, some], block.frequencies)


def joined(parts: list[Block]) -> Block:
    """One block of them all."""
    return Block(*(np.concatenate(arrays, axis=1) for arrays in zip(*parts)))


def _state(ensembles: dict[str, np.ndarray], parts: list[Block], facts: dict[str, Any]) -> State:
    return State({**ensembles, **joined(parts)._asdict()}, facts)


def standard_recipe(d: int, scoring: Scoring) -> Recipe:
    """A look at every pair of nodes, and a few large moves where families are scored by compiled code."""
    pairs = max(20, d * (d - 1) // 2)
    if not scoring.scorer.compiled:
        return recipe(pair=pairs)
    many, most = pairs if d >= LARGE else 0, 3 if d <= 25 else 2
    return recipe(most=most, pair=pairs, parents=1, reversal=2, exchange=many // 80, relocation=many // 50)


# ---- the ladder


def hottest_level(d: int, rows: int) -> float:
    """The evidence of 50 rows with up to 10 nodes, of 25 with 20 or more; of fewer than 100 rows that share.

    Small graphs need little heat, but not less where there are many rows: with half of the evidence for 11 nodes and
    7,466 rows (the protein data, linear) all chains agreed on the wrong graphs. With 50 nodes a ladder that ends at the
    evidence of 40 or 75 rows has fewer rungs and looks better in a short run, but its chains stay apart: which nodes
    have 20 parents is decided further up.
    `benchmarks/ladders.py` compares.
    """
    return float(np.interp(d, (10, 20), (0.5, 0.25))) * min(1.0, 100 / max(rows, 1))


def adapted_ladder(
    graphs: Graphs, scoring: Scoring, moves: Recipe, seeds: np.ndarray, hottest: float, times: int = 4,
    section: Section = NOWHERE,
) -> tuple[np.ndarray, Graphs]:  # fmt: skip
    """Heats between which exchanges are equally likely, and DAGs for every level of every ensemble to start from.

    The sum of rejection rates along the ladder hardly depends on its rungs (Syed et al., 2022), so short runs tell
    where to put them and how many there should be: 1.5 times the sum gives a rejection rate of about 2/3 or less.
    """
    d = graphs.shape[-1]
    heats = np.geomspace(1.0, hottest, 12)
    at_levels, done = graphs, 0
    if section.found is not None:
        heats, at_levels = (section.found.arrays[name] for name in ("heats", "graphs"))
        done = section.found.facts["done"]
        graphs, seeds = at_levels.reshape(-1, d, d), seeds + done
    for pass_ in range(done, times):
        picks = np.arange(len(seeds) * len(heats)).reshape(len(seeds), -1) % len(graphs)
        ensembles = [start(graphs[pick], scoring, int(seed)) for pick, seed in zip(picks, seeds)]
        advance(ensembles, scoring, heats, moves, 20, section=section)
        forget(ensembles)
        advance(ensembles, scoring, heats, moves, 40, section=section)
        tried = sum(e.swaps_tried for e in ensembles)
        rejected = np.maximum(1 - sum(e.swaps_accepted for e in ensembles) / tried, 0.01)
        barrier = np.concatenate([[0.0], np.cumsum(rejected)])
        levels = int(np.clip(np.ceil(1.5 * barrier[-1]) + 1, 3, 40))
        old, heats = heats, np.interp(np.linspace(0, barrier[-1], levels), barrier, heats)
        current = np.stack([graphs_of(e.parents) for e in ensembles])
        nearest = np.abs(old[None, :] - heats[:, None]).argmin(axis=1)
        at_levels = current[:, nearest]
        graphs = at_levels.reshape(-1, d, d)
        seeds = seeds + 1
        section.reached(partial(State, {"heats": heats, "graphs": at_levels}, {"done": pass_ + 1}))
    return heats, at_levels


def moves_of(ensembles: list[Ensemble]) -> int:
    """Moves counted so far."""
    return int(sum(e.tried.sum() for e in ensembles))


def figures(ensembles: list[Ensemble], heats: np.ndarray) -> dict[str, Any]:
    """Acceptance of each kind of move at level 0, and of exchanges along the ladder."""
    tried, accepted = (np.sum([getattr(e, name)[0] for e in ensembles], axis=0) for name in ("tried", "accepted"))
    swaps = np.sum([e.swaps_accepted for e in ensembles], axis=0) / np.sum([e.swaps_tried for e in ensembles], axis=0)
    return {
        "acceptance": {kind: float(a / t) for kind, a, t in zip(KINDS, accepted, tried) if t},
        "swap_rates": swaps.round(3).tolist(),
        "heats": heats.round(4).tolist(),
        "ensembles": len(ensembles),
    }
