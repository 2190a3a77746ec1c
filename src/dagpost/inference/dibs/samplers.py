"""Schedules of the temperatures alpha and beta and of step sizes, and what moves the particles along gradients.

A sampler is named "svgd", "sgld" or "hmc". The last two run a Markov chain for every particle, without interaction;
`Sgld` and `Hmc` hold their options, `chains.py` their steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
import optax

from dagpost.errors import InputError, positive, whole_number


class Schedule(Protocol):
    """A function that returns a temperature at step t = 0, 1, 2, …"""

    def __call__(self, step: jax.Array) -> jax.Array: ...


@dataclass(frozen=True)
class Linear:
    """`start + slope · t`: the paper's schedules.

    Parameters
    ----------
    slope
        Increase per step, positive.
    start
        Value at step 0.
    """

    slope: float
    start: float = 0.0

    def __post_init__(self):
        positive("slope", self.slope)

    def __call__(self, step: jax.Array) -> jax.Array:
        return self.start + self.slope * jnp.asarray(step, dtype=float)


@dataclass(frozen=True)
class Geometric:
    """From `first` to `last` by a constant factor, then constant.

    Parameters
    ----------
    first, last
        Values at the first and the last step, positive.
    steps
        Steps from `first` to `last`.
    """

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
    """Linear from 0 to `last`, then repeated cycles from `low` to `last` by a constant factor.

    Each reheating lets edges that froze too early change again.

    Parameters
    ----------
    last
        Value at the end of the linear part and of every cycle.
    low
        Value at the start of every cycle.
    first
        Steps of the linear part.
    cycle
        Steps of each cycle.
    """

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
    """The same value at every step.

    Parameters
    ----------
    value
        The temperature.
    """

    value: float

    def __call__(self, step: jax.Array) -> jax.Array:
        return jnp.full(jnp.shape(step), self.value)


@dataclass(frozen=True)
class RmsProp:
    """The paper's optimiser, RMSProp; epsilon (1e-8, inside the root) as in the reference implementation.

    Parameters
    ----------
    rate
        Learning rate.
    decay
        Decay of the running mean of squared gradients.
    """

    rate: float = 0.005
    decay: float = 0.9

    def __call__(self) -> optax.GradientTransformation:
        return optax.rmsprop(self.rate, decay=self.decay, eps=1e-8, eps_in_sqrt=True)


@dataclass(frozen=True)
class Sgld:
    """Stochastic gradient Langevin dynamics (Welling and Teh, 2011), a chain for every particle:

        x <- x + eps grad log p(x | D) + sqrt(2 eps) N(0, 1).

    There is no accept step: the error of the invariant distribution is of order eps, and estimated gradients add to it.

    Parameters
    ----------
    rate
        Step size in units of the squared length scale of the target: `eps = rate / mean squared gradient`, where the
        mean is over particles, entries and recent steps, for z and for each array of theta apart. (At equilibrium the
        mean squared gradient is the mean curvature of the log density.)
    decay
        Decay of that running mean.
    step
        Schedule of eps itself, in place of `rate`.
    """

    rate: float = 0.1
    decay: float = 0.9
    step: Schedule | None = None

    def __post_init__(self):
        positive("rate", self.rate)
        _share("decay", self.decay)
        _check_schedule(self.step)

    @property
    def evaluations(self) -> int:
        """Gradients per step."""
        return 1


@dataclass(frozen=True)
class Hmc:
    """Hamiltonian Monte Carlo, a chain for every particle; one step is one trajectory with its accept step.

    Parameters
    ----------
    leaps
        Leapfrog steps of a trajectory.
    acceptance
        Mean acceptance that the length of a leap is adapted to, for all particles together. In units of the length
        scale `1 / sqrt(mean squared gradient)`, for z and for each array of theta apart.
    decay
        Decay of the running mean of squared gradients.
    step
        Schedule of the length of a leap, in place of adaptation: the invariant distribution is then exact.
    """

    leaps: int = 10
    acceptance: float = 0.8
    decay: float = 0.9
    step: Schedule | None = None

    def __post_init__(self):
        whole_number("leaps", self.leaps, least=1)
        _share("acceptance", self.acceptance)
        _share("decay", self.decay)
        _check_schedule(self.step)

    @property
    def evaluations(self) -> int:
        """Gradients per step."""
        return self.leaps + 1


def _share(name: str, value: float) -> None:
    if isinstance(value, str | bool) or not 0 < value < 1:
        raise InputError(f"{name}={value!r}: give a number between 0 and 1")


def _check_schedule(step: Schedule | None) -> None:
    if step is not None and not callable(step):
        raise InputError(f"step={step!r}: give a schedule, such as dp.dibs.Constant({step!r}), or leave it out")


SAMPLERS: dict[str, type[Sgld] | type[Hmc] | None] = {"svgd": None, "sgld": Sgld, "hmc": Hmc}


def as_chain(sampler: str | Sgld | Hmc) -> Sgld | Hmc | None:
    """Return the options of the chains that a sampler runs; None for "svgd", which runs none."""
    if isinstance(sampler, Sgld | Hmc):
        return sampler
    if sampler not in SAMPLERS:
        raise InputError(f"sampler={sampler!r}: choose 'svgd', 'sgld' or 'hmc', or give a dp.dibs.Sgld or dp.dibs.Hmc")
    kind = SAMPLERS[sampler]
    return None if kind is None else kind()
