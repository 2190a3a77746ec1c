"""Greedy equivalence search (GES; Chickering, 2002): the essential graph that no single step improves, by BIC or, for
categorical data, by the evidence.

A step inserts or deletes the edge `x -> y` in some DAG of the class. A clique of undirected neighbours of `y`, taken to
be its parents too, selects that DAG. Edges are inserted while the score improves, then deleted.

The largest gain of each pair (x, y), whether or not the step is valid, is kept as an upper bound: it changes only if an
edge at y or at an undirected neighbour of y does. Pairs whose bound is not above the best gain so far are passed over.
Pairs with the same y come one after the other, so that families share rows of their Cholesky factors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dagpost._util.clock import Clock
from dagpost._util.compiled import njit
from dagpost.graphs.essential import complete
from dagpost.inference.checkpoints import NULL_SECTION, Section
from dagpost.inference.mcmc.structure import ONE, clear, discard, has, holds, insert, lowest
from dagpost.models.counts import CountScratch, CountTable, count_evidence, count_scratch, no_counts
from dagpost.typing import Graph

STEPS = 50  # that compiled code makes before it returns, for interrupts and time limits


def greedy_search(values: Float[np.ndarray, "n d"], counts: CountTable | None = None, penalty: float = 1.0) -> Graph:
    """Return the essential graph that GES finds.

    Parameters
    ----------
    values
        Rows of observational data.
    counts
        The same rows as counts of categories, whose evidence is then the score.
    penalty
        Factor on the penalty of BIC for each parameter; without `counts` only.

    Returns
    -------
    Graph
        Adjacency matrix, (d, d); an undirected edge is set in both directions.
    """
    return limited_search(values, counts, penalty).graph


class Found(NamedTuple):
    """Essential graph of a search, and whether the search came to its end."""

    graph: Graph
    complete: bool


def limited_search(
    values: Float[np.ndarray, "n d"], counts: CountTable | None = None, penalty: float = 1.0,
    clock: Clock | None = None, section: Section = NULL_SECTION,
) -> Found:  # fmt: skip
    """Search as `greedy_search` does until the clock expires, or until the section says to stop."""
    n, d = values.shape
    covariance = np.atleast_2d(np.cov(values.T, ddof=0))
    graph, scratch = np.zeros((d, d), dtype=np.bool_), workspace(d, no_counts(d) if counts is None else counts)
    price = 0.5 * penalty * np.log(n)
    for inserting in (True, False):
        scratch.bounds[:] = np.inf
        while _improve_repeatedly(graph, covariance, n, price, inserting, scratch):
            section.check()
            if clock is not None and clock.expired:
                return Found(graph, False)
    return Found(graph, True)


LISTED, PARENTS, NEIGHBOURS = 0, 1, 2  # places in `Workspace.listed`: y, and the numbers of both
REACHED_FROM = 3  # the node that paths to `reached` start from
FACTORED, ROWS = 4, 5  # y of the factor, and the number of its rows


class Workspace(NamedTuple):
    """Memory that the search reuses."""

    factor: np.ndarray  # (d, d) Cholesky factor
    solved: np.ndarray  # (d,)
    factored: np.ndarray  # (d,) nodes of the rows of the factor; y and their number are in `listed`
    family: np.ndarray  # (d,) parents of y: its directed ones, then the clique
    pool: np.ndarray  # (d,) neighbours that may join the clique
    chosen: np.ndarray  # (d,) positions in the pool
    queue: np.ndarray  # (d,)
    seen: np.ndarray  # (words,) set of nodes that paths lead to
    reached: np.ndarray  # (words,) the same for paths from one node, without a clique
    children: np.ndarray  # (d, words) sets of the ends of directed and undirected edges of each node
    bounds: np.ndarray  # (d, d) upper bounds of the gains of x -> y in row y; infinite where none is known
    before: np.ndarray  # (d, d) bool, the graph before a step
    parents: np.ndarray  # (d,) of the node y whose neighbours are listed
    neighbours: np.ndarray  # (d,) undirected ones of y
    listed: np.ndarray  # (6,) which nodes these lists are of, and their lengths, at the places named above
    counting: CountScratch
    counts: CountTable


class Step(NamedTuple):
    """Insertion or deletion of x -> y, and its gain in BIC."""

    gain: float
    x: int
    y: int


UNBEATEN = Step(np.inf, -1, -1)


@njit
def workspace(d, counts):
    """Return memory for a search over graphs of d nodes."""
    nodes, pairs = np.empty((7, d), dtype=np.int64), np.empty((2, d, d))
    sets = np.zeros((d + 2, (d + 63) // 64), dtype=np.uint64)
    return Workspace(
        pairs[0], np.empty(d), nodes[6], nodes[0], nodes[1], nodes[2], nodes[3],
        sets[0], sets[1], sets[2:], pairs[1], np.empty((d, d), dtype=np.bool_), nodes[4], nodes[5],
        np.full(6, -1, dtype=np.int64), count_scratch(counts), counts,
    )  # fmt: skip


@njit
def _improve_repeatedly(graph, covariance, rows, price, inserting, scratch):
    """Apply up to `STEPS` steps; return False if no gain is positive any more."""
    steps = 0
    while steps < STEPS and improve(graph, covariance, rows, price, inserting, scratch):
        steps += 1
    return steps == STEPS


@njit
def improve(graph, covariance, rows, price, inserting, scratch):
    """Apply the step with the largest gain; return False if no gain is positive. Every edge costs `price`."""
    d = graph.shape[0]
    best, clique, bounds = Step(0.0, -1, -1), np.zeros(d, dtype=np.bool_), scratch.bounds
    scratch.listed[LISTED] = scratch.listed[REACHED_FROM] = -1
    highest = Step(0.0, -1, -1)
    for y in range(d):
        for x in range(d):
            if _is_possible(x, y, graph, inserting):
                if bounds[y, x] == np.inf:  # no gain is above infinity: the bound alone
                    _best_of_pair(x, y, graph, covariance, rows, price, inserting, UNBEATEN, clique, scratch)
                if bounds[y, x] > highest.gain:
                    highest = Step(bounds[y, x], x, y)
    if highest.x < 0:
        return False
    # the pair with the highest bound first: if its step is valid, no other pair is looked at
    best = _best_of_pair(highest.x, highest.y, graph, covariance, rows, price, inserting, best, clique, scratch)
    for y in range(d):
        for x in range(d):
            if bounds[y, x] > best.gain and _is_possible(x, y, graph, inserting):
                best = _best_of_pair(x, y, graph, covariance, rows, price, inserting, best, clique, scratch)
    if best.x < 0:
        return False
    x, y = best.x, best.y
    scratch.before[:] = graph
    for z in range(d):
        if z == x or not (graph[z, y] and graph[y, z]):
            continue  # only edges to undirected neighbours of y get a direction
        if inserting and clique[z]:
            graph[y, z] = False
        elif not inserting and not clique[z] and (graph[x, z] or graph[z, x]):
            graph[z, y] = False
            if graph[x, z]:
                graph[z, x] = False
    graph[x, y] = inserting
    graph[y, x] = False
    if not complete(graph):
        raise RuntimeError("GES: a step led to a graph without consistent extension; this is a bug")
    _after_step(graph, x, y, scratch)
    return True


@njit(inline="always")
def _is_possible(x, y, graph, inserting):
    """Return whether there is no edge between x and y to insert x -> y at, or an edge x -> y or x - y to delete."""
    return x != y and graph[x, y] != inserting and not (inserting and graph[y, x])


@njit
def _after_step(graph, x, y, scratch):
    """Update the sets of children, and forget bounds of pairs (., w) after a step at x and y: if parents or undirected
    neighbours of w changed, or if x or y is an undirected neighbour of w, whose cliques x - y may belong to."""
    for w in range(graph.shape[0]):
        for a in range(graph.shape[0]):
            if graph[w, a] != scratch.before[w, a]:
                if graph[w, a]:
                    insert(scratch.children[w], a)
                else:
                    discard(scratch.children[w], a)
        changed = (graph[x, w] and graph[w, x]) or (graph[y, w] and graph[w, y])
        for a in range(graph.shape[0]):
            before = scratch.before[a, w]
            if graph[a, w] != before or (before and graph[w, a] != scratch.before[w, a]):
                changed = True
                break
        if changed:
            scratch.bounds[w, :] = np.inf


@njit
def _list_neighbours(y, graph, scratch):
    """Write the parents and the undirected neighbours of y."""
    parents = neighbours = 0
    for z in range(graph.shape[0]):
        if graph[z, y]:
            if graph[y, z]:
                scratch.neighbours[neighbours] = z
                neighbours += 1
            else:
                scratch.parents[parents] = z
                parents += 1
    scratch.listed[LISTED], scratch.listed[PARENTS], scratch.listed[NEIGHBOURS] = y, parents, neighbours


@njit
def _best_of_pair(x, y, graph, covariance, rows, price, inserting, best, clique, scratch):
    """Return the better of `best` and the best step for x -> y; `clique` and the bound of the pair are updated.

    For insertion the clique holds all undirected neighbours of y adjacent to x, and others; for deletion, some of those
    adjacent to x.
    """
    family, pool, chosen = scratch.family, scratch.pool, scratch.chosen
    if scratch.listed[LISTED] != y:
        _list_neighbours(y, graph, scratch)
    parents = many = 0
    scratch.bounds[y, x] = -np.inf
    for a in range(scratch.listed[PARENTS]):
        if scratch.parents[a] != x:
            family[parents] = scratch.parents[a]
            parents += 1
    size = parents
    for a in range(scratch.listed[NEIGHBOURS]):
        z = scratch.neighbours[a]
        if z != x:
            near = graph[x, z] or graph[z, x]
            if near and inserting:
                if not _adjacent_to_all(z, family, parents, size, graph):
                    return best
                family[size] = z
                size += 1
            elif near or inserting:
                pool[many] = z
                many += 1
    depth, following = 0, 0  # each clique once: positions in the pool ascend
    while True:
        gain = _gain(x, y, family, size, covariance, rows, price, scratch)
        if not inserting:
            gain = -gain
        scratch.bounds[y, x] = max(scratch.bounds[y, x], gain)
        if gain > best.gain and (not inserting or _separated(y, x, family, parents, size, scratch)):
            best = Step(gain, x, y)
            clique[:] = False
            for a in range(parents, size):
                clique[family[a]] = True
        while True:  # find the next clique
            while following < many and not _adjacent_to_all(pool[following], family, parents, size, graph):
                following += 1
            if following < many:
                family[size], chosen[depth] = pool[following], following
                size, depth, following = size + 1, depth + 1, following + 1
                break
            if depth == 0:
                return best
            size, depth = size - 1, depth - 1
            following = chosen[depth] + 1


@njit
def _adjacent_to_all(z, family, first, end, graph):
    """Return whether z is adjacent to all of family[first:end]."""
    missing = 0
    for a in range(first, end):
        missing += not (graph[z, family[a]] or graph[family[a], z])
    return missing == 0


@njit
def _separated(start, end, family, first, size, scratch):
    """Return whether every path from start to end along directed and undirected edges passes through the clique."""
    if first < size:
        return not _reaches(start, end, family, first, size, scratch, scratch.seen)
    if scratch.listed[REACHED_FROM] != start:  # without a clique, what is reached is the same for all ends
        _reaches(start, np.int64(-1), family, first, size, scratch, scratch.reached)
        scratch.listed[REACHED_FROM] = start
    return not has(scratch.reached, end)


@njit
def _reaches(start, end, family, first, size, scratch, seen):
    """Return whether a path leads from start to end beside the clique; if not, `seen` has all nodes reached."""
    children, queue = scratch.children, scratch.queue
    clear(seen)
    for a in range(first, size):
        insert(seen, family[a])
    insert(seen, start)
    queue[0] = start
    taken, known = 0, 1
    while taken < known:
        a = queue[taken]
        taken += 1
        if end >= 0 and holds(children, a, end):
            return True
        for w in range(seen.shape[0]):
            left = children[a, w] & ~seen[w]
            seen[w] |= left
            while left:
                queue[known] = 64 * w + lowest(left)
                known += 1
                left &= left - ONE
    return False


@njit
def _gain(x, y, family, size, covariance, rows, price, scratch):
    """Return the BIC of y with x and a family as parents, minus that with the family alone.

    With `L L^T` the covariance of the parents, x last, and `b = L^-1 cov(parents, y)`, the residual variance of y is
    `var(y) - sum_a b_a^2`, and `gain = -n/2 log(residual with x / residual without) - price`, with `price = 1/2 log n`
    in BIC. For categories it is the difference of the log evidences. First rows of the factor that the last family has
    too are not computed again.
    """
    if scratch.counts.weights.shape[0] > 0:
        without = count_evidence(scratch.counts, y, family, size, scratch.counting)
        beside = family[size] if size < len(family) else x
        family[size] = x
        gain = count_evidence(scratch.counts, y, family, size + 1, scratch.counting) - without
        family[size] = beside
        return gain
    factor, solved, factored, listed = scratch.factor, scratch.solved, scratch.factored, scratch.listed
    left = without = covariance[y, y]
    shared = 0
    while listed[FACTORED] == y and shared < min(size, listed[ROWS]) and factored[shared] == family[shared]:
        left -= solved[shared] ** 2
        shared += 1
    listed[FACTORED], listed[ROWS] = y, size
    for a in range(shared, size + 1):
        u = family[a] if a < size else x
        if a < size:
            factored[a] = u
        for c in range(a + 1):
            v = family[c] if c < a else u
            rest = covariance[u, v]
            for e in range(c):
                rest -= factor[a, e] * factor[c, e]
            if c < a:
                factor[a, c] = rest / factor[c, c]
            else:  # a parent that is a linear function of the others adds nothing
                factor[a, a] = np.sqrt(rest) if rest > 1e-12 * covariance[u, u] else np.inf
        rest = covariance[u, y]
        for e in range(a):
            rest -= factor[a, e] * solved[e]
        solved[a] = rest / factor[a, a]
        without = left
        left -= solved[a] ** 2
    tiny = 1e-12 * covariance[y, y]
    return -0.5 * rows * np.log(max(left, tiny) / max(without, tiny)) - price
