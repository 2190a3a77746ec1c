"""The Bayesian Gaussian equivalent (BGe) score: linear Gaussian networks with parameters integrated out.

Geiger and Heckerman (2002), with the corrections of Kuipers, Moffa and Heckerman (2014; the matrix R uses
`alpha_mu`, as their supplement has it). For a set Y of l variables

    p(D^Y) = (α_μ / (N + α_μ))^(l/2) Γ_l((N + α_w - d + l)/2) / (π^(lN/2) Γ_l((α_w - d + l)/2))
             |T_YY|^((α_w - d + l)/2) / |R_YY|^((N + α_w - d + l)/2),
    R = T + S + N α_μ / (N + α_μ) (x̄ - ν)(x̄ - ν)ᵀ,

and the family score is `p(D^(P ∪ j)) / p(D^P)`, which takes one Cholesky factor and one Schur complement.
"""

from __future__ import annotations

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
from dagpost.errors import InputError, positive
from dagpost.models.base import Model, Statistics, WeightMoments
from dagpost.models.completion import Completion, Equations, GaussianCompletion
from dagpost.models.conjugate import ConjugateTable, coefficients, regression, soft_evidence
from dagpost.models.gaussian import grams
from dagpost.models.linear_gaussian import LinearGaussian, NodeGram
from dagpost.models.statistics import chosen_groups
from dagpost.typing import Graph, Key, Nodes, RowGroups, Rows, Scalar, SoftColumn, Theta


class BgeTheta(NamedTuple):
    """Parameters drawn for one network: `x_j = intercept + weights · x_P + noise`.

    The score itself has no parameters.
    """

    weights: Any  # (d, d)
    intercept: Any  # (d,)
    variance: Any  # (d,)


class SharedBge(NamedTuple):
    """Shared statistics of BGe, by group of rows."""

    table: ConjugateTable
    mean: Any  # (g, d) posterior mean of the node means
    mean_weight: Any  # (g,) N + alpha_mu
    count: Any  # (g,)
    scatter: Any  # (g, d, d) centred XᵀX
    sample_mean: Any  # (g, d)


