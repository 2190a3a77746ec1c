"""The nonlinear Gaussian model: the mean of each node is a small neural network of its parents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import pi
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dagpost.errors import InputError, nearest, positive
from dagpost.models.base import Model, Statistics
from dagpost.models.family_evidence import QUICK, Estimate, FamilyEvidence
from dagpost.models.gaussian import Noise, log_normal
from dagpost.models.mlp_evidence import family_samples, log_mean_weight, noise_grid, random_tables, second_layers
from dagpost.models.mlp_fits import ACTIVATIONS as COMPILED
from dagpost.models.mlp_fits import Network, Noises, Search
from dagpost.models.numerical import resample
from dagpost.typing import Graph, Key, Scalar, SoftColumn, Theta

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "leaky_relu": jax.nn.leaky_relu,
    "sigmoid": jax.nn.sigmoid,
}
"""Activation functions by name."""


class MlpTheta(NamedTuple):
    """Weights and biases of the d networks; every leaf has a leading node axis."""

    weights: tuple[Any, ...]  # (d, width of layer l, width of layer l + 1)
    biases: tuple[Any, ...]  # (d, width of layer l + 1); () without biases
    log_variance: Any  # (d,), or None with fixed noise


MOST_HIDDEN = 6
"""Hidden units whose orders can be summed over."""


@dataclass(frozen=True)
class MlpGaussian(Model):
    """Nonlinear Gaussian model, `p(x_j | parents) = N(FFN(g_j ∘ x; theta_j), noise)`, the paper's equation E.3.

    The defaults are the paper's: one hidden layer of 5 rectified linear units with biases, and noise 0.1, which makes
    2,220 parameters for 20 nodes.

    Parameters
    ----------
    hidden
        Width of each hidden layer; an integer for a single layer.
    activation
        `"relu"`, `"tanh"`, `"leaky_relu"` or `"sigmoid"`.
    bias
        Whether the layers have biases.
    noise_variance
        Fixed noise variance; None makes the noise of each node unknown.
    weight_scale
        Prior standard deviation of all weights and biases; weights of absent inputs have no density.
    noise_shape, noise_rate
        Inverse-gamma prior of unknown noise.
    """

    hidden: tuple[int, ...] = (5,)
    activation: str = "relu"
    bias: bool = True
    noise_variance: float | None = 0.1
    weight_scale: float = 1.0
    noise_shape: float = 1.5
    noise_rate: float = 0.25
    name: ClassVar[str] = "mlp"
    assumption: ClassVar[str] = "every relation is a smooth function with Gaussian noise"

    def __post_init__(self):
        widths = (self.hidden,) if isinstance(self.hidden, int) else self.hidden
        object.__setattr__(self, "hidden", tuple(widths))
        self.noise.check()
        if not all(isinstance(w, int | np.integer) and w >= 1 for w in self.hidden):
            raise InputError(f"hidden={self.hidden!r}: give the width of each hidden layer, at least 1")
        if self.activation not in ACTIVATIONS:
            raise InputError(f"unknown activation {self.activation!r}: {nearest(self.activation, ACTIVATIONS)}")
        positive("weight_scale", self.weight_scale)

    @property
    def noise(self) -> Noise:
        """Observation noise."""
        return Noise(self.noise_variance, self.noise_shape, self.noise_rate)

    def network(self, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        """Return `FFN(u) = W_L σ(… σ(W_1 u + b_1) …) + b_L` for each row u of `inputs`, equation E.2."""
        act = ACTIVATIONS[self.activation]
        signal = inputs
        last = len(theta_j.weights) - 1
        for layer, weight in enumerate(theta_j.weights):
            signal = signal @ weight
            if self.bias:
                signal = signal + theta_j.biases[layer]
            if layer < last:
                signal = act(signal)
        return signal[..., 0]

    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        (values,), (j, observed) = stats_j
        values = jnp.asarray(values)
        # (x ∘ g) W = x (g ∘ W): mask the first weights instead of every row
        first, *rest = theta_j.weights
        mean = self.network(values, theta_j._replace(weights=(g_j[:, None] * first, *rest)))
        variance = self.noise.variance_from(theta_j.log_variance)
        squares = jnp.sum(observed * (values[:, j] - mean) ** 2)
        return -0.5 * (squares / variance + jnp.sum(observed) * jnp.log(2 * pi * variance))

    def log_parameter_prior(self, g_j: SoftColumn, theta_j: Theta) -> Scalar:
        spread = self.weight_scale**2
        first, *rest = theta_j.weights
        out = jnp.sum(g_j[:, None] * log_normal(first, spread))
        for leaf in (*rest, *theta_j.biases):
            out = out + jnp.sum(log_normal(leaf, spread))
        return out + self.noise.log_prior(theta_j.log_variance) if self.noise.learned else out

    def numerical_evidence(self, stats: Statistics, seed: int = 0) -> FamilyEvidence:
        """Return compiled estimates for one hidden layer of up to 6 units; else those of any model."""
        if len(self.hidden) == 1 and self.hidden[0] <= MOST_HIDDEN:
            return MlpEvidence(self, stats, seed)
        return super().numerical_evidence(stats, seed)

    def sample_theta(self, key: Key, d: int) -> MlpTheta:
        key_weights, key_biases, key_noise = jax.random.split(key, 3)
        widths = (d, *self.hidden, 1)
        weights = tuple(
            self.weight_scale * jax.random.normal(jax.random.fold_in(key_weights, layer), (d, *shape))
            for layer, shape in enumerate(pairwise(widths))
        )
        biases = tuple(
            self.weight_scale * jax.random.normal(jax.random.fold_in(key_biases, layer), (d, width))
            for layer, width in enumerate(widths[1:] if self.bias else ())
        )
        log_variance = self.noise.sample_log_variance(key_noise, (d,)) if self.noise.learned else None
        return MlpTheta(weights, biases, log_variance)

    def sample_parameters(self, key: Key, graph: Graph) -> MlpTheta:
        with jax.enable_x64(True):
            theta = jax.tree.map(np.asarray, self.sample_theta(key, graph.shape[0]))
        first, *rest = theta.weights
        return theta._replace(weights=(first * graph.T[:, :, None], *rest))

    def node_mean(self, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        return self.network(inputs, theta_j)

    def sample_node(self, key: Key, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        noise = jax.random.normal(key, (inputs.shape[0],), dtype=inputs.dtype)
        return self.node_mean(inputs, theta_j) + jnp.sqrt(self.noise.variance_from(theta_j.log_variance)) * noise


SEARCHES = (
    Search(96, np.array([6, 5, 5]), np.array([5, 8, 20]), 6, 96),
    Search(512, np.array([24, 12, 12]), np.array([6, 12, 40]), 12, 800),
    Search(512, np.array([32, 16, 16]), np.array([8, 15, 50]), 16, 3000),
    Search(1024, np.array([64, 32, 32]), np.array([8, 15, 50]), 24, 12000),
)
"""By effort."""
OPTIMISM = 2.0
"""How much larger errors of estimates are than the spread of their weights says: modes that the fits have missed leave
no trace there (`benchmarks/evidence_error.py`)."""
DROPPED = 2
"""Parents without which families are fitted first, one at a time."""
KEPT = 256
"""Draws of the first layer that are kept of a careful estimate."""


class Fit(NamedTuple):
    """What an estimate of a family finds: the best mode of the first layer, (q, h), and the log evidence."""

    mode: np.ndarray
    log_evidence: float


class MlpEvidence(FamilyEvidence):
    """Evidence of networks with one hidden layer, by the compiled code of `mlp_evidence.py`.

    The fits of a family also start from the modes of the families without one of its weakest parents, the weights of
    the new input being 0, so that more parents never fit worse; and from its own mode found with less effort. Parents
    are ranked by their evidence as single parents, estimated quickly.
    """

    memories: ClassVar[tuple[str, ...]] = ("known", "fits", "kept")

    def __init__(self, model: MlpGaussian, stats: Statistics, seed: int = 0):
        values = np.asarray(stats.shared.values, dtype=np.float64)
        super().__init__(values.shape[1])
        hidden = model.hidden[0]
        self.network = Network(hidden, COMPILED.index(model.activation), int(model.bias), model.weight_scale**2)
        self.prior = (float(model.noise_shape), float(model.noise_rate))
        if model.noise_variance is not None:
            self.noises = [Noises(np.array([float(model.noise_variance)]), np.zeros(1))] * self.d
        else:  # for the search: from all of a column's variance down to a thousandth of it
            scales = np.log(np.maximum(values.var(axis=0), 1e-12))
            logs = np.linspace(np.log(1e-3), np.log(2.0), 16)
            self.noises = [noise_grid(scale + logs, logs[1] - logs[0], self.prior) for scale in scales]
        self.learned = model.noise_variance is None
        rng = np.random.default_rng([seed, 17])
        self.tables = tuple(random_tables(search, self.d, hidden, rng) for search in SEARCHES)
        self.fits: dict[tuple[int, bytes, int], Fit] = {}  # by node, parents and effort
        self.kept: dict[
            tuple[int, bytes], tuple[np.ndarray, Noises]
        ] = {}  # draws of the first layer, where effort went into them
        self.seed = seed
        # inputs of every node: all columns, then 1, over the rows without an intervention on it
        observed = np.asarray(stats.node.observed) > 0
        distinct: dict[bytes, np.ndarray] = {}
        for rows in observed:
            if rows.tobytes() not in distinct:
                distinct[rows.tobytes()] = np.vstack([values[rows].T, np.ones((1, rows.sum()))])
        self.inputs = [distinct[rows.tobytes()] for rows in observed]

    def _inputs(self, node: int, parents: Bool[np.ndarray, " d"]) -> tuple[np.ndarray, list[int]]:
        """Return the inputs of a family, (q, n), and which columns they are."""
        columns = [*np.flatnonzero(parents).tolist(), *([self.d] if self.network.bias else [])]
        if columns:
            return np.ascontiguousarray(self.inputs[node][columns]), columns
        return np.zeros((1, self.inputs[node].shape[1])), [self.d]  # one input that is always 0

    def _samples(self, node: int, parents: Bool[np.ndarray, " d"], effort: int):
        """Return the inputs of a family, draws of the first layer, logs of their importance weights, the best mode, and
        the noises."""
        search, tables = SEARCHES[effort], self.tables[effort]
        inputs, columns = self._inputs(node, parents)
        scale = np.sqrt(self.network.prior_variance)
        starts = scale * tables.starts[:, columns].reshape(len(tables.starts), -1)
        warm = self._warm_starts(node, parents, columns, effort)
        draws, logs, modes, noises = family_samples(
            inputs, self.inputs[node][node], self.network, self.noises[node], self.prior, starts, warm, search, tables
        )  # fmt: skip
        return inputs, columns, draws, logs, modes[0].reshape(len(columns), -1), noises

    def _warm_starts(
        self, node: int, parents: Bool[np.ndarray, " d"], columns: list[int], effort: int
    ) -> Float[np.ndarray, "w k"]:
        """Return the modes of the families without one of the weakest parents, with weights 0 for it, and that of less
        effort; none with few parents."""
        present = np.flatnonzero(parents)
        if len(present) < 2:
            return np.empty((0, len(columns) * self.network.hidden))
        single = [self._fit(node, np.arange(self.d) == i, QUICK).log_evidence for i in present]
        warm = []
        for weak in present[np.argsort(single)][:DROPPED].tolist():
            fewer = parents.copy()
            fewer[weak] = False
            warm.append(np.insert(self._fit(node, fewer, QUICK).mode, columns.index(weak), 0.0, axis=0))
        if effort > QUICK:
            warm.append(self._fit(node, parents, effort - 1).mode)
        return np.stack(warm).reshape(len(warm), -1)

    def _fit(self, node: int, parents: Bool[np.ndarray, " d"], effort: int) -> Fit:
        """Return what an estimate of a family with this effort finds, whether or not there is a better one."""
        key = (node, parents.tobytes())
        if (*key, effort) not in self.fits:
            found = self.compute(node, parents, effort)
            if self._lacks(node, parents, effort):
                self.known[key] = found
        return self.fits[*key, effort]

    def compute(self, node: int, parents: Bool[np.ndarray, " d"], effort: int) -> Estimate:
        _, _, draws, logs, mode, noises = self._samples(node, parents, effort)
        value, error = log_mean_weight(logs)
        self.fits[node, parents.tobytes(), effort] = Fit(mode, float(value))
        if effort > QUICK:
            rng = np.random.default_rng([self.seed, node])
            self.kept[node, parents.tobytes()] = draws[resample(logs, KEPT, rng)].astype(np.float32), noises
        return Estimate(float(value), OPTIMISM * float(error), effort)

    def draw(self, node: int, parents: Bool[np.ndarray, " d"], count: int, seed: int) -> MlpTheta:
        parents = np.asarray(parents, dtype=np.bool_)
        rng = np.random.default_rng([seed, node])
        kept = self.kept.get((node, parents.tobytes()))
        if kept is None:
            effort = self.estimate(node, parents).effort
            inputs, columns, draws, logs, _, noises = self._samples(node, parents, effort)
            first = draws[resample(logs, count, rng)]
        else:
            inputs, columns = self._inputs(node, parents)
            some, noises = kept
            first = rng.permutation(np.resize(rng.permutation(some), (count, some.shape[1]))).astype(np.float64)
        hidden, bias = self.network.hidden, self.network.bias
        normals = rng.standard_normal((count, hidden + bias))
        target, places = self.inputs[node][node], rng.random(count)
        second, variance = second_layers(inputs, target, first, normals, places, self.network, noises)
        layer = np.zeros((count, self.d + 1, hidden))
        layer[:, columns] = first.reshape(count, len(columns), hidden)
        weights = (np.where(parents[:, None], layer[:, : self.d], 0.0), second[:, :hidden, None])
        biases = (layer[:, self.d], second[:, hidden:]) if bias else ()
        return MlpTheta(weights, biases, np.log(variance) if self.learned else None)
