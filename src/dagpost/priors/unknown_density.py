"""The prior of unknown density: Erdős–Rényi graphs whose edge probability is learnt from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dagpost._util.environment import cached_by_value
from dagpost._util.numerics import generator
from dagpost.errors import InputError, positive
from dagpost.graphs.dags import erdos_renyi_dag, log_sum_of_dags
from dagpost.priors.base import Component, GraphPrior
from dagpost.priors.in_degree import ErdosRenyi
from dagpost.typing import Graph, Key, Scalar, SoftGraph


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
    past
        Number of nodes that are roots, no two of them adjacent, as the past of a time series is: densities are equally
        probable among the DAGs of that kind, to which knowledge must restrict the prior (`informed` does).

    Examples
    --------
    >>> import dagpost as dp
    >>> data = dp.simulate(nodes=4, observations=20, seed=1).train
    >>> learnt, fixed = (dp.exact(data, prior=p).expected_edges for p in ("unknown-density", "uniform"))
    >>> learnt < fixed
    True
    """

    edges_per_node: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
    past: int = 0
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
        Component(-_log_normaliser(q, d, prior.past) - float(np.log(len(chosen))), ErdosRenyi(probability=q))
        for q in chosen
    )


SUMMED_UP_TO = 100
"""Nodes up to which `Z(q)` is summed; beyond, its logarithm is extrapolated by a line in the number of nodes."""


def _log_normaliser(probability: float, d: int, past: int = 0) -> float:
    """Return `log Z(q)`; it hardly bends with d at a given number of edges per node.

    Edges from the past to the others are free, so that each pair sums to `q + (1 - q) = 1`; pairs within the past have
    no edge: `Z(q) = (1 - q)^C(past,2) Z_others(q)`.
    """
    if past:
        return _log_normaliser(probability, d - past) + past * (past - 1) / 2 * float(np.log1p(-probability))
    if d > SUMMED_UP_TO:
        less, most = (
            _log_normaliser(probability * (d - 1) / (size - 1), size) for size in (SUMMED_UP_TO - 20, SUMMED_UP_TO)
        )
        return most + (most - less) / 20 * (d - SUMMED_UP_TO)
    odds = float(np.log(probability) - np.log1p(-probability))
    return log_sum_of_dags(odds, d) + d * (d - 1) / 2 * float(np.log1p(-probability))
