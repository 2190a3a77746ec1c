"""Nonlinear additive noise with closed-form evidence: `x_j = a_j + sum_i f_ij(x_i) + noise`.

Each f_ij is a small basis expansion, so that a parent is a block of columns of a linear model and the compiled kernel
of conjugate families does the rest, from one Gram matrix of all basis columns and for any number of rows.

The basis of a column is fixed on its standardised values z: z itself, and the leading eigenfunctions of a
squared-exponential covariance. With independent normal coefficients f is therefore, up to the eigenvalues left out, a
Gaussian process with covariance `z z' + exp(-(z - z')² / 2 l²)`. Prior of node j, in units of its standard deviation:

    noise ~ InverseGamma(a, b),  a_j | noise ~ N(0, κ² noise),  coefficients | noise ~ N(0, r noise),

and the ratio r of signal to noise, which nobody knows, is summed over a few values for each family.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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
from dagpost.models.base import Model, Statistics
from dagpost.models.conjugate import ConjugateTable, soft_evidence
from dagpost.models.statistics import chosen_groups
from dagpost.typing import Graph, Graphs, Key, RowGroups, Rows, Scalar, SoftColumn, Theta

KNOTS = np.linspace(-3.0, 3.0, 13)
"""Standardised values between which a function bends; beyond them it is nearly a straight line."""
INTERCEPT_RATIO = 100.0
"""κ², prior variance of the intercept in units of the noise."""


class AdditiveTheta(NamedTuple):
    """Parameters of one network."""

    weights: Any  # (d, d, b) for i -> j and each basis function, in units of node j
    intercept: Any  # (d,)
    variance: Any  # (d,)
    shift: Any  # (d, d) of input i of node j, before the basis
    scale: Any  # (d, d)


class SharedAdditive(NamedTuple):
    """Shared statistics: the table of conjugate families, and what parameters are drawn from."""

    table: ConjugateTable
    sums: Any  # (g, c) of each column over the rows of the group
    count: Any  # (g,)
    shift: Any  # (g, d) mean of each column over those rows
    scale: Any  # (g, d) and its standard deviation
    values: Any  # (n, d)


class NodeAdditive(NamedTuple):
    """Statistics of a node."""

    index: Any  # (d,)
    group: Any  # (d,)
    observed: Any  # (d, n)


@lru_cache(maxsize=8)
def _projection(functions: int, length: float) -> np.ndarray:
    """Return the matrix (knots, functions) that makes eigenfunctions of covariances with the knots.

    With the covariance matrix of the knots `K = U S Uᵀ`, the functions `k(z, knots) U S^(-1/2)` have the covariance
    `k(z, knots) K⁻¹ k(knots, z')`.
    """
    covariance = np.exp(-0.5 * ((KNOTS[:, None] - KNOTS) / length) ** 2)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    kept = slice(-1, -functions - 1, -1)
    return vectors[:, kept] / np.sqrt(eigenvalues[kept])


@dataclass(frozen=True)
class Additive(Model):
    """Nonlinear additive noise, `x_j = a_j + sum_i f_ij(x_i) + noise`, with smooth functions f integrated out.

    Results do not depend on the units of the columns. Interactions between parents are not in the model: `"gp"` has
    them.

    Parameters
    ----------
    functions
        Nonlinear basis functions of each parent, beside the straight line.
    length_scale
        Distance over which a function bends, in standard deviations of its argument.
    signal_ratios
        Ratios of signal to noise variance of one parent that are summed over, with equal prior weights.
    noise_shape, noise_rate
        Inverse-gamma prior of the noise variance, in units of the variance of the column.

    Examples
    --------
    >>> import numpy as np, dagpost as dp
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[:, 1] = np.cos(2 * x[:, 0]) + 0.3 * x[:, 1]
    >>> dp.exact(x, model="additive").edge_marginals.round(2).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    functions: int = 5
    length_scale: float = 1.0
    signal_ratios: tuple[float, ...] = (1.0, 10.0, 100.0)
    noise_shape: float = 1.5
    noise_rate: float = 0.25
    name: ClassVar[str] = "additive"
    assumption: ClassVar[str] = "every relation is a sum of smooth functions of single causes with Gaussian noise"
    has_evidence: ClassVar[bool] = True
    has_parameters: ClassVar[bool] = False
    theta_axes: ClassVar[Any] = AdditiveTheta(1, 0, 0, 1, 1)

    def __post_init__(self):
        object.__setattr__(self, "signal_ratios", tuple(float(r) for r in np.atleast_1d(self.signal_ratios)))
        if isinstance(self.functions, bool) or not 1 <= self.functions <= len(KNOTS):
            raise InputError(f"functions={self.functions!r}: give a number from 1 to {len(KNOTS)}")
        if not self.signal_ratios:
            raise InputError("signal_ratios is empty: give at least one positive number")
        for ratio in self.signal_ratios:
            positive("signal_ratios", ratio)
        for name in ("length_scale", "noise_shape", "noise_rate"):
            positive(name, getattr(self, name))

    @property
    def width(self) -> int:
        """Number of basis functions of a parent, the straight line included."""
        return self.functions + 1

    def basis(self, z: Any) -> Any:
        """Return the basis functions of standardised values, along a new last axis."""
        numeric = jnp if isinstance(z, jax.Array) else np
        near = numeric.exp(-0.5 * ((z[..., None] - KNOTS) / self.length_scale) ** 2)
        curved = near @ numeric.asarray(_projection(self.functions, float(self.length_scale)), dtype=z.dtype)
        return numeric.concatenate([z[..., None], curved], axis=-1)

    # ---- the score

    def summarise(self, data: Dataset) -> Statistics:
        units = [_mean_and_scale(data.values[~left_out]) for left_out in data.regimes[0]]
        shift, scale = (np.stack(each) for each in zip(*units))
        return self._summarise(data, shift, scale)

    def summarise_in_one_unit(self, data: Dataset, known: int | None = None) -> tuple[Statistics, np.ndarray]:
        """Return statistics with all groups in one unit, that of the first `known` rows or of all, and its scale.

        The density is that of the scaled columns: `-log(scale)` for each row is not in it.
        """
        shift, scale = _mean_and_scale(data.values[:known])
        groups = len(data.regimes[0])
        return in_one_unit(self._summarise(data, np.tile(shift, (groups, 1)), np.tile(scale, (groups, 1)))), scale

    def _summarise(self, data: Dataset, shift: np.ndarray, scale: np.ndarray) -> Statistics:
        """Return the statistics with these units of every group of rows."""
        d = data.nodes
        regimes, group = data.regimes
        columns = [self._columns((data.values[~out] - a) / b) for out, a, b in zip(regimes, shift, scale)]
        count = np.array([float(len(rows)) for rows in columns])
        sums = np.stack([rows.sum(axis=0) for rows in columns])
        products = np.stack([rows.T @ rows for rows in columns])
        node = NodeAdditive(np.arange(d), np.asarray(group), (~data.intervened.T).astype(float))
        return self._from_sums(products, sums, count, shift, scale, data.values, node)

    def _from_sums(self, products, sums, count, shift, scale, values, node: NodeAdditive) -> Statistics:
        """Return the statistics from XᵀX, sums and number of rows of each group."""
        # integrating the intercept turns XᵀX into Xᵀ(I - 11ᵀ / (N + 1/κ²))X
        grams = products - _mean_part(sums, count)
        table = self._table(grams, count, node.group, np.log(scale[node.group, node.index]))
        return Statistics(SharedAdditive(table, sums, count, shift, scale, values), node)

    def extended(self, stats: Statistics, rows: Rows, groups: RowGroups | None = None) -> Statistics:
        """Return the statistics with further rows, in the units of the known ones."""
        table, sums, count, shift, scale, values = stats.shared
        d, gets = len(table.group), chosen_groups(groups, len(count))
        own = np.where(np.arange(sums.shape[1]) < d, table.floor, 1 / self.signal_ratios[0])
        products = table.matrix[: len(count)] - np.diag(own) + _mean_part(sums, count)
        columns = gets[:, None, None] * np.stack([self._columns((rows - a) / b) for a, b in zip(shift, scale)])
        node = stats.node._replace(observed=np.concatenate([stats.node.observed, np.ones((d, len(rows)))], axis=1))
        return self._from_sums(
            products + columns.swapaxes(1, 2) @ columns, sums + columns.sum(axis=1), count + gets * len(rows), shift,
            scale, np.concatenate([values, rows]), node,
        )  # fmt: skip

    def _columns(self, z: np.ndarray) -> np.ndarray:
        """Return the columns of K: the nodes as children, then the basis functions of node 0, node 1, … as parents."""
        n, d = z.shape
        return np.concatenate([z, self.basis(z).reshape(n, d * self.width)], axis=1)

    def log_predictive_of(self, graphs: Graphs, known: Dataset, new: Dataset) -> Float[np.ndarray, " m"]:
        before, both = self.summarise(known), known.followed_by(new)
        # the units stay those of the known rows: nodes that share a group of rows in both share it there
        _, group = both.regimes
        at = [int(before.node.group[list(group).index(g)]) for g in range(int(np.max(group)) + 1)]
        after = self._summarise(both, before.shared.shift[at], before.shared.scale[at])
        return self.log_evidence_of(graphs, after) - self.log_evidence_of(graphs, before)

    def of_rows(self, rows: Statistics) -> Statistics:
        raise InputError("the model 'additive' has no minibatches: its cost does not depend on the number of rows")

    def _table(self, grams, count, group, log_scale) -> ConjugateTable:
        """Return the table for the compiled evidence: with A = I/r + XᵀX of the parents' columns,

        evidence = (2π)^(-N/2) (1 + κ² N)^(-½) |A|^(-½) r^(-c/2) b^a Γ(a + N/2) / Γ(a) / (b + s/2)^(a + N/2),
        s = XᵀX_jj - XᵀX_jP A⁻¹ XᵀX_Pj.
        """
        d, a, b = len(group), self.noise_shape, self.noise_rate
        precisions = 1 / np.array(self.signal_ratios)
        floor = float(precisions.min())
        size = grams.shape[-1]
        child = np.arange(size) < d
        # the smallest precision stands on the diagonal of children too, so that it bounds every pivot; the offset
        # takes it off again
        prior_matrix = floor * np.eye(size)
        matrix = np.stack([gram + np.diag(np.where(child, floor, t)) for t in precisions for gram in grams])
        constant = (
            -count / 2 * log(2 * pi)
            - 0.5 * np.log1p(INTERCEPT_RATIO * count)
            + a * log(b) + gammaln(a + count / 2) - gammaln(a)
        )  # fmt: skip
        # |K0| is that of the smallest precision: the others add log(t / floor) / 2 for each column of the parents
        more = 0.5 * np.log(precisions / floor)[:, None] * self.width * np.arange(d)
        power = a + count / 2
        rows = count[group]  # the density of x is that of z over its scale, once for each row
        return ConjugateTable(
            matrix=matrix,
            prior_matrix=prior_matrix,
            diagonal_prior=True,
            floor=floor,
            constant=np.concatenate([constant[:, None] + by_parents for by_parents in more]),
            power=np.tile(power[:, None], (len(precisions), d)),
            prior_power=np.zeros(d),
            offset=b - floor / 2,
            scale=0.5,
            linear=0.0,
            group=group,
            by_node=-rows * log_scale,
            width=self.width,
            first=d,
            log_shares=np.full(len(precisions), -log(len(precisions))),
        )

    def family_terms(self, data: Dataset) -> int:
        return len(self.signal_ratios) * (1 + self.functions)

    def evidence_table(self, stats: Statistics) -> ConjugateTable:
        return stats.shared.table

    def node_mean(self, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        """Return `a_j + sum_i f_ij(x_i)` for each row; weights of absent parents are 0."""
        functions = self.basis((jnp.asarray(inputs) - theta_j.shift) / theta_j.scale)  # (n, d, b)
        return theta_j.intercept + jnp.einsum("nib,ib->n", functions, theta_j.weights)

    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        """Return the evidence; for explicit parameters (an `AdditiveTheta`) the Gaussian log likelihood."""
        shared, (j, group, observed) = stats_j
        if not jax.tree.leaves(theta_j):
            return soft_evidence(shared.table, g_j, j, group)
        values = jnp.asarray(shared.values)
        masked = theta_j._replace(weights=g_j[:, None] * theta_j.weights)
        squares = jnp.sum(observed * (values[:, j] - self.node_mean(values, masked)) ** 2)
        return -0.5 * (squares / theta_j.variance + jnp.sum(observed) * jnp.log(2 * pi * theta_j.variance))

    # ---- parameters, which are integrated out of the score

    def draw_theta(self, key: Key, graph: Graph, stats: Statistics) -> AdditiveTheta:
        """Return an exact draw of functions, intercepts and noise given the graph and the data.

        For each node: the ratio by its share of the evidence, noise ~ InverseGamma(a + N/2, b + s/2),
        coefficients | noise ~ N(A⁻¹ XᵀX_Pj, noise A⁻¹), and the intercept given both.
        """
        rng = generator(key)
        shared, d = stats.shared, graph.shape[0]
        table, width = shared.table, self.width
        weights, intercept, variance = np.zeros((d, d, width)), np.zeros(d), np.zeros(d)
        for j in range(d):
            parents, group = np.flatnonzero(graph[:, j]), int(table.group[j])
            columns = (d + parents[:, None] * width + np.arange(width)).ravel()
            at = [_Conditional.of(table, t, j, columns, len(parents)) for t in range(len(table.log_shares))]
            shares = np.exp([c.log_weight - max(c.log_weight for c in at) for c in at])
            chosen = at[rng.choice(len(at), p=shares / shares.sum())]
            noise = chosen.rate / rng.gamma(chosen.shape)
            w = chosen.centre + np.sqrt(noise) * np.linalg.solve(chosen.lower.T, rng.standard_normal(len(columns)))
            precision = shared.count[group] + 1 / INTERCEPT_RATIO
            sums = shared.sums[group]
            a = (sums[j] - sums[columns] @ w) / precision + np.sqrt(noise / precision) * rng.standard_normal()
            unit = shared.scale[group, j]
            weights[parents, j] = unit * w.reshape(len(parents), width)
            intercept[j], variance[j] = shared.shift[group, j] + unit * a, unit**2 * noise
        return AdditiveTheta(weights, intercept, variance, shared.shift[table.group].T, shared.scale[table.group].T)

    def sample_parameters(self, key: Key, graph: Graph) -> AdditiveTheta:
        """Return a draw of the parameters from the prior, for columns with mean 0 and variance 1."""
        return self.draw_theta(key, graph, self.summarise(Dataset(np.zeros((0, graph.shape[0])))))

    def sample_node(self, key: Key, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        noise = jax.random.normal(key, (inputs.shape[0],), dtype=inputs.dtype)
        return self.node_mean(inputs, theta_j) + jnp.sqrt(theta_j.variance) * noise


def in_one_unit(stats: Statistics) -> Statistics:
    """Return the statistics with the density of the scaled columns: `-log(scale)` for each row is not in it."""
    table = stats.shared.table
    return stats._replace(shared=stats.shared._replace(table=table._replace(by_node=np.zeros_like(table.by_node))))


def _mean_part(sums: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return what integrating the intercept takes off XᵀX of each group of rows."""
    return sums[:, :, None] * sums[:, None, :] / (count + 1 / INTERCEPT_RATIO)[:, None, None]


def _mean_and_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of every column; 0 and 1 without rows or spread."""
    n, d = values.shape
    spread = values.std(axis=0) if n else np.ones(d)
    return values.mean(axis=0) if n else np.zeros(d), np.where(spread > 0, spread, 1.0)


class _Conditional(NamedTuple):
    """Posterior of the parameters of one family at one setting of the hyperparameters."""

    log_weight: float  # share of the setting in the evidence, up to a constant
    centre: np.ndarray  # A⁻¹ XᵀX_Pj
    lower: np.ndarray  # Cholesky factor of A
    shape: float
    rate: float

    @classmethod
    def of(cls, table: ConjugateTable, setting: int, j: int, columns: np.ndarray, p: int) -> _Conditional:
        """Return it for node j given p parents with these columns."""
        g = setting * (len(table.matrix) // len(table.log_shares)) + int(table.group[j])
        matrix = table.matrix[g]
        lower = np.linalg.cholesky(matrix[np.ix_(columns, columns)])
        solved = np.linalg.solve(lower, matrix[columns, j])
        schur = max(float(matrix[j, j] - solved @ solved), table.floor)
        rate, shape = table.offset + table.scale * schur, float(table.power[g, p])
        log_weight = (
            table.log_shares[setting] + table.constant[g, p] - np.log(np.diag(lower)).sum() - shape * np.log(rate)
        )
        return cls(float(log_weight), np.linalg.solve(lower.T, solved), lower, shape, rate)
