"""The score of the latent posterior: gradient of `log p(z, theta | D)` for a batch of particles (proposition 2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from dagpost._util.numerics import map_chunked
from dagpost.graphs import all_columns, cyclicity
from dagpost.inference.dibs.devices import own_keys
from dagpost.inference.dibs.estimators import (
    Estimator,
    exact_log_expectation,
    family_values,
    log_estimate,
    surrogate,
)
from dagpost.inference.dibs.family_terms import evidence_by_kernel
from dagpost.inference.dibs.flips import flip_ratios_in_jax, flip_ratios_on_host, plain_table
from dagpost.inference.dibs.host_calls import host_call
from dagpost.inference.dibs.latent import edge_probabilities, hard_graph, mask_certain_edges, soft_graph
from dagpost.inference.dibs.settings import Settings
from dagpost.models import Model, Statistics
from dagpost.models.base import SharedRows
from dagpost.models.conjugate import ConjugateTable, all_families, soft_evidence
from dagpost.models.counts import CountTable, evidence_of_columns
from dagpost.priors import Constraints, GraphPrior


class Target(NamedTuple):
    """The latent posterior to sample, without the data, and how its gradient is computed."""

    model: Model
    prior: GraphPrior
    settings: Settings
    on_host: bool
    """Whether the compiled CPU kernel scores closed-form families of hard graphs."""
    chunk: int
    """Particles processed at once."""
    sample_chunk: int
    """Sampled graphs of a particle processed at once."""
    by_kernel: bool = False
    """Whether a kernel on the GPU scores closed-form families of hard graphs (`family_terms.py`)."""

    @property
    def known(self) -> Constraints | None:
        """Edges that are certain, whatever z is."""
        return self.prior.constraints


class LogisticNoise(NamedTuple):
    """Logistic noise to draw: one set per particle, or one shared by all particles."""

    key: Any
    shared: bool
    shape: tuple[int, ...]
    devices: int = 1


def gradients(target: Target, key, z, theta, alpha, beta, stats):
    """Return the gradient of the log posterior with respect to z and theta of every particle."""
    settings = target.settings
    key_likelihood, key_acyclicity, key_rows = jax.random.split(key, 3)
    scores = jax.vmap(settings.embedding.scores)(z)
    stats, scale = minibatch(key_rows, target.model, stats, settings.batch, settings.scaled)
    by_scores, by_theta = likelihood_gradients(target, key_likelihood, scores, theta, alpha, stats, scale)

    def one(z, by_scores, noise):
        linear = lambda scores: jnp.sum(lax.stop_gradient(by_scores) * scores)  # noqa: E731
        return jax.grad(lambda z: _with_prior(target, linear, z, alpha, beta, noise))(z)

    samples = settings.acyclicity_samples if settings.acyclicity == "sampled" else 0
    noise = LogisticNoise(key_acyclicity, settings.shared_noise, (samples, *scores.shape[1:]), settings.devices)
    by_z = _over_particles(one, (z, by_scores), noise, target.chunk)
    return by_z, by_theta


def _with_prior(target: Target, log_likelihood: Any, z, alpha, beta, noise):
    """Return `log_likelihood(scores) + log p(z)` of one particle, the prior up to a constant (equation 8)."""
    embedding = target.settings.embedding
    scores = embedding.scores(z)
    probabilities = edge_probabilities(scores, alpha, target.known)
    return (
        log_likelihood(scores)
        + embedding.log_prior(z)
        + target.prior.log_soft_density(probabilities)
        - beta * expected_cyclicity(target, scores, alpha, noise)
        - beta * excess_parents(target, probabilities)
    )


def log_density(target: Target, z, theta, alpha, beta, stats, noise_key):
    """Return `log p(z, theta | D)` of one particle up to a constant, for samplers with an accept step.

    Estimated from samples unless the estimator is "exact" (`log_estimate`); `noise_key` fixes them, so that it is a
    function of z and theta, whose gradient is that of the estimator.
    """
    estimator, d = target.settings.estimator, z.shape[0]

    def log_likelihood(scores):
        if estimator.kind == "exact":
            return _exact_likelihood(target, scores, theta, alpha, stats)
        noise = jax.random.logistic(noise_key, (estimator.samples, d, d))
        log_families = _family_scores(target, stats, 1.0)
        return log_estimate(estimator, log_families, scores, theta, alpha, noise, target.sample_chunk, target.known)

    return _with_prior(target, log_likelihood, z, alpha, beta, None)


def _exact_likelihood(target: Target, scores, theta, alpha, stats, scale=1.0):
    """Return `log E[p(D, theta | G)]` by summing over all parent sets; closed forms have their values in `stats`."""
    if target.settings.collapsed:
        return exact_log_expectation(stats, scores, alpha, target.known)
    columns = jnp.asarray(all_columns(scores.shape[-1]), dtype=scores.dtype)
    values = family_values(_family_scores(target, stats, scale), columns, theta, target.sample_chunk)
    return exact_log_expectation(values, scores, alpha, target.known)


def expected_cyclicity(target: Target, scores, alpha, noise):
    """Return `E[h(G)]` over soft graphs (published), or `h` of the edge probabilities: no noise, one matrix power."""
    if target.settings.acyclicity == "mean-field":
        return cyclicity(edge_probabilities(scores, alpha, target.known))
    return jnp.mean(jax.vmap(cyclicity)(soft_graph(noise, scores, alpha, known=target.known)))


def excess_parents(target: Target, probabilities):
    """Return the sum over nodes of expected parents above the allowed number."""
    if target.known is None or target.known.max_parents is None:
        return 0.0
    return jnp.sum(jnp.maximum(jnp.sum(probabilities, axis=0) - target.known.max_parents, 0.0))


def likelihood_gradients(target: Target, key, scores, theta, alpha, stats, scale=1.0):
    """Return the estimated gradient of `log E[p(D, theta | G)]` by edge scores and by theta, for every particle."""
    estimator, settings = target.settings.estimator, target.settings
    noise = LogisticNoise(key, settings.shared_noise, (estimator.samples, *scores.shape[1:]), settings.devices)
    if estimator.kind == "flip":
        return _flip_gradients(target, estimator, scores, alpha, noise, stats), theta
    exact = estimator.kind == "exact"
    log_families = None if exact else _family_scores(target, stats, scale)

    def one(scores, theta, noise):
        def function(scores, theta):
            if exact:
                return _exact_likelihood(target, scores, theta, alpha, stats, scale)
            return surrogate(estimator, log_families, scores, theta, alpha, noise, target.sample_chunk, target.known)

        return jax.grad(function, argnums=(0, 1))(scores, theta)

    return _over_particles(one, (scores, theta), noise, target.chunk)


def _family_scores(target: Target, stats: Statistics, scale):
    """Return `log_families(graph, theta)`: the model's densities, or its evidence if parameters are integrated out."""
    model, settings = target.model, target.settings
    if settings.collapsed:
        table: Any = stats
        if isinstance(table, CountTable):
            return lambda graph, theta: _count_evidence(table, graph, target.on_host)
        if settings.estimator.kind == "score" and target.on_host:
            return lambda graph, theta: _evidence_on_host(table, graph)
        if settings.estimator.kind == "score" and target.by_kernel:
            return lambda graph, theta: evidence_by_kernel(table, lax.stop_gradient(graph))
        return lambda graph, theta: jax.vmap(lambda g, j: soft_evidence(table, g, j, table.group[j]), in_axes=(1, 0))(
            graph, jnp.arange(graph.shape[-1])
        )
    if settings.batch is None:
        joint = lambda graph, theta: model.log_families(graph, theta, stats)  # noqa: E731
    else:

        def scaled(g_j, theta_j, stats_j):
            return scale * model.log_conditional(g_j, theta_j, stats_j) + model.log_parameter_prior(g_j, theta_j)

        joint = lambda graph, theta: model.by_node(scaled, graph, theta, stats)  # noqa: E731
    if settings.chain is None:
        return joint

    # Parameters of absent edges have no density (`models/base.py`), so that the density of (z, theta) has no integral
    # while edges are open, and chains would wander off. For them these parameters have their prior as well, which
    # integrates to 1 and leaves p(z | D) and p(G | D) as they are.
    def absent(g_j, theta_j, stats_j):
        return model.log_parameter_prior(jnp.ones_like(g_j), theta_j) - model.log_parameter_prior(g_j, theta_j)

    return lambda graph, theta: joint(graph, theta) + model.by_node(absent, graph, theta, stats)


