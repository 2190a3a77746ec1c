"""Settings of DiBS: the immutable `Settings` object and its presets.

`paper_settings` returns the published settings, `default_settings` those of this library.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from dagpost.errors import InputError, positive, whole_number
from dagpost.inference.dibs.estimators import Estimator
from dagpost.inference.dibs.latent import Embedding, InnerProduct
from dagpost.inference.dibs.samplers import Hmc, Linear, Reheated, RmsProp, Schedule, Sgld, as_chain
from dagpost.inference.mcmc.ladder import LARGE
from dagpost.models import Additive, BDeu, BGe, Model


@dataclass(frozen=True)
class Settings:
    """Settings of a DiBS run, usually made by `default_settings` or `paper_settings`.

    Parameters
    ----------
    steps
        Steps of the sampler; a step of HMC is a whole trajectory.
    sampler
        What moves the particles: "svgd" (as published), "sgld" or "hmc"; `Sgld` and `Hmc` have options.
    alpha
        Schedule of the inverse temperature of the edges.
    beta
        Schedule of the weight of the acyclicity penalty.
    bandwidth_z, bandwidth_theta
        Kernel bandwidths of the latent variables and of the parameters; SVGD only.
    estimator
        Gradient estimator of the likelihood.
    embedding
        Shape and prior of z, and how edge scores follow from it.
    optimiser
        Optimiser of the particles; SVGD only.
    acyclicity
        "mean-field": penalise `h` of the edge probabilities. "sampled": the mean of `h` over soft graphs, as published.
    acyclicity_samples
        Soft graphs per particle and step for "sampled".
    shared_noise
        Whether all particles of a step share one set of logistic noise. The estimate of each particle is distributed
        as with noise of its own.
    collapsed
        Integrate the parameters out (closed-form evidence only) and draw them exactly at the end.
    batch
        Rows of a minibatch, a new one at every step; None uses all rows. For joint inference, not for closed forms.
    scaled
        Whether the log likelihood of a minibatch is scaled up to all rows. The authors add it unscaled, so that the
        target is the posterior given as many rows as the minibatch has.
    cyclic
        Particles whose graph has a cycle: "drop" them, or "repair" them by removing the weakest edge of each cycle.
    moves
        Metropolis moves of each particle's DAG after the last step, with target `p(G | D)`: additions, deletions and
        reversals of edges, and the larger moves of chains. For closed-form evidence and priors that decompose. With a
        prior of your own, whose terms Python computes, there are no larger moves: give ten times as many.
    parameter_steps
        Optimisation steps of the parameters alone after the last SVGD step, on the DAG of their particle
        (`particles.py`). For joint inference; closed forms draw their parameters exactly.
    draw_parameters
        Whether the final DAGs get parameters drawn from `p(theta | G, D)` in place of those of their particles, and are
        weighted by their evidence. Without a closed form the evidence is integrated numerically (a tenth of a second
        for each family of a network). For joint inference.
    memory_limit
        GiB for the intermediate values of one step on a device; particles are processed in chunks to stay below it.
    devices
        Devices that the particles are spread over, of all processes if `jax.distributed` is used. The result is that
        of one device up to rounding.
    """

    steps: int = 3000
    sampler: str | Sgld | Hmc = "svgd"
    alpha: Schedule = field(default_factory=lambda: Linear(0.02))
    beta: Schedule = field(default_factory=lambda: Linear(1.0))
    bandwidth_z: float = 5.0
    bandwidth_theta: float = 500.0
    estimator: Estimator = field(default_factory=Estimator)
    embedding: Embedding = field(default_factory=InnerProduct)
    optimiser: RmsProp = field(default_factory=RmsProp)
    acyclicity: Literal["mean-field", "sampled"] = "mean-field"
    acyclicity_samples: int = 32
    shared_noise: bool = True
    collapsed: bool = False
    batch: int | None = None
    scaled: bool = True
    cyclic: Literal["drop", "repair"] = "drop"
    moves: int = 0
    parameter_steps: int = 0
    draw_parameters: bool = False
    memory_limit: float = 2.0
    devices: int = 1

    @property
    def chain(self) -> Sgld | Hmc | None:
        """Options of the chains that the particles run; None for SVGD."""
        return as_chain(self.sampler)

    def __post_init__(self):
        if isinstance(self.chain, Hmc):
            self._check_hmc()
        whole_number("steps", self.steps, least=1)
        whole_number("devices", self.devices, least=1)
        for name in ("bandwidth_z", "bandwidth_theta", "memory_limit"):
            positive(name, getattr(self, name))
        for name, kind in (("estimator", Estimator), ("embedding", Embedding)):
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"{name}={getattr(self, name)!r}: give an object of type {kind.__name__}")
        for name in ("alpha", "beta", "optimiser"):
            if not callable(getattr(self, name)):
                raise InputError(f"{name}={getattr(self, name)!r}: give a callable object, see dp.dibs.Settings")
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
                    "batch: closed forms use statistics of all rows at no extra cost: leave batch out, "
                    "or set collapsed=False"
                )
        if self.estimator.kind == "flip" and not self.collapsed:
            raise InputError("the flip estimator needs closed-form evidence: set collapsed=True")
        if self.moves and not self.collapsed:
            raise InputError("moves between graphs need closed-form evidence: set collapsed=True or moves=0")

    def _check_hmc(self) -> None:
        """Raise an error if the density cannot be evaluated at both ends of a trajectory."""
        if self.estimator.kind == "flip":
            raise InputError("sampler 'hmc' evaluates densities, the estimator 'flip' gradients alone: use 'exact' "
                             "(up to 12 nodes), 'gumbel' or 'score'")  # fmt: skip
        if self.batch is not None:
            raise InputError("batch: HMC needs the density of all rows: leave batch out, or use the sampler 'sgld'")
        if self.acyclicity != "mean-field":
            raise InputError("sampler 'hmc' needs a penalty without noise: set acyclicity='mean-field'")


# slope of alpha, bandwidth of z, bandwidth of theta (table 3 of the paper), at d = 20 and at d = 50
PUBLISHED: dict[str, dict[int, tuple[float, float, float]]] = {
    "bge": {20: (2.0, 2.0, 1.0), 50: (2.0, 50.0, 1.0)},
    "linear": {20: (0.2, 5.0, 500.0), 50: (0.02, 15.0, 1000.0)},
    "mlp": {20: (0.02, 5.0, 1000.0), 50: (0.01, 15.0, 2000.0)},
}


def published(name: str, d: int) -> tuple[float, float, float]:
    """Return the paper's values for the nearer of its two sizes; user-defined models get those of the linear model."""
    return PUBLISHED.get(name, PUBLISHED["linear"])[20 if abs(d - 20) <= abs(d - 50) else 50]


