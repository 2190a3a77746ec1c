"""Graphs with their parameters: unnormalised log posterior, draws, and the posterior predictive distribution.

Parameters are drawn from `p(theta | G, D)` where the model has closed forms and the data are present; otherwise those
of the particles are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from dagpost._util.environment import cached_by_value
from dagpost._util.numerics import generator, key_from_seed
from dagpost.data import Dataset
from dagpost.errors import InputError, whole_number
from dagpost.models import Model, Statistics
from dagpost.posterior.interventions import effects_along_paths, simulate_under
from dagpost.posterior.ranks import latent_value, observed_values
from dagpost.posterior.sample import CHUNK, GraphSample
from dagpost.posterior.tables import level_index
from dagpost.priors import GraphPrior, InformedPrior
from dagpost.typing import Graphs, Key, Theta


def log_prior_of(graphs: Graphs, prior: GraphPrior) -> Float[np.ndarray, " m"]:
    """Return the unnormalised `log p(G)` of each graph, in float64.

    Parameters
    ----------
    graphs
        Adjacency matrices of DAGs.
    prior
        Prior over graphs.

    Returns
    -------
    ndarray
        One value per graph.
    """
    if isinstance(prior, InformedPrior):  # all constraints share the compiled code of the base prior
        return prior.log_densities(graphs, lambda others: log_prior_of(others, prior.base))
    with jax.enable_x64(True):
        return np.asarray(_batched(prior)(jnp.asarray(graphs, dtype=float)))


@cached_by_value
def _batched(prior: GraphPrior):
    """Return the log density over a batch of graphs, compiled once for each prior and shape."""
    return jax.jit(jax.vmap(prior.log_density))


def log_joint_of(
    graphs: Graphs, theta: Theta, model: Model, prior: GraphPrior, stats: Statistics
) -> Float[np.ndarray, " m"]:
    """Return the unnormalised log posterior `log p(G) + log p(Theta, D | G)` of each graph, in float64.

    It is `log p(G) + log p(D | G)` where the model has no parameters, or has evidence and theta is `()`.

    Parameters
    ----------
    graphs
        Adjacency matrices of DAGs.
    theta
        Parameters of each graph, or `()`.
    model
        Model that scores the graphs.
    prior
        Prior over graphs.
    stats
        Statistics of the data, from `model.summarise(data)`.

    Returns
    -------
    ndarray
        One value per graph.
    """
    log_prior = log_prior_of(graphs, prior)
    if not model.has_parameters or (jax.tree.leaves(theta) == [] and model.has_evidence):
        return log_prior + model.log_evidence_of(graphs, stats)
    with jax.enable_x64(True):
        axes = (0, 0 if jax.tree.leaves(theta) else None, None)
        score = jax.vmap(model.log_joint, in_axes=axes)
        return log_prior + np.asarray(score(jnp.asarray(graphs, dtype=float), theta, stats))


class Draws(NamedTuple):
    """Graphs selected from a posterior: their indices, and weights that add up to 1."""

    member: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]


def systematic(weights: Float[np.ndarray, " m"], count: int, key: Key) -> Int[np.ndarray, " n"]:
    """Return `count` sorted indices by systematic resampling: each `count * weight` times, up to rounding."""
    places = (np.arange(count) + generator(key).uniform()) / count
    total = np.cumsum(weights)
    return np.minimum(np.searchsorted(total / total[-1], places, side="right"), len(weights) - 1)


def can_draw(post: GraphSample) -> bool:
    """Return whether parameters can be drawn from `p(theta | G, D)`, which takes a complete table and closed forms of a
    model that scores it."""
    complete = post.data is not None and not post.data.is_missing.any() and not post.model.latent
    return complete and type(post.model).draw_theta is not Model.draw_theta


def has_theta(post: GraphSample) -> bool:
    """Return whether the graphs come with parameters."""
    return len(jax.tree.leaves(post.theta)) > 0


def select_draws(post: GraphSample, count: int, key: Key, among: Bool[np.ndarray, " m"] | None = None) -> Draws:
    """Return `count` graphs of equal weight if their parameters can be drawn, else all particles with their weights.

    Where `among` is given, only the graphs that it marks are selected, some of which must have a weight.
    """
    weights = post.weights
    if among is not None:
        weights = np.where(among, weights, 0.0) / weights[among].sum()
    if can_draw(post):
        return Draws(systematic(weights, count, key), np.full(count, 1 / count))
    if not has_theta(post):
        raise InputError(
            f"the parameters of the model {post.model.name!r} are integrated out, and drawing them needs the data: "
            "call with_data(data) on the posterior first"
        )
    used = np.flatnonzero(weights > 0)
    return Draws(used, weights[used])


def parameters_of(
    post: GraphSample, member: Int[np.ndarray, " n"], key: Key, node: int | Bool[np.ndarray, "n d"] | None = None
) -> tuple[Graphs, Theta]:
    """Return the selected graphs with their parameters, drawn anew where possible.

    Where only the parameters of one `node` are needed, or of some nodes of each graph, the others are drawn as if those
    nodes had no parents: given a graph, the parameters of different nodes are independent, and without parents they
    cost little.
    """
    graphs = post.graphs[member]
    if can_draw(post):
        assert post.data is not None
        stats = post.model.summarise(post.data)
        needed = np.arange(post.nodes) == node if isinstance(node, int) else node
        families = graphs if needed is None else graphs & needed[..., None, :]
        return graphs, post.model.draw_thetas(jax.random.split(key, len(member)), families, stats)
    return graphs, jax.tree.map(lambda leaf: np.asarray(leaf)[member], post.theta)


def effects_in_parts(
    post: GraphSample, member: Int[np.ndarray, " n"], on_path: Bool[np.ndarray, "n d"], i: int, j: int, key: Key
) -> Float[np.ndarray, " n"]:
    """Return the effect of i on j in each of these graphs, whose nodes on paths are given."""
    out, size = np.zeros(len(member)), max(1, CHUNK // (4 * post.nodes**2))
    for number, at in enumerate(range(0, len(member), size)):
        some = slice(at, at + size)
        graphs, theta = parameters_of(post, member[some], jax.random.fold_in(key, number), on_path[some])
        weights = np.asarray(post.model.linear_weights(theta), dtype=np.float64) * graphs
        out[some] = effects_along_paths(weights, on_path[some], i, j)
    return out


def raw_units(post: GraphSample) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Return mean and scale of every column: `raw = fitted * scale + mean`."""
    scaling = post.scaling
    return (np.zeros(post.nodes), np.ones(post.nodes)) if scaling is None else (scaling.mean, scaling.scale)


