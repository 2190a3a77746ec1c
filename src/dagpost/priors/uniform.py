"""The uniform prior over DAGs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

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