def paper_settings(model: Model, d: int, observations: int = 100, **changes: Any) -> Settings:
    """Return the published settings: 3,000 steps, S = 128, one weight per graph, sampled acyclicity.

    The paper gives slopes and bandwidths for 20 and 50 nodes; see `published`. The acyclicity term averages over 32
    soft graphs, as the authors' code does; the paper's text has 128 (`acyclicity_samples=128`).

    Parameters
    ----------
    model
        The model to infer.
    d
        Number of nodes.
    observations
        Not used; here so that both functions take the same arguments.
    changes
        Fields of `Settings` to override.

    Returns
    -------
    Settings
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
    """Defaults tuned for 20 nodes and 100 rows; `alpha_end` and `beta_end` are the final temperatures."""

    estimator: Estimator
    steps: int
    alpha_end: float
    beta_end: float
    rate: float
    bandwidth_z: float
    bandwidth_theta: float = 500.0


# chosen with `benchmarks/tune.py`, see docs/defaults.md
CLOSED_FORM = Tuned(Estimator("flip", "family", 4, objective="mean-log"), 1000, 250.0, 2000.0, 0.01, 8.0)
JOINT: dict[str, Tuned] = {
    "linear": Tuned(Estimator("gumbel", "family", 8), 1000, 20.0, 1000.0, 0.02, 5.0),
    "mlp": Tuned(Estimator("gumbel", "family", 4), 3000, 60.0, 3000.0, 0.02, 5.0, 1000.0),
}
REHEATED_TO = 20.0
MOVES_PER_NODE = (10_000, 400)
"""Of each particle at the end, with fewer than `LARGE` nodes, where most moves are of single edges, and from it on."""
PARAMETER_STEPS = 1000
EXACT_NODES = 8
"""Most nodes for which HMC sums over all parent sets by default: 128 of them per node."""


def default_settings(model: Model, d: int, observations: int, **changes: Any) -> Settings:
    """Return this library's settings for any number of nodes and rows.

    Models with closed-form evidence are inferred without their parameters (`collapsed`), which are drawn exactly
    at the end; `collapsed=False` infers both jointly, as the paper does. User-defined models get the joint defaults
    of the linear model, with the straight-through estimator if they are defined for hard graphs only.

    Parameters
    ----------
    model
        The model to infer.
    d
        Number of nodes.
    observations
        Number of rows.
    changes
        Fields of `Settings` to override.

    Returns
    -------
    Settings
    """
    collapsed = changes.get("collapsed", model.has_compiled_evidence)
    growth = max(1.0, d / 20)
    more_rows = max(1.0, observations / 100) ** 0.25  # the penalty competes with likelihoods that grow with N
    if collapsed:
        tuned = CLOSED_FORM
        # each family has its own samples, and a large graph has many families: fewer samples of each suffice
        estimator = replace(tuned.estimator, samples=max(1, round(tuned.estimator.samples / growth)))
        steps = round(tuned.steps * growth**0.75)
        beta_end = tuned.beta_end * growth**0.75 * more_rows
        bandwidth_z, rate = tuned.bandwidth_z * d / 20, tuned.rate
        full = isinstance(model, BGe) and np.ndim(model.scale_matrix) == 2
        if isinstance(model, Additive | BDeu) or full:  # flips need single columns and a diagonal scale matrix
            estimator = Estimator("score", "family", 32)
    else:
        tuned = JOINT.get(model.name, JOINT["linear"])
        estimator, steps = tuned.estimator, tuned.steps
        beta_end = tuned.beta_end * more_rows
        if model.name == "mlp":  # more nodes need more samples and a stronger penalty, or wrong edges stay
            estimator = replace(estimator, samples=round(estimator.samples * growth**0.75))
            tuned = tuned._replace(alpha_end=tuned.alpha_end * growth**-0.75)
            beta_end *= growth**1.5
        # high rates give worse results on large networks
        bandwidth_z, rate = tuned.bandwidth_z, max(tuned.rate * growth**-1.5, min(tuned.rate, 0.005))
        if not model.soft:
            estimator = replace(estimator, kind="straight-through")
    chain = as_chain(changes.get("sampler", "svgd"))
    if isinstance(chain, Hmc):
        estimator = _evaluable(model, estimator, d)
    steps = changes.get("steps", max(1, round(steps / (1 if chain is None else chain.evaluations))))
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
        "moves": MOVES_PER_NODE[d >= LARGE] * d if collapsed else 0,
        "parameter_steps": 0 if collapsed or changes.get("draw_parameters") else PARAMETER_STEPS,
        "cyclic": "repair",
    }
    return Settings(**{**options, **changes})


def _evaluable(model: Model, estimator: Estimator, d: int) -> Estimator:
    """Return the estimator for HMC, which needs densities: exact for few nodes, then by soft graphs, then by hard."""
    if d <= EXACT_NODES:
        return Estimator("exact")
    return Estimator("gumbel" if model.soft else "score") if estimator.kind == "flip" else estimator
