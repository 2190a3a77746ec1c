"""How the temperatures alpha and beta grow with the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp

from dagpost.errors import positive


class Schedule(Protocol):
    """A temperature at step t = 0, 1, 2, …"""

    def __call__(self, step: jax.Array) -> jax.Array: ...


@dataclass(frozen=True)
class Linear:
    """`start + slope · t`: the paper's schedules."""

    slope: float
    start: float = 0.0

    def __post_init__(self):
        positive("slope", self.slope)

    def __call__(self, step: jax.Array) -> jax.Array:
        return self.start + self.slope * jnp.asarray(step, dtype=float)


@dataclass(frozen=True)
class Geometric:
    """From `first` to `last` over `steps` steps, by a constant factor; `last` from then on."""

    first: float
    last: float
    steps: int

    def __post_init__(self):
        positive("first", self.first)
        positive("last", self.last)

    def __call__(self, step: jax.Array) -> jax.Array:
        share = jnp.clip(jnp.asarray(step, dtype=float) / max(self.steps - 1, 1), 0.0, 1.0)
        return self.first * (self.last / self.first) ** share


@dataclass(frozen=True)
class Reheated:
    """Linear from 0 to `last` over `first` steps; then, again and again, from `low` to `last` by a constant factor
    over `cycle` steps. Each reheating lets edges that froze too early move once more."""

    last: float
    low: float
    first: int
    cycle: int

    def __post_init__(self):
        for name in ("last", "low", "first", "cycle"):
            positive(name, getattr(self, name))

    def __call__(self, step: jax.Array) -> jax.Array:
        step = jnp.asarray(step, dtype=float)
        share = jnp.mod(step - self.first, self.cycle) / self.cycle
        return jnp.where(step < self.first, self.last * step / self.first, self.low * (self.last / self.low) ** share)


@dataclass(frozen=True)
class Constant:
    """The same at every step."""

    value: float

    def __call__(self, step: jax.Array) -> jax.Array:
        return jnp.full(jnp.shape(step), self.value)
