"""Tempered chains from given starting points to the posterior itself, for as long as their diagnostics ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dagpost._util.clock import Clock
from dagpost._util.numerics import generator
from dagpost._util.progress import progress_bar
from dagpost.errors import positive, whole_number
from dagpost.inference.checkpoints import NULL_SECTION, Section, State
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.mcmc.diagnostics import Diagnostics, diagnose, edge_errors
from dagpost.inference.mcmc.ensembles import (
    KINDS,
    Ensemble,
    Recipe,
    advance,
    ensembles_from_arrays,
    ensembles_to_arrays,
    graphs_of,
    recipe,
    reset_counters,
    start,
)
from dagpost.inference.mcmc.scoring import Scoring, scorer_for
from dagpost.models import Model, Statistics
from dagpost.posterior.sample import CHAIN_LENGTHS
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Key

BATCHES = 40  # of a block; their means tell how precise its average is
KEPT = 500  # graphs that each ensemble keeps of a block, about
MOVES_PER_NODE = 15_000_000
MOVES_PER_PAIR = 750_000  # of nodes; the same as the above with 20 nodes
MOST_FOR_PAIRS = 2_000_000_000
PATIENCE = 3  # times that for chains that are not settled
SETTLED = 0.01  # standard error of an edge probability
LARGE = 16  # nodes from which on exchanges and relocations pay; with 12 they take time from moves that do more
LADDER_SHARE = 0.2  # of a time limit, at most, for adapting the temperatures
CLOSING = (0.05, 0.25)  # share of a time limit that is kept for drawing parameters and scoring graphs: least, most
CLOSING_SECONDS = 1.5e-7  # that this takes, about, for each draw and pair of nodes
LONGEST_ROUND = 2000  # moves of one kind before levels exchange their graphs


@dataclass(frozen=True)
class Effort:
    """How long to run: until the largest standard error of an edge probability falls below `precision` and the chains
    agree, but for no more than `max_moves` moves of all chains (None: as `allowed` has it). Where `max_moves` is not
    set, chains that do not agree, or to less than `SETTLED`, go on for `PATIENCE` times as long. A time limit of the
    run holds as well; a run that a clock has ended need not end there a second time, the other limits repeat.
    """

    precision: float = 0.004
    max_moves: int | None = None
    ensembles: int = 4

    def __post_init__(self):
        positive("precision", self.precision)
        if self.max_moves is not None:
            whole_number("max_moves", self.max_moves, least=1)
        whole_number("ensembles", self.ensembles, least=2)

    def allowed(self, d: int, settled: bool) -> float:
        """Moves: 300 million with 20 nodes, 1.9 billion with 50, if that is enough."""
        if self.max_moves is not None:
            return self.max_moves
        usual = max(MOVES_PER_NODE * d, min(MOVES_PER_PAIR * d**2, MOST_FOR_PAIRS))
        return usual if settled else PATIENCE * usual

    def share(self, d: int, settled: bool, moves: float, seconds: float, limit: float | None) -> float:
        """How much of what is allowed so many moves and seconds are; 1 is all of it."""
        by_moves = moves / self.allowed(d, settled)
        return by_moves if limit is None else max(by_moves, seconds / limit)


@dataclass(frozen=True)
class Refined:
    """Draws of equal weight, edge probabilities over every round, and what the chains say of themselves."""

    graphs: Graphs
    marginals: Float[np.ndarray, "d d"]
    diagnostics: Diagnostics
    info: dict[str, Any]


def refine(
    graphs: Graphs, model: Model, prior: GraphPrior, stats: Statistics, key: Key, *,
    rows: int, draws: int = 1000, effort: Effort | None = None, clock: Clock | None = None,
    progress: bool | None = None, checkpoint: Sections | None = None,
    callback: Callable[[ChainSnapshot], None] | None = None,
) -> Refined:  # fmt: skip
    """Sample `p(G | D)` with ensembles of tempered chains that start at `graphs`; `rows` is the number of observations.

    Blocks double in length: each is as long as all before it, which are its warm-up. So half of all moves count, and
    nobody has to choose a burn-in. What is left at the end goes on with the last block, if its chains agreed, else it
    is a block of its own. When `clock` expires, whatever there is counts (`usable_block`).
    `callback` looks on after every batch.
    """
    effort, clock = effort or Effort(), clock or Clock()
    began = clock.seconds
    d = graphs.shape[-1]
    scoring = scorer_for(model, prior, stats, d)
    seeds = generator(key).integers(2**63, size=2 * effort.ensembles)
    moves, hottest = standard_recipe(d, scoring), hottest_level(d, rows)
    made = 0  # moves in blocks before this one
    found: Diagnostics | None = None
    settled = True  # as far as is known, the usual number of moves is enough
    with progress_bar("refining", 1.0, progress) as advance_bar:
        shown = 0.0

        def share(moves: float, seconds: float) -> float:
            return effort.share(d, settled, moves, seconds, limit)

        def tell() -> None:
            nonlocal shown
            now = share(made + moves_of(ensembles), clock.seconds)
            advance_bar(now - shown)
            shown = now

        ladder, chains = section_of(checkpoint, "ladder"), section_of(checkpoint, "chains")
        if chains.found is not None:
            clock.put_back(chains.found.facts["seconds"])
        limit = None
        if clock.limit is not None:
            least, most = (share * clock.left for share in CLOSING)
            limit = clock.seconds + clock.left - min(max(CLOSING_SECONDS * draws * d**2, least), most)
        heats, at_levels = adapt_ladder(
            graphs, scoring, moves, seeds[: effort.ensembles], hottest, clock.until(LADDER_SHARE), section=ladder
        )
        ensembles = [start(at_levels[e], scoring, seed) for e, seed in enumerate(seeds[effort.ensembles :].tolist())]
        rounds, batches = 5 if d < 64 else 1, BATCHES  # of a batch; of a block
        begun: Block | None = None
        before: tuple[Block, int] | None = None  # the last whole block, and the rounds of its batches
        if chains.found is not None:
            ensembles, begun = (
                ensembles_from_arrays(chains.found.arrays),
                Block(*(chains.found.arrays[f] for f in Block._fields)),
            )
            rounds, batches, made = (chains.found.facts[name] for name in ("rounds", "batches", "made"))

        def reached(parts: list[Block]) -> None:
            facts = {"rounds": rounds, "batches": batches, "made": made, "seconds": clock.seconds}
            chains.reached(partial(_state, ensembles_to_arrays(ensembles), list(parts), facts))
            tell()
            if callback is not None:
                so_far = np.concatenate([b.frequencies for b in parts], axis=1).mean(axis=(0, 1))
                callback(ChainSnapshot(made + moves_of(ensembles), shown, so_far, found, effort.precision))

        while True:
            if begun is None:
                made += moves_of(ensembles)
                reset_counters(ensembles)
            since, anew = clock.seconds, batches - batches_of(begun)
            timer = None if limit is None else Clock(max(limit - clock.seconds, 1e-3))
            block = run_block(ensembles, scoring, heats, moves, rounds, batches, begun, reached, chains, timer)
            now, own = clock.seconds, moves_of(ensembles)
            if batches_of(block) < batches:
                block = usable_block(before, block, rounds)
                found, enough = block_diagnostics(block, rounds), False
                break
            found = block_diagnostics(block, rounds)
            enough = found.trusted and found.error <= effort.precision
            settled = found.trusted and found.error <= SETTLED
            left = 1 - share(made + own, now)
            batches_left = int(left / share(own / batches, (now - since) / max(anew, 1)))
            # a clock ends a block wherever it is, so that one can be begun that does not fit
            by_clock = limit is not None and now / limit > (made + own) / effort.allowed(d, settled)
            if enough or batches_left < (1 if found.trusted or by_clock else batches):
                break
            if found.trusted and batches_left < 4 * batches:
                begun, batches = block, batches + batches_left
            else:
                longer = 2 if by_clock or batches_left >= 4 * batches else batches_left / batches
                begun, before = None, (block, rounds)
                rounds, batches = int(rounds * batches / BATCHES * longer), BATCHES
    flat = block.graphs.reshape(-1, d, d)  # ensemble by ensemble, each in order of time
    chosen = np.linspace(0, len(flat) - 1, draws).round().astype(int)
    ensemble = chosen // block.graphs.shape[1]
    info = {
        **figures(ensembles, heats),
        "rounds": batches_of(block) * rounds,
        "moves": made + own,
        "seconds": clock.seconds - began,
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
    section: Section = NULL_SECTION, clock: Clock | None = None,
) -> Block:  # fmt: skip
    """So many batches of this many rounds, those in `begun` included; `reached` hears of each.

    Fewer when the clock expires: whole batches only, unless there is none, where the rounds that were made are one.
    """
    thin = max(1, BATCHES * rounds // KEPT)
    parts = [] if begun is None else [begun]
    before = np.stack([e.occupancy for e in ensembles])
    for _ in range(batches_of(begun), batches):
        record = advance(ensembles, scoring, heats, moves, rounds, thin, section, clock)
        if record.rounds < rounds and parts:
            break
        after = np.stack([e.occupancy for e in ensembles])
        trace = record.log_posterior[:, thin - 1 :: thin]
        if record.rounds < thin:  # no graph was kept: take the ones that the chains are at
            now = graphs_of(np.stack([e.parents[0] for e in ensembles]))
            density = np.array([[e.scores[0].sum()] for e in ensembles])
            parts.append(Block(now[:, None], density, now[:, None].astype(float)))
        else:
            parts.append(Block(record.graphs, trace, ((after - before) / record.rounds)[:, None]))
        if record.rounds < rounds:
            break
        before = after
        reached(parts)
    return join_blocks(parts)


def usable_block(before: tuple[Block, int] | None, block: Block, rounds: int) -> Block:
    """What counts of a run that its clock ended within a block of batches of `rounds` rounds: the block if half of it
    was done, else the one before as well, its shorter batches joined to about the same length."""
    if before is None or batches_of(block) >= BATCHES // 2:
        return block
    earlier, its_rounds = before
    size = max(1, round(rounds / its_rounds))
    count = batches_of(earlier) // size
    grouped = np.stack([earlier.frequencies[:, k * size : (k + 1) * size].mean(axis=1) for k in range(count)], axis=1)
    return join_blocks([earlier._replace(frequencies=grouped), block])


def batches_of(block: Block | None) -> int:
    """Number of batches in the block."""
    return 0 if block is None else block.frequencies.shape[1]


def block_diagnostics(block: Block, rounds: int) -> Diagnostics:
    """Diagnostics of a block whose batches have so many rounds."""
    return diagnose(block.frequencies, rounds, block.log_posterior)


def join_blocks(parts: list[Block]) -> Block:
    """One block of them all."""
    return Block(*(np.concatenate(arrays, axis=1) for arrays in zip(*parts)))


def _state(ensembles: dict[str, np.ndarray], parts: list[Block], facts: dict[str, Any]) -> State:
    return State({**ensembles, **join_blocks(parts)._asdict()}, facts)


def standard_recipe(d: int, scoring: Scoring) -> Recipe:
    """A look at every pair of nodes (of some, where there are very many), and a few large moves where families are
    scored by compiled code."""
    pairs = min(max(20, d * (d - 1) // 2), LONGEST_ROUND)
    if not scoring.scorer.compiled:
        return recipe(pair=pairs)
    many, most = pairs if d >= LARGE else 0, 3 if d <= 25 else 2 if d <= 64 else 1
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


def adapt_ladder(
    graphs: Graphs, scoring: Scoring, moves: Recipe, seeds: np.ndarray, hottest: float, clock: Clock | None = None,
    times: int = 4, section: Section = NULL_SECTION,
) -> tuple[np.ndarray, Graphs]:  # fmt: skip
    """Heats between which exchanges are equally likely, and DAGs for every level of every ensemble to start from.

    The sum of rejection rates along the ladder hardly depends on its rungs (Syed et al., 2022), so short runs tell
    where to put them and how many there should be: 1.5 times the sum gives a rejection rate of about 2/3 or less.
    When the clock expires, the ladder stays as the last whole pass left it, and chains start where they are.
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
        advance(ensembles, scoring, heats, moves, 20, section=section, clock=clock)
        reset_counters(ensembles)
        advance(ensembles, scoring, heats, moves, 40, section=section, clock=clock)
        tried = np.sum([e.swaps_tried for e in ensembles], axis=0)
        if tried.min() == 0 or (clock is not None and clock.expired):
            return heats, np.stack([graphs_of(e.parents) for e in ensembles])
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
    exchanged, attempts = (np.sum([getattr(e, f"swaps_{n}") for e in ensembles], axis=0) for n in ("accepted", "tried"))
    swaps = exchanged / np.maximum(attempts, 1)
    return {
        "acceptance": {kind: float(a / t) for kind, a, t in zip(KINDS, accepted, tried) if t},
        "swap_rates": swaps.round(3).tolist(),
        "heats": heats.round(4).tolist(),
        "ensembles": len(ensembles),
    }