def clamped_values(post: GraphSample, do: Mapping[str | int, float | str], option: str) -> dict[int, float]:
    """Return the values that nodes are set to, by index and in fitted units, or codes of levels.

    Parameters
    ----------
    post
        The posterior.
    do
        Value in raw units, or name of a level, by node.
    option
        Name of the option, for messages.
    """
    mean, scale = raw_units(post)
    out = {}
    for node, value in do.items():
        j = post.index(node)
        if post.levels[j]:
            out[j] = float(level_index(post, j, value))
        elif isinstance(value, str | bool) or not np.isfinite(value):
            raise InputError(f"{option}={{{post.names[j]!r}: {value!r}}}: give a finite number")
        else:
            out[j] = (float(value) - mean[j]) / scale[j]
        if post.model.latent:
            out[j] = latent_value(post, j, out[j])
    return out


def predict(post: GraphSample, do: Mapping[str | int, float | str] | None, samples: int, seed: int) -> pd.DataFrame:
    """Return rows from the posterior predictive distribution under do(...), in raw units; see `Posterior.predict`.

    Each row has its own graph, drawn by weight, with its parameters.
    """
    whole_number("samples", samples, least=1)
    mean, scale = raw_units(post)
    clamped = clamped_values(post, do or {}, "do")
    key_choice, key_again, key_order, key_theta, key_rows = jax.random.split(key_from_seed(seed), 5)
    selected = select_draws(post, samples, key_choice)
    member = selected.member
    if len(member) != samples or (selected.weights != selected.weights[0]).any():
        member = member[systematic(selected.weights, samples, key_again)]
    member = generator(key_order).permutation(member)
    graphs, theta = parameters_of(post, member, key_theta)
    rows = simulate_under(post.model, jax.random.split(key_rows, samples), graphs, theta, 1, clamped)[:, 0]
    if post.model.latent:
        return observed_values(post, rows)
    table = rows * scale + mean
    if post.model.categorical:
        return Dataset(table, post.names, levels=post.levels).frame()
    for node, value in (do or {}).items():
        table[:, post.index(node)] = value  # exact, without rounding by the change of units
    return pd.DataFrame(table, columns=list(post.names))
