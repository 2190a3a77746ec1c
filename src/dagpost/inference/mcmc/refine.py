"""`refine`: ensembles of tempered chains that sample `p(G | D)` from given starting graphs, until their diagnostics are
good enough or a limit is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from dagpost.inference.mcmc.conditionals import draws_used, with_rare_edges
from dagpost.inference.mcmc.diagnostics import Convergence, diagnose, edge_errors
from dagpost.inference.mcmc.elsewhere import advance
from dagpost.inference.mcmc.ensembles import (
    KINDS,
    Ensemble,
    Recipe,
    ensembles_from_arrays,
    ensembles_to_arrays,
    graphs_of,
    start,
    with_levels,
)
from dagpost.inference.mcmc.ladder import LARGE, adapt_ladder, hottest_level, pair_weights, spaced, standard_recipe
from dagpost.inference.mcmc.scoring import Scoring, log_posterior, scorer_for
from dagpost.models import Model, Statistics
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Key

BATCHES = 40  # per block; the spread of their means gives the standard error
KEPT = 500  # graphs that each ensemble keeps per block, approximately
MOVES_PER_NODE = 15_000_000
MOVES_PER_PAIR = 750_000  # times d², equal to the above at 20 nodes
MOST_FOR_PAIRS = 2_000_000_000  # upper bound of the moves by pairs
PATIENCE = 3  # factor on the moves for chains that are not settled
SETTLED = 0.01  # largest standard error of an edge probability of settled chains
CLOSING = (0.01, 0.25)  # smallest and largest share of a time limit reserved for rare edges, parameters and scoring
CLOSING_SECONDS = (1.5e-7, 1.5e-6)  # estimate of that time, per pair of nodes and draw, or draw used for rare edges


@dataclass(frozen=True)
class Effort:
    """When to stop: once the chains agree to the given precision, or at a limit.

    A time limit of the run applies as well. A run that it ended is not reproducible; the other limits are.

    Parameters
    ----------
    precision
        Largest standard error of an edge probability to stop at, if the chains agree.
    max_moves
        Limit on the moves of all chains together. None: that of `allowed`, times `PATIENCE` for chains that disagree or
        whose standard error is above `SETTLED`.
    ensembles
        Number of independent ensembles, at least 2.
    """

    precision: float = 0.01
    max_moves: int | None = None
    ensembles: int = 4

    def __post_init__(self):
        positive("precision", self.precision)
        if self.max_moves is not None:
            whole_number("max_moves", self.max_moves, least=1)
        whole_number("ensembles", self.ensembles, least=2)

    def allowed(self, d: int, diagnostics: Convergence | None) -> float:
        """Return the limit on moves: 300 million with 20 nodes and 1.9 billion with 50, if the chains are settled."""
        if self.max_moves is not None:
            return self.max_moves
        usual = max(MOVES_PER_NODE * d, min(MOVES_PER_PAIR * d**2, MOST_FOR_PAIRS))
        # chains count as settled until a block shows otherwise
        settled = diagnostics is None or (diagnostics.trusted and diagnostics.error <= SETTLED)
        return usual if settled else PATIENCE * usual

    def needed(self, moves: float, diagnostics: Convergence | None) -> float:
        """Return the moves after which the precision is to be expected, after `moves`: standard errors fall with the
        root of their number. Infinite before the first diagnostics, and while chains disagree."""
        if diagnostics is None or not diagnostics.trusted:
            return np.inf
        return moves * max(1.0, diagnostics.error / self.precision) ** 2

    def enough(self, diagnostics: Convergence) -> bool:
        """Return whether the chains agree to the precision."""
        return diagnostics.trusted and diagnostics.error <= self.precision

    def lacking(self, batches: int, diagnostics: Convergence) -> int:
        """Return the batches that a block of so many lacks; its standard error may come out larger than expected."""
        return int(np.ceil(batches * (1.1 * (diagnostics.error / self.precision) ** 2 - 1)))

    def share(
        self, d: int, diagnostics: Convergence | None, moves: float, seconds: float, limit: float | None
    ) -> float:
        """Return the share of the allowed moves or seconds that is used; 1 is all."""
        by_moves = moves / self.allowed(d, diagnostics)
        return by_moves if limit is None else max(by_moves, seconds / limit)


@dataclass(frozen=True)
class Refined:
    """Draws of equal weight, edge probabilities over all rounds, and diagnostics of the chains."""

    graphs: Graphs
    marginals: Float[np.ndarray, "d d"]
    diagnostics: Convergence
    measured: dict[str, Any]
    """Further fields of `ChainDiagnostics`."""
    chain_lengths: list[int]


def refine(
    graphs: Graphs, model: Model, prior: GraphPrior, stats: Statistics, key: Key, *,
    rows: int, draws: int = 1000, effort: Effort | None = None, clock: Clock | None = None,
    progress: bool | None = None, checkpoint: Sections | None = None,
    callback: Callable[[ChainSnapshot], None] | None = None, annealed: bool = False,
) -> Refined:  # fmt: skip
    """Sample `p(G | D)` with ensembles of tempered chains that start at `graphs`; `rows` is the number of observations.
    `annealed` says to anneal chains with many nodes first, where the only graph has no edges but known ones.

    Blocks double in length: each is as long as all before it, which are its warm-up. The block before tells which pairs
    are near and how to space the ladder. So half of all rounds count, and no burn-in has to be chosen. The moves left
    at the end extend the last block if its chains agree, otherwise they are a block of their own. If `clock` expires,
    the unfinished block and the two before count; what came earlier, from the fourth block on 7 to 23 % of all rounds,
    is then the warm-up. `callback` gets a `ChainSnapshot` after every batch.
    """
    effort, clock = effort or Effort(), clock or Clock()
    began = clock.seconds
    d = graphs.shape[-1]
    scoring = scorer_for(model, prior, stats, d)
    seeds = generator(key).integers(2**63, size=2 * effort.ensembles)
    hottest = hottest_level(d, rows)
    made = 0  # moves in earlier blocks
    diagnostics: Convergence | None = None
    expected = np.inf  # moves, by the standard errors so far
    with progress_bar("refining", 1.0, progress) as advance_bar:
        shown = 0.0

        def share(moves: float, seconds: float) -> float:
            return effort.share(d, diagnostics, moves, seconds, limit)

        def update_bar() -> None:
            nonlocal shown
            so_far = made + moves_of(ensembles)
            now = min(max(share(so_far, clock.seconds), so_far / expected, shown), 1.0)
            advance_bar(now - shown)
            shown = now

        ladder, chains = section_of(checkpoint, "ladder"), section_of(checkpoint, "chains")
        if chains.found is not None:
            clock.put_back(chains.found.facts["seconds"])
        limit = None
        if clock.limit is not None:
            least, most = (share * clock.left for share in CLOSING)
            closing = d**2 * np.dot(CLOSING_SECONDS, (draws, draws_used(d)))
            limit = clock.seconds + clock.left - min(max(closing, least), most)
        rounds, batches = 5 if d < LARGE else 20 if d < 64 else 8, BATCHES  # per batch; per block
        begun: Block | None = None
        ensembles: list[Ensemble] = []
        earlier: list[Block] = []  # the last two complete blocks, thinned to the batches of the present one
        if chains.found is None:
            heats, at_levels, frequencies = adapt_ladder(
                graphs, scoring, seeds[: effort.ensembles], hottest, clock, section=ladder, annealed=annealed,
                advanced=update_bar,
            )  # fmt: skip
            own = seeds[effort.ensembles :].tolist()
            ensembles = [start(at_levels[e], scoring, seed) for e, seed in enumerate(own)]
            weights = pair_weights(frequencies)
        else:
            heats, weights = (chains.found.arrays[name] for name in ("heats", "weights"))
            ensembles = ensembles_from_arrays(chains.found.arrays)
            *earlier, begun = _blocks(chains.found)
            rounds, batches, made = (chains.found.facts[name] for name in ("rounds", "batches", "made"))
        moves = standard_recipe(d, scoring, weights)

        def reached(parts: list[Block]) -> None:
            facts = {"rounds": rounds, "batches": batches, "made": made, "seconds": clock.seconds}
            state = {**ensembles_to_arrays(ensembles), "heats": heats, "weights": weights}
            chains.reached(partial(_state, state, list(earlier), list(parts), facts))
            update_bar()
            if callback is not None:
                so_far = np.concatenate([b.frequencies for b in parts], axis=1).mean(axis=(0, 1))
                callback(ChainSnapshot(made + moves_of(ensembles), shown, so_far, diagnostics, effort.precision))

        while True:
            since, anew = clock.seconds, batches - batches_of(begun)
            timer = None if limit is None else clock.within(limit - clock.seconds)
            block, complete = run_block(
                ensembles, scoring, heats, moves, rounds, batches, begun, reached, chains, timer, earlier
            )
            now, own = clock.seconds, moves_of(ensembles)
            diagnostics = block_diagnostics(block, rounds)
            if not complete:
                enough = False
                break
            enough = effort.enough(diagnostics)
            left = 1 - share(made + own, now)
            batches_left = int(left / share(own / batches, (now - since) / max(anew, 1)))
            # a clock can end a block anywhere, so one that does not fit may be begun
            by_clock = limit is not None and now / limit > (made + own) / effort.allowed(d, diagnostics)
            expected = effort.needed(made + own, diagnostics)
            lacking = effort.lacking(batches, diagnostics)
            if enough or (not by_clock and batches_left < (1 if diagnostics.trusted else batches)):
                break
            if diagnostics.trusted and min(batches_left / 4, lacking) < batches:
                begun, batches = block, batches + max(min(batches_left, lacking), 1)
            else:
                longer = 2 if by_clock or batches_left >= 4 * batches else batches_left / batches
                longer_rounds = int(rounds * batches / BATCHES * longer)
                earlier = [thinned_block(b, rounds, longer_rounds) for b in (*earlier[-1:], block)]
                begun, rounds, batches = None, longer_rounds, BATCHES
                weights = pair_weights(block.frequencies.mean(axis=(0, 1)), edge_errors(block.frequencies), weights)
                moves = standard_recipe(d, scoring, weights)
                made += own
                heats, levels = spaced(ensembles, heats)
                ensembles = [with_levels(e, levels) for e in ensembles]
                del block  # the thinned one is enough
    flat = block.graphs.reshape(-1, d, d)  # grouped by ensemble, each in order of time
    chosen = np.linspace(0, len(flat) - 1, draws).round().astype(int)
    ensemble = chosen // block.graphs.shape[1]
    measured = figures(ensembles, heats, block.frequencies, rounds, made + own, clock.seconds - began, enough)
    lengths = np.bincount(ensemble, minlength=len(ensembles)).tolist()
    marginals = with_rare_edges(block.frequencies.mean(axis=(0, 1)), flat, scoring.scorer)
    return Refined(flat[chosen], marginals, diagnostics, measured, lengths)


class Block(NamedTuple):
    """Result of all ensembles in one block."""

    graphs: Graphs  # (e, n, d, d) draws that were kept
    log_posterior: Float[np.ndarray, "e n"]  # of those
    frequencies: Float[np.ndarray, "e b d d"]  # of edges, over the rounds of each batch


class ChainSnapshot(NamedTuple):
    """State of the chains after a batch, as a callback gets it.

    Attributes
    ----------
    moves
        Moves made so far.
    share
        Share of the allowed moves or seconds used, or of the moves that the precision is expected to take.
    edge_probabilities
        Over the rounds of this block so far.
    diagnostics
        Of the last complete block; None during the first.
    precision
        Standard error of an edge probability at which the run ends.
    """

    moves: int
    share: float
    edge_probabilities: Float[np.ndarray, "d d"]
    diagnostics: Convergence | None
    precision: float


def run_block(
    ensembles: list[Ensemble], scoring: Scoring, heats: np.ndarray, moves: Recipe, rounds: int, batches: int = BATCHES,
    begun: Block | None = None, reached: Callable[[list[Block]], None] = lambda batches: None,
    section: Section = NULL_SECTION, clock: Clock | None = None, earlier: Sequence[Block] = (),
) -> tuple[Block, bool]:  # fmt: skip
    """Run `batches` batches of `rounds` rounds, those in `begun` included, and call `reached` after each; return the
    block, and whether it is complete.

    If the clock expires, the block has the complete batches after the `earlier` blocks, or one incomplete batch where
    there is nothing else.
    """
    thin = rounds_apart(rounds)
    parts = [] if begun is None else [begun]
    before = np.stack([e.occupancy for e in ensembles])
    for _ in range(batches_of(begun), batches):
        record = advance(ensembles, scoring, heats, moves, rounds, thin, section, clock)
        if record.rounds < rounds and (parts or earlier):
            return join_blocks([*earlier, *parts]), False
        after = np.stack([e.occupancy for e in ensembles])
        trace = record.log_posterior[:, thin - 1 :: thin]
        if record.rounds < thin:  # no graph was kept: take the current ones
            now = graphs_of(np.stack([e.parents[0] for e in ensembles]))
            density = np.array([[log_posterior(scoring.scorer, e.scores[0])] for e in ensembles])
            parts.append(Block(now[:, None], density, now[:, None].astype(float)))
        else:
            parts.append(Block(record.graphs, trace, ((after - before) / record.rounds)[:, None]))
        if record.rounds < rounds:
            return join_blocks(parts), False
        before = after
        reached(parts)
    return join_blocks(parts), True


def thinned_block(block: Block, rounds: int, longer: int) -> Block:
    """Return the block in batches of `longer` rounds in place of `rounds`, and the graphs that such a block keeps."""
    step = max(1, round(rounds_apart(longer) / rounds_apart(rounds)))
    graphs, density = (x[:, step - 1 :: step].copy() for x in (block.graphs, block.log_posterior))
    return Block(graphs, density, merged_batches(block.frequencies, longer / rounds))


def rounds_apart(rounds: int) -> int:
    """Return the rounds from one graph that is kept to the next, in a block whose batches have so many rounds."""
    return max(1, BATCHES * rounds // KEPT)


def merged_batches(frequencies: Float[np.ndarray, "e b d d"], ratio: float) -> Float[np.ndarray, "e c d d"]:
    """Return the edge frequencies of batches that are about `ratio` times as long."""
    size = max(1, round(ratio))
    count = frequencies.shape[1] // size
    return np.stack([frequencies[:, k * size : (k + 1) * size].mean(axis=1) for k in range(count)], axis=1)


def batches_of(block: Block | None) -> int:
    """Return the number of batches in the block."""
    return 0 if block is None else block.frequencies.shape[1]


def block_diagnostics(block: Block, rounds: int) -> Convergence:
    """Return the diagnostics of a block whose batches have `rounds` rounds."""
    return diagnose(block.frequencies, rounds, block.log_posterior)


def join_blocks(parts: list[Block]) -> Block:
    """Return one block with the batches of all parts."""
    return Block(*(np.concatenate(arrays, axis=1) for arrays in zip(*parts)))


def _state(chains: dict[str, np.ndarray], earlier: list[Block], parts: list[Block], facts: dict[str, Any]) -> State:
    """Return the checkpoint state of the chains, with the blocks that count so far."""
    blocks = [*earlier, join_blocks(parts)]
    saved = {f"{field}_{k}": array for k, block in enumerate(blocks) for field, array in block._asdict().items()}
    return State({**chains, **saved}, {**facts, "blocks": len(blocks)})


def _blocks(state: State) -> list[Block]:
    """Return the blocks in a checkpoint state."""
    return [Block(*(state.arrays[f"{field}_{k}"] for field in Block._fields)) for k in range(state.facts["blocks"])]


def moves_of(ensembles: list[Ensemble]) -> int:
    """Return the moves counted so far."""
    return int(sum(e.tried.sum() for e in ensembles))


def figures(
    ensembles: list[Ensemble], heats: np.ndarray, frequencies: Float[np.ndarray, "e b d d"], rounds: int, moves: int,
    seconds: float, enough: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return what was measured, for `info`: acceptance rates of each kind of move at level 0 and of exchanges along the
    ladder, what the run took and why it ended, and standard errors of edges from batches of `rounds` rounds."""
    tried, accepted = (np.sum([getattr(e, name)[0] for e in ensembles], axis=0) for name in ("tried", "accepted"))
    exchanged, attempts = (np.sum([getattr(e, f"swaps_{n}") for e in ensembles], axis=0) for n in ("accepted", "tried"))
    swaps = exchanged / np.maximum(attempts, 1)
    return {
        "acceptance": {kind: float(a / t) for kind, a, t in zip(KINDS, accepted, tried) if t},
        "swap_rates": swaps.round(3).tolist(),
        "heats": heats.round(4).tolist(),
        "ensembles": len(ensembles),
        "rounds": frequencies.shape[1] * rounds,
        "moves": moves,
        "seconds": seconds,
        "ended_by": "diagnostics" if enough else "limit",
        "edge_errors": np.nan_to_num(edge_errors(frequencies), nan=0.5).round(6).tolist(),
    }
