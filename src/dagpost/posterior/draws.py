"""Posteriors from draws of graphs of equal weight, with their parameters."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Float

from dagpost.models import Model, Statistics
from dagpost.posterior.parameters import log_joint_of
from dagpost.posterior.posterior import Posterior
from dagpost.posterior.records import ImputedCells, RunRecord
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Key, Theta


def posterior_of_draws(
    graphs: Graphs, names: tuple[str, ...], model: Model, prior: GraphPrior, stats: Statistics, key: Key,
    record: RunRecord, marginals: Float[np.ndarray, "d d"] | None = None,
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
        record=record.with_sampling(sample=True, collapsed=True),
    )


def posterior_of_cells(
    graphs: Graphs, theta: Theta, names: tuple[str, ...], model: Model, prior: GraphPrior, record: RunRecord,
    marginals: Float[np.ndarray, "d d"], cells: ImputedCells | None,
) -> Posterior:  # fmt: skip
    """Equal weights, each graph with the parameters, and the missing cells if there are any, that were drawn with it.

    The log posterior of a graph is not known: it is a sum over all values of the missing cells.
    """
    return Posterior(
        graphs=graphs,
        log_weights=np.zeros(len(graphs)),
        names=names,
        model=model,
        prior=prior,
        theta=theta,
        marginals=marginals,
        record=record.with_sampling(sample=True, collapsed=False),
        cells=cells,
    )
