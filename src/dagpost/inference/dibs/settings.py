"""How the temperatures alpha and beta grow with the step.

Everything that DiBS can be told, in one immutable object.

Settings by method: as published, and our defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dagpost.errors import InputError, positive, whole_number
from dagpost.inference.dibs.estimators import Estimator
from dagpost.inference.dibs.latent import Embedding, InnerProduct
from dagpost.models import BGe, Model


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


@dataclass(frozen=True)
class RmsProp:
    """The paper's optimiser; decay and epsilon (inside the root) as in the reference implementation."""

    rate: float = 0.005
    decay: float = 0.9

    def __call__(self) -> optax.GradientTransformation:
        return optax.rmsprop(self.rate, decay=self.decay, eps=1e-8, eps_in_sqrt=True)


@dataclass(frozen=True)
class Settings:
    """How DiBS runs. `paper_settings` and `default_settings` choose them."""

    steps: int = 3000
    alpha: Schedule = field(default_factory=lambda: Linear(0.02))
    beta: Schedule = field(default_factory=lambda: Linear(1.0))
    bandwidth_z: float = 5.0
    bandwidth_theta: float = 500.0
    estimator: Estimator = field(default_factory=Estimator)
    embedding: Embedding = field(default_factory=InnerProduct)
    optimiser: RmsProp = field(default_factory=RmsProp)
    acyclicity: Literal["mean-field", "sampled"] = "mean-field"
    """`h` of the edge probabilities, or the mean of `h` over soft graphs as published."""
    acyclicity_samples: int = 32
    shared_noise: bool = True
    """One set of logistic noise for all particles of a step: each particle's estimate stays what it was."""
    collapsed: bool = False
    """Integrate the parameters out (closed-form evidence only) and draw them exactly at the end."""
    batch: int | None = None
    """Rows of a minibatch, a new one at every step; None uses all rows. For joint inference, not for closed forms."""
    scaled: bool = True
    """Whether the log likelihood of a minibatch is scaled up to all rows. The authors add it as it is, which makes the
    target that of so many rows."""
    cyclic: Literal["drop", "repair"] = "drop"
    """What becomes of particles whose graph has a cycle: dropped, or freed of the weakest edge of each cycle."""
    moves: int = 0
    """Metropolis moves that each particle's DAG makes after the last step, at the posterior `p(G | D)` itself: an
    addition, deletion or reversal of one edge. For closed-form evidence and priors that decompose."""
    parameter_steps: int = 0
    """Steps that the parameters alone take after the last one, on the DAG of their particle (`settling.py`). For joint
    inference; closed forms draw their parameters exactly."""
    memory_limit: float = 2.0
    """GiB that the intermediate values of one step may take; particles are processed in chunks to keep to it."""

    def __post_init__(self):
        whole_number("steps", self.steps, least=1)
        for name in ("bandwidth_z", "bandwidth_theta", "memory_limit"):
            positive(name, getattr(self, name))
        for name, kind in (("estimator", Estimator), ("embedding", Embedding)):
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"{name}={getattr(self, name)!r}: give an object, a {kind.__name__}")
        for name in ("alpha", "beta", "optimiser"):
            if not callable(getattr(self, name)):
                raise InputError(f"{name}={getattr(self, name)!r}: give an object, see dp.dibs.Settings")
        if self.acyclicity not in ("mean-field", "sampled"):
            raise InputError(f"acyclicity={self.acyclicity!r}: give 'mean-field' or 'sampled'")
        if self.cyclic not in ("drop", "repair"):
            raise InputError(f"cyclic={self.cyclic!r}: give 'drop' or 'repair'")
        whole_number("moves", self.moves, least=0)
        whole_number("parameter_steps", self.parameter_steps, least=0)
        if self.batch is not None:
            whole_number("batch", self.batch, least=1)
            if self.collapsed:
                raise InputError(
                    "batch: closed forms use statistics of all rows, which cost no more: leave it out, "
                    "or set collapsed=False"
                )
        if self.estimator.kind == "flip" and not self.collapsed:
            raise InputError("the flip estimator needs closed-form evidence: set collapsed=True")
        if self.moves and not self.collapsed:
            raise InputError("moves between graphs need closed-form evidence: set collapsed=True or moves=0")


# slope of alpha, bandwidth of z, bandwidth of theta (table 3 of the paper), at d = 20 and at d = 50
PUBLISHED: dict[str, dict[int, tuple[float, float, float]]] = {
    "bge": {20: (2.0, 2.0, 1.0), 50: (2.0, 50.0, 1.0)},
    "linear": {20: (0.2, 5.0, 500.0), 50: (0.02, 15.0, 1000.0)},
    "mlp": {20: (0.02, 5.0, 1000.0), 50: (0.01, 15.0, 2000.0)},
}


def published(name: str, d: int) -> tuple[float, float, float]:
    """The paper's figures for the nearer of its two sizes; models of your own take those of the linear model."""
    return PUBLISHED.get(name, PUBLISHED["linear"])[20 if abs(d - 20) <= abs(d - 50) else 50]


