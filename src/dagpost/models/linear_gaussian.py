"""The linear Gaussian model: `x_j = sum_i theta_ij x_i + noise`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import log, pi
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import gammaln

from dagpost._util.numerics import generator
from dagpost.data import Dataset
from dagpost.errors import DataWarning, InputError, positive, printable
from dagpost.models.base import Model, Statistics, WeightMoments
from dagpost.models.completion import Equations, GaussianCompletion
from dagpost.models.conjugate import ConjugateTable, coefficients, regression
from dagpost.models.gaussian import Noise, grams, log_normal
from dagpost.models.statistics import chosen_groups
from dagpost.typing import Graph, Key, Nodes, RowGroups, Rows, Scalar, SoftColumn, SoftGraph, Theta


class LinearTheta(NamedTuple):
    """Parameters of the linear model with unknown noise."""

    weights: Any  # (d, d), weights[i, j] for i -> j
    log_variance: Any  # (d,)


class SharedGram(NamedTuple):
    """Shared statistics: the Gram matrix and row count of each group of rows."""

    gram: Any  # (g, d, d) XᵀX of each group of rows
    count: Any  # (g,)


class NodeGram(NamedTuple):
    """Statistics of a node: its index and its group of rows."""

    index: Any  # (d,)
    group: Any  # (d,)


@dataclass(frozen=True)
class LinearGaussian(Model):
    """Linear Gaussian model, `p(x_j | parents) = N(theta_jᵀ x_P, noise)`, the paper's equation E.1.

    With a fixed noise variance, weights are `N(0, weight_scale²)` and theta is the matrix of weights. With unknown
    noise, `noise ~ InverseGamma(noise_shape, noise_rate)`, `weight | noise ~ N(0, noise · weight_scale²)`, and theta is
    a `LinearTheta`. Both have closed-form evidence and exact draws of theta given a graph. The model has no intercept:
    centre the data (`Dataset.standardised`). The score depends on the data only through `XᵀX`.

    Parameters
    ----------
    noise_variance
        Fixed noise variance, 0.1 in the paper; None makes the noise of each node unknown.
    weight_scale
        Prior standard deviation of a weight, in units of the noise standard deviation if the noise is unknown.
    noise_shape, noise_rate
        Inverse-gamma prior of unknown noise.

    Examples
    --------
    >>> import dagpost as dp
    >>> data = dp.simulate(nodes=3, observations=50, seed=1).train.standardised()
    >>> len(dp.exact(data, model=dp.LinearGaussian(noise_variance=None)))
    25
    """

    noise_variance: float | None = 0.1
    weight_scale: float = 1.0
    noise_shape: float = 1.5
    noise_rate: float = 0.25
    name: ClassVar[str] = "linear"
    assumption: ClassVar[str] = "every relation is linear with Gaussian noise"
    has_evidence: ClassVar[bool] = True
    linear: ClassVar[bool] = True

    def __post_init__(self):
        self.noise.check()
        if positive("weight_scale", self.weight_scale) < 1e-6:
            raise InputError(f"weight_scale={self.weight_scale!r}: give at least 1e-6, or rescale the data")

    @property
    def noise(self) -> Noise:
        """Observation noise."""
        return Noise(self.noise_variance, self.noise_shape, self.noise_rate)

    @property
    def theta_axes(self) -> Any:
        return LinearTheta(1, 0) if self.noise.learned else 1

    def _split(self, theta_j: Theta):
        """Return the weights and the noise variance of one node."""
        if self.noise.learned:
            return theta_j.weights, self.noise.variance_from(theta_j.log_variance)
        return theta_j, self.noise.variance_from(None)

    def check(self, data: Dataset) -> None:
        shift, spread = np.abs(np.nanmean(data.values, axis=0)), np.nanstd(data.values, axis=0)
        if (shift > spread).any():
            j = int((shift / np.maximum(spread, 1e-300)).argmax())
            warnings.warn(
                f"the linear model has no intercept, but column '{printable(data.names[j])}' has mean "
                f"{np.nanmean(data.values[:, j]):.3g} and standard deviation {spread[j]:.3g}: standardise the data",
                DataWarning,
                stacklevel=3,
            )

    # ---- the score

    def summarise(self, data: Dataset) -> Statistics:
        products, _, counts, group = grams(data)
        return Statistics(SharedGram(products, counts), NodeGram(np.arange(data.nodes), group))

    def extended(self, stats: Statistics, rows: Rows, groups: RowGroups | None = None) -> Statistics:
        gram, count = stats.shared
        gets = chosen_groups(groups, len(count))
        return Statistics(
            SharedGram(gram + gets[:, None, None] * (rows.T @ rows), count + gets * len(rows)), stats.node
        )

    def of_rows(self, rows: Statistics) -> Statistics:
        (values,), (index, observed) = rows
        # one XᵀX for each node, of the rows in which it was not intervened on
        gram = jnp.einsum("jn,ni,nk->jik", observed, values, values)
        return Statistics(SharedGram(gram, jnp.sum(observed, axis=1)), NodeGram(index, jnp.arange(gram.shape[-1])))

    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        (gram, count), (j, group) = stats_j
        gram = jnp.asarray(gram)[0] if gram.shape[0] == 1 else jnp.asarray(gram)[group]
        count = jnp.asarray(count)[group]
        weights, variance = self._split(theta_j)
        w = g_j * weights
        # |x_j - X w|² = C_jj - 2 wᵀ C_j + wᵀ C w
        squares = gram[j, j] - 2 * w @ gram[:, j] + w @ gram @ w
        return -0.5 * (squares / variance + count * jnp.log(2 * pi * variance))

    def log_families(self, graph: SoftGraph, theta: Theta, stats: Statistics) -> Float[Array, " d"]:
        gram, count = (jnp.asarray(a) for a in stats.shared)
        if gram.shape[0] > 1:
            return super().log_families(graph, theta, stats)
        # all nodes share XᵀX: one product C W serves every family
        graph = jnp.asarray(graph, dtype=gram.dtype)
        weights, variance = self._split(theta)
        w = graph * weights
        squares = jnp.diagonal(gram[0]) + jnp.sum(w * (gram[0] @ w - 2 * gram[0]), axis=0)
        likelihood = -0.5 * (squares / variance + count[0] * jnp.log(2 * pi * variance))
        in_axes = (1, self.theta_axes)
        return likelihood + jax.vmap(self.log_parameter_prior, in_axes=in_axes)(graph, theta)

    def log_parameter_prior(self, g_j: SoftColumn, theta_j: Theta) -> Scalar:
        weights, variance = self._split(theta_j)
        spread = self.weight_scale**2 * (variance if self.noise.learned else 1.0)
        out = jnp.sum(g_j * log_normal(weights, spread))
        return out + self.noise.log_prior(theta_j.log_variance) if self.noise.learned else out

    # ---- closed forms

    def evidence_table(self, stats: Statistics) -> ConjugateTable:
        gram, count = (np.asarray(a, dtype=np.float64) for a in stats.shared)
        d = gram.shape[-1]
        ones = np.ones((1, d))
        precision = 1 / self.weight_scale**2
        if self.noise.learned:
            # evidence = (2π)^(-N/2) |A|^(-½) s^(-p) b^a Γ(a + N/2) / Γ(a) / b_N^(a + N/2),
            # A = I/s² + C_PP, b_N = b + ½ (C_jj - C_jP A⁻¹ C_Pj)
            matrix = gram + precision * np.eye(d)
            a, b = self.noise_shape, self.noise_rate
            constant = -count / 2 * log(2 * pi) + a * log(b) + gammaln(a + count / 2) - gammaln(a)
            power, offset, scale, linear = a + count / 2, b - precision / 2, 0.5, 0.0
        else:
            # evidence = N(x_j; 0, σ² I + s² X_P X_Pᵀ), with A = I/s² + C_PP/σ², b = C_Pj/σ²:
            # -C_jj/(2σ²) + ½ bᵀA⁻¹b - ½ log|A| - p log s - N/2 log(2πσ²)
            variance = self.noise_variance
            assert variance is not None
            matrix = gram / variance + precision * np.eye(d)
            constant = -count / 2 * log(2 * pi * variance) + precision / 2
            power, offset, scale, linear = 0 * count, 1.0, 0.0, 0.5
        return ConjugateTable(
            matrix=matrix,
            prior_matrix=precision * np.eye(d),
            diagonal_prior=True,
            floor=precision,
            constant=constant[:, None] * ones,
            power=power[:, None] * ones,
            prior_power=np.zeros(d),
            offset=offset,
            scale=scale,
            linear=linear,
            group=np.asarray(stats.node.group),
            by_node=np.zeros(d),
        )

    def draw_theta(self, key: Key, graph: Graph, stats: Statistics) -> Theta:
        return self.theta_from(generator(key), graph, stats)

    def theta_from(self, rng: np.random.Generator, graph: Graph, stats: Statistics) -> Theta:
        """Return `draw_theta` with these random numbers."""
        table = self.evidence_table(stats)
        centre, noise, schur = coefficients(table, graph, rng)
        if self.noise_variance is not None:
            # theta ~ N(A⁻¹ b, A⁻¹)
            return centre + noise
        # noise ~ InverseGamma(a + N/2, b_N), theta | noise ~ N(A⁻¹ C_Pj, noise A⁻¹)
        power = table.power[table.group, np.sum(graph, axis=0)]
        variance = (table.offset + table.scale * schur) / rng.gamma(power)
        return LinearTheta(centre + np.sqrt(variance) * noise, np.log(variance))

    def completion(self, data: Dataset) -> GaussianCompletion:
        return GaussianCompletion(data, self)

    def equations(self, theta: Theta) -> Equations:
        """Return the network of these parameters."""
        weights = self.linear_weights(theta)
        if self.noise_variance is not None:
            return Equations(weights, np.zeros(len(weights)), np.full(len(weights), self.noise_variance))
        return Equations(weights, np.zeros(len(weights)), np.exp(theta.log_variance))

    def linear_weights(self, theta: Theta) -> Any:
        return theta.weights if self.noise.learned else theta

    def weight_moments(self, j: int, parents: Nodes, stats: Statistics) -> WeightMoments:
        table = self.evidence_table(stats)
        centre, inverse, schur = regression(table, j, parents)
        if self.noise_variance is not None:
            return WeightMoments(centre, inverse)
        # Cov = E[noise] A⁻¹, and InverseGamma(a, b) has mean b / (a - 1)
        excess = table.power[table.group[j], len(parents)] - 1
        noise = (table.offset + table.scale * schur) / excess if excess > 0 else np.inf
        return WeightMoments(centre, noise * inverse)

    # ---- simulation

    def sample_theta(self, key: Key, d: int) -> Theta:
        key_weights, key_noise = jax.random.split(key)
        weights = self.weight_scale * jax.random.normal(key_weights, (d, d))
        if not self.noise.learned:
            return weights
        log_variance = self.noise.sample_log_variance(key_noise, (d,))
        return LinearTheta(weights * jnp.exp(log_variance / 2), log_variance)

    def sample_parameters(self, key: Key, graph: Graph) -> Theta:
        with jax.enable_x64(True):
            theta = jax.tree.map(np.asarray, self.sample_theta(key, graph.shape[0]))
        if self.noise.learned:
            return LinearTheta(theta.weights * graph, theta.log_variance)
        return theta * graph

    def node_mean(self, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        return inputs @ self._split(theta_j)[0]

    def sample_node(self, key: Key, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        noise = jax.random.normal(key, (inputs.shape[0],), dtype=inputs.dtype)
        return self.node_mean(inputs, theta_j) + jnp.sqrt(self._split(theta_j)[1]) * noise
