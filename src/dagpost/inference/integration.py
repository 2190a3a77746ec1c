"""Chains for models without closed-form evidence: families are estimated on demand, and again with more effort where
the posterior rests on them.

A search by node comes first. It adds and removes single parents, from no parents, among all nodes and among those
before it in graphs that chains of the additive model reach. At the families where this ends, and at those of the
graphs, it notes what each edge is worth. Edges that are worth too little everywhere are left out (`CANDIDATE`), so that
chains meet thousands of families and not millions. Where the chains have been, the search is repeated, and edges that
it finds come back.

Chains run on quick estimates first. Families that many of their graphs have are then estimated carefully, and the
chains go on from there; twice, since better estimates shift weight to families that were passed over. What error is
left in the evidence is turned into an error of edge probabilities (`Integrated.edge_errors`), which is part of the
verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from dagpost._util.clock import Clock
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.graphs import topological_order
from dagpost.inference.checkpoints import State
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.mcmc.refine import Effort, Refined, refine
from dagpost.models import Additive, Model, Statistics
from dagpost.models.integrated import Integrated, common_families
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Key

SEARCH_SHARE = 0.2
"""Share of a time limit for the search by node."""
STAGES = (0.35, 0.6)
"""Shares of a time limit after which families are estimated again."""
STAGE_MOVES = 20_000
"""Moves per node of the chains before families are estimated again, where there is no time limit."""
LEAST_SHARE = 0.02
"""Share of graphs with a family from which on it is estimated carefully."""
START_MOVES = 20_000
"""Moves per node of the chains of the additive model that find where to start."""


def integrated(model: Model, stats: Statistics, seed: int, checkpoint: Sections | None = None) -> Integrated:
    """Return the model with its numerical evidence, as far as a checkpoint has it."""
    out = Integrated(model, stats, seed)
    found = section_of(checkpoint, "evidence").found
    if found is not None:
        out.evidence.from_arrays(found.arrays)
    return out


CANDIDATE = 4.0
"""An edge stays if in some family it loses at most so much of the log posterior: a probability of 2 % there."""
ORDERS = 6
"""Orders of the nodes, those of graphs to start from, in which the search looks for parents too."""
LARGEST_SET = 8
"""Most parents of a node that the search adds."""


class Screening:
    """Which edges are worth the chains' time, from the best gain that each had in any family looked at.

    Parameters
    ----------
    model
        The model with its evidence.
    prior
        Prior over graphs that decomposes by node.
    """

    def __init__(self, model: Integrated, prior: GraphPrior):
        self.model, self.d = model, model.evidence.d
        self.columns = prior.components(self.d)[0].prior.column_table(self.d)
        self.gains = np.full((self.d, self.d), -np.inf)
        known = prior.constraints
        self.open = ~np.eye(self.d, dtype=np.bool_)
        self.required = np.zeros((self.d, self.d), dtype=np.bool_)
        if known is not None:
            self.open &= np.asarray(known.allowed)
            self.required |= np.asarray(known.required)

    def score(self, node: int, row: Bool[np.ndarray, " d"]) -> float:
        """Return log evidence and log prior of a family."""
        evidence = self.model.evidence.estimate(node, row).log_evidence
        if self.columns is None:
            return evidence
        parents = np.flatnonzero(row)
        counted = parents if self.columns.uncounted is None else parents[~self.columns.uncounted[parents, node]]
        return evidence + self.columns.log_column(node, parents, len(counted))

    def look_around(self, node: int, row: Bool[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Return the gain of toggling every parent."""
        base, change = self.score(node, row), np.full(self.d, -np.inf)
        for i in np.flatnonzero(self.open[:, node] & ~self.required[:, node]):
            other = row.copy()
            other[i] = not other[i]
            change[i] = self.score(node, other) - base
        return change

    def note(self, node: int, row: Bool[np.ndarray, " d"]) -> None:
        """Note what every edge is worth in this family, where that is the most so far."""
        change = self.look_around(node, row)
        worth = np.where(row, -change, change)
        self.gains[:, node] = np.where(np.isfinite(change), np.maximum(self.gains[:, node], worth), self.gains[:, node])

    def climb(self, node: int, among: Bool[np.ndarray, " d"] | None = None) -> None:
        """Add and remove parents, the best first, as long as that gains; only those among some nodes if given."""
        row = self.required[:, node].copy()
        for _ in range(2 * LARGEST_SET):
            change = self.look_around(node, row)
            if among is not None:
                change = np.where(among, change, -np.inf)
            best = int(change.argmax())
            if change[best] <= 0 or (not row[best] and row.sum() >= LARGEST_SET):
                break
            row[best] = not row[best]
        self.note(node, row)

    def run(self, graphs: Graphs, clock: Clock, climb: bool, progress: bool | None) -> None:
        """Look around the families of the graphs, after a climb for each node if asked, and renew what is allowed."""
        tasks: list[Callable[[], Any]] = []
        if climb:  # without an order children pass for parents, and parents seem to add nothing
            orders = np.unique([topological_order(graph) for graph in graphs], axis=0)[:ORDERS]
            tasks = [partial(self.climb, j) for j in range(self.d)]
            for order in orders.tolist():
                for place, j in enumerate(order):
                    tasks.append(partial(self.climb, j, np.isin(np.arange(self.d), order[:place])))
        tasks += [partial(self.note, j, row) for j, row in common_families(graphs, 0.05)]
        with (
            progress_bar("looking for parents", len(tasks), progress) as advance,
            ThreadPoolExecutor() as pool,
        ):
            for _ in pool.map(lambda task: None if clock.expired else task(), tasks):
                advance(1)
        seen = np.concatenate([graphs, self.required[None]]).any(axis=0)
        worth = self.gains >= -CANDIDATE
        unseen = np.isneginf(self.gains).all(axis=0)  # time ran out before the node's turn
        self.model.allowed = (worth | seen | unseen) & self.open | self.required


