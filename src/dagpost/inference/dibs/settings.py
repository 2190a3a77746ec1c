"""Everything that DiBS can be told, in one immutable object."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import optax

from dagpost.errors import InputError, positive, whole_number
from dagpost.inference.dibs.estimators import Estimator
from dagpost.inference.dibs.latent import Embedding, InnerProduct
from dagpost.inference.dibs.schedules import Linear, Schedule


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
