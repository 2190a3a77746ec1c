"""Priors over the numbers of parents: uniform, Erdős–Rényi (independent edges), scale-free (a few hubs)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from dagpost._util.numerics import generator
from dagpost.errors import InputError, positive, whole_number
from dagpost.graphs.dags import erdos_renyi_dag, scale_free_dag
from dagpost.priors.base import InDegreePrior
from dagpost.typing import Graph, Key


@dataclass(frozen=True)
class Uniform(InDegreePrior):
    """Uniform prior, `p(G) ∝ 1` over all DAGs; `sample` draws from it exactly."""

    name: ClassVar[str] = "uniform"

    def log_in_degree(self, parents: jax.Array, d: int) -> jax.Array:
        return jnp.zeros_like(parents)

    def sample(self, key: Key, d: int) -> Graph:
        return self.sample_density(key, d)


@dataclass(frozen=True)
class ErdosRenyi(InDegreePrior):
    """Erdős–Rényi prior, `p(G) ∝ q^|G| (1 - q)^(C(d,2) - |G|)`.

    `sample`, the paper's generator, has `edges_per_node * d` edges on average. The density expects more, since it
    weighs each DAG alike, however few orders of the nodes it fits: 2.5 per node for the default on 20 nodes, 1.5 for 1.

    By default `q = 2 edges_per_node / (d - 1)`, but at most 1/2: on few nodes the expected number of edges cannot be
    reached without favouring dense graphs, and `q = 1/2` gives all DAGs equal weight.

    Parameters
    ----------
    edges_per_node
        Expected number of edges per node of the generator.
    probability
        Edge probability q between 0 and 1; overrides `edges_per_node`.

    Examples
    --------
    >>> import dagpost as dp
    >>> data = dp.simulate(nodes=4, observations=20, seed=1).train
    >>> few, many = (dp.exact(data, prior=dp.ErdosRenyi(probability=q)).expected_edges for q in (0.1, 0.5))
    >>> few < many
    True
    """

    edges_per_node: float = 2.0
    probability: float | None = None
    name: ClassVar[str] = "erdos-renyi"

    def __post_init__(self):
        positive("edges_per_node", self.edges_per_node)
        if self.probability is not None and not 0 < positive("probability", self.probability) < 1:
            raise InputError(f"probability={self.probability!r}: an edge probability lies between 0 and 1")

    def edge_probability(self, d: int) -> float:
        """Return the edge probability q for a graph on d nodes."""
        if self.probability is not None:
            return self.probability
        return min(2 * self.edges_per_node / max(d - 1, 1), 0.5)

    def log_in_degree(self, parents: jax.Array, d: int) -> jax.Array:
        q = self.edge_probability(d)
        # the C(d, 2) pairs are divided evenly: (d - 1) / 2 for each column
        return parents * jnp.log(q) + ((d - 1) / 2 - parents) * jnp.log1p(-q)

    def sample(self, key: Key, d: int) -> Graph:
        return erdos_renyi_dag(generator(key), d, self.edge_probability(d))


@dataclass(frozen=True)
class ScaleFree(InDegreePrior):
    """Scale-free prior, `p(G) ∝ prod_j (1 + number of parents of j)^(-exponent)`.

    `sample` generates graphs by preferential attachment.

    Parameters
    ----------
    edges_per_node
        Edges of each new node in `sample`; the density does not depend on it.
    exponent
        Exponent of the power law.
    """

    edges_per_node: int = 2
    exponent: float = 3.0
    name: ClassVar[str] = "scale-free"

    def __post_init__(self):
        whole_number("edges_per_node", self.edges_per_node, least=1)
        positive("exponent", self.exponent)

    def log_in_degree(self, parents: jax.Array, d: int) -> jax.Array:
        return -self.exponent * jnp.log1p(parents)

    def sample(self, key: Key, d: int) -> Graph:
        return scale_free_dag(generator(key), d, int(self.edges_per_node))
