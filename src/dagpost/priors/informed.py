"""A prior combined with knowledge about single edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dagpost._util.numerics import generator
from dagpost.errors import InputError
from dagpost.priors.base import ColumnTable, Component, GraphPrior
from dagpost.priors.constraints import Constraints
from dagpost.priors.knowledge import Knowledge
from dagpost.priors.unknown_density import UnknownDensity
from dagpost.typing import Graph, Graphs, Key, Scalar, SoftColumn, SoftGraph


@dataclass(frozen=True)
class InformedPrior(GraphPrior):
    """A base prior restricted to graphs that satisfy constraints, with given odds of single edges.

    Graphs that violate the constraints have density 0. If the probability p of an edge is given, the odds of two DAGs
    that differ only in this edge are `p / (1 - p)`: the base prior is evaluated on the graph without such edges, and
    each one that is present adds `log p / (1 - p)`. So p is the probability of the edge given all other edges, where
    both DAGs are possible; its marginal probability also depends on acyclicity and on the other edges.

    Parameters
    ----------
    base
        Prior without constraints.
    known
        Constraints and odds by node index.
    """

    base: GraphPrior
    known: Constraints
    name: ClassVar[str] = "informed"

    def __post_init__(self):
        if self.base.constraints is not None:
            raise InputError("the prior carries knowledge already: give all knowledge at once")

    @property
    def constraints(self) -> Constraints:
        return self.known

    @property
    def decomposes(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.base.decomposes

    def log_column(self, column: SoftColumn, node: int | jax.Array) -> Scalar:
        column = jnp.asarray(column)
        return jnp.where(self._violates(column, node), -jnp.inf, self._soft_column(column, node))

    def log_density(self, graph: SoftGraph) -> Scalar:
        graph = jnp.asarray(graph, dtype=float)
        violated = jax.vmap(self._violates, in_axes=(1, 0))(graph, jnp.arange(graph.shape[-1]))
        return jnp.where(jnp.any(violated), -jnp.inf, self.log_soft_density(graph))

    def log_soft_density(self, graph: SoftGraph) -> Scalar:
        graph = jnp.asarray(graph, dtype=float)
        return self.base.log_density(jnp.where(self.known.stated, 0.0, graph)) + jnp.sum(self.known.log_odds * graph)

    def log_densities(
        self, graphs: Graphs, of_base: Callable[[Graphs], Float[np.ndarray, " m"]]
    ) -> Float[np.ndarray, " m"]:
        """Return `log_density` of many graphs, in NumPy.

        Parameters
        ----------
        graphs
            Adjacency matrices of shape (m, d, d).
        of_base
            Function that returns the log densities of the base prior.
        """
        odds = np.einsum("mij,ij->m", graphs, self.known.log_odds)
        return np.where(self.known.honoured_by(graphs), of_base(graphs & ~self.known.stated) + odds, -np.inf)

    def _soft_column(self, column, node):
        """Return the log factor of a column without the hard constraints."""
        stated, log_odds = (jnp.asarray(m)[:, node] for m in (self.known.stated, self.known.log_odds))
        return self.base.log_column(jnp.where(stated, 0.0, column), node) + jnp.sum(log_odds * column)

    def _violates(self, column, node):
        """Return whether the parents violate the hard constraints; a soft column is rounded first."""
        present = column > 0.5
        allowed, required = (jnp.asarray(m)[:, node] for m in (self.known.allowed, self.known.required))
        crowded = jnp.sum(present) > self.known.most_parents
        return jnp.any(present & ~allowed) | jnp.any(~present & required) | crowded

    def components(self, d: int) -> tuple[Component, ...]:
        parts = self.base.components(d)
        return tuple(Component(part.log_weight, replace(self, base=part.prior)) for part in parts)

    def column_table(self, d: int) -> ColumnTable | None:
        table = self.base.column_table(d)
        if table is None:
            return None
        known = self.known
        by_edge = np.where(known.stated, known.log_odds, table.by_edge)
        return ColumnTable(
            by_count=table.by_count,
            by_edge=np.where(known.allowed, by_edge, -np.inf),
            uncounted=known.stated if table.uncounted is None else known.stated | table.uncounted,
            required=known.required if table.required is None else known.required | table.required,
            most=known.most_parents if table.most is None else min(known.most_parents, table.most),
        )

    def sample(self, key: Key, d: int) -> Graph:
        """Return a sample of the base prior, repaired to satisfy the constraints; odds of single edges are ignored."""
        if d != self.known.nodes:
            raise InputError(f"the prior knows about {self.known.nodes} nodes, not {d}")
        key_graph, key_scores = jax.random.split(key)
        scores = generator(key_scores).random((d, d))
        return self.known.repaired(np.asarray(self.base.sample(key_graph, d), dtype=np.bool_), scores)


def informed(
    prior: GraphPrior, knowledge: Knowledge | None, names: Sequence[str], past: Sequence[str] = ()
) -> GraphPrior:
    """Return the prior combined with knowledge.

    Parameters
    ----------
    prior
        Prior over graphs.
    knowledge
        Knowledge by column name; None for none.
    names
        Names of the columns.
    past
        Names of past columns, which are roots: no edge leads into the past.

    Returns
    -------
    GraphPrior
        An `InformedPrior`, or `prior` itself if the knowledge is empty.
    """
    known = prior.constraints
    if known is not None and known.nodes != len(names):
        raise InputError(f"the prior knows about {known.nodes} nodes, but the data have {len(names)} columns")
    if past:
        knowledge = _with_past(knowledge or Knowledge(), names, past)
        prior = replace(prior, past=len(past)) if isinstance(prior, UnknownDensity) else prior
    constraints = None if knowledge is None else knowledge.bound(names)
    if constraints is None or constraints == Constraints(len(names)):
        return prior
    return InformedPrior(prior, constraints)


def _with_past(knowledge: Knowledge, names: Sequence[str], past: Sequence[str]) -> Knowledge:
    """Return the knowledge with past columns as roots; an edge into the past that it calls possible is an error."""
    knowledge = knowledge.resolved(names)
    for cause, effect in (*knowledge.required, *knowledge.probabilities):
        if effect in past:
            raise InputError(f"the edge '{cause} -> {effect}' of the knowledge leads into the past: leave it out")
    return replace(knowledge, roots=tuple(dict.fromkeys((*knowledge.roots, *past))))
