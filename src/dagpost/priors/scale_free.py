"""The scale-free prior: a few hubs with many parents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from dagpost._util.numerics import generator
from dagpost.errors import positive, whole_number
from dagpost.graphs.random import scale_free_dag
from dagpost.priors.base import InDegreePrior
from dagpost.typing import Graph, Key


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