def _numbers(name: str, value: Any) -> np.ndarray:
    """Return the value as a float64 array, or raise an error that names the option."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r:.40}: give numbers") from None


@dataclass(frozen=True, eq=False)
class BGe(Model):
    """BGe marginal likelihood, with all hyperparameters of its Normal-Wishart prior.

    The model has no explicit parameters (`theta = ()`).

    Parameters
    ----------
    alpha_mu
        Weight of the prior mean, as an equivalent number of rows.
    alpha_w
        Degrees of freedom of the Wishart prior; default d + 2.
    mean
        Prior mean: one number, or one per column; default 0.
    scale_matrix
        Scale matrix T: a number t for `t I`, a vector for a diagonal, or a matrix. The default is
        `t = alpha_mu (alpha_w - d - 1) / (alpha_mu + 1)`.

    Examples
    --------
    >>> import dagpost as dp
    >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train, model=dp.BGe(alpha_mu=0.5))
    >>> post.model.alpha_mu
    0.5
    """

    alpha_mu: float = 1.0
    alpha_w: float | None = None
    mean: Any = None
    scale_matrix: Any = None
    name: ClassVar[str] = "bge"
    assumption: ClassVar[str] = "every relation is linear with Gaussian noise"
    has_evidence: ClassVar[bool] = True
    linear: ClassVar[bool] = True
    has_parameters: ClassVar[bool] = False
    theta_axes: ClassVar[Any] = BgeTheta(1, 0, 0)

    def __post_init__(self):
        positive("alpha_mu", self.alpha_mu)
        if self.alpha_w is not None:
            positive("alpha_w", self.alpha_w)

    def _key(self) -> tuple:
        """Return a hashable key of the settings, for comparison by value."""
        fields = (self.alpha_mu, self.alpha_w, self.mean, self.scale_matrix)
        return tuple(None if f is None else (np.shape(f), np.asarray(f, dtype=float).tobytes()) for f in fields)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.name, self._key()))

    # ---- hyperparameters for d nodes

    def degrees(self, d: int) -> float:
        """Return alpha_w for d nodes.

        The Wishart prior requires `alpha_w > d - 1`, the default T requires `alpha_w > d + 1`.
        """
        degrees = d + 2.0 if self.alpha_w is None else float(self.alpha_w)
        least = d + 1 if self.scale_matrix is None else d - 1
        if not degrees > least:
            raise InputError(f"alpha_w={degrees:g} is too small for {d} columns: give more than {least}")
        return degrees

    def prior_matrix(self, d: int) -> np.ndarray:
        """Return the scale matrix T for d nodes."""
        if self.scale_matrix is None:
            return self.alpha_mu * (self.degrees(d) - d - 1) / (self.alpha_mu + 1) * np.eye(d)
        given = _numbers("scale_matrix", self.scale_matrix)
        if given.shape not in ((), (d,), (d, d)):
            raise InputError(f"scale_matrix has shape {given.shape}: give a number, {d} numbers or a {d} x {d} matrix")
        matrix = given.copy() if given.ndim == 2 else given * np.eye(d)
        if not np.allclose(matrix, matrix.T) or not np.linalg.eigvalsh(matrix)[0] > 0:
            raise InputError("scale_matrix must be symmetric and positive definite")
        return matrix

    def prior_mean(self, d: int) -> np.ndarray:
        """Return the prior mean of d nodes."""
        mean = np.zeros(d) if self.mean is None else _numbers("mean", self.mean)
        if mean.shape not in ((), (d,)) or not np.isfinite(mean).all():
            raise InputError(f"mean has shape {mean.shape}: give one finite number for each of the {d} columns")
        return np.broadcast_to(mean, (d,))

    # ---- the score

    def summarise(self, data: Dataset) -> Statistics:
        return self._statistics(*grams(data, centre=True))

    def extended(self, stats: Statistics, rows: Rows, groups: RowGroups | None = None) -> Statistics:
        shared = stats.shared
        gets = chosen_groups(groups, len(shared.count))
        n, new_mean = gets * len(rows), rows.mean(axis=0)
        apart, total = shared.sample_mean - new_mean, shared.count + n
        known = shared.count / np.maximum(total, 1)
        # scatter of both parts: that of each about its own mean, and N n / (N + n) times that of the two means
        between = (known * n)[:, None, None] * apart[:, :, None] * apart[:, None, :]
        around = rows - new_mean
        scatter = shared.scatter + gets[:, None, None] * (around.T @ around) + between
        return self._statistics(scatter, new_mean + known[:, None] * apart, total, stats.node.group)

    def _statistics(self, scatter, sample_mean, count, group) -> Statistics:
        """Return the statistics from scatter, means and number of rows of each group of rows."""
        d = scatter.shape[-1]
        prior_mean, prior_matrix = self.prior_mean(d), self.prior_matrix(d)
        shift = sample_mean - prior_mean
        weight = count * self.alpha_mu / (count + self.alpha_mu)
        matrix = prior_matrix + scatter + weight[:, None, None] * shift[:, :, None] * shift[:, None, :]
        mean = prior_mean + (count / (count + self.alpha_mu))[:, None] * shift
        table = self._table(matrix, prior_matrix, count, group)
        shared = SharedBge(table, mean, count + self.alpha_mu, count, scatter, sample_mean)
        return Statistics(shared, NodeGram(np.arange(d), group))

    def _table(self, matrix, prior_matrix, count, group) -> ConjugateTable:
        """Return the table for the compiled evidence."""
        d = matrix.shape[-1]
        # half the degrees of freedom of a family with p parents, with and without data
        prior_power = (self.degrees(d) - d + np.arange(d) + 1) / 2
        power = prior_power + count[:, None] / 2
        constant = (
            0.5 * np.log(self.alpha_mu / (count + self.alpha_mu))[:, None]
            + gammaln(power)
            - gammaln(prior_power)
            - count[:, None] / 2 * log(pi)
        )
        diagonal = bool((prior_matrix == np.diag(np.diag(prior_matrix))).all())
        return ConjugateTable(
            matrix=matrix,
            prior_matrix=prior_matrix,
            diagonal_prior=diagonal,
            floor=float(np.linalg.eigvalsh(prior_matrix)[0]),
            constant=constant,
            power=power,
            prior_power=prior_power,
            offset=0.0,
            scale=1.0,
            linear=0.0,
            group=group,
            by_node=np.zeros(d),
        )

    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        """Return the evidence; for explicit parameters (a `BgeTheta`) the Gaussian log likelihood."""
        shared, (j, group) = stats_j
        if not jax.tree.leaves(theta_j):
            return soft_evidence(shared.table, g_j, j, group)
        scatter, mean, count = (jnp.asarray(a)[group] for a in (shared.scatter, shared.sample_mean, shared.count))
        w = g_j * theta_j.weights
        # squared residuals: around their mean, and of their mean
        around = scatter[j, j] - 2 * w @ scatter[:, j] + w @ scatter @ w
        off = mean[j] - theta_j.intercept - w @ mean
        return -0.5 * ((around + count * off**2) / theta_j.variance + count * jnp.log(2 * pi * theta_j.variance))

    def evidence_table(self, stats: Statistics) -> ConjugateTable:
        return stats.shared.table

    # ---- parameters, which are integrated out of the score

    def draw_theta(self, key: Key, graph: Graph, stats: Statistics) -> BgeTheta:
        """Return an exact draw of weights, intercepts and noise given the graph and the data.

        noise ~ InverseGamma(power[p], s/2), weights | noise ~ N(R_PP⁻¹ R_Pj, noise R_PP⁻¹), and
        intercept | weights, noise ~ N(m_j - weights · m_P, noise / (N + alpha_mu)).
        """
        return self.theta_from(generator(key), graph, stats)

    def theta_from(self, rng: np.random.Generator, graph: Graph, stats: Statistics) -> BgeTheta:
        """Return `draw_theta` with these random numbers."""
        table, mean, mean_weight = stats.shared[:3]
        centre, noise, schur = coefficients(table, graph, rng)
        variance = schur / 2 / rng.gamma(table.power[table.group, np.sum(graph, axis=0)])
        weights = centre + np.sqrt(variance) * noise
        own = mean[table.group]  # (d, d) means over the rows without an intervention on each node
        expected = np.diagonal(own) - np.einsum("ij,ji->j", weights, own)
        spread = np.sqrt(variance / mean_weight[table.group])
        intercept = expected + spread * rng.standard_normal(len(graph))
        return BgeTheta(weights, intercept, variance)

    def completion(self, data: Dataset) -> Completion:
        return GaussianCompletion(data, self)

    def equations(self, theta: BgeTheta) -> Equations:
        """Return the network of these parameters."""
        return Equations(*theta)

    def linear_weights(self, theta: Theta) -> Any:
        return theta.weights

    def weight_moments(self, j: int, parents: Nodes, stats: Statistics) -> WeightMoments:
        """Return E[weights] = R_PP⁻¹ R_Pj and Cov = E[noise] R_PP⁻¹, with noise ~ InverseGamma(power[p], s/2)."""
        table = stats.shared.table
        centre, inverse, schur = regression(table, j, parents)
        excess = table.power[table.group[j], len(parents)] - 1
        return WeightMoments(centre, (schur / 2 / excess if excess > 0 else np.inf) * inverse)

    def sample_parameters(self, key: Key, graph: Graph) -> BgeTheta:
        """Return a draw of the parameters from the Normal-Wishart prior."""
        empty = self.summarise(Dataset(np.zeros((0, graph.shape[0]))))
        return self.draw_theta(key, graph, empty)

    def simulator(self) -> Model:
        """Return the linear Gaussian model: the paper evaluates BGe on its data."""
        return LinearGaussian()

    def node_mean(self, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        return theta_j.intercept + inputs @ theta_j.weights

    def sample_node(self, key: Key, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        noise = jax.random.normal(key, (inputs.shape[0],), dtype=inputs.dtype)
        return self.node_mean(inputs, theta_j) + jnp.sqrt(theta_j.variance) * noise
