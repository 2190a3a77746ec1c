"""Unnormalised log posterior of graphs with their parameters, in float64."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dagpost._util.memory import cached_by_value
from dagpost.models import Model, Statistics
from dagpost.priors import GraphPrior, InformedPrior
from dagpost.typing import Graphs, Theta


def log_prior_of(graphs: Graphs, prior: GraphPrior) -> Float[np.ndarray, " m"]:
    """Unnormalised `log p(G)` of each graph."""
    if isinstance(prior, InformedPrior):  # whatever is known, the compiled code of the base serves
        return prior.log_densities(graphs, lambda others: log_prior_of(others, prior.base))
    with jax.enable_x64(True):
        return np.asarray(_batched(prior)(jnp.asarray(graphs, dtype=float)))


@cached_by_value
def _batched(prior: GraphPrior):
    """Compiled once for each prior and shape."""
    return jax.jit(jax.vmap(prior.log_density))


def log_joint_of(
    graphs: Graphs, theta: Theta, model: Model, prior: GraphPrior, stats: Statistics
) -> Float[np.ndarray, " m"]:
    """`log p(G) + log p(Theta, D | G)`; with `p(D | G)` where theta is `()` or the model has integrated it out."""
    log_prior = log_prior_of(graphs, prior)
    if not model.has_parameters or (jax.tree.leaves(theta) == [] and model.has_evidence):
        return log_prior + model.log_evidence_of(graphs, stats)
    with jax.enable_x64(True):
        axes = (0, 0 if jax.tree.leaves(theta) else None, None)
        score = jax.vmap(model.log_joint, in_axes=axes)
        return log_prior + np.asarray(score(jnp.asarray(graphs, dtype=float), theta, stats))
