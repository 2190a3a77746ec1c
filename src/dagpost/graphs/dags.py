"""All DAGs on a few nodes, and random ones: the generators of the paper's experiments, and exact draws by in-degrees.

For a density `p(G) ∝ prod_j f(|parents of j|)` the sum over all DAGs and exact draws follow from the layers
of a DAG: layer 1 holds the nodes without parents, layer l + 1 those whose parents lie in layers 1..l with
at least one in layer l. Every DAG has exactly one such layering. With `u` nodes placed, the last layer
of size `r`, and `D(u, r) = sum_p [C(u, p) - C(u - r, p)] f(p)`,

    b(u, r) = sum_t C(d - u, t) D(u, r)^t b(u + t, t),      b(d, ·) = 1,

which involves no cancellation (the binomial differences are exact integers). With `f = 1` it counts DAGs.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, inf, log

import networkx as nx
import numpy as np
from jaxtyping import Bool
from scipy.special import gammaln, logsumexp

from dagpost._util.compiled import njit
from dagpost._util.numerics import log_sum_exp
from dagpost.errors import InputError
from dagpost.typing import Graph, Graphs

COUNTS = (1, 1, 3, 25, 543, 29281, 3781503, 1138779265)
"""Number of labelled DAGs on 0, 1, 2, … nodes (OEIS A003024)."""

LARGEST = 6
"""Largest number of nodes to enumerate."""


@njit
def _descendants(parents, d):
    """Return the bit set of descendants of each node, itself included, from bit sets of parents."""
    below = np.empty(d, dtype=np.int64)
    for i in range(d):
        below[i] = 1 << i
    for _ in range(d):
        for j in range(d):
            for i in range(d):
                if parents[j] >> i & 1:
                    below[i] |= below[j]
    return below


@njit
def _extend(smaller, d, out):
    """Write the DAGs on d + 1 nodes to `out`, given those on d nodes; return their number.

    Every DAG on d + 1 nodes restricts to exactly one DAG on the first d. The new node takes children C and any parents
    that are not descendants of C. Graphs are parent bit sets.
    """
    count = 0
    for m in range(smaller.shape[0]):
        below = _descendants(smaller[m], d)
        for children in range(1 << d):
            blocked = 0
            for c in range(d):
                if children >> c & 1:
                    blocked |= below[c]
            free = ((1 << d) - 1) & ~blocked
            parents = free
            while True:
                for j in range(d):
                    out[count, j] = smaller[m, j] | ((children >> j & 1) << d)
                out[count, d] = parents
                count += 1
                if parents == 0:
                    break
                parents = (parents - 1) & free
    return count


def all_dags(d: int) -> Graphs:
    """Return every DAG on `d` nodes.

    Parameters
    ----------
    d
        Number of nodes, 1 to 6. There are 29,281 DAGs on 5 nodes and 3,781,503 on 6 (136 MB).

    Returns
    -------
    Graphs
        Adjacency matrices of shape (m, d, d).

    Examples
    --------
    >>> len(all_dags(3))
    25
    """
    if not 1 <= d <= LARGEST:
        raise InputError(f"all_dags({d}): can list the DAGs on 1 to {LARGEST} nodes only")
    parents = np.zeros((1, 1), dtype=np.int64)
    for size in range(1, d):
        larger = np.empty((COUNTS[size + 1], size + 1), dtype=np.int64)
        written = _extend(parents, size, larger)
        assert written == len(larger)
        parents = larger
    # bit i of parents[m, j] -> graphs[m, i, j]
    return (parents[:, None, :] >> np.arange(d)[None, :, None] & 1).astype(np.bool_)


def erdos_renyi_dag(rng: np.random.Generator, d: int, probability: float) -> Graph:
    """Return a DAG in which each pair of nodes is joined with the given probability, along a random node order."""
    below = np.triu(rng.random((d, d)) < probability, 1)
    return _relabel(rng, below)


def scale_free_dag(rng: np.random.Generator, d: int, edges_per_node: int) -> Graph:
    """Return a DAG grown by preferential attachment (Barabási and Albert 1999).

    Each new node points at existing nodes, preferably those with many edges, so the in-degrees follow the power law
    with exponent 3 of the scale-free prior.
    """
    attached = min(edges_per_node, d - 1)
    graph = np.zeros((d, d), dtype=np.bool_)
    if attached > 0:
        for a, b in nx.barabasi_albert_graph(d, attached, seed=rng).edges:
            graph[max(a, b), min(a, b)] = True
    return _relabel(rng, graph)


def _relabel(rng: np.random.Generator, graph: Graph) -> Graph:
    """Return the graph with its nodes randomly permuted."""
    order = rng.permutation(graph.shape[0])
    return np.ascontiguousarray(graph[np.ix_(order, order)])


def log_sum_of_dags(log_odds: float, d: int) -> float:
    """Return `log sum_G exp(log_odds * |G|)` over all DAGs on d nodes, in O(d³).

    The recursion over layers above, with `D(u, r) = (1 + x)^u - (1 + x)^(u - r)` for the odds x.
    """
    if d <= 1:
        return 0.0
    log_factor = np.logaddexp(0.0, log_odds)  # log(1 + x)
    log_factorials = gammaln(np.arange(d + 1) + 1)
    log_b = np.full((d + 1, d + 1), -inf)
    log_b[d] = 0.0
    for u in range(d - 1, 0, -1):
        r, t = np.arange(1, u + 1), np.arange(1, d - u + 1)
        step = (u - r) * log_factor + np.log(np.expm1(r * log_factor))
        ways = log_factorials[d - u] - log_factorials[t] - log_factorials[d - u - t]
        log_b[u, r] = logsumexp(ways + log_b[u + t, t] + np.outer(step, t), axis=1)
    t = np.arange(1, d + 1)
    return log_sum_exp(log_factorials[d] - log_factorials[t] - log_factorials[d - t] + log_b[t, t])


class InDegreeLayers:
    """Exact normaliser and draws of `p(G) ∝ prod_j exp(log_weight(in-degree of j))` over DAGs on d nodes.

    Parameters
    ----------
    log_weight
        Log factor of a node by its in-degree.
    d
        Number of nodes.
    """

    def __init__(self, log_weight: Callable[[int], float], d: int):
        self.d = d
        self.log_weight = np.array([log_weight(p) for p in range(d)])
        self._log_d = np.full((d + 1, d + 1), -inf)  # log D(u, r)
        for u in range(1, d):
            for r in range(1, u + 1):
                self._log_d[u, r] = log_sum_exp(self._parent_counts(u, r))
        self._log_b = np.full((d + 1, d + 1), -inf)
        self._log_b[d, :] = 0.0
        for u in range(d - 1, 0, -1):
            for r in range(1, u + 1):
                self._log_b[u, r] = log_sum_exp(self._next_layers(u, r))
        self.log_normaliser = log_sum_exp(self._next_layers(0, 0))

    def _parent_counts(self, u: int, r: int) -> np.ndarray:
        """Return the log weight of each in-degree p for a node with at least one parent in the last layer."""
        out = np.full(u + 1, -inf)
        for p in range(1, u + 1):
            ways = comb(u, p) - comb(u - r, p)
            if ways:
                out[p] = log(ways) + self.log_weight[p]
        return out

    def _next_layers(self, u: int, r: int) -> np.ndarray:
        """Return the log weight of each size t = 0, 1, … of the next layer."""
        step = self.log_weight[0] if u == 0 else self._log_d[u, r]
        out = np.full(self.d - u + 1, -inf)
        for t in range(1, self.d - u + 1):
            out[t] = log(comb(self.d - u, t)) + t * step + self._log_b[u + t, t]
        return out

    def sample(self, rng: np.random.Generator) -> Graph:
        """Return one exact draw."""
        nodes = rng.permutation(self.d)
        graph = np.zeros((self.d, self.d), dtype=np.bool_)
        u = r = 0
        while u < self.d:
            t = _sample_index(rng, self._next_layers(u, r))
            for j in nodes[u : u + t]:
                if u > 0:
                    graph[self._parents(rng, nodes[:u], r), j] = True
            u, r = u + t, t
        return graph

    def _parents(self, rng: np.random.Generator, placed: np.ndarray, r: int) -> np.ndarray:
        """Draw the parents of a new node from the placed nodes, at least one from the last layer (of size r)."""
        u = len(placed)
        p = _sample_index(rng, self._parent_counts(u, r))
        # k of the p parents come from the last layer, k >= 1
        ways = np.array([log(w) if (w := comb(r, k) * comb(u - r, p - k)) and k else -inf for k in range(p + 1)])
        k = _sample_index(rng, ways)
        earlier = rng.choice(placed[: u - r], p - k, replace=False)
        return np.concatenate([earlier, rng.choice(placed[u - r :], k, replace=False)])


def _sample_index(rng: np.random.Generator, log_weights: np.ndarray) -> int:
    """Draw an index with probability proportional to `exp(log_weights)`."""
    weights = np.exp(log_weights - log_weights.max())
    return int(rng.choice(len(weights), p=weights / weights.sum()))


MOST_COLUMNS = 12
"""Most nodes for which all parent sets are listed: 2,048 per node."""


def all_columns(d: int) -> Bool[np.ndarray, "s d d"]:
    """Return 2^(d-1) matrices whose columns j run through all sets of nodes other than j.

    >>> all_columns(3).shape
    (4, 3, 3)
    """
    if d > MOST_COLUMNS:
        raise InputError(f"all parent sets of {d} nodes are too many, at most {MOST_COLUMNS} nodes: use an estimator "
                         "that samples them, 'gumbel', 'score' or 'flip'")  # fmt: skip
    code = np.arange(1 << (d - 1))
    out = np.zeros((len(code), d, d), dtype=np.bool_)
    for j in range(d):
        for bit, i in enumerate(i for i in range(d) if i != j):
            out[:, i, j] = code >> bit & 1
    return out