def _evidence_on_host(table: ConjugateTable, graph):
    """Return the log evidence of every family of a hard graph, from the compiled CPU kernel."""
    shape = jax.ShapeDtypeStruct(graph.shape[:-1], graph.dtype)
    return host_call("dagpost.evidence", _evidence, shape, lax.stop_gradient(graph), *table)


def _count_evidence(table: CountTable, graph, on_host: bool):
    """Return the log evidence of every categorical family of a hard graph; an accelerator asks the host for it."""
    shape, hard = jax.ShapeDtypeStruct(graph.shape[:-1], graph.dtype), lax.stop_gradient(graph)
    if on_host:
        return host_call("dagpost.counts", evidence_of_columns, shape, hard, *table)

    def call(*given):
        return evidence_of_columns(*given).astype(shape.dtype)

    return jax.pure_callback(call, shape, hard, *table, vmap_method="legacy_vectorized")


def _evidence(graphs, *fields):
    """Return the log evidence of all families of batched graphs; `fields` are those of a `ConjugateTable`."""
    flat = graphs.reshape(-1, *graphs.shape[-2:]) > 0.5
    return all_families(plain_table(ConjugateTable(*fields)), flat).reshape(graphs.shape[:-1])


def _ratios(graphs, *fields):
    """Return the flip ratios for the objective "log-mean"."""
    return flip_ratios_on_host(ConjugateTable(*fields), graphs)


