"""Candidate parents of every node, and a table of the families among them, for models whose families take milliseconds.

Chains ask for millions of families, most of them far off. So the families that can matter are found and scored first,
and the chains then read a table, as fast as with a compiled closed form.

*Candidates.* A search by node adds and removes single parents, from no parents, among all nodes and among those before
it in orders that graphs to start from have (without an order children pass for parents, and parents seem to add
nothing). At the families where it ends, and at those of the graphs, it notes what each edge is worth. The edges that
are worth most somewhere are the candidates. Once chains have run, it is the families of their graphs that say what an
edge is worth, and what it is worth in place of one of their parents. Where several nodes together can stand in for one
parent, each is worth nothing beside it: climbs from frequent families without that parent find them.

*Families.* At first, sets of few candidates are listed by size. A set is scored if one parent less leaves a set that is
at most `MARGIN` below the best of its own subsets. The others have evidence 0: a subset is allowed wherever its set is,
and is so much better. Once chains have run, the families of their graphs are listed with their surroundings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from dagpost._util.clock import Clock
from dagpost._util.environment import available_cores
from dagpost._util.progress import progress_bar
from dagpost.graphs import descendants, topological_order
from dagpost.models.family_table import ABSENT, ALWAYS, FamilyTable
from dagpost.models.integrated import CLOSE, Family, Integrated, common_families, order_gaps
from dagpost.priors import GraphPrior
from dagpost.priors.base import family_prior
from dagpost.typing import Graphs

CANDIDATE = 4.0
"""An edge may be a candidate if in some family it loses at most so much of the log posterior: 2 % there."""
FEW_CANDIDATES, MOST_CANDIDATES = 8, 14
"""Candidates of a node besides its required parents, before and after chains have run."""
MARGIN = 8.0
"""How far below its best subset a set may be for sets with one parent more to be scored."""
ORDERS = 6
"""Orders of the nodes in which the search looks for parents."""
COMMON, FREQUENT = 0.02, 0.1
"""Shares of graphs with a family from which on those that differ by one parent, or by two, are listed."""
BY_ONE, BY_TWO = (COMMON, 0.9, 64), (FREQUENT, 0.5, 16)
"""Around which families those that differ by one parent, or by two, are listed (`common_families`)."""
WITHOUT = (FREQUENT, 0.5, 1)
"""From which families the search climbs without one of their parents."""
HOPELESS = 30.0
"""How far below such a family a climb may be after its first step: most parents have nothing to stand in for them."""
CHUNK = 256
"""Families scored at once."""
LARGEST_SET = 8
"""Most parents of a node that the search adds."""

Code = tuple[int, int]
"""A node, and the code of its parents in the table."""


class Worth(NamedTuple):
    """What an edge from each other node to this one adds to the score somewhere, and the log of the chance that it
    is in a graph for that."""

    node: int
    added: Float[np.ndarray, " d"]
    log_chance: Float[np.ndarray, " d"]


def log_share(node: int, row: Bool[np.ndarray, " d"], graphs: Graphs) -> float:
    """Return the log of the share of graphs that have this family."""
    return float(np.log((graphs[:, :, node] == row).all(axis=1).mean()))


class Candidates:
    """The search for candidate parents, and the table of their families.

    Parameters
    ----------
    model
        The model with its evidence; `table` is written to it.
    prior
        Prior over graphs that decomposes by node.
    """

    def __init__(self, model: Integrated, prior: GraphPrior):
        self.model, self.d = model, model.evidence.d
        first = prior.components(self.d)[0].prior
        self.log_prior, self.tabulated = family_prior(first, self.d), first.column_table(self.d) is not None
        self.worth = np.full((self.d, self.d), -np.inf)  # in families looked at since the chains ran
        self.worth_before, self.log_chance = self.worth, self.worth.copy()
        known = prior.constraints
        self.open = ~np.eye(self.d, dtype=np.bool_)
        self.required = np.zeros((self.d, self.d), dtype=np.bool_)
        if known is not None:
            self.open &= np.asarray(known.allowed)
            self.required |= np.asarray(known.required)

    def score(self, node: int, row: Bool[np.ndarray, " d"]) -> float:
        """Return log evidence and log prior of a family."""
        log_prior = self.log_prior(node, np.flatnonzero(row))
        return log_prior if np.isneginf(log_prior) else log_prior + self.model.evidence.estimate(node, row).log_evidence

    # ---- candidates

    def _changes(self, node: int, row: Bool[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Return what toggling each parent adds to the score."""
        base, out = self.score(node, row), np.full(self.d, -np.inf)
        for i in np.flatnonzero(self.open[:, node] & ~self.required[:, node]):
            other = row.copy()
            other[i] = not other[i]
            out[i] = self.score(node, other) - base
        return out

    def worth_in(self, node: int, row: Bool[np.ndarray, " d"], log_share: float = 0.0) -> Worth:
        """Return what every edge is worth in this family, which this share of the graphs have."""
        change = self._changes(node, row)
        added = np.where(np.isfinite(change), np.where(row, -change, change), -np.inf)
        return Worth(node, added, np.minimum(added, 0.0) + log_share)

    def worth_instead(
        self, node: int, row: Bool[np.ndarray, " d"], others: Bool[np.ndarray, " d"], log_share: float
    ) -> Worth:
        """Return what an edge from each of the others is worth in place of one from a parent in this family.

        Where two nodes are nearly copies of each other, one is worth little beside the other.
        """
        base, added = self.score(node, row), np.full(self.d, -np.inf)
        for i in np.flatnonzero(others & self.open[:, node] & ~row):
            for parent in np.flatnonzero(row & ~self.required[:, node]):
                other = row.copy()
                other[[i, parent]] = True, False
                added[i] = max(added[i], self.score(node, other) - base)
        return Worth(node, added, np.minimum(added, 0.0) + log_share)

    def _climbed(
        self, node: int, among: Bool[np.ndarray, " d"], row: Bool[np.ndarray, " d"], floor: float = -np.inf
    ) -> Bool[np.ndarray, " d"]:
        """Add and remove parents among these nodes, the best first, as long as that gains, and the score is not below
        `floor`; return the family where that ends."""
        row = row.copy()
        for _ in range(2 * LARGEST_SET):
            change = np.where(among, self._changes(node, row), -np.inf)
            best = int(change.argmax())
            if change[best] <= 0 or (not row[best] and row.sum() >= LARGEST_SET):
                break
            row[best] = not row[best]
            if self.score(node, row) < floor:
                break
        return row

    def climb(self, node: int, among: Bool[np.ndarray, " d"] | bool = True) -> Worth:
        """Climb from no parents, among these nodes; return what every edge is worth where that ends."""
        among = np.broadcast_to(among, self.d)
        return self.worth_in(node, self._climbed(node, among, self.required[:, node]))

    def climb_without(
        self, node: int, row: Bool[np.ndarray, " d"], among: Bool[np.ndarray, " d"], log_share: float
    ) -> Worth:
        """Climb from this family without each of its parents in turn, among these nodes; return what every edge is
        worth where that ends, unless that is far below.

        Several nodes together may stand in for one, each of which is worth nothing beside it.
        """
        base, nothing = self.score(node, row), np.full(self.d, -np.inf)
        found = [Worth(node, nothing, nothing)]
        for parent in np.flatnonzero(row & ~self.required[:, node]):
            rest = np.arange(self.d) != parent
            top = self._climbed(node, among & rest, row & rest, base - HOPELESS)
            loss = base - self.score(node, top)
            if loss <= HOPELESS:  # less than it seems: a new family has a quick estimate, which misses some
                found.append(self.worth_in(node, top, log_share - max(loss - CANDIDATE, 0.0)))
        return Worth(node, *(np.max([getattr(one, name) for one in found], axis=0) for name in Worth._fields[1:]))

    def search(self, graphs: Graphs, clock: Clock, climb: bool, progress: bool | None, without: bool = False) -> None:
        """Look around the common families of the graphs, after a climb for each node if asked, and otherwise also for
        edges that are no candidates in place of those of frequent families; climb without their parents if asked."""
        tasks: list[Callable[[], Worth]] = []
        if climb:
            orders = np.unique([topological_order(graph) for graph in graphs], axis=0)[:ORDERS]
            tasks = [partial(self.climb, j) for j in range(self.d)]
            for order in orders.tolist():
                for place, j in enumerate(order):
                    tasks.append(partial(self.climb, j, np.isin(np.arange(self.d), order[:place])))
        else:
            self.worth_before = np.maximum(self.worth, self.worth_before)
            self.worth, self.log_chance = np.full((2, self.d, self.d), -np.inf)
        for j, row in common_families(graphs, COMMON):
            tasks.append(partial(self.worth_in, j, row, log_share(j, row, graphs)))
        if self.model.table is not None:
            free = np.logical_not(np.all(descendants(graphs), axis=0))  # no descendant in some graph
            absent = (self.model.table.place == ABSENT) & free
            for j, row in common_families(graphs, FREQUENT):
                tasks.append(partial(self.worth_instead, j, row, absent[j], log_share(j, row, graphs)))
            for j, row in common_families(graphs, *WITHOUT) if without else ():
                tasks.append(partial(self.climb_without, j, row, free[j], log_share(j, row, graphs)))
        with (
            progress_bar("looking for parents", len(tasks), progress) as advance,
            ThreadPoolExecutor(available_cores()) as pool,
        ):
            for found in pool.map(lambda task: None if clock.expired else task(), tasks):
                if found is not None:
                    for whole, part in ((self.worth, found.added), (self.log_chance, found.log_chance)):
                        whole[:, found.node] = np.maximum(whole[:, found.node], part)
                advance(1)

    def chosen(self, node: int, graphs: Graphs, most: int) -> list[int]:
        """Return the candidates of a node, the most probable first, then what was worth most before; all of them where
        there are few."""
        free = self.open[:, node] & ~self.required[:, node]
        worth, before, share = self.worth[:, node], self.worth_before[:, node], graphs[:, :, node].mean(axis=0)
        if np.isneginf(np.maximum(worth, before)).all():  # time ran out before the node's turn
            worth = np.zeros(self.d)
        good = (worth >= -CANDIDATE) | (before >= -CANDIDATE) | (share >= COMMON) | (free.sum() <= FEW_CANDIDATES)
        with np.errstate(divide="ignore"):
            log_chance = np.maximum(self.log_chance[:, node], np.log(share))
        order = np.lexsort((-before, -worth, -log_chance)).tolist()
        return [i for i in order if free[i] and good[i]][:most]

    # ---- families

    def fill(self, graphs: Graphs, clock: Clock, progress: bool | None) -> None:
        """Choose candidates, score their families, and give the model the table; the clock may end this early."""
        table, chosen = self._empty_table(graphs, FEW_CANDIDATES)
        best = np.full(table.evidence.shape, -np.inf)  # score of the best subset
        layer = [(j, 0) for j in range(self.d)]
        with progress_bar("scoring families", self.d << FEW_CANDIDATES, progress) as advance:
            while layer:
                alive = []
                for part in range(0, len(layer), CHUNK):
                    if clock.expired and layer[0][1] > 0:
                        break
                    these = layer[part : part + CHUNK]
                    for (j, code), score in zip(these, self._enter(table, these)):
                        subsets = (best[j, code & ~(1 << i)] for i in range(len(chosen[j])) if code >> i & 1)
                        best[j, code] = max(score, *subsets, -np.inf)
                        if score >= best[j, code] - MARGIN:
                            alive.append((j, code))
                    advance(len(these))
                further = ((j, code | 1 << i) for j, code in alive for i in range(len(chosen[j])) if not code >> i & 1)
                layer = list(dict.fromkeys(further))
        self.model.table = table

    def renew(self, graphs: Graphs, clock: Clock, progress: bool | None) -> None:
        """Choose candidates anew, and give the model a table of all known families among them, and of those that differ
        by one parent from families of the graphs, by two from frequent ones."""
        table, chosen = self._empty_table(graphs, MOST_CANDIDATES)
        known = ((j, np.frombuffer(row, dtype=np.bool_)) for j, row in self.model.evidence.known)
        self._enter(table, self._codes(table, known))
        near: dict[tuple[int, int], None] = {}
        for j, code in self._codes(table, common_families(graphs, *BY_ONE)):
            near |= dict.fromkeys((j, code ^ 1 << i) for i in range(len(chosen[j])))
        for j, code in self._codes(table, common_families(graphs, *BY_TWO)):
            near |= dict.fromkeys((j, code ^ (1 << i | 1 << k)) for i in range(len(chosen[j])) for k in range(i))
        missing = [(j, code) for j, code in near if np.isneginf(table.evidence[j, code])]
        with progress_bar("scoring families", len(missing), progress) as advance:
            for part in range(0, len(missing), CHUNK):
                if clock.expired:
                    break
                self._enter(table, missing[part : part + CHUNK])
                advance(len(missing[part : part + CHUNK]))
        self.model.table = table

    def update(self, families: Iterable[Family]) -> None:
        """Enter new estimates of families into the model's table."""
        table = self.model.table
        assert table is not None, "fill comes first"
        self._enter(table, self._codes(table, families))

    def _empty_table(self, graphs: Graphs, most: int) -> tuple[FamilyTable, list[list[int]]]:
        """Return a table without families, and the candidates of every node."""
        chosen = [self.chosen(j, graphs, most) for j in range(self.d)]
        place = np.full((self.d, self.d), ABSENT, dtype=np.int64)
        for j, candidates in enumerate(chosen):
            place[j, candidates] = np.arange(len(candidates))
            place[j, self.required[:, j]] = ALWAYS
        self.scores = np.full((self.d, 1 << max(map(len, chosen))), -np.inf)
        return FamilyTable(place, np.full(self.scores.shape, -np.inf)), chosen

    def _codes(self, table: FamilyTable, families: Iterable[Family]) -> list[Code]:
        """Return the codes of those of the families that the table can hold."""
        codes = ((j, table.code(j, row)) for j, row in families if not (self.required[:, j] & ~row).any())
        return [(j, code) for j, code in codes if code is not None]

    def _enter(self, table: FamilyTable, codes: list[Code]) -> Float[np.ndarray, " n"]:
        """Enter families into the table; return their scores."""
        if not codes:
            return np.zeros(0)
        rows = np.array([table.row(j, code) for j, code in codes])
        scores = np.array([self.log_prior(j, np.flatnonzero(row)) for (j, _), row in zip(codes, rows)])
        possible = np.flatnonzero(np.isfinite(scores))
        nodes = np.array([j for j, _ in codes], dtype=np.int64)
        for at, estimate in zip(possible, self.model.evidence.estimates(nodes[possible], rows[possible])):
            # a prior without a table is part of the evidence here
            table.evidence[codes[at]] = estimate.log_evidence + (0.0 if self.tabulated else scores[at])
            scores[at] += estimate.log_evidence
            self.scores[codes[at]] = scores[at]
        return scores

    def rough(self, graphs: Graphs, influence: Mapping[tuple[int, bytes], float]) -> list[tuple[Family, int]]:
        """Return families to be estimated better, the most important first, with the effort for each: those near the
        best one that their node could have in one of the graphs, and those whose errors have influence there."""
        table = self.model.table
        assert table is not None, "fill comes first"
        gaps = order_gaps(self.scores, table.place, graphs)
        close = np.argwhere(gaps <= CLOSE[0]).tolist()
        return self.model.rough_families((((j, table.row(j, code)), gaps[j, code]) for j, code in close), influence)

    def absent_edges(self, graphs: Graphs) -> Float[np.ndarray, "d d"]:
        """Return estimated probabilities of the edges that are no candidates: the chance of adding one to the common
        families of the graphs, where that makes no cycle."""
        table = self.model.table
        assert table is not None, "fill comes first"
        below, out = descendants(graphs), np.zeros((self.d, self.d))
        for j in range(self.d):
            rows, where, counts = np.unique(graphs[:, :, j], axis=0, return_inverse=True, return_counts=True)
            for at in np.flatnonzero(counts >= COMMON * len(graphs)):
                base, row = self.score(j, rows[at]), rows[at]
                possible = 1 - below[where.reshape(-1) == at, j].mean(axis=0)
                for i in np.flatnonzero((table.place[j] == ABSENT) & self.open[:, j]):
                    added = row | (np.arange(self.d) == i)
                    if (j, added.tobytes()) in self.model.evidence.known:
                        odds = np.exp(min(self.score(j, added) - base, 0.0))
                        out[i, j] += counts[at] / len(graphs) * possible[i] * odds / (1 + odds)
        return out

    def nearest(self, graphs: Graphs) -> Graphs:
        """Return the graphs with as few edges removed as it takes for all their families to be in the table."""
        assert self.model.table is not None, "fill comes first"
        return self.model.table.nearest(graphs)
