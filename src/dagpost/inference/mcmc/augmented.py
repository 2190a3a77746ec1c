"""Chains over graphs and unobserved cells: moves over graphs given a completed table, then a draw of the cells.

A chain samples `p(G, theta, cells | observed cells)`. A sweep makes

    moves over G with the target p(G) p(completed table | G), parameters integrated out,
    then draws theta ~ p(theta | G, completed table) and cells ~ p(cells | theta, G, observed cells).

The table changes in every sweep, and with it all family scores: the cache is emptied, and a sweep makes enough moves to
be worth that. Several chains start from different graphs and tables. There is no ladder of temperatures: a hot level
would need cells drawn from a tempered likelihood, which has no closed form.

Blocks double in length, as in `refine.py`: each is as long as all before it, which are its warm-up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from dagpost._util.clock import Clock
from dagpost._util.environment import available_cores
from dagpost._util.numerics import generator
from dagpost._util.progress import progress_bar
from dagpost.inference.checkpoints.checkpoint import State
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.mcmc.diagnostics import Convergence, diagnose
from dagpost.inference.mcmc.ensembles import (
    Ensemble,
    Recipe,
    advance_chain,
    ensembles_from_arrays,
    ensembles_to_arrays,
    graphs_of,
    rescore_all,
    start,
)
from dagpost.inference.mcmc.ladder import LARGE, standard_recipe
from dagpost.inference.mcmc.refine import BATCHES, ChainSnapshot, Effort, figures, merged_batches, moves_of
from dagpost.inference.mcmc.scoring import ScoreInPython, Scoring, scorer_for
from dagpost.models import Model
from dagpost.models.completion import Completion
from dagpost.priors import GraphPrior
from dagpost.typing import Graph, Graphs, Key, Rows, Theta

SWEEPS = 5  # of a batch in the first block
ROUNDS = (5, 20)  # of moves in a sweep, below `LARGE` nodes and from it on
SLOTS = 1 << 12  # of the cache, which every sweep empties
TABLES = 100  # most completed tables that are kept
MOST_CELLS = 20_000_000  # most numbers in them


class Draw(NamedTuple):
    """What is kept of a sweep; `cells` are None where the completed table is not."""

    graph: Graph
    theta: Theta
    log_posterior: float
    cells: np.ndarray | None


@dataclass
class Chain:
    """One chain: its DAG (an ensemble of one level), completed table and seed, and the sweeps made."""

    ensemble: Ensemble
    values: Rows
    seed: int
    sweeps: int = 0


@dataclass
class Block:
    """Draws and edge frequencies of all chains over batches of `sweeps` sweeps, every `thin`-th of which is kept."""

    sweeps: int
    thin: int
    tables: int  # every so many kept draws keep their completed table
    frequencies: list[Float[np.ndarray, "e d d"]] = field(default_factory=list)
    kept: list[list[Draw]] = field(default_factory=list)

    @property
    def stacked(self) -> Float[np.ndarray, "e b d d"]:
        """Edge frequencies by chain and batch."""
        return np.stack(self.frequencies, axis=1)

    def diagnostics(self) -> Convergence:
        """Return how well the chains agree."""
        if not self.frequencies:
            return Convergence(np.inf, 0.0, 0.5, np.inf, 0.0)
        fewest = min(len(draws) for draws in self.kept)
        trace = np.array([[draw.log_posterior for draw in draws[:fewest]] for draws in self.kept])
        return diagnose(self.stacked, self.sweeps, trace)


@dataclass(frozen=True)
class Augmented:
    """Draws of graphs, parameters and cells, of equal weight and grouped by chain, with diagnostics."""

    graphs: Graphs
    theta: Theta
    cells: Float[np.ndarray, "t c"]  # of some of the draws
    marginals: Float[np.ndarray, "d d"]
    diagnostics: Convergence
    measured: dict[str, Any]
    """Further fields of `ChainDiagnostics`."""
    chain_lengths: list[int]


class Sweeper:
    """What all chains of a run share: how cells are drawn and graphs scored, and the moves of a sweep."""

    def __init__(self, completion: Completion, model: Model, prior: GraphPrior, d: int):
        self.completion, self.model, self.prior, self.d = completion, model, prior, d
        self.recipe: Recipe | None = None
        self.rounds = ROUNDS[d >= LARGE]
        self.base: Scoring | None = None

    def scoring(self, stats: Any) -> Scoring:
        """Return how to score families given these statistics; only what depends on them is made anew."""
        if self.base is None:  # by the first chain that begins, before there are threads
            self.base = scorer_for(self.model, self.prior, stats, self.d)
            self.recipe = standard_recipe(self.d, self.base)
            return self.base
        if not self.base.scorer.compiled:
            in_python = copy(self.base.in_python)
            assert isinstance(in_python, ScoreInPython)
            in_python.parts = (*in_python.parts[:2], stats, *in_python.parts[3:])  # the prior stays compiled
            return self.base._replace(in_python=in_python)
        table, counts = self.model.evidence_table(stats), self.model.count_table(stats)
        changed = {"table": table} if table is not None else {"counts": counts}
        return self.base._replace(scorer=self.base.scorer._replace(**changed))

    def begin(self, graph: Graph, seed: int) -> Chain:
        """Return a chain that starts at this DAG, with a table of its own."""
        values = self.completion.start(np.random.default_rng([seed, 0]))
        scoring = self.scoring(self.completion.statistics(values))
        return Chain(start(graph[None], scoring, seed, SLOTS), values, seed)

    def sweep(self, chain: Chain) -> tuple[Graph, Theta, float]:
        """Make a sweep; the random numbers of the cells depend on the seed of the chain and the number of the sweep."""
        chain.sweeps += 1
        rng = np.random.default_rng([chain.seed, chain.sweeps])
        stats = self.completion.statistics(chain.values)
        scoring = self.scoring(stats)
        assert self.recipe is not None
        rescore_all(chain.ensemble, scoring)
        density = advance_chain(chain.ensemble, scoring, self.recipe, self.rounds)
        graph = graphs_of(chain.ensemble.parents[0])
        chain.values, theta = self.completion.redraw(chain.values, stats, graph, rng)
        return graph, theta, density

    def batch(self, chains: Sequence[Chain], block: Block, clock: Clock) -> bool:
        """Make a batch of every chain and add it to the block; return False if the clock expired before its end.

        Of an incomplete batch nothing is used, unless it is the only one.
        """
        occupancy = [chain.ensemble.occupancy.copy() for chain in chains]
        block.kept = block.kept or [[] for _ in chains]

        def one(c: int) -> tuple[int, list[Draw]]:
            chain, out = chains[c], []
            for done in range(block.sweeps):
                if clock.expired:
                    return done, out
                graph, theta, density = self.sweep(chain)
                if chain.sweeps % block.thin == 0 or not (block.kept[c] or out):
                    number = len(block.kept[c]) + len(out)
                    cells = self.completion.cells(chain.values) if number % block.tables == 0 else None
                    out.append(Draw(graph, theta, density, cells))
            return block.sweeps, out

        with ThreadPoolExecutor(min(len(chains), available_cores())) as pool:
            found = list(pool.map(one, range(len(chains))))
        complete = all(done == block.sweeps for done, _ in found)
        if not complete and (block.frequencies or any(done == 0 for done, _ in found)):
            return False
        made = [(c.ensemble.occupancy - o) / (n * self.rounds) for c, o, (n, _) in zip(chains, occupancy, found)]
        block.frequencies.append(np.stack(made))
        for draws, (_, new) in zip(block.kept, found):
            draws += new
        return complete


def augment(
    graphs: Graphs, completion: Completion, model: Model, prior: GraphPrior, key: Key, *,
    draws: int = 1000, effort: Effort | None = None, clock: Clock | None = None, progress: bool | None = None,
    checkpoint: Sections | None = None, callback: Callable[[ChainSnapshot], None] | None = None,
) -> Augmented:  # fmt: skip
    """Sample `p(G, theta, cells | observed cells)` with chains that start at `graphs`, in turn.

    Parameters
    ----------
    graphs
        DAGs to start from.
    completion
        How unobserved cells are drawn.
    model, prior
        Model with evidence in closed form that scores completed tables, and a prior that decomposes.
    key
        Random key.
    draws
        Number of draws to return.
    effort
        When to stop; `ensembles` is the number of chains.
    clock, progress, checkpoint, callback
        As in `refine`.

    Returns
    -------
    Augmented
        Draws, edge probabilities over all sweeps that count, and diagnostics.
    """
    effort, clock = effort or Effort(), clock or Clock()
    began, d, size = clock.seconds, graphs.shape[-1], effort.ensembles
    sweeper = Sweeper(completion, model, prior, d)
    seeds = generator(key).integers(2**62, size=size).tolist()
    chains = [sweeper.begin(graphs[c % len(graphs)], seed) for c, seed in enumerate(seeds)]
    per_chain = -(-draws // size)
    cells = max(1, len(completion.cells(chains[0].values)))
    tables = max(1, per_chain * size // max(1, min(TABLES, MOST_CELLS // cells)))
    section = section_of(checkpoint, "cells")
    block, batches, before = Block(SWEEPS, 1, tables), BATCHES, None
    if section.found is not None:
        clock.put_back(section.found.facts["seconds"])
        chains, block, before, batches = _restored(section.found, sweeper, chains)
    diagnostics, expected, enough = None, np.inf, False
    with progress_bar("sampling", 1.0, progress) as advance_bar:
        shown = 0.0
        while True:
            while len(block.frequencies) < batches and sweeper.batch(chains, block, clock):
                section.reached(partial(_state, *_frozen(chains, block, before, batches, clock, sweeper)))
                moves = moves_of([chain.ensemble for chain in chains])
                used = max(effort.share(d, diagnostics, moves, clock.seconds, clock.limit), moves / expected)
                advance_bar(max(min(used, 1.0) - shown, 0.0))
                shown = max(min(used, 1.0), shown)
                if callback is not None:
                    callback(ChainSnapshot(moves, shown, block.stacked.mean((0, 1)), diagnostics, effort.precision))
            if len(block.frequencies) < batches:  # the clock expired
                block = _usable(before, block)
                diagnostics = block.diagnostics()
                break
            diagnostics = block.diagnostics()
            moves = moves_of([chain.ensemble for chain in chains])
            enough, expected = effort.enough(diagnostics), effort.needed(moves, diagnostics)
            if enough or moves >= effort.allowed(d, diagnostics):
                break
            lacking = effort.lacking(batches, diagnostics)
            if diagnostics.trusted and lacking < batches:
                batches += max(lacking, 1)
                continue
            sweeps = max(chain.sweeps for chain in chains) // BATCHES
            before, batches = block, BATCHES
            block = Block(sweeps, max(1, BATCHES * sweeps // per_chain), tables)
    fewest = min(len(kept) for kept in block.kept)
    flat = [draw for kept in block.kept for draw in kept[:fewest]]
    chosen = np.linspace(0, len(flat) - 1, draws).round().astype(int)
    ensembles = [chain.ensemble for chain in chains]
    seconds = clock.seconds - began
    measured = figures(ensembles, np.ones(1), block.stacked, block.sweeps, moves_of(ensembles), seconds, enough)
    return Augmented(
        np.stack([flat[m].graph for m in chosen]),
        completion.stack([flat[m].theta for m in chosen]),
        np.stack([draw.cells for draw in flat if draw.cells is not None]),
        block.stacked.mean(axis=(0, 1)),
        diagnostics,
        measured,
        np.bincount(chosen // fewest, minlength=size).tolist(),
    )


def _usable(before: Block | None, block: Block) -> Block:
    """Return the block to use if the clock expired within `block`: itself if half of it is done, else both joined."""
    if before is None or len(block.frequencies) >= BATCHES // 2:
        return block
    merged = [*merged_batches(before.stacked, block.sweeps / before.sweeps).swapaxes(0, 1)]
    ratio = max(1, round(block.thin / before.thin))
    new = block.kept or [[] for _ in before.kept]
    kept = [old[::ratio] + own for old, own in zip(before.kept, new)]
    return Block(block.sweeps, block.thin, block.tables, merged + block.frequencies, kept)


# ---- checkpoints


def _frozen(
    chains: list[Chain], block: Block, before: Block | None, batches: int, clock: Clock, sweeper: Sweeper
) -> tuple[Any, ...]:
    """Return a copy of the state that later sweeps do not change."""
    blocks = [None if b is None else Block(b.sweeps, b.thin, b.tables, list(b.frequencies), [list(k) for k in b.kept])
              for b in (block, before)]  # fmt: skip
    arrays = ensembles_to_arrays([chain.ensemble for chain in chains])
    values = np.stack([chain.values for chain in chains])
    facts = {"sweeps": [chain.sweeps for chain in chains], "batches": batches, "seconds": clock.seconds}
    return arrays, values, blocks, facts, sweeper.completion


def _state(
    arrays: dict[str, np.ndarray], values: np.ndarray, blocks: list[Block | None], facts: dict[str, Any],
    completion: Completion,
) -> State:  # fmt: skip
    """Return the checkpoint state of the chains."""
    out, facts = {**arrays, "values": values}, dict(facts)
    for name, block in zip(("block", "before"), blocks):
        if block is None:
            continue
        flat = [draw for draws in block.kept for draw in draws]
        facts[name] = [block.sweeps, block.thin, block.tables, [len(draws) for draws in block.kept]]
        out[f"{name}.frequencies"] = np.stack(block.frequencies)
        out[f"{name}.graphs"] = np.stack([draw.graph for draw in flat])
        out[f"{name}.densities"] = np.array([draw.log_posterior for draw in flat])
        out[f"{name}.with_cells"] = np.array([draw.cells is not None for draw in flat])
        out[f"{name}.cells"] = np.stack([draw.cells for draw in flat if draw.cells is not None])
        for k, leaf in enumerate(jax.tree.leaves(completion.stack([draw.theta for draw in flat]))):
            out[f"{name}.theta{k}"] = np.asarray(leaf)
    return State(out, facts)


def _restored(found: State, sweeper: Sweeper, chains: list[Chain]) -> tuple[list[Chain], Block, Block | None, int]:
    """Return chains and blocks from a checkpoint; `chains` are those of a run that begins."""
    ensembles = ensembles_from_arrays(found.arrays)
    _, theta, _ = sweeper.sweep(chains[0])  # for the form of the parameters
    tree, blocks = jax.tree.structure(theta), []
    again = [
        Chain(ensemble, values, chain.seed, sweeps)
        for ensemble, values, chain, sweeps in zip(ensembles, found.arrays["values"], chains, found.facts["sweeps"])
    ]
    for name in ("block", "before"):
        if name not in found.facts:
            blocks.append(None)
            continue
        sweeps, thin, tables, lengths = found.facts[name]
        part = {key.removeprefix(f"{name}."): a for key, a in found.arrays.items() if key.startswith(f"{name}.")}
        leaves = [part[f"theta{k}"] for k in range(tree.num_leaves)]
        cells = iter(part["cells"])
        flat = [
            Draw(graph, jax.tree.unflatten(tree, [leaf[m] for leaf in leaves]), float(density),
                 next(cells) if with_cells else None)
            for m, (graph, density, with_cells) in enumerate(zip(part["graphs"], part["densities"], part["with_cells"]))
        ]  # fmt: skip
        ends = np.cumsum([0, *lengths])
        kept = [flat[a:b] for a, b in pairwise(ends.tolist())]
        blocks.append(Block(sweeps, thin, tables, list(part["frequencies"]), kept))
    return again, blocks[0], blocks[1], found.facts["batches"]
