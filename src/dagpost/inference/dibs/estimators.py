"""Estimators of the gradient of `log E_{p(G|z)}[p(D, Theta | G)]`, the likelihood part of equations 9 to 11.

Each estimator is a surrogate: a scalar function of one particle's edge scores and parameters whose gradient
is the estimate. It is a log-mean-exp over samples of graphs, so autodiff forms the ratio of expectations of
proposition 2 without signed logarithms.

`grouping` sets what a sample is. "graph": one weight per sampled graph, as published. "family" (default): edges are
independent given z and the likelihood is a product over families, so

    log E[prod_j f_j] = sum_j log E[f_j],

and one weight per sampled family averages over S^d graphs instead of S, with the same target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from dagpost._util.numerics import map_chunked
from dagpost.errors import InputError, nearest, positive, whole_number
from dagpost.graphs import all_columns
from dagpost.inference.dibs.latent import hard_graph, log_graph_probability, soft_graph
from dagpost.priors import Constraints

Kind = Literal["gumbel", "straight-through", "score", "flip", "exact"]
Grouping = Literal["family", "graph"]
KINDS = ("gumbel", "straight-through", "score", "flip", "exact")


@dataclass(frozen=True)
class Estimator:
    """Gradient estimator of the likelihood term.

    Parameters
    ----------
    kind
        "gumbel": reparameterised soft graphs. "straight-through": hard graphs with the gradient of soft ones.
        "score": score function (REINFORCE). "flip": exact edge flips of sampled parent sets, for closed-form evidence.
        "exact": the sum over all parent sets of each node, without samples, for up to 12 nodes.
    grouping
        "family" weights sampled parent sets, "graph" weights whole sampled graphs as published.
    samples
        Sampled graphs per particle and step.
    control_variate
        "score" only: subtract the sample mean of the score, which has expectation zero.
    tau
        "gumbel" and "straight-through" only: inverse temperature of the soft graphs.
    objective
        "flip" only: "log-mean" is `log E[f]` as in the paper, "mean-log" its lower bound `E[log f]`. They coincide as
        alpha -> infinity.
    """

    kind: Kind = "gumbel"
    grouping: Grouping = "family"
    samples: int = 8
    control_variate: bool = True
    tau: float = 1.0
    objective: Literal["log-mean", "mean-log"] = "log-mean"

    def __post_init__(self):
        if self.kind not in KINDS:
            raise InputError(f"unknown estimator {self.kind!r}: {nearest(self.kind, KINDS)}")
        if self.grouping not in ("family", "graph"):
            raise InputError(f"unknown grouping {self.grouping!r}: {nearest(self.grouping, ['family', 'graph'])}")
        if self.kind in ("flip", "exact") and self.grouping == "graph":
            raise InputError(f"the {self.kind} estimator works by family: set grouping='family'")
        whole_number("samples", self.samples, least=1)
        positive("tau", self.tau)


def log_mean_exp(log_values: Float[Array, "s d"], grouping: Grouping) -> Float[Array, ""]:
    """Return `sum_j log mean_s f_js` (family) or `log mean_s prod_j f_js` (graph)."""
    if grouping == "graph":
        log_values = jnp.sum(log_values, axis=1, keepdims=True)
    count = jnp.asarray(log_values.shape[0], dtype=log_values.dtype)
    return jnp.sum(jax.nn.logsumexp(log_values, axis=0) - jnp.log(count))


def exact_log_expectation(
    values: Float[Array, "s d"], scores: Float[Array, "d d"], alpha: Any, known: Constraints | None = None
) -> Float[Array, ""]:
    """Return `log E[prod_j f_j] = sum_j log sum_s p(g_js | z) f_js`, where s runs through `all_columns`.

    Parameters
    ----------
    values
        `log f_j` of every column of `all_columns`.
    scores, alpha
        Edge scores of a particle, and their inverse temperature.
    known
        Edges that are certain: other columns have probability 0.
    """
    columns = all_columns(scores.shape[-1])
    graphs = jnp.asarray(columns, dtype=scores.dtype)
    log_p = jax.vmap(lambda graph: log_graph_probability(graph, scores, alpha, known))(graphs)
    if known is not None:
        loops = np.eye(columns.shape[-1], dtype=np.bool_)
        possible = np.all(known.free | loops | (columns == known.required), axis=1)
        log_p = jnp.where(possible, log_p, -jnp.inf)
    return jnp.sum(jax.nn.logsumexp(log_p + values, axis=0))


def surrogate(
    estimator: Estimator,
    log_families: Any,
    scores: Float[Array, "d d"],
    theta: Any,
    alpha: Any,
    noise: Float[Array, "s d d"],
    chunk: int | None = None,
    known: Constraints | None = None,
) -> Float[Array, ""]:
    """Return a scalar whose gradient with respect to (scores, theta) is the estimate.

    `log_families(graph, theta)` returns d numbers; at most `chunk` samples are in memory at once; `known` holds the
    edges that are certain. The gradient with respect to theta uses hard samples for every kind: equation 11 is an
    expectation over graphs, and with soft ones a nonlinear model finds too few edges.
    """

    def by_sample(graphs, theta):
        return family_values(log_families, graphs, theta, chunk)

    hard = hard_graph(noise, scores, alpha, known)
    fixed_theta = lax.stop_gradient(theta)
    has_theta = len(jax.tree.leaves(theta)) > 0
    if estimator.kind == "score":
        values = by_sample(hard, theta)
        log_probability = jax.vmap(lambda graph: log_graph_probability(graph, scores, alpha, known))(hard)
        score = log_probability - lax.stop_gradient(log_probability)
        by_scores = log_mean_exp(lax.stop_gradient(values) + score, estimator.grouping)
        if estimator.control_variate:
            by_scores = by_scores - jnp.sum(jnp.mean(score, axis=0))
        return by_scores + log_mean_exp(values, estimator.grouping) if has_theta else by_scores
    soft = soft_graph(noise, scores, alpha, estimator.tau, known)
    if estimator.kind == "straight-through":
        soft = lax.stop_gradient(hard - soft) + soft
    by_scores = log_mean_exp(by_sample(soft, fixed_theta), estimator.grouping)
    if not has_theta:
        return by_scores
    return by_scores + log_mean_exp(by_sample(lax.stop_gradient(hard), theta), estimator.grouping)


def family_values(log_families: Any, graphs: Float[Array, "s d d"], theta: Any, chunk: int | None) -> Any:
    """Return `log f_j` of every graph, (s, d); at most `chunk` graphs at once."""
    one = lambda graph: log_families(graph, theta)  # noqa: E731
    if chunk is None or chunk >= graphs.shape[0]:
        return jax.vmap(one)(graphs)
    # recompute what the backward pass needs chunk by chunk instead of storing it for all samples
    return map_chunked(jax.checkpoint(one), graphs, chunk)


def log_estimate(
    estimator: Estimator, log_families: Any, scores: Float[Array, "d d"], theta: Any, alpha: Any,
    noise: Float[Array, "s d d"], chunk: int | None = None, known: Constraints | None = None,
) -> Float[Array, ""]:  # fmt: skip
    """Return the estimate of `log E[p(D, theta | G)]` itself at given noise, with a gradient; arguments as `surrogate`.

    "gumbel": over soft graphs, whose gradient is that of the value. Other kinds: over hard graphs. Then the value is
    piecewise constant in the scores, its exponential unbiased, and the gradient is that of the surrogate.
    """
    if estimator.kind == "gumbel":
        soft = soft_graph(noise, scores, alpha, estimator.tau, known)
        return log_mean_exp(family_values(log_families, soft, theta, chunk), estimator.grouping)
    hard = lax.stop_gradient(hard_graph(noise, scores, alpha, known))
    value = log_mean_exp(family_values(log_families, hard, theta, chunk), estimator.grouping)
    climbed = surrogate(estimator, log_families, scores, theta, alpha, noise, chunk, known)
    return lax.stop_gradient(value - climbed) + climbed
