"""Settings by method: as published, and our defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dagpost.inference.dibs.estimators import Estimator
from dagpost.inference.dibs.schedules import Linear, Reheated
from dagpost.inference.dibs.settings import RmsProp, Settings
from dagpost.models import BGe, Model

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
