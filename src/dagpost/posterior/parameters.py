"""Unnormalised log posterior of graphs with their parameters, in float64.

Draws of graphs with parameters: fresh ones given each graph where the model can, else those of the particles.

Rows from the posterior predictive distribution, as they would be under an intervention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from dagpost._util.environment import cached_by_value
from dagpost._util.numerics import generator, key_from_seed
from dagpost.errors import InputError, whole_number
from dagpost.models import Model, Statistics
from dagpost.posterior.interventions import simulate_under
from dagpost.posterior.sample import GraphSample
from dagpost.priors import GraphPrior, InformedPrior
from dagpost.typing import Graphs, Key, Theta


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


class Draws(NamedTuple):
    """`member` says which graph of the posterior each draw has; weights add up to 1."""

    member: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]


def systematic(weights: Float[np.ndarray, " m"], count: int, key: Key) -> Int[np.ndarray, " n"]:
    """`count` indices, each as often as its weight says up to rounding, in order."""
    places = (np.arange(count) + generator(key).uniform()) / count
    total = np.cumsum(weights)
    return np.minimum(np.searchsorted(total / total[-1], places, side="right"), len(weights) - 1)


def can_draw(post: GraphSample) -> bool:
    """Whether parameters can be drawn from `p(theta | G, D)`: that takes the data and a model with closed forms."""
    return post.data is not None and type(post.model).draw_theta is not Model.draw_theta


def has_theta(post: GraphSample) -> bool:
    return len(jax.tree.leaves(post.theta)) > 0


def choose(post: GraphSample, count: int, key: Key) -> Draws:
    """Draws of equal weight with fresh parameters to come, or every particle with its weight and its own parameters."""
    if can_draw(post):
        return Draws(systematic(post.weights, count, key), np.full(count, 1 / count))
    if not has_theta(post):
        raise InputError(
            f"the parameters of the model {post.model.name!r} are integrated out, and to draw them takes the data: "
            "call with_data(data) on the posterior first"
        )
    used = np.flatnonzero(post.weights > 0)
    return Draws(used, post.weights[used])


def parameters_of(post: GraphSample, member: Int[np.ndarray, " n"], key: Key) -> tuple[Graphs, Theta]:
    """The chosen graphs with their parameters."""
    graphs = post.graphs[member]
    if can_draw(post):
        assert post.data is not None
        stats = post.model.summarise(post.data)
        return graphs, post.model.draw_thetas(jax.random.split(key, len(member)), graphs, stats)
    return graphs, jax.tree.map(lambda leaf: np.asarray(leaf)[member], post.theta)


def predict(post: GraphSample, do: Mapping[str | int, float] | None, samples: int, seed: int) -> pd.DataFrame:
    """Each row has a graph of its own, drawn by weight, with its parameters; values are in raw units."""
    whole_number("samples", samples, least=1)
    scaling = post.scaling
    mean = np.zeros(post.nodes) if scaling is None else scaling.mean
    scale = np.ones(post.nodes) if scaling is None else scaling.scale
    clamped = {}
    for node, value in (do or {}).items():
        j = post.index(node)
        if isinstance(value, str | bool) or not np.isfinite(value):
            raise InputError(f"do={{{post.names[j]!r}: {value!r}}}: give a finite number")
        clamped[j] = (float(value) - mean[j]) / scale[j]
    key_choice, key_again, key_order, key_theta, key_rows = jax.random.split(key_from_seed(seed), 5)
    chosen = choose(post, samples, key_choice)
    member = chosen.member
    if len(member) != samples or (chosen.weights != chosen.weights[0]).any():
        member = member[systematic(chosen.weights, samples, key_again)]
    member = generator(key_order).permutation(member)
    graphs, theta = parameters_of(post, member, key_theta)
    rows = simulate_under(post.model, jax.random.split(key_rows, samples), graphs, theta, 1, clamped)[:, 0]
    table = rows * scale + mean
    for node, value in (do or {}).items():
        table[:, post.index(node)] = value  # not rounded by the way there and back
    return pd.DataFrame(table, columns=list(post.names))
