"""Settings by method: as published, and our defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dagpost.dibs.estimators import Estimator
from dagpost.dibs.schedules import Linear
from dagpost.dibs.settings import RmsProp, Settings
from dagpost.models import BGe, Model

# slope of alpha, bandwidth of z, bandwidth of theta (table 3 of the paper), at d = 20 and at d = 50
PUBLISHED: dict[str, dict[int, tuple[float, float, float]]] = {
    "bge": {20: (2.0, 2.0, 1.0), 50: (2.0, 50.0, 1.0)},
    "linear": {20: (0.2, 5.0, 500.0), 50: (0.02, 15.0, 1000.0)},
    "mlp": {20: (0.02, 5.0, 1000.0), 50: (0.01, 15.0, 2000.0)},
}


def paper_settings(model: Model, d: int, observations: int = 100, **changes: Any) -> Settings:
    """Everything as published: 3,000 steps, S = 128, one weight for each graph, sampled acyclicity.

    The paper gives slopes and bandwidths for 20 and 50 nodes; the nearer size is used. Models of your own
    take those of the linear model.
    """
    table = PUBLISHED.get(model.name, PUBLISHED["linear"])
    slope, bandwidth_z, bandwidth_theta = table[20 if abs(d - 20) <= abs(d - 50) else 50]
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
    """Our defaults for one model: where the temperatures end, and how the particles get there."""

    estimator: Estimator
    collapsed: bool
    steps: int
    alpha_end: float
    beta_end: float
    rate: float
    bandwidth_z: float = 5.0
    bandwidth_theta: float = 500.0


# chosen with `benchmarks/tune.py` on data sets that no benchmark reports (seeds 1000 and up)
TUNED: dict[str, Tuned] = {
    "bge": Tuned(Estimator("flip", "family", 4, objective="mean-log"), True, 1000, 250.0, 1000.0, 0.01, 20.0),
    "linear": Tuned(Estimator("gumbel", "family", 8), False, 1000, 20.0, 1000.0, 0.02),
    "mlp": Tuned(Estimator("gumbel", "family", 4), False, 3000, 60.0, 3000.0, 0.02, bandwidth_theta=1000.0),
}


def default_settings(model: Model, d: int, observations: int, **changes: Any) -> Settings:
    """Our defaults. Both temperatures grow linearly to their end value, so that fewer steps anneal faster.

    Models of your own take those of the linear model, with the straight-through estimator if they are defined
    for hard graphs only. A BGe prior with a full scale matrix uses the score function.
    """
    tuned = TUNED.get(model.name, TUNED["linear"])
    estimator = tuned.estimator
    if not model.soft:
        estimator = replace(estimator, kind="straight-through")
    if isinstance(model, BGe) and np.ndim(model.scale_matrix) == 2:
        estimator = Estimator("score", "family", 32)
    steps = changes.get("steps", tuned.steps)
    options: dict[str, Any] = {
        "steps": steps,
        "alpha": Linear(tuned.alpha_end / steps),
        "beta": Linear(tuned.beta_end / steps),
        "bandwidth_z": tuned.bandwidth_z,
        "bandwidth_theta": tuned.bandwidth_theta,
        "estimator": estimator,
        "optimiser": RmsProp(tuned.rate),
        "collapsed": tuned.collapsed,
        "cyclic": "repair",
    }
    return Settings(**{**options, **changes})
