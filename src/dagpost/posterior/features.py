"""What graphs say, averaged over the posterior: ancestors, paths, parent sets, features of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from dagpost.errors import InputError
from dagpost.graphs.reachability import descendants
from dagpost.posterior.chains import chain_error, chain_of_draws
from dagpost.typing import Graph

if TYPE_CHECKING:
    from dagpost.posterior.posterior import Posterior


class Expectation(NamedTuple):
    """A posterior mean and its Monte Carlo standard error."""

    mean: float
    error: float


class ParentSet(NamedTuple):
    """A set of parents and its posterior probability."""

    parents: tuple[str, ...]
    probability: float


class Parents(NamedTuple):
    """Of one node: the probability of each parent, most probable first, and the most probable parent sets."""

    probabilities: pd.Series
    sets: list[ParentSet]


def ancestor_matrix(post: Posterior) -> Float[np.ndarray, "d d"]:
    """`Pr(i is an ancestor of j)`."""
    found = np.einsum("m,mij->ij", post.weights, descendants(post.graphs), optimize=True)
    return np.minimum(found, 1.0)  # weights sum to one up to rounding


def path_probability(post: Posterior, nodes: tuple[str | int, ...]) -> float:
    """Probability that every edge of the path through these nodes, in this order, is there."""
    if len(nodes) < 2:
        raise InputError("a path needs at least two nodes")
    path = [post.index(node) for node in nodes]
    there = post.graphs[:, path[:-1], path[1:]].all(axis=1)
    return float(post.weights @ there)


def expectation(post: Posterior, feature: Callable[[Graph], Any]) -> Expectation:
    """`sum_m w_m f(G_m)`, and its Monte Carlo standard error."""
    used = np.flatnonzero(post.weights > 0)
    values = np.array([float(feature(graph)) for graph in post.graphs[used]])
    return weighted_mean(values, post.weights[used], chain_of_draws(post), post.is_exhaustive)


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


def parent_sets(post: Posterior, j: int) -> list[ParentSet]:
    """All parent sets of node j among the graphs, most probable first."""
    sets, member = np.unique(post.graphs[:, :, j], axis=0, return_inverse=True)
    weight = np.bincount(member.reshape(-1), weights=post.weights)
    names = np.array(post.names, dtype=object)
    order = np.argsort(-weight, kind="stable")
    return [ParentSet(tuple(names[sets[s]]), float(weight[s])) for s in order if weight[s] > 0]


def edges_of(post: Posterior, graph: Graph) -> list[str]:
    """The edges of a graph by name: "a -> b", and "a - b" where a class leaves the direction open."""
    graph = np.asarray(graph, dtype=np.bool_)
    out = []
    for i, j in zip(*np.nonzero(graph)):
        if not graph[j, i]:
            out.append(f"{post.names[i]} -> {post.names[j]}")
        elif i < j:
            out.append(f"{post.names[i]} - {post.names[j]}")
    return out
