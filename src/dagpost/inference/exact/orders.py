"""Independent exact draws of DAGs by way of orders, on more nodes than a sum over all DAGs can take.

Number the nodes. Every DAG has one canonical order: the next node is the smallest one whose parents are placed. When
node j is placed after the nodes U, of which T are those since the last one that is larger than j (it included), then j
had to wait for a node of T: at least one of its parents is in T. If no placed node is larger, nothing is asked of its
parents. Conversely, an order and parent sets like that are a DAG and its canonical order, so that DAGs are such pairs.

A sum over them would have to know T. Here only its last node a is known: if a is larger than j it must be a parent of
j, because T = {a}, and otherwise nothing is asked. The weight of everything that can follow (U, a) is then

    B(U, a) = sum_{j ∉ U}  D_j(U, a)  B(U ∪ j, j),        B(V, ·) = 1,
    D_j(U, a) = A_j(U) - A_j(U∖a) if a > j, else A_j(U),        A_j(U) = sum_{P ⊆ U} w_j(P),

which costs `d² 2^d` steps. Orders are drawn from these sums. A node that follows a smaller one is then accepted with
probability `1 - A_j(U∖T) / A_j(U)`, else the order is rejected. Accepted orders, with parents drawn given U and T, are
independent draws of the posterior, and the normaliser is B(∅) times the share of accepted orders. Few are rejected if
the numbers of the nodes follow a probable order, since orders go down only along edges.

Given the order, the probability of every edge is a ratio of sums that are at hand,

    Pr(i -> j | U, T) = [A_j(U) - A_j(U∖i) - A_j(U∖T) + A_j(U∖(T ∪ i))] / [A_j(U) - A_j(U∖T)],

and edge probabilities are the means of these, with less error than the shares of graphs would have.

All sums are held relative to the potential of `layers.py`. A prior that is a mixture has sums for each component, and
proposals are of each in proportion to its B(∅).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numba import prange

from dagpost._util.compiled import njit
from dagpost._util.environment import available_cores
from dagpost._util.numerics import log_sum_exp
from dagpost._util.progress import Advance
from dagpost.inference.exact.layers import CHUNKS, log_subset_sums, potentials, sets_by_size
from dagpost.typing import Graphs

PROPOSALS = 2048
"""Orders that a thread proposes at once."""
BATCHES = 8
"""Batches between two looks at what has been accepted, fixed so that draws do not depend on the number of cores."""


class Orders(NamedTuple):
    """Sums over orders of nodes, from which orders and graphs are drawn."""

    log_total: np.ndarray  # (d, 2^d) log A_j(U)
    potential: np.ndarray  # (2^d,) β(U)
    rank: np.ndarray  # (d,) number of each node
    backward: np.ndarray  # (2^d, d) B(U, a) exp(-β(U)); B(∅) in row 0
    log_bound: float  # log B(∅)


class Draws(NamedTuple):
    """Accepted orders."""

    nodes: np.ndarray  # (m, d) from the first to the last
    since: np.ndarray  # (m, d) T of the node at each place, a bit set; 0 if nothing is asked of its parents
    part: np.ndarray  # (m,) component of the prior


def memory_bytes(d: int, parts: int = 1) -> int:
    """Return the memory that the sums for so many components hold at once, with a margin of a tenth."""
    return 11 * (8 * (2 * d * (parts + 1) + parts + 3) * 2**d) // 10


@njit
def _best_order(log_total, potential):
    """Return the place of each node in the order that the potential belongs to."""
    d = log_total.shape[0]
    rank, placed = np.zeros(d, dtype=np.int64), 0
    for place in range(d):
        best, chosen = -np.inf, -1
        for j in range(d):
            if not placed >> j & 1:
                value = log_total[j, placed] + potential[placed | (1 << j)]
                if chosen < 0 or value > best:
                    best, chosen = value, j
        rank[chosen] = place
        placed |= 1 << chosen
    return rank


@njit(inline="always")
def _share_with(log_total, j, placed, among):
    """Return the share of `A_j(U)` in which a parent is in the set `among`."""
    return 1.0 - np.exp(log_total[j, placed & ~among] - log_total[j, placed])


@njit
def _following(placed, log_total, potential, backward, nodes, weights):
    """Write the nodes outside U, and for each the weight of what follows it with any parents; return their number."""
    count = 0
    for j in range(log_total.shape[0]):
        if not placed >> j & 1:
            after = placed | (1 << j)
            nodes[count] = j
            weights[count] = 0.0
            if log_total[j, placed] > -np.inf and potential[after] > -np.inf:
                factor = np.exp(potential[after] - potential[placed] + log_total[j, placed])
                weights[count] = factor * backward[after, j]
            count += 1
    return count


@njit(parallel=True)
def _backward_level(sets, log_total, potential, rank, backward):
    """Write `B(U, ·) exp(-β(U))` for all given U, which have the same size (not d)."""
    d = log_total.shape[0]
    for chunk in prange(CHUNKS):
        nodes, weights = np.empty(d, dtype=np.int64), np.empty(d)
        for index in range(chunk, len(sets), CHUNKS):
            placed = sets[index]
            if potential[placed] == -np.inf:
                continue
            count = _following(placed, log_total, potential, backward, nodes, weights)
            for a in range(d):
                if placed >> a & 1 or placed == 0:
                    total = 0.0
                    for k in range(count):
                        if placed and rank[a] > rank[nodes[k]]:
                            if weights[k] > 0.0:
                                total += weights[k] * _share_with(log_total, nodes[k], placed, 1 << a)
                        else:
                            total += weights[k]
                    backward[placed, a] = total


def order_sums(log_weight: Float[np.ndarray, "d s"], advance: Advance = lambda amount: None) -> Orders:
    """Return the sums over orders for these weights of families; `advance` is called with a total of d + 1."""
    d = log_weight.shape[0]
    log_total = log_subset_sums(log_weight)
    advance(1)
    potential = potentials(log_total)
    rank = _best_order(log_total, potential)
    backward = np.zeros((1 << d, d))
    backward[-1] = 1.0
    by_size = sets_by_size(d)
    for size in range(d - 1, -1, -1):
        _backward_level(by_size[size], log_total, potential, rank, backward)
        advance(1)
    with np.errstate(divide="ignore"):
        log_bound = float(potential[0] + np.log(backward[0, 0]))
    return Orders(log_total, potential, rank, backward, log_bound)


@njit(nogil=True)
def _propose(log_total, potential, rank, backward, uniforms, nodes, since):
    """Draw an order from each row of `uniforms`; write the accepted ones and return their number."""
    d, accepted = log_total.shape[0], 0
    free, weights = np.empty(d, dtype=np.int64), np.empty(d)
    for m in range(uniforms.shape[0]):
        placed, last, kept = 0, -1, True
        order, waited = nodes[accepted], since[accepted]
        for place in range(d):
            count = _following(placed, log_total, potential, backward, free, weights)
            total = 0.0
            for k in range(count):
                if last >= 0 and rank[last] > rank[free[k]] and weights[k] > 0.0:
                    weights[k] *= _share_with(log_total, free[k], placed, 1 << last)
                total += weights[k]
            target, running, chosen = uniforms[m, place] * total, 0.0, -1
            for k in range(count):
                if weights[k] > 0.0:
                    running += weights[k]
                    chosen = free[k]
                    if running > target:
                        break
            if chosen < 0:
                kept = False
                break
            among, larger = 0, False
            for before in range(place - 1, -1, -1):
                among |= 1 << order[before]
                if rank[order[before]] > rank[chosen]:
                    larger = True
                    break
            order[place], waited[place] = chosen, among if larger else 0
            if larger and rank[last] < rank[chosen]:
                kept = uniforms[m, d + place] < _share_with(log_total, chosen, placed, among)
                if not kept:
                    break
            placed |= 1 << chosen
            last = chosen
        accepted += kept
    return accepted


def draw_orders(parts: Sequence[Orders], rng: np.random.Generator) -> Iterator[tuple[Draws, int]]:
    """Yield accepted orders in random succession, and of how many proposals they are, for ever.

    Proposals are of each component in proportion to its bound.
    """
    d = len(parts[0].rank)
    bounds = np.array([part.log_bound for part in parts])
    shares = np.exp(bounds - log_sum_exp(bounds))

    def batch(task: tuple[int, np.ndarray]) -> Draws:
        (c, uniforms), size = task, len(task[1])
        nodes, since = (np.zeros((size + 1, d), dtype=np.int64) for _ in range(2))
        chosen = parts[c]
        count = _propose(chosen.log_total, chosen.potential, chosen.rank, chosen.backward, uniforms, nodes, since)
        return Draws(nodes[:count], since[:count], np.full(count, c))

    with ThreadPoolExecutor(min(available_cores(), BATCHES)) as pool:
        while True:
            counts = rng.multinomial(BATCHES * PROPOSALS, shares / shares.sum())
            sizes = [(c, min(PROPOSALS, n - k)) for c, n in enumerate(counts) for k in range(0, n, PROPOSALS)]
            found = list(pool.map(batch, [(c, rng.random((size, 2 * d))) for c, size in sizes]))
            order = rng.permutation(sum(len(draws.part) for draws in found))
            yield Draws(*(np.concatenate(field)[order] for field in zip(*found))), BATCHES * PROPOSALS


@njit
def _edges(log_total, nodes, since, total, squares):
    """Add the edge probabilities given each order to `total`, and their squares to `squares`."""
    for m in range(nodes.shape[0]):
        placed = 0
        for place in range(nodes.shape[1]):
            j, among = nodes[m, place], since[m, place]
            whole = log_total[j, placed]
            without = np.exp(log_total[j, placed & ~among] - whole) if among else 0.0
            for before in range(place):
                i = nodes[m, before]
                share = 1.0 - np.exp(log_total[j, placed & ~(1 << i)] - whole) - without
                if among:
                    share += np.exp(log_total[j, placed & ~(among | 1 << i)] - whole)
                p = min(max(share / (1.0 - without), 0.0), 1.0)
                total[i, j] += p
                squares[i, j] += p * p
            placed |= 1 << j


class EdgeMeans(NamedTuple):
    """Means of the edge probabilities given each order, as sums over m orders."""

    total: np.ndarray  # (d, d)
    squares: np.ndarray  # (d, d)
    orders: int

    @classmethod
    def none(cls, d: int) -> EdgeMeans:
        """Return the sums over no orders."""
        return cls(np.zeros((d, d)), np.zeros((d, d)), 0)

    @property
    def mean(self) -> Float[np.ndarray, "d d"]:
        return self.total / max(self.orders, 1)

    @property
    def error(self) -> Float[np.ndarray, "d d"]:
        """Standard errors."""
        variance = np.maximum(self.squares / max(self.orders, 1) - self.mean**2, 0.0)
        return np.sqrt(variance / max(self.orders - 1, 1))


def add_edges(parts: Sequence[Orders], draws: Draws, so_far: EdgeMeans) -> EdgeMeans:
    """Return the means with those of more orders."""
    total, squares = so_far.total.copy(), so_far.squares.copy()
    for c, part in enumerate(parts):
        own = draws.part == c
        _edges(part.log_total, draws.nodes[own], draws.since[own], total, squares)
    return EdgeMeans(total, squares, so_far.orders + len(draws.part))


@njit
def _sum_with(log_total, whole, included, count, within):
    """Return the share of A(U), whose log is `whole`, of the sets within `within` that have all `included` nodes.

    By inclusion and exclusion, `sum_{K ⊆ I} (-1)^|K| A(within∖K)`.
    """
    total = 0.0
    for subset in range(1 << count):
        left, sign = within, 1.0
        for k in range(count):
            if subset >> k & 1:
                left &= ~(1 << included[k])
                sign = -sign
        total += sign * np.exp(log_total[left] - whole)
    return total


@njit
def _parents(log_total, placed, among, included, uniforms):
    """Return parents within U, at least one of them in T (if that is not empty), drawn in proportion to their weights.

    One node after the other is in or out. What is left is a sum over all sets that agree so far, which subtraction
    makes inaccurate only for choices that are improbable.
    """
    whole, within, count, parents = log_total[placed], placed, 0, 0
    left = 1.0 - np.exp(log_total[placed & ~among] - whole) if among else 1.0
    for i in range(len(uniforms)):
        if placed >> i & 1:
            smaller = within & ~(1 << i)
            without = _sum_with(log_total, whole, included, count, smaller)
            if among and not parents & among:
                without -= _sum_with(log_total, whole, included, count, smaller & ~among)
            if uniforms[i] * left < without:
                within, left = smaller, without
            else:
                included[count] = i
                count += 1
                parents |= 1 << i
                left -= without
    return parents


@njit
def _graphs_of(log_total, nodes, since, uniforms, graphs):
    """Write a DAG for each order."""
    d = log_total.shape[0]
    included = np.empty(d, dtype=np.int64)
    for m in range(nodes.shape[0]):
        placed = 0
        for place in range(d):
            j = nodes[m, place]
            parents = _parents(log_total[j], placed, since[m, place], included, uniforms[m, place])
            for i in range(d):
                graphs[m, i, j] = parents >> i & 1
            placed |= 1 << j


def graphs_of(parts: Sequence[Orders], draws: Draws, rng: np.random.Generator) -> Graphs:
    """Return a DAG drawn for each order."""
    m, d = draws.nodes.shape
    graphs, uniforms = np.zeros((m, d, d), dtype=np.bool_), rng.random((m, d, d))
    for c, part in enumerate(parts):
        own = np.flatnonzero(draws.part == c)
        found = np.zeros((len(own), d, d), dtype=np.bool_)
        _graphs_of(part.log_total, draws.nodes[own], draws.since[own], uniforms[own], found)
        graphs[own] = found
    return graphs
