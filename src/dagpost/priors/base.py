"""What a graph prior is: an unnormalised log density over DAGs, by column where it decomposes."""

from __future__ import annotations

import abc
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from dagpost._util.environment import cached_by_value
from dagpost._util.numerics import generator
from dagpost.graphs.random import InDegreeLayers
from dagpost.priors.constraints import Constraints
from dagpost.typing import Graph, Key, Scalar, SoftColumn, SoftGraph


class ColumnTable(NamedTuple):
    """`log_column(g_j, j) = by_count[j, number of counted parents] + sum of by_edge[i, j] over parents i`.

    It is -inf where a required parent is missing, and where there are more than `most` parents.
    """

    by_count: Float[np.ndarray, "d d"]
    by_edge: Float[np.ndarray, "d d"]
    uncounted: Bool[np.ndarray, "d d"] | None = None  # edges i -> j that do not count; None: all count
    required: Bool[np.ndarray, "d d"] | None = None
    most: int | None = None


class GraphPrior(abc.ABC):
    """`log p(G) = sum_j log_column(g_j, j) + const` over DAGs.

    A prior that decomposes by column gives `log_column`; one that does not sets `decomposes = False` and
    gives `log_density`. Both are JAX functions, defined for hard (0/1) and for soft graphs in [0, 1].
    """

    name: ClassVar[str]
    decomposes: ClassVar[bool] = True

    @property
    def constraints(self) -> Constraints | None:
        """What is known about single edges, if anything is: graphs that break it have density 0."""
        return None

    def log_column(self, column: SoftColumn, node: int | jax.Array) -> Scalar:
        """The factor of one node's parents; `column[i]` is the (soft) edge i -> node."""
        raise NotImplementedError(f"the prior {self.name!r} does not decompose by column")

    def log_density(self, graph: SoftGraph) -> Scalar:
        """Unnormalised `log p(G)`."""
        graph = jnp.asarray(graph, dtype=float)
        nodes = jnp.arange(graph.shape[-1])
        return jnp.sum(jax.vmap(self.log_column, in_axes=(1, 0))(graph, nodes))

    def log_soft_density(self, graph: SoftGraph) -> Scalar:
        """The same, finite for every soft graph: `constraints` are left out, for the caller to enforce."""
        return self.log_density(graph)

    def column_table(self, d: int) -> ColumnTable | None:
        """`log_column` as a table for compiled loops, for priors that have such a form."""
        return None

    @abc.abstractmethod
    def sample(self, key: Key, d: int) -> Graph:
        """A random DAG as the experiments of the paper generate it."""


class InDegreePrior(GraphPrior):
    """A prior that sees nothing but the number of parents of each node.

    Its normaliser and exact draws from the density are available for every `d`. The generators of the
    paper (`sample`) follow a slightly different law: a DAG with many topological orders comes up more
    often there than its density says. Calibration is therefore tested with `sample_density`.
    """

    @abc.abstractmethod
    def log_in_degree(self, parents: jax.Array, d: int) -> jax.Array:
        """The log factor of a node with this (soft) number of parents, in a graph on d nodes."""

    def log_column(self, column: SoftColumn, node: int | jax.Array) -> Scalar:
        column = jnp.asarray(column)
        return self.log_in_degree(jnp.sum(column), column.shape[0])

    def column_table(self, d: int) -> ColumnTable:
        return ColumnTable(np.tile(_by_in_degree(self, d), (d, 1)), np.zeros((d, d)))

    def log_normaliser(self, d: int) -> float:
        """`log sum_G exp(log_density(G))` over all DAGs on d nodes, exact."""
        return _layers(self, d).log_normaliser

    def sample_density(self, key: Key, d: int) -> Graph:
        """An exact draw from the normalised density."""
        return _layers(self, d).sample(generator(key))


@cached_by_value
def _layers(prior: InDegreePrior, d: int) -> InDegreeLayers:
    table = _by_in_degree(prior, d).tolist()
    return InDegreeLayers(lambda p: table[p], d)


@cached_by_value
def _by_in_degree(prior: InDegreePrior, d: int) -> Float[np.ndarray, " d"]:
    with jax.enable_x64(True):
        return np.array([float(prior.log_in_degree(jnp.asarray(float(p)), d)) for p in range(max(d, 1))])