def additive_start(data: Dataset, prior: GraphPrior, graphs: Graphs, key: Key, clock: Clock) -> Graphs:
    """Return graphs that chains of the additive model reach: its families take microseconds."""
    model = Additive()
    effort = Effort(precision=0.05, max_moves=START_MOVES * data.nodes)
    stats = model.summarise(data)
    found = refine(graphs, model, prior, stats, key, rows=data.observations, draws=32, effort=effort, clock=clock,
                   progress=False)  # fmt: skip
    return found.graphs


def refine_numerically(
    graphs: Graphs, model: Integrated, prior: GraphPrior, key: Key, *, rows: int, draws: int, effort: Effort | None,
    clock: Clock, progress: bool | None = None, checkpoint: Sections | None = None,
    callback: Callable[[Any], None] | None = None,
) -> Refined:  # fmt: skip
    """Sample `p(G | D)` by chains on numerical evidence, as `refine` does on closed forms.

    A checkpoint holds the evidence, which is what takes long; chains begin anew.
    """
    section = section_of(checkpoint, "evidence")
    keys = jax.random.split(key, len(STAGES) + 1)
    d = graphs.shape[-1]

    def save(snapshot: Any) -> None:
        section.reached(lambda: State(model.evidence.to_arrays(), {}))
        section.check()
        if callback is not None:
            callback(snapshot)

    screening = Screening(model, prior)
    screening.run(graphs, clock.until(SEARCH_SHARE) if clock.limit is not None else clock, True, progress)
    for stage, share in enumerate(STAGES):
        part = clock.until(share) if clock.limit is not None else Clock(stopped=clock.stopped)
        found = refine(
            graphs, model, prior, model.stats, keys[stage], rows=rows, draws=200, clock=part, progress=progress,
            effort=Effort(precision=0.05, max_moves=STAGE_MOVES * d), callback=save,
        )  # fmt: skip
        rough = model.rough_families(common_families(found.graphs, LEAST_SHARE))
        graphs = found.graphs[:: max(1, len(found.graphs) // 32)]
        if clock.expired:
            break
        screening.run(graphs, clock.until(share + 0.1) if clock.limit is not None else clock, False, progress)
        with progress_bar(f"estimating {len(rough)} families again", len(rough), progress) as advance:
            for chunk in range(0, len(rough), 16):
                if clock.until(share + 0.2).expired if clock.limit is not None else clock.expired:
                    break
                model.improve(rough[chunk : chunk + 16])
                advance(len(rough[chunk : chunk + 16]))
                section.reached(lambda: State(model.evidence.to_arrays(), {}))
                section.check()
    return refine(
        graphs, model, prior, model.stats, keys[-1], rows=rows, draws=draws, effort=effort, clock=clock,
        progress=progress, callback=save,
    )  # fmt: skip