def paper_settings(model: Model, d: int, observations: int = 100, **changes: Any) -> Settings:
    """Everything as published: 3,000 steps, S = 128, one weight for each graph, sampled acyclicity.

    The paper gives slopes and bandwidths for 20 and 50 nodes; see `published`. The acyclicity term averages over 32
    soft graphs, as the authors' code does; the paper's text has 128 (`acyclicity_samples=128`).
    """
    slope, bandwidth_z, bandwidth_theta = published(model.name, d)
    marginal = isinstance(model, BGe)
    options: dict[str, Any] = {
        "steps": 3000,
        "alpha": Linear(slope),
        "beta": Linear(1.0),
        "bandwidth_z": bandwidth_z,
        "bandwidth_theta": bandwidth_theta,
        "estimator": Estimator("score" if marginal else "gumbel", "graph", 128, control_variate=False),
        "optimiser": RmsProp(0.005),
        "acyclicity": "sampled",
        "acyclicity_samples": 32,
        "shared_noise": False,
        "collapsed": marginal,
        "cyclic": "drop",
    }
    return Settings(**{**options, **changes})


class Tuned(NamedTuple):
    """Our defaults for 20 nodes and 100 rows: where the temperatures end, and how the particles get there."""

    estimator: Estimator
    steps: int
    alpha_end: float
    beta_end: float
    rate: float
    bandwidth_z: float
    bandwidth_theta: float = 500.0


# chosen with `benchmarks/tune.py`; docs/defaults.md tells how
CLOSED_FORM = Tuned(Estimator("flip", "family", 4, objective="mean-log"), 1000, 250.0, 2000.0, 0.01, 8.0)
JOINT: dict[str, Tuned] = {
    "linear": Tuned(Estimator("gumbel", "family", 8), 1000, 20.0, 1000.0, 0.02, 5.0),
    "mlp": Tuned(Estimator("gumbel", "family", 4), 3000, 60.0, 3000.0, 0.02, 5.0, 1000.0),
}
REHEATED_TO = 20.0
MOVES_PER_NODE = 10_000
PARAMETER_STEPS = 1000


def default_settings(model: Model, d: int, observations: int, **changes: Any) -> Settings:
    """Our defaults for any number of nodes and rows; `changes` overrides them.

    Models with closed-form evidence are inferred without their parameters (`collapsed`), which are drawn exactly
    at the end; `collapsed=False` infers both together, as the paper does. Models of your own take the joint
    defaults of the linear model, with the straight-through estimator if they are defined for hard graphs only.
    """
    collapsed = changes.get("collapsed", model.has_compiled_evidence)
    growth = max(1.0, d / 20)
    more_rows = max(1.0, observations / 100) ** 0.25  # the penalty competes with likelihoods that grow with N
    if collapsed:
        tuned = CLOSED_FORM
        # every family has its own samples, and a particle of many nodes has many families
        estimator = replace(tuned.estimator, samples=max(1, round(tuned.estimator.samples / growth)))
        steps = round(tuned.steps * growth**0.75)
        beta_end = tuned.beta_end * growth**0.75 * more_rows
        bandwidth_z, rate = tuned.bandwidth_z * d / 20, tuned.rate
        if isinstance(model, BGe) and np.ndim(model.scale_matrix) == 2:
            estimator = Estimator("score", "family", 32)  # flips need a diagonal scale matrix
    else:
        tuned = JOINT.get(model.name, JOINT["linear"])
        estimator, steps = tuned.estimator, tuned.steps
        beta_end = tuned.beta_end * more_rows
        if model.name == "mlp":  # more nodes need more samples and a stronger penalty, or wrong edges stay
            estimator = replace(estimator, samples=round(estimator.samples * growth**0.75))
            tuned = tuned._replace(alpha_end=tuned.alpha_end * growth**-0.75)
            beta_end *= growth**1.5
        # large networks lose their way at high rates
        bandwidth_z, rate = tuned.bandwidth_z, max(tuned.rate * growth**-1.5, min(tuned.rate, 0.005))
        if not model.soft:
            estimator = replace(estimator, kind="straight-through")
    steps = changes.get("steps", steps)
    quarter = max(1, steps // 4)
    options: dict[str, Any] = {
        "steps": steps,
        "alpha": Reheated(tuned.alpha_end, REHEATED_TO, quarter, quarter)
        if collapsed
        else Linear(tuned.alpha_end / steps),
        "beta": Linear(beta_end / steps),
        "bandwidth_z": bandwidth_z,
        "bandwidth_theta": tuned.bandwidth_theta,
        "estimator": estimator,
        "optimiser": RmsProp(rate),
        "collapsed": collapsed,
        "moves": MOVES_PER_NODE * d if collapsed else 0,
        "parameter_steps": 0 if collapsed else PARAMETER_STEPS,
        "cyclic": "repair",
    }
    return Settings(**{**options, **changes})
