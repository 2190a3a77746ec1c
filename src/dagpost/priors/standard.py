"""The priors to choose from by name: uniform, Erdős–Rényi, of unknown density, scale-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dagpost._util.environment import cached_by_value
from dagpost._util.numerics import generator
from dagpost.errors import InputError, positive, whole_number
from dagpost.graphs.random import erdos_renyi_dag, log_sum_of_dags, scale_free_dag
from dagpost.priors.base import Component, GraphPrior, InDegreePrior
from dagpost.typing import Graph, Key, Scalar, SoftGraph


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
class UnknownDensity(GraphPrior):
    """Mixture of Erdős–Rényi priors, `p(G) = mean over q of q^|G| (1 - q)^(C(d,2) - |G|) / Z(q)`.

    The data say how many edges there are: from one for every eight nodes to four per node, with steps of a factor of
    two that are equally probable beforehand. `Z(q)` is the sum over all DAGs (`SUMMED_UP_TO`). On few nodes, where
    `q = 2 edges_per_node / (d - 1)` would exceed 1/2, the denser steps are left out.

    Parameters
    ----------
    edges_per_node
        The densities.

    Examples
    --------
    >>> import dagpost as dp
    >>> data = dp.simulate(nodes=4, observations=20, seed=1).train
    >>> learnt, fixed = (dp.exact(data, prior=p).expected_edges for p in ("unknown-density", "uniform"))
    >>> learnt < fixed
    True
    """

    edges_per_node: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
    name: ClassVar[str] = "unknown-density"
    decomposes: ClassVar[bool] = False

    def __post_init__(self):
        if isinstance(self.edges_per_node, int | float):
            object.__setattr__(self, "edges_per_node", (self.edges_per_node,))
        if not self.edges_per_node:
            raise InputError("edges_per_node=(): name at least one density")
        for density in self.edges_per_node:
            positive("edges_per_node", density)

    def edge_probabilities(self, d: int) -> tuple[float, ...]:
        """Return the edge probabilities q on d nodes, without repetition."""
        return tuple(sorted({ErdosRenyi(density).edge_probability(d) for density in self.edges_per_node}))

    def components(self, d: int) -> tuple[Component, ...]:
        return _components(self, d)

    def log_density(self, graph: SoftGraph) -> Scalar:
        graph = jnp.asarray(graph, dtype=float)
        parts = [part.log_weight + part.prior.log_density(graph) for part in self.components(graph.shape[-1])]
        return jax.scipy.special.logsumexp(jnp.stack(parts))

    def log_normaliser(self, d: int) -> float:
        return 0.0

    def sample_density(self, key: Key, d: int) -> Graph:
        """Return an exact draw from the density on d nodes."""
        key_density, key_graph = jax.random.split(key)
        chosen = generator(key_density).choice(self.edge_probabilities(d))
        return ErdosRenyi(probability=float(chosen)).sample_density(key_graph, d)

    def sample(self, key: Key, d: int) -> Graph:
        rng = generator(key)
        return erdos_renyi_dag(rng, d, float(rng.choice(self.edge_probabilities(d))))


@cached_by_value
def _components(prior: UnknownDensity, d: int) -> tuple[Component, ...]:
    """Return the Erdős–Rényi priors, each normalised over all DAGs."""
    chosen = prior.edge_probabilities(d)
    return tuple(
        Component(-_log_normaliser(q, d) - float(np.log(len(chosen))), ErdosRenyi(probability=q)) for q in chosen
    )


SUMMED_UP_TO = 100
"""Nodes up to which `Z(q)` is summed; beyond, its logarithm is extrapolated by a line in the number of nodes."""


def _log_normaliser(probability: float, d: int) -> float:
    """Return `log Z(q)`; it hardly bends with d at a given number of edges per node."""
    if d > SUMMED_UP_TO:
        less, most = (
            _log_normaliser(probability * (d - 1) / (size - 1), size) for size in (SUMMED_UP_TO - 20, SUMMED_UP_TO)
        )
        return most + (most - less) / 20 * (d - SUMMED_UP_TO)
    odds = float(np.log(probability) - np.log1p(-probability))
    return log_sum_of_dags(odds, d) + d * (d - 1) / 2 * float(np.log1p(-probability))


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
