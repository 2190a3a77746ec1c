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
from dagpost.models.family_evidence import LARGEST, QUICK, Estimate, FamilyEvidence
from dagpost.models.gaussian import Noise, log_normal
from dagpost.models.mlp_evidence import NoisePrior, temper
from dagpost.models.mlp_network import ACTIVATIONS as COMPILED
from dagpost.models.mlp_network import Network, second_layers
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

    def network(self, inputs: Float[Array, "n d"], theta_j: Theta, g_j: SoftColumn | None = None) -> Float[Array, " n"]:
        """Return `FFN(u) = W_L σ(… σ(W_1 u + b_1) …) + b_L` for each row u of `inputs`, or `FFN(g_j ∘ u)`, equation
        E.2."""
        act = ACTIVATIONS[self.activation]
        # the signal has shape (units, rows): for many networks on the same rows the first layer is one matrix product
        signal = inputs.T
        last = len(theta_j.weights) - 1
        for layer, weight in enumerate(theta_j.weights):
            # W (g ∘ u) = (W ∘ g) u: mask the first weights instead of every row
            masked = weight.T if g_j is None or layer > 0 else g_j * weight.T
            few = 0 < layer == last  # one product for each network, too small for a call of its own
            signal = jnp.sum(masked.T * signal, axis=0, keepdims=True) if few else masked @ signal
            if self.bias:
                signal = signal + theta_j.biases[layer][:, None]
            if layer < last:
                signal = act(signal)
        return signal[0]

    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        (values,), (j, observed) = stats_j
        values = jnp.asarray(values)
        mean = self.network(values, theta_j, g_j)
        variance = self.noise.variance_from(theta_j.log_variance)
        squares = jnp.sum(observed * (values[:, j] - mean) ** 2)
        return -0.5 * (squares / variance + jnp.sum(observed) * jnp.log(2 * pi * variance))

    def log_parameter_prior(self, g_j: SoftColumn, theta_j: Theta) -> Scalar:
        spread = self.weight_scale**2
        first, *rest = theta_j.weights
        out = jnp.sum(g_j * jnp.sum(log_normal(first, spread), axis=1))
        for leaf in (*rest, *theta_j.biases):
            out = out + jnp.sum(log_normal(leaf, spread))
        return out + self.noise.log_prior(theta_j.log_variance) if self.noise.learned else out

    def numerical_evidence(self, stats: Statistics, seed: int = 0) -> FamilyEvidence:
        """Return compiled estimates for one hidden layer; else those of any model."""
        if len(self.hidden) == 1:
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


SIZES = ((4, 32), (16, 64), (64, 64), (256, 64), (1024, 64))
"""Networks that are moved, and states of each that are used, by effort. Few networks that move far find more than many
that stay near where they were."""
STATES_BY_INPUT = 8
"""States that are used of a network for each input, if that is more: with many inputs it takes longer to move far."""
KEPT = 256
"""Draws of the first layer that are kept of a careful estimate."""


class Networks(NamedTuple):
    """First layers of networks, (s, h, q), and the variances of their noise."""

    first: np.ndarray
    variances: np.ndarray


class MlpEvidence(FamilyEvidence):
    """Evidence of networks with one hidden layer, by the compiled code of `mlp_evidence.py`.

    Random numbers of a family depend on the seed, the family and the effort alone.
    """

    memories: ClassVar[tuple[str, ...]] = ("known", "kept")

    def __init__(self, model: MlpGaussian, stats: Statistics, seed: int = 0):
        values = np.asarray(stats.shared.values, dtype=np.float64)
        super().__init__(values.shape[1])
        self.network = Network(
            model.hidden[0], COMPILED.index(model.activation), int(model.bias), float(model.weight_scale) ** 2
        )
        self.noise_variance, self.seed = model.noise_variance, seed
        known = int(model.noise_variance is not None)
        self.noise = NoisePrior(known, float(model.noise_shape), float(model.noise_rate))
        self.kept: dict[tuple[int, bytes], Networks] = {}  # where effort went into them
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

    def _temper(self, node: int, parents: Bool[np.ndarray, " d"], effort: int) -> tuple[Networks, np.ndarray, Estimate]:
        """Return networks of the posterior, the logs of their weights, and the estimate."""
        inputs, _ = self._inputs(node, parents)
        q, (chains, steps) = len(inputs), SIZES[min(effort, LARGEST)]
        count = chains * max(steps, STATES_BY_INPUT * q)
        rng = np.random.default_rng([self.seed, effort, node, *np.packbits(parents).tolist()])
        scale = np.sqrt(self.network.prior_variance)
        first = scale * rng.standard_normal((count, self.network.hidden, q))
        if self.noise_variance is None:
            log_noise = np.log(self.noise.rate / rng.standard_gamma(self.noise.shape, count))
        else:
            log_noise = np.full(count, np.log(self.noise_variance))
        first, log_noise, logs, value, error = temper(
            inputs, self.inputs[node][node], first, log_noise, self.network, self.noise, chains, rng
        )
        return Networks(first, np.exp(log_noise)), logs, Estimate(float(value), float(error), effort)

    def compute(self, node: int, parents: Bool[np.ndarray, " d"], effort: int) -> Estimate:
        networks, logs, estimate = self._temper(node, parents, effort)
        if effort > QUICK:
            chosen = resample(logs, KEPT, np.random.default_rng([self.seed, node]))
            first, variances = (part[chosen].astype(np.float32) for part in networks)
            self.kept[node, parents.tobytes()] = Networks(first, variances)
        return estimate

    def draw(self, node: int, parents: Bool[np.ndarray, " d"], count: int, seed: int) -> MlpTheta:
        parents = np.asarray(parents, dtype=np.bool_)
        rng = np.random.default_rng([seed, node])
        networks = self.kept.get((node, parents.tobytes()))
        if networks is None:
            networks, logs, _ = self._temper(node, parents, self.estimate(node, parents).effort)
            chosen = resample(logs, count, rng)
        else:
            chosen = rng.permutation(np.resize(rng.permutation(len(networks.first)), count))
        first, variances = (part[chosen].astype(np.float64) for part in networks)
        inputs, columns = self._inputs(node, parents)
        hidden, bias = self.network.hidden, self.network.bias
        normals = rng.standard_normal((count, hidden + bias))
        second = second_layers(inputs, self.inputs[node][node], first, variances, normals, self.network)
        layer = np.zeros((count, self.d + 1, hidden))
        layer[:, columns] = first.transpose(0, 2, 1)
        weights = (np.where(parents[:, None], layer[:, : self.d], 0.0), second[:, :hidden, None])
        biases = (layer[:, self.d], second[:, hidden:]) if bias else ()
        return MlpTheta(weights, biases, np.log(variances) if self.noise_variance is None else None)
