"""Base classes of graph priors: unnormalised log densities over DAGs, by column where they decompose."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from dagpost._util.environment import cached_by_value
from dagpost._util.numerics import generator
from dagpost.graphs.dags import InDegreeLayers
from dagpost.priors.constraints import Constraints
from dagpost.typing import Graph, Key, Nodes, Scalar, SoftColumn, SoftGraph


class ColumnTable(NamedTuple):
    """Table form of a prior that decomposes by column, for compiled loops.

    `log_column(g_j, j) = by_count[j, number of counted parents] + sum of by_edge[i, j] over parents i`, and -inf where
    a required parent is missing or where there are more than `most` parents.

    Attributes
    ----------
    by_count
        Log factor by node and number of counted parents.
    by_edge
        Log factor of each edge i -> j; -inf for a forbidden edge.
    uncounted
        Edges i -> j that do not count in `by_count`; None if all count.
    required
        Edges that must be present; None if there are none.
    most
        Largest number of parents; None for no limit.
    """

    by_count: Float[np.ndarray, "d d"]
    by_edge: Float[np.ndarray, "d d"]
    uncounted: Bool[np.ndarray, "d d"] | None = None
    required: Bool[np.ndarray, "d d"] | None = None
    most: int | None = None

    def counted(self, node: int, parents: Nodes) -> int:
        """Return how many of the parents of a node count in `by_count`."""
        return len(parents) if self.uncounted is None else int((~self.uncounted[parents, node]).sum())

    def log_column(self, node: int, parents: Nodes) -> float:
        """Return the log factor of a node with these parents."""
        required = () if self.required is None else np.flatnonzero(self.required[:, node])
        if not np.isin(required, parents).all() or (self.most is not None and len(parents) > self.most):
            return -np.inf
        return float(self.by_count[node, self.counted(node, parents)] + self.by_edge[parents, node].sum())


class Component(NamedTuple):
    """A part of a prior that is a mixture.

    Attributes
    ----------
    log_weight
        Log factor of the part.
    prior
        A prior that decomposes by column.
    """

    log_weight: float
    prior: GraphPrior


class GraphPrior(abc.ABC):
    """Base class of priors over DAGs, `log p(G) = sum_j log_column(g_j, j) + const`.

    A user-defined prior that decomposes by column implements `log_column`; one that does not sets `decomposes = False`
    and implements `log_density`. Both are JAX functions, defined for hard (0/1) and for soft graphs in [0, 1].
    """

    name: ClassVar[str]
    """Name of the prior, shown in messages and reports."""

    decomposes: ClassVar[bool] = True
    """Whether the density is a product over columns."""

    @property
    def constraints(self) -> Constraints | None:
        """Hard constraints and odds of single edges, or None; graphs that violate the constraints have density 0."""
        return None

    def log_column(self, column: SoftColumn, node: int | jax.Array) -> Scalar:
        """Return the log factor of one node's parents.

        Parameters
        ----------
        column
            Edges into the node; `column[i]` is the (soft) edge i -> node.
        node
            Index of the node.
        """
        raise NotImplementedError(f"the prior {self.name!r} does not decompose by column")

    def log_density(self, graph: SoftGraph) -> Scalar:
        """Return the unnormalised `log p(G)`.

        Parameters
        ----------
        graph
            Adjacency matrix, hard or soft.
        """
        graph = jnp.asarray(graph, dtype=float)
        nodes = jnp.arange(graph.shape[-1])
        return jnp.sum(jax.vmap(self.log_column, in_axes=(1, 0))(graph, nodes))

    def log_soft_density(self, graph: SoftGraph) -> Scalar:
        """Return `log_density` without the hard constraints, which the caller enforces; finite for every soft graph."""
        return self.log_density(graph)

    def components(self, d: int) -> tuple[Component, ...]:
        """Return priors that decompose by column and whose weighted sum is this prior on d nodes.

        They may differ only in a factor for each edge that counts (`ColumnTable.by_count`). A prior that decomposes is
        its own and only component; one that is no such mixture has none, and only methods that need no families take
        it.
        """
        return (Component(0.0, self),) if self.decomposes else ()

    def log_normaliser(self, d: int) -> float | None:
        """Return `log sum_G exp(log_density(G))` over all DAGs on d nodes; None where no short way is known."""
        return None

    def column_table(self, d: int) -> ColumnTable | None:
        """Return `log_column` on d nodes as a table for compiled loops; None for a prior without such a form."""
        return None

    @abc.abstractmethod
    def sample(self, key: Key, d: int) -> Graph:
        """Return a random DAG on d nodes, generated as in the paper's experiments."""


def family_prior(prior: GraphPrior, d: int) -> Callable[[int, Nodes], float]:
    """Return the function `(node, parents) -> log factor` of a prior that decomposes by column, on d nodes."""
    table = prior.column_table(d)
    if table is not None:
        return table.log_column

    def log_factor(node: int, parents: Nodes) -> float:
        with jax.enable_x64(True):
            return float(prior.log_column(jnp.zeros(d).at[parents].set(1.0), node))

    return log_factor


class InDegreePrior(GraphPrior):
    """Base class of priors that depend only on the number of parents of each node.

    The normaliser and exact draws from the density are available for every `d`. The paper's generators (`sample`)
    follow a slightly different distribution, in which DAGs with many topological orders are more frequent than under
    the density. Calibration is therefore tested with `sample_density`.
    """

    @abc.abstractmethod
    def log_in_degree(self, parents: jax.Array, d: int) -> jax.Array:
        """Return the log factor of a node with this (soft) number of parents, in a graph on d nodes."""

    def log_column(self, column: SoftColumn, node: int | jax.Array) -> Scalar:
        column = jnp.asarray(column)
        return self.log_in_degree(jnp.sum(column), column.shape[0])

    def column_table(self, d: int) -> ColumnTable:
        return ColumnTable(np.tile(_by_in_degree(self, d), (d, 1)), np.zeros((d, d)))

    def log_normaliser(self, d: int) -> float:
        """Return the exact `log sum_G exp(log_density(G))` over all DAGs on d nodes."""
        return _layers(self, d).log_normaliser

    def sample_density(self, key: Key, d: int) -> Graph:
        """Return an exact draw from the normalised density on d nodes."""
        return _layers(self, d).sample(generator(key))


@cached_by_value
def _layers(prior: InDegreePrior, d: int) -> InDegreeLayers:
    """Return the tables for exact draws, cached."""
    table = _by_in_degree(prior, d).tolist()
    return InDegreeLayers(lambda p: table[p], d)


@cached_by_value
def _by_in_degree(prior: InDegreePrior, d: int) -> Float[np.ndarray, " d"]:
    """Return the log factor of each in-degree 0, 1, …, d - 1, in float64."""
    with jax.enable_x64(True):
        return np.array([float(prior.log_in_degree(jnp.asarray(float(p)), d)) for p in range(max(d, 1))])
