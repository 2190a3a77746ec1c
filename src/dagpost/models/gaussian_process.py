"""The Gaussian-process model: each node is a smooth function of its parents, of any shape, plus Gaussian noise."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from math import pi
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, ndtri, softmax
from scipy.stats import qmc

from dagpost._util.numerics import generator, unstack_keys
from dagpost.data import Dataset
from dagpost.errors import InputError, positive, whole_number
from dagpost.models.base import Model, Statistics
from dagpost.models.gp_evidence import Grid, evidence_grids
from dagpost.models.gp_factors import function_variance, reduce_matrix
from dagpost.typing import Graph, Graphs, Key, Scalar, SoftColumn, SoftGraph, Theta

KERNELS = {"both": ("joint", "sum"), "joint": ("joint",), "sum": ("sum",)}
"""Kernels of a family with several parents, for each value of the option `kernel`."""


class GpTheta(NamedTuple):
    """Parameters drawn for one network, in the units of the data; the score itself has none.

    `x_j = intercept + weights · x + coefficients · [cos(W z), sin(W z)] + noise`, `z_i = (x_i - centre_i) inverse_i`,
    with the fixed frequencies W of `frequencies`, or of `single_frequencies` for the sum kernel.
    """

    weights: Any  # (d, d) linear part of the function
    centre: Any  # (d, d) mean of input i in the rows of node j
    inverse: Any  # (d, d) 1 / (length · standard deviation) of input i of node j; 0 for absent edges
    coefficients: Any  # (d, 2F)
    intercept: Any  # (d,)
    variance: Any  # (d,)
    owner: Any  # (d, F) the input that a wave of node j depends on, -1 for all of them


class SharedGp(NamedTuple):
    """Shared statistics: the rows, and for each group of rows its standardised columns and their units."""

    values: Any  # (n, d)
    standard: Any  # (g, d, n) standardised columns; the rows of the group first, then zeros
    count: Any  # (g,)
    mean: Any  # (g, d)
    scale: Any  # (g, d)


class NodeGp(NamedTuple):
    """Statistics of a node: its index, its group of rows, and 1 for rows in which it was not intervened on."""

    index: Any  # (d,)
    group: Any  # (d,)
    observed: Any  # (d, n)


@lru_cache(maxsize=16)
def frequencies(count: int, d: int) -> Float[np.ndarray, "f d"]:
    """Return standard normal frequencies for d inputs, from a scrambled Sobol sequence with a fixed seed.

    `mean_f cos(W_f · (z - z'))` approximates `exp(-|z - z'|² / 2)`, the squared-exponential kernel of unit length.
    """
    return ndtri(qmc.Sobol(d, rng=0).random(count))


@lru_cache(maxsize=16)
def single_frequencies(count: int, d: int) -> Float[np.ndarray, "p f"]:
    """Return the frequencies of waves of single inputs; in row p, wave f belongs to the input number `f p // count`.

    Those of an input are quantiles of a half-normal distribution, so that the mean of `cos(w (z - z'))` over them is
    near `exp(-(z - z')² / 2)`.
    """
    block = np.arange(count) * np.arange(d + 1)[:, None] // count
    counts = (block[:, :, None] == block[:, None]).sum(axis=2)
    place = np.arange(count) - np.array([np.searchsorted(row, row) for row in block])
    return ndtri(0.5 + 0.5 * (place + 0.5) / counts)


@dataclass(frozen=True)
class GaussianProcess(Model):
    """Gaussian-process model, `x_j = intercept + f_j(parents) + noise`, for relations of unknown shape.

    `f_j` has the prior covariance `v r [(1 - c) k / s + c k_linear]` with v the noise variance, r the signal-to-noise
    ratio, c = `linear_share`, and s the variance that functions of kernel k have over standard normal inputs. With
    several parents, k is one of two kernels with equal probability. The joint kernel is the squared exponential of all
    p parents together, of length scale `l sqrt(p)` in standard deviations of the columns, whose functions have
    interactions of any kind; the sum kernel is the mean of the squared exponentials of single parents, of length scale
    l, whose functions have none. Noise, intercept and function are integrated out in closed form, and the kernel, l and
    r over a grid with equal weights. Columns are standardised inside, so that units do not matter; the evidence is
    nevertheless a density of the data as given. A family costs milliseconds for a hundred rows, and with many rows time
    grows as `rows · rank²`.

    Parameters
    ----------
    kernel
        `"both"` kernels for families with several parents, or `"joint"` or `"sum"` alone.
    lengths
        Grid of length scales for one parent, in standard deviations.
    ratios
        Grid of ratios of signal variance to noise variance.
    linear_share
        Share of the linear kernel in the prior variance of the function, between 0 and 1.
    variance_shape, variance_rate
        Inverse-gamma prior of the total variance `v (1 + r)` of a standardised node.
    intercept_scale
        Prior standard deviation of the intercept, in units of the noise standard deviation.
    rank
        Largest number of basis functions of a kernel, for more than 500 rows; up to 500 it is complete. Kernels
        that need more (short lengths, four or more parents) are replaced by their projection on the basis functions of
        so many rows, chosen one by one where the remaining variance is largest (for the sum kernel in equal shares for
        each parent): a prior of smoother functions, whose
        evidence is still that of a density. In an example with 1,000 rows the log evidence of four parents changed by
        1 nat, with 2,000 rows by more than 10; that of three parents by less than 0.01. More is slower and closer.
    features
        Frequencies of the Fourier features that draws of functions are made of, a power of 2. They do not enter the
        evidence.

    Examples
    --------
    >>> import dagpost as dp
    >>> data = dp.simulate("gp", nodes=3, observations=50, seed=1).train
    >>> len(dp.exact(data, model="gp"))
    25
    """

    kernel: str = "both"
    lengths: tuple[float, ...] = (0.5, 1.0, 2.0)
    ratios: tuple[float, ...] = (1.0, 4.0, 16.0, 64.0, 256.0)
    linear_share: float = 0.2
    variance_shape: float = 2.0
    variance_rate: float = 2.0
    intercept_scale: float = 10.0
    rank: int = 400
    features: int = 128
    name: ClassVar[str] = "gp"
    assumption: ClassVar[str] = "every relation is a smooth function with Gaussian noise"
    soft: ClassVar[bool] = False
    traceable: ClassVar[bool] = False
    has_evidence: ClassVar[bool] = True
    has_parameters: ClassVar[bool] = False
    theta_axes: ClassVar[Any] = GpTheta(1, 1, 1, 0, 0, 0, 0)

    def __post_init__(self):
        if self.kernel not in KERNELS:
            raise InputError(f"kernel={self.kernel!r}: give one of {', '.join(map(repr, KERNELS))}")
        for name in ("lengths", "ratios"):
            grid = tuple(positive(name, value) for value in getattr(self, name))
            if not grid:
                raise InputError(f"{name}=(): give at least one number")
            object.__setattr__(self, name, tuple(sorted(grid)))
        for name in ("variance_shape", "variance_rate", "intercept_scale"):
            positive(name, getattr(self, name))
        if not 0 < positive("linear_share", self.linear_share) < 1:
            raise InputError(f"linear_share={self.linear_share!r}: give a number between 0 and 1")
        whole_number("rank", self.rank, least=1)
        if whole_number("features", self.features, least=2) & (self.features - 1):
            raise InputError(f"features={self.features!r}: give a power of 2")

    @property
    def grid(self) -> Grid:
        """Settings as arrays."""
        kappa2 = float(self.intercept_scale) ** 2
        variance = float(self.variance_shape), float(self.variance_rate)
        kernels = ("joint" in KERNELS[self.kernel], "sum" in KERNELS[self.kernel])
        lengths, ratios = np.array(self.lengths), np.array(self.ratios)
        return Grid(lengths, ratios, self.linear_share, kappa2, *variance, self.rank, *kernels)

    # ---- the score

    def summarise(self, data: Dataset) -> Statistics:
        return self._statistics(data, data.observations)

    def _statistics(self, data: Dataset, reference: int) -> Statistics:
        """Return the statistics, with mean and scale of the columns from the first `reference` rows."""
        regimes, group = data.regimes
        (n, d), g = data.values.shape, len(regimes)
        standard, count = np.zeros((g, d, n)), np.zeros(g, dtype=np.int64)
        mean, scale = np.zeros((g, d)), np.ones((g, d))
        for k, left_out in enumerate(regimes):
            known, values = data.values[:reference][~left_out[:reference]], data.values[~left_out]
            if len(known) > 1:
                spread = known.std(axis=0)
                mean[k], scale[k] = known.mean(axis=0), np.where(spread > 0, spread, 1.0)
            count[k] = len(values)
            standard[k, :, : count[k]] = ((values - mean[k]) / scale[k]).T
        node = NodeGp(np.arange(d), group, (~data.intervened.T).astype(float))
        return Statistics(SharedGp(data.values, standard, count, mean, scale), node)

    def _tables(self, nodes: Any, parents: Any, stats: Statistics) -> Float[np.ndarray, "k n a b"]:
        """Return `log p(y | kernel, l, r)` of many families, in standard units."""
        shared = stats.shared
        nodes, parents = np.asarray(nodes, dtype=np.int64), np.ascontiguousarray(parents, dtype=np.bool_)
        return evidence_grids(self.grid, shared.standard, shared.count, stats.node.group, nodes, parents)

    def log_evidences(
        self, nodes: Int[np.ndarray, " n"], parents: Bool[np.ndarray, "n d"], stats: Statistics
    ) -> Float[np.ndarray, " n"]:
        if len(nodes) == 0:
            return np.zeros(0)
        group = stats.node.group[nodes]
        # p(x_j) = p(y) / scale_j in each row, and equal weights on the grid; up to one parent the kernels are the same
        jacobian = stats.shared.count[group] * np.log(stats.shared.scale[group, nodes])
        tables = self._tables(nodes, parents, stats)
        kernels = np.where(np.sum(parents, axis=1) > 1, len(tables), 1)
        total = np.logaddexp.reduce(np.asarray(logsumexp(tables, axis=(2, 3))), axis=0)
        return total - np.log(kernels * tables[0, 0].size) - jacobian

    def log_evidence(self, j: int, parents: Any, stats: Statistics) -> float:
        row = np.zeros((1, len(stats.node.index)), dtype=np.bool_)
        row[0, np.asarray(parents, dtype=np.int64)] = True
        return float(self.log_evidences(np.array([j]), row, stats)[0])

    def log_predictive_of(self, graphs: Graphs, known: Dataset, new: Dataset) -> Float[np.ndarray, " m"]:
        """Return `log p(new rows | known rows, G)`; the columns are standardised as in the known rows."""
        both = known.followed_by(new)
        before, after = (self._statistics(part, known.observations) for part in (known, both))
        return self.log_evidence_of(graphs, after) - self.log_evidence_of(graphs, before)

    def log_families(self, graph: SoftGraph, theta: Theta, stats: Statistics) -> Float[Array, " d"]:
        """Return the evidence of every family of a graph, which JAX cannot trace, or their likelihoods given theta."""
        if jax.tree.leaves(theta):
            return super().log_families(graph, theta, stats)
        if isinstance(graph, Tracer) or not np.isin(graph, (0, 1)).all():
            raise _no_tracing()
        edges = np.asarray(graph, dtype=np.bool_)
        return jnp.asarray(self.log_evidences(np.arange(len(edges)), edges.T, jax.tree.map(np.asarray, stats)))

    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        """Return the Gaussian log likelihood of explicit parameters (a `GpTheta`)."""
        if not jax.tree.leaves(theta_j):
            raise _no_tracing()
        values, (j, _, observed) = jnp.asarray(stats_j.shared.values), stats_j.node
        masked = theta_j._replace(weights=g_j * theta_j.weights, inverse=g_j * theta_j.inverse)
        squares = jnp.sum(observed * (values[:, j] - self.node_mean(values, masked)) ** 2)
        return -0.5 * (squares / theta_j.variance + jnp.sum(observed) * jnp.log(2 * pi * theta_j.variance))

    # ---- parameters, which are integrated out of the score

    def node_mean(self, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        phase = ((inputs - theta_j.centre) * theta_j.inverse) @ self._frequencies(theta_j.owner, inputs.shape[1]).T
        waves = jnp.concatenate([jnp.cos(phase), jnp.sin(phase)], axis=1)
        return theta_j.intercept + inputs @ theta_j.weights + waves @ theta_j.coefficients

    def _frequencies(self, owner: Any, d: int) -> Any:
        """Return the frequencies of waves for d inputs, of shape (F, d)."""
        numeric = np if isinstance(owner, np.ndarray) else jnp
        blocks = 1 + (owner[1:] != owner[:-1]).sum()
        single = numeric.asarray(single_frequencies(self.features, d))[blocks, :, None]
        joint = (owner < 0)[:, None]
        return numeric.where(joint, frequencies(self.features, d), (owner[:, None] == np.arange(d)) * single)

    def _owners(self, kernel: str, parents: Int[np.ndarray, " p"]) -> Int[np.ndarray, " f"]:
        """Return the input that each wave depends on: each parent has as many waves for the sum kernel."""
        if kernel == "joint" or not len(parents):
            return np.full(self.features, -1)
        return parents[np.arange(self.features) * len(parents) // self.features]

    def _prior_variances(
        self, p: int, length: float, ratio: float, owner: Int[np.ndarray, " f"]
    ) -> Float[np.ndarray, " q"]:
        """Return the prior variances of p weights and 2F coefficients, in units of the noise variance."""
        linear = np.full(p, ratio * self.linear_share / max(p, 1))
        # every kernel that is summed has 1/p of the variance, whatever its number of waves
        _, kernel, counts = np.unique(owner, return_inverse=True, return_counts=True)
        spread = function_variance(p if owner[0] < 0 else 1, length**-2)
        curved = ratio * (1 - self.linear_share) / (spread * len(counts) * counts[kernel])
        return np.concatenate([linear, curved, curved])

    def draw_theta(self, key: Key, graph: Graph, stats: Statistics) -> GpTheta:
        """Return a draw of kernel, length, ratio, noise and function given graph and data; see `draw_thetas`."""
        one = self.draw_thetas(jax.random.wrap_key_data(jax.random.key_data(key)[None]), np.asarray(graph)[None], stats)
        return jax.tree.map(lambda leaf: leaf[0], one)

    def draw_thetas(self, keys: Key, graphs: Graphs, stats: Statistics) -> GpTheta:
        """Return a draw for each graph, stacked along a leading axis.

        Kernel, length and ratio are exact draws. Given them, the function is a finite sum of waves, with coefficients
        and noise from their exact posterior under that finite model; it differs from the process by the error of the
        Fourier features.
        """
        graphs = np.asarray(graphs, dtype=np.bool_)
        m, d = graphs.shape[:2]
        power = self.variance_shape + stats.shared.count[stats.node.group] / 2
        rngs = [generator(key) for key in unstack_keys(keys)]
        places, gammas = (np.stack(a) for a in zip(*((rng.random(d), rng.gamma(power)) for rng in rngs)))
        normals = np.stack([rng.standard_normal((d, 1 + d + 2 * self.features)) for rng in rngs])
        theta = _empty_theta((m,), d, self.features)
        rows = np.concatenate([np.tile(np.arange(d), m)[:, None], graphs.swapaxes(1, 2).reshape(-1, d)], axis=1)
        distinct, where = np.unique(rows, axis=0, return_inverse=True)
        tables = self._tables(distinct[:, 0], distinct[:, 1:], stats)
        total = np.cumsum(softmax(tables.swapaxes(0, 1).reshape(len(distinct), -1), axis=1), axis=1)
        # draws of the same family, kernel, length and ratio share one factorisation
        alike = defaultdict(list)
        for case, family in enumerate(where.reshape(-1)):
            graph, j = divmod(case, d)
            point = min(int(np.searchsorted(total[family], places[graph, j])), total.shape[1] - 1)
            alike[int(family), point if graphs[graph, :, j].any() else 0].append(graph)
        for (family, point), members in alike.items():
            j, parents = int(distinct[family, 0]), np.flatnonzero(distinct[family, 1:])
            self._draw_family(theta, j, parents, point, members, gammas[members, j], normals[members, j], stats)
        return theta

    def _draw_family(self, theta, j, parents, point, members, gammas, normals, stats) -> None:
        """Write draws of node j given its parents and a point of the grid to the leaves of theta."""
        shared, group = stats.shared, stats.node.group[j]
        n, p = int(shared.count[group]), len(parents)
        kernel, length, ratio = self._at(point, p)
        owner = self._owners(kernel, parents)
        y, x = shared.standard[group, j, :n], shared.standard[group, parents, :n].T
        phase = x / length @ self._frequencies(owner, shared.values.shape[1])[:, parents].T
        design = np.hstack([np.ones((n, 1)), x, np.cos(phase), np.sin(phase)])[:, : None if p else 1]
        prior = np.append(self.intercept_scale**2, self._prior_variances(p, length, ratio, owner) if p else ())
        # coefficients | v ~ N(S Φᵀy, v S), S⁻¹ = ΦᵀΦ + D⁻¹ = C Cᵀ, v ~ InverseGamma(a + N/2, b_N)
        q = len(prior)
        matrix = np.zeros((q + 6, q + 6))  # two rows Φᵀy below, and four that are read in vain
        matrix[:q, :q] = design.T @ design + np.diag(1 / prior)
        matrix[q : q + 2, :q] = design.T @ y
        explained = reduce_matrix(matrix, q)[1]  # yᵀΦ S Φᵀy
        rate = self.variance_rate / (1 + ratio) + 0.5 * max(float(y @ y - explained), 0.0)
        variance = rate / gammas
        # C⁻ᵀ (C⁻¹ Φᵀy + sqrt(v) e), e standard normal
        solved = matrix[q, :q] + np.sqrt(variance)[:, None] * normals[:, :q]
        drawn = solve_triangular(matrix[:q, :q], solved.T, lower=True, trans=1).T
        theta.owner[members, j] = owner
        _write(theta, j, parents, members, drawn, variance, length, shared.mean[group], shared.scale[group])

    def _at(self, point: int, p: int) -> tuple[str, float, float]:
        """Return kernel, length scale for p parents and ratio at a point of the grid; ratio 0 without parents."""
        k, a, b = np.unravel_index(point, (len(KERNELS[self.kernel]), len(self.lengths), len(self.ratios)))
        kernel = KERNELS[self.kernel][k] if p > 1 else "joint"
        spread = p**0.5 if p and kernel == "joint" else 1.0
        return kernel, self.lengths[a] * spread, self.ratios[b] if p else 0.0

    def sample_parameters(self, key: Key, graph: Graph) -> GpTheta:
        """Return a draw from the prior in standard units: columns about 0 with a variance of about 1, intercepts 0."""
        rng, d = generator(key), len(graph)
        theta = _empty_theta((1,), d, self.features)
        for j in range(d):
            parents = np.flatnonzero(graph[:, j])
            kernels = len(KERNELS[self.kernel]) if len(parents) > 1 else 1
            point = int(rng.integers(kernels * len(self.lengths) * len(self.ratios)))
            kernel, length, ratio = self._at(point, len(parents))
            theta.owner[0, j] = owner = self._owners(kernel, parents)
            variance = self.variance_rate / (1 + ratio) / rng.gamma(self.variance_shape, size=1)
            normals = rng.standard_normal(1 + len(parents) + 2 * self.features)
            drawn = np.zeros_like(normals)
            if len(parents):
                drawn[1:] = normals[1:] * np.sqrt(variance * self._prior_variances(len(parents), length, ratio, owner))
                # E cos(w · z / l) = exp(-|w|² / 2 l²) and E sin = 0 for standard normal z: the function has mean 0
                waves = self._frequencies(owner, d)[:, parents] / length
                cosines = drawn[1 + len(parents) :][: self.features]
                drawn[0] = -cosines @ np.exp(-0.5 * np.sum(waves**2, axis=1))
            _write(theta, j, parents, [0], drawn[None], variance, length, np.zeros(d), np.ones(d))
        return jax.tree.map(lambda leaf: leaf[0], theta)

    def sample_node(self, key: Key, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        noise = jax.random.normal(key, (inputs.shape[0],), dtype=inputs.dtype)
        return self.node_mean(inputs, theta_j) + jnp.sqrt(theta_j.variance) * noise


def _no_tracing() -> InputError:
    return InputError(
        "the model 'gp' scores hard graphs by compiled code that JAX cannot trace or differentiate: use "
        "method='auto', or the model 'additive'"
    )


def _empty_theta(shape: tuple[int, ...], d: int, features: int) -> GpTheta:
    """Return parameters that are 0, with leading axes `shape`."""
    weights, centre, inverse = np.zeros((3, *shape, d, d))
    intercept, variance = np.zeros((2, *shape, d))
    coefficients, owner = np.zeros((*shape, d, 2 * features)), np.full((*shape, d, features), -1, dtype=np.int32)
    return GpTheta(weights, centre, inverse, coefficients, intercept, variance, owner)


def _write(theta: GpTheta, j, parents, members, drawn, variance, length, mean, scale) -> None:
    """Write draws of node j (intercept, weights, coefficients) to theta, in the units of the data."""
    weights = drawn[:, 1 : 1 + len(parents)] * scale[j] / scale[parents]
    into = np.ix_(members, parents, [j])
    theta.weights[into] = weights[:, :, None]
    theta.centre[into] = mean[parents][:, None]
    theta.inverse[into] = 1 / (length * scale[parents][:, None])
    if len(parents):
        theta.coefficients[members, j] = scale[j] * drawn[:, 1 + len(parents) :]
    theta.intercept[members, j] = mean[j] + scale[j] * drawn[:, 0] - weights @ mean[parents]
    theta.variance[members, j] = scale[j] ** 2 * variance