def _mean_log_ratios(graphs, *fields):
    """Return the flip ratios for the objective "mean-log"."""
    return flip_ratios_on_host(ConjugateTable(*fields), graphs, mean_log=True)


def _flip_gradients(target: Target, estimator: Estimator, scores, alpha, noise, table: Any):
    """Return the flip estimate of the gradient by the edge scores of every particle (`flips.py`)."""
    logits = alpha * scores
    sample = lambda scores, noise: hard_graph(noise, scores, alpha, target.known)  # noqa: E731
    hard = _over_particles(sample, (scores,), noise, scores.shape[0])
    mean_log = estimator.objective == "mean-log"
    if target.on_host:
        kernel = ("dagpost.flips.mean-log", _mean_log_ratios) if mean_log else ("dagpost.flips.log-mean", _ratios)
        ratios = host_call(*kernel, jax.ShapeDtypeStruct(scores.shape, scores.dtype), hard, *table)
    else:
        ratios = flip_ratios_in_jax(table, hard, mean_log, target.chunk)
    p = jax.nn.sigmoid(logits)
    gradient = alpha * p * (1 - p) * ratios if mean_log else alpha * (jax.nn.sigmoid(logits + ratios) - p)
    return mask_certain_edges(gradient, target.known)


def _over_particles(function, particles, noise: LogisticNoise, chunk: int):
    """Return `function(*particle, noise)` of every particle; at most `chunk` particles and their noise at once."""
    count = jax.tree.leaves(particles)[0].shape[0]
    if noise.shared:
        values = jax.random.logistic(noise.key, noise.shape)
        return map_chunked(lambda args: function(*args, values), particles, chunk)
    keys = own_keys(noise.key, count, noise.devices)
    one = lambda args: function(*args[0], jax.random.logistic(args[1], noise.shape))  # noqa: E731
    return map_chunked(one, (particles, keys), chunk)


def minibatch(key, model: Model, stats: Any, batch: int | None, scaled: bool = True):
    """Return statistics of `batch` rows drawn without replacement from `model.rows`, and a factor for their log
    likelihood: rows / batch, which makes it unbiased, or 1 if not `scaled`."""
    if batch is None:
        return stats, 1.0
    rows = stats.shared.values.shape[0]
    if batch < rows:
        chosen = jax.random.choice(key, rows, (batch,), replace=False)
        node = stats.node._replace(observed=stats.node.observed[:, chosen])
        stats = Statistics(SharedRows(stats.shared.values[chosen]), node)
    return model.of_rows(stats), max(rows / batch, 1.0) if scaled else 1.0
