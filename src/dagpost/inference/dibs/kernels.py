"""The kernel of SVGD and its update direction, in matrix form."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def squared_distances(particles: Float[Array, "m p"]) -> Float[Array, "m m"]:
    """`|x_a - x_b|²` of all pairs."""
    squares = jnp.sum(particles**2, axis=1)
    inner = particles @ particles.T
    return jnp.maximum(squares[:, None] + squares[None, :] - 2 * inner, 0.0)


def flatten(tree: Any) -> Float[Array, "m p"]:
    """All leaves of every particle in one row."""
    leaves = jax.tree.leaves(tree)
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in leaves], axis=1)


def directions(z: Array, theta: Any, z_gradient: Array, theta_gradient: Any, bandwidth_z, bandwidth_theta):
    """`phi` of every particle for the additive kernel `k = exp(-|z - z'|²/gz) + exp(-|theta - theta'|²/gt)`.

    For each part x of a particle, `phi^x(a) = 1/M sum_b [k(b, a) grad_b + d k(b, a) / d x_b]` (algorithm 2), and
    only the part's own summand of the kernel depends on x_b:

        phi^x = (K grad - 2/g (K_x x - x rowsum(K_x))) / M.

    Without parameters the second summand is left out. One particle gives `phi = k(x, x) grad`, with
    `k(x, x) = 2` for the joint kernel.
    """
    count = z.shape[0]
    has_theta = len(jax.tree.leaves(theta)) > 0
    kernel_z = jnp.exp(-squared_distances(flatten(z)) / bandwidth_z)
    kernel_theta = jnp.exp(-squared_distances(flatten(theta)) / bandwidth_theta) if has_theta else jnp.zeros(())
    kernel = kernel_z + kernel_theta

    def transported(part, gradient, own, bandwidth):
        x, g = part.reshape(count, -1), gradient.reshape(count, -1)
        repulsion = -2.0 / bandwidth * (own @ x - x * jnp.sum(own, axis=1, keepdims=True))
        return ((kernel @ g + repulsion) / count).reshape(part.shape)

    phi_z = transported(z, z_gradient, kernel_z, bandwidth_z)
    if not has_theta:
        return phi_z, theta
    phi_theta = jax.tree.map(lambda t, g: transported(t, g, kernel_theta, bandwidth_theta), theta, theta_gradient)
    return phi_z, phi_theta
