"""The latent graph model: a continuous variable z that encodes the probability of every edge.

`p_alpha(g_ij = 1 | z) = sigmoid(alpha s_ij)` with `s_ij = u_i · v_j` (equation 6), no self-loops. All
functions take one particle; callers vmap.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dagpost.errors import InputError
from dagpost.priors import Constraints


class Embedding(abc.ABC):
    """Shape and prior of z, and the edge scores s(z)."""

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator, d: int) -> np.ndarray:
        """Return a draw from the Gaussian prior."""

    @abc.abstractmethod
    def scores(self, z: Array) -> Float[Array, "d d"]:
        """Return `s_ij`, positive for edges that are more probable than not."""

    @abc.abstractmethod
    def log_prior(self, z: Array) -> Float[Array, ""]:
        """Return the log density of the Gaussian prior, up to a constant."""


@dataclass(frozen=True)
class InnerProduct(Embedding):
    """The paper's embedding: `z = [U, V]` of shape (d, k, 2), `s_ij = u_i · v_j`, `z ~ N(0, scale²)`.

    Parameters
    ----------
    size
        k; None takes k = d, which leaves the rank of the edge scores unconstrained.
    scale
        Standard deviation of the prior; None takes `1/sqrt(k)`.
    """

    size: int | None = None
    scale: float | None = None

    def __post_init__(self):
        if self.size is not None and self.size < 1:
            raise InputError(f"latent size {self.size!r}: must be at least 1")

    def _scale(self, k: int) -> float:
        return k**-0.5 if self.scale is None else self.scale

    def sample(self, rng: np.random.Generator, d: int) -> np.ndarray:
        k = d if self.size is None else self.size
        return self._scale(k) * rng.standard_normal((d, k, 2))

    def scores(self, z: Array) -> Float[Array, "d d"]:
        return z[..., 0] @ z[..., 1].T

    def log_prior(self, z: Array) -> Float[Array, ""]:
        return -0.5 * jnp.sum(z**2) / self._scale(z.shape[1]) ** 2


@dataclass(frozen=True)
class ScalarEmbedding(Embedding):
    """The embedding of the paper's ablation: one number per edge, `s_ij = z_ij`.

    Parameters
    ----------
    scale
        Standard deviation of the Gaussian prior.
    """

    scale: float = 1.0

    def sample(self, rng: np.random.Generator, d: int) -> np.ndarray:
        return self.scale * rng.standard_normal((d, d))

    def scores(self, z: Array) -> Float[Array, "d d"]:
        return z

    def log_prior(self, z: Array) -> Float[Array, ""]:
        return -0.5 * jnp.sum(z**2) / self.scale**2


def no_loops(matrix: Array) -> Array:
    """Return the matrix with a zero diagonal."""
    return matrix * (1.0 - jnp.eye(matrix.shape[-1], dtype=matrix.dtype))


def with_certain_edges(graph: Array, known: Constraints | None) -> Array:
    """Return the (soft) graph without self-loops, required edges set to 1 and forbidden ones to 0 whatever z is."""
    if known is None:
        return no_loops(graph)
    return jnp.where(known.free, graph, jnp.asarray(known.required, dtype=graph.dtype))


def edge_probabilities(scores: Float[Array, "d d"], alpha, known: Constraints | None = None) -> Float[Array, "d d"]:
    """Return `G_alpha(z)`, equation 7."""
    return with_certain_edges(jax.nn.sigmoid(alpha * scores), known)


def soft_graph(
    noise: Float[Array, "*s d d"], scores: Float[Array, "d d"], alpha, tau=1.0, known: Constraints | None = None
) -> Float[Array, "*s d d"]:
    """Return Gumbel-softmax samples `sigmoid(tau (l_ij + alpha s_ij))`, equation 13."""
    return with_certain_edges(jax.nn.sigmoid(tau * (noise + alpha * scores)), known)


def hard_graph(
    noise: Float[Array, "*s d d"], scores: Float[Array, "d d"], alpha, known: Constraints | None = None
) -> Float[Array, "*s d d"]:
    """Return samples of `p_alpha(G | z)` from the same logistic noise: 1 where `l_ij + alpha s_ij > 0`."""
    return with_certain_edges((noise + alpha * scores > 0).astype(scores.dtype), known)


def log_graph_probability(
    graph: Float[Array, "d d"], scores: Float[Array, "d d"], alpha, known: Constraints | None = None
) -> Float[Array, " d"]:
    """Return `log p_alpha(g_j | z)` of every column j; certain edges contribute nothing."""
    logits = alpha * scores
    each = graph * jax.nn.log_sigmoid(logits) + (1 - graph) * jax.nn.log_sigmoid(-logits)
    return jnp.sum(mask_certain_edges(each, known), axis=-2)


def mask_certain_edges(matrix: Array, known: Constraints | None) -> Array:
    """Return the matrix with zeros on the diagonal and at certain edges, which do not depend on z."""
    return no_loops(matrix) if known is None else jnp.where(known.free, matrix, 0.0)


def limiting_graph(scores: Float[Array, "*m d d"], known: Constraints | None = None) -> Bool[Array, "*m d d"]:
    """Return `G_inf(z)`: the edges with a positive score, equation 17."""
    return with_certain_edges(jnp.asarray(scores > 0, dtype=float), known) > 0
