"""Draws of Markov chains in a posterior: which chain each draw comes from, and the error of a mean over them.

Draws of a chain resemble their neighbours, so their mean is less precise than that of as many independent draws. A
posterior made of chains keeps its draws chain by chain, each in order of time, and holds in `info` how many each has.

What graphs say, averaged over the posterior: ancestors, paths, parent sets, features of one's own.

How far an edge probability may be off because it was sampled: Monte Carlo intervals, not posterior ones.

An edge probability is itself the statement of uncertainty about the edge. What is left is the error of the method that
computed it, and there are four cases:

* "exact": sums over all DAGs carry no sampling error, the interval is a point;
* "orders": the average over independent orders of the nodes, with its standard error;
* "chains": the average over all rounds of MCMC, with the standard error that batch means give for each edge;
* "graphs": a weighted set of graphs, as so many independent draws as its weights are worth, `1 / sum_m w_m²`; then
  Wilson's interval for a share, which does not collapse at 0 and 1. Particles of DiBS repel each other and are no
  independent draws, so theirs is a rough guide.

One DAG that stands for the posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import norm

from dagpost.errors import InputError
from dagpost.graphs import essential_graph
from dagpost.graphs.acyclicity import descendants
from dagpost.posterior.records import ChainDiagnostics, ExactDiagnostics
from dagpost.posterior.sample import GraphSample, chain_of_draws, chunks_of, group_equal, weighted_share
from dagpost.typing import Graph, Graphs

FEWEST_DRAWS = 4
"""Shortest chain that an effective sample size can be estimated from."""


def lengths_of_members(post: GraphSample, member: Int[np.ndarray, " n"]) -> list[int] | None:
    """Number of draws of every chain among these members, given in order; None where there are no chains."""
    chain = chain_of_draws(post)
    return None if chain is None else np.bincount(chain[member], minlength=chain[-1] + 1).tolist()


def chain_error(values: Float[np.ndarray, " n"], chain: Int[np.ndarray, " n"]) -> float:
    """Standard error of the mean, `sd / sqrt(ess)`, with the effective sample size of these values over their chains.

    It is 0 where all values are equal. Where some chain never changes, or is too short to tell how fast it does, the
    error is at least that of the chain means taken as independent; NaN where the only chain is that short.
    """
    from arviz_stats.base.array import array_stats

    if np.ptp(values) == 0:
        return 0.0
    parts = [values[chain == c] for c in np.unique(chain)]
    n = min(len(part) for part in parts)
    table = np.stack([part[:n] for part in parts])
    scale = values.std()  # ArviZ takes differences below 1e-15 for none
    within = scale * float(np.asarray(array_stats.mcse(table / scale))) if n >= FEWEST_DRAWS else np.nan
    if n >= FEWEST_DRAWS and (np.ptp(table, axis=1) > 0).all():
        return within
    if len(table) == 1:
        return np.nan
    between = np.sqrt(np.var([part.mean() for part in parts], ddof=1) / len(parts))
    return float(np.fmax(within, between))


class Expectation(NamedTuple):
    """A posterior mean and its Monte Carlo standard error: numbers, or arrays for functions that return arrays."""

    mean: Any
    error: Any


class ParentSet(NamedTuple):
    """A set of parents and its posterior probability."""

    parents: tuple[str, ...]
    probability: float


class Parents(NamedTuple):
    """Of one node: the probability of each parent, most probable first, and the most probable parent sets."""

    probabilities: pd.Series
    sets: list[ParentSet]


def ancestor_matrix(post: GraphSample) -> Float[np.ndarray, "d d"]:
    """`Pr(i is an ancestor of j)`."""
    found = weighted_share(post.weights, post.graphs, descendants)
    return np.minimum(found, 1.0)  # weights sum to one up to rounding


def path_probability(post: GraphSample, nodes: tuple[str | int, ...]) -> float:
    """Probability that every edge of the path through these nodes, in this order, is there."""
    if len(nodes) < 2:
        raise InputError("a path needs at least two nodes")
    path = [post.index(node) for node in nodes]
    there = post.graphs[:, path[:-1], path[1:]].all(axis=1)
    return float(post.weights @ there)


def values_of(feature: Callable[[Graph], Any], graphs: Graphs) -> Float[np.ndarray, "n ..."]:
    """Return a number, or an array of one shape, for each graph."""
    found = [np.asarray(feature(graph), dtype=float) for graph in graphs]
    if len(shapes := {one.shape for one in found}) > 1:
        raise InputError(f"the function returns arrays of different shapes, {' and '.join(map(str, sorted(shapes)))}")
    return np.stack(found)


def expectation(post: GraphSample, feature: Callable[[Graph], Any]) -> Expectation:
    """`sum_m w_m f(G_m)`, and its Monte Carlo standard error; entry by entry where f returns arrays."""
    used = np.flatnonzero(post.weights > 0)
    weights, chain = post.weights[used], chain_of_draws(post)
    values = values_of(feature, post.graphs[used])
    if values.ndim == 1:
        return weighted_mean(values, weights, chain, post.is_exhaustive)
    columns = [weighted_mean(column, weights, chain, post.is_exhaustive) for column in values.reshape(len(used), -1).T]
    return Expectation(*(np.array(part).reshape(values.shape[1:]) for part in zip(*columns)))


def weighted_mean(
    values: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"], chain: Int[np.ndarray, " n"] | None = None,
    exhaustive: bool = False,
) -> Expectation:  # fmt: skip
    """The mean and its standard error: 0 where the graphs are all that there are; by the effective sample size of the
    values where they come from chains (`chain`, then weights are equal); else that of independent draws with these
    weights, `error² = sum_m w_m² (f_m - mean)²`."""
    mean = float(weights @ values)
    if exhaustive:
        return Expectation(mean, 0.0)
    if chain is not None:
        return Expectation(mean, chain_error(values, chain))
    return Expectation(mean, float(np.sqrt(weights**2 @ (values - mean) ** 2)))


def parent_sets(post: GraphSample, j: int) -> list[ParentSet]:
    """All parent sets of node j among the graphs, most probable first."""
    sets, member = np.unique(post.graphs[:, :, j], axis=0, return_inverse=True)
    weight = np.bincount(member.reshape(-1), weights=post.weights)
    names = np.array(post.names, dtype=object)
    order = np.argsort(-weight, kind="stable")
    return [ParentSet(tuple(names[sets[s]]), float(weight[s])) for s in order if weight[s] > 0]


def edges_of(post: GraphSample, graph: Graph) -> list[str]:
    """The edges of a graph by name: "a -> b", and "a - b" where a class leaves the direction open."""
    graph = np.asarray(graph, dtype=np.bool_)
    out = []
    for i, j in zip(*np.nonzero(graph)):
        if not graph[j, i]:
            out.append(f"{post.names[i]} -> {post.names[j]}")
        elif i < j:
            out.append(f"{post.names[i]} - {post.names[j]}")
    return out


Source = Literal["exact", "orders", "chains", "graphs"]


def equivalence_classes(post: GraphSample, top: int | None) -> list[tuple[Graph, float]]:
    """Return the essential graphs of Markov equivalence classes and their probabilities, most probable first."""
    size = post.nodes**2
    classes, member = group_equal(essential_graph(post.graphs[some]) for some in chunks_of(post.graphs))
    weight = np.bincount(member, weights=post.weights)

    def graph(row: bytes) -> Graph:
        bits = np.unpackbits(np.frombuffer(row, np.uint8), count=size)
        return bits.astype(np.bool_).reshape(post.nodes, post.nodes)

    return [(graph(classes[c]), float(weight[c])) for c in np.argsort(-weight, kind="stable")[:top]]


class EdgeIntervals(NamedTuple):
    """Bounds for every edge probability, and where they come from."""

    lower: Float[np.ndarray, "d d"]
    upper: Float[np.ndarray, "d d"]
    source: Source


def edge_intervals(post: GraphSample, level: float) -> EdgeIntervals:
    """Central intervals of this coverage."""
    if isinstance(level, bool) or not 0 < level < 1:
        raise InputError(f"level={level!r}: give a probability between 0 and 1")
    p, z = post.edge_marginals, float(norm.ppf((1 + level) / 2))
    diagnostics = post.record.diagnostics
    exact = isinstance(diagnostics, ExactDiagnostics)
    errors = diagnostics.edge_errors if isinstance(diagnostics, ExactDiagnostics | ChainDiagnostics) else None
    if post.is_exhaustive or (post.marginals is not None and exact and errors is None):
        return EdgeIntervals(p, p, "exact")
    if post.marginals is not None and errors is not None:
        half = z * np.asarray(errors, dtype=float)
        return EdgeIntervals(np.maximum(p - half, 0.0), np.minimum(p + half, 1.0), "orders" if exact else "chains")
    lower, upper = wilson(p, effective_draws(post), z)
    off = ~np.eye(post.nodes, dtype=np.bool_)  # nothing is open about self-loops
    return EdgeIntervals(lower * off, upper * off, "graphs")


def interval_table(post: GraphSample, level: float) -> pd.DataFrame:
    """Edge table with these intervals; see `Posterior.edge_intervals`."""
    found, table = edge_intervals(post, level), post.edge_table()
    place = {name: j for j, name in enumerate(post.names)}
    cause, effect = ([place[name] for name in table[column].tolist()] for column in ("cause", "effect"))
    table = table.assign(lower=found.lower[cause, effect], upper=found.upper[cause, effect])
    table.attrs["source"] = found.source
    return table


def effective_draws(post: GraphSample) -> float:
    """As many draws of equal weight as the weights are worth."""
    return float(1 / np.sum(post.weights**2))


def wilson(p: np.ndarray, n: float, z: float) -> tuple[np.ndarray, np.ndarray]:
    """`(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)`.

    >>> low, high = wilson(np.array([0.0, 0.5]), 30, 1.96)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.332], [0.114, 0.668])
    """
    middle = p + z**2 / (2 * n)
    half = z * np.sqrt(np.maximum(p * (1 - p), 0.0) / n + (z / (2 * n)) ** 2)
    scale = 1 + z**2 / n
    return np.clip((middle - half) / scale, 0.0, 1.0), np.clip((middle + half) / scale, 0.0, 1.0)


def consensus(probabilities: Float[np.ndarray, "d d"], threshold: float) -> Graph:
    """Edges above the threshold, most probable first, as long as they close no cycle.

    With threshold t this is the greedy answer to: which DAG has the largest sum of `Pr(i -> j) - t` over its edges?
    At 1/2 that DAG has the smallest expected number of wrong entries in its adjacency matrix. Greedy is optimal where
    the edges above the threshold form no cycle; a weaker edge gives way where they do.
    """
    if isinstance(threshold, bool) or not 0 <= threshold < 1:
        raise InputError(f"threshold={threshold!r}: give a probability from 0, below 1")
    d = len(probabilities)
    graph = np.zeros((d, d), dtype=np.bool_)
    reach = np.eye(d, dtype=np.bool_)  # reach[i, j]: i is j, or a path leads from i to j
    for edge in np.argsort(-probabilities, axis=None, kind="stable"):
        i, j = divmod(int(edge), d)
        if probabilities[i, j] <= threshold:
            break
        if not reach[j, i]:
            graph[i, j] = True
            reach[reach[:, i]] |= reach[j]
    return graph
