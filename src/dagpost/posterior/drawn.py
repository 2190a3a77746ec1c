"""Graphs drawn by a sampler that has integrated the parameters out, as a posterior."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from dagpost.models import Model, Statistics
from dagpost.posterior.density import log_joint_of
from dagpost.posterior.posterior import Posterior
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Key, Theta


def posterior_of_draws(
    graphs: Graphs, names: tuple[str, ...], model: Model, prior: GraphPrior, stats: Statistics, key: Key,
    info: dict[str, Any], marginals: Float[np.ndarray, "d d"] | None = None,
) -> Posterior:  # fmt: skip
    """Equal weights, `log p(G) + log p(D | G)`, and an exact draw of the parameters of each graph."""
    theta: Theta = ()
    if model.has_parameters:
        theta = model.draw_thetas(jax.random.split(key, len(graphs)), graphs, stats)
    return Posterior(
        graphs=graphs,
        log_weights=np.zeros(len(graphs)),
        names=names,
        model=model,
        prior=prior,
        theta=theta,
        log_joint=log_joint_of(graphs, (), model, prior, stats),
        marginals=marginals,
        info={**info, "sample": True, "collapsed": True},
    )
