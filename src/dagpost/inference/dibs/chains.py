"""Steps of SGLD and HMC on the latent posterior: every particle is a Markov chain of its own.

The paper names both as alternatives to SVGD (its discussion). The chains share nothing but their step size, and follow
the same schedules: alpha and beta change from step to step, so that a run is annealed, and its last states are draws of
the last target as far as the chains kept up with it.

HMC compares densities at the ends of a trajectory. With the estimator "exact" these are those of the latent posterior.
Any other estimator averages over graphs sampled with noise L, and the chain runs on pairs (x, L) with the density

    p(L) p(z) f(x, L),     f(x, L) = prod_j mean_s f_j(g_j(L_s, z), theta_j)

(pseudo-marginal: Andrieu and Roberts, 2009). A step first proposes new noise from p(L), accepted with probability
`min(1, f(x, L') / f(x, L))`, then moves x along a trajectory at fixed L. Since `E[f(x, L)] = E[p(D, theta | G)]` over
hard graphs, x has the latent posterior as its marginal whatever the number of samples; over soft graphs ("gumbel") it
has that of the relaxed graphs. Leapfrog steps preserve volume and are reversible along any function of x at fixed L, so
the accept step is right even where the force is a surrogate of the gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dagpost._util.numerics import map_chunked
from dagpost.inference.dibs.devices import gathered, own_keys
from dagpost.inference.dibs.samplers import Hmc, Sgld
from dagpost.inference.dibs.target import Target, gradients, log_density
from dagpost.typing import Key

GAIN = 0.3
"""Change of the logarithm of the step size per unit of excess acceptance."""
TINY = 1e-30
"""Least mean square of a gradient."""


class ChainState(NamedTuple):
    """What chains carry from step to step besides their positions."""

    square: Any  # running mean of squared gradients: of z, and of each array of theta
    scale: Any  # HMC: length of a leap in units of the target's length scale
    noise: Any  # HMC: data of the key of each chain's noise, (m, …)
    acceptance: Any  # HMC: running mean of the acceptance probability


def initial_chains(key: Key, z: Any, theta: Any) -> ChainState:
    """Return the state before the first step."""
    keys = jax.random.key_data(jax.random.split(key, z.shape[0]))
    square = jax.tree.map(lambda leaf: jnp.zeros((), leaf.dtype), (z, theta))
    return ChainState(square, jnp.full((), 0.5, z.dtype), keys, jnp.ones((), z.dtype))


def _mean_squares(target: Target, gradient: Any) -> Any:
    """Return the mean square over particles and entries of each array."""

    def one(leaf: Any) -> Any:
        by_particle = jnp.mean(leaf.reshape(leaf.shape[0], -1) ** 2, axis=1)
        return jnp.mean(gathered(by_particle, target.settings.devices))

    return jax.tree.map(one, gradient)


def _running(first: Any, decay: float, before: Any, now: Any) -> Any:
    """Return the running mean; at the first step the value itself."""
    return jax.tree.map(lambda b, n: jnp.where(first, n, decay * b + (1 - decay) * n), before, now)


def _normal_like(key: Key, tree: Any) -> Any:
    """Return standard normal numbers in the shape of one particle."""
    leaves, form = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return form.unflatten([jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)])


def langevin_step(target: Target, sampler: Sgld, key: Key, step: Any, position: Any, x: Any, chains: ChainState,
                  alpha: Any, beta: Any, stats: Any) -> tuple[Any, ChainState]:  # fmt: skip
    """Return particles `x = (z, theta)` and chains after a step of SGLD."""
    key_gradient, key_noise = jax.random.split(key)
    z, theta = x
    gradient = gradients(target, key_gradient, z, theta, alpha, beta, stats)
    now = _mean_squares(target, gradient)
    # the mean before this gradient: a step size that depends on the current position would bias the chain
    before = jax.tree.map(lambda b, n: jnp.where(step == 0, n, b), chains.square, now)
    if sampler.step is None:
        size = jax.tree.map(lambda square: sampler.rate / jnp.maximum(square, TINY), before)
    else:
        size = jax.tree.map(lambda square: sampler.step(position).astype(square.dtype), before)  # type: ignore[misc]
    noise = jax.vmap(_normal_like)(own_keys(key_noise, z.shape[0], target.settings.devices), x)
    # x + eps grad log p(x) + sqrt(2 eps) N(0, 1)
    moved = jax.tree.map(lambda x, e, g, n: x + e * g + jnp.sqrt(2 * e) * n, x, size, gradient, noise)
    return moved, chains._replace(square=_running(step == 0, sampler.decay, chains.square, now))


def hamiltonian_step(target: Target, sampler: Hmc, key: Key, step: Any, position: Any, x: Any, chains: ChainState,
                     alpha: Any, beta: Any, stats: Any) -> tuple[Any, ChainState]:  # fmt: skip
    """Return particles `x = (z, theta)` and chains after a trajectory of every particle and its accept step."""
    sampled = target.settings.estimator.kind != "exact"
    count, devices = x[0].shape[0], target.settings.devices

    def density(x: Any, noise: Any) -> Any:
        z, theta = x
        return log_density(target, z, theta, alpha, beta, stats, jax.random.wrap_key_data(noise))

    def fresh_noise(args: Any) -> Any:
        """The noise of a chain, or new noise that was accepted."""
        x, noise, key = args
        key_noise, key_accept = jax.random.split(key)
        proposed = jax.random.key_data(key_noise)
        gain = density(x, proposed) - density(x, noise)
        return jnp.where(_accepts(key_accept, gain), proposed, noise)

    def force(args: Any) -> Any:
        return jax.value_and_grad(density)(*args)

    def trajectory(args: Any) -> Any:
        x, noise, (value, gradient), key = args
        key_momentum, key_accept = jax.random.split(key)
        momentum = _normal_like(key_momentum, x)

        def leap(_: Any, state: Any) -> Any:
            x, p, _, g = state
            p = jax.tree.map(lambda p, h, g: p + 0.5 * h * g, p, size, g)
            x = jax.tree.map(lambda x, h, p: x + h * p, x, size, p)
            value, g = jax.value_and_grad(density)(x, noise)
            return x, jax.tree.map(lambda p, h, g: p + 0.5 * h * g, p, size, g), value, g

        end, p, last, _ = jax.lax.fori_loop(0, sampler.leaps, leap, (x, momentum, value, gradient))
        gain = last - value + _kinetic(momentum) - _kinetic(p)  # H before - H after
        accepted = _accepts(key_accept, gain)
        kept = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, x)
        return kept, jnp.where(jnp.isnan(gain), 0.0, jnp.exp(jnp.minimum(gain, 0.0)))

    key_noise, key_path = jax.random.split(key)
    noise = chains.noise
    if sampled:
        noise = map_chunked(fresh_noise, (x, noise, own_keys(key_noise, count, devices)), target.chunk)
    start = map_chunked(force, (x, noise), target.chunk)
    now = _mean_squares(target, start[1])
    square = jax.tree.map(lambda b, n: jnp.where(step == 0, n, b), chains.square, now)
    if sampler.step is None:
        size = jax.tree.map(lambda square: chains.scale / jnp.sqrt(jnp.maximum(square, TINY)), square)
    else:
        size = jax.tree.map(lambda square: sampler.step(position).astype(square.dtype), square)  # type: ignore[misc]
    paths = (x, noise, start, own_keys(key_path, count, devices))
    moved, accepted = map_chunked(trajectory, paths, target.chunk)
    rate = jnp.mean(gathered(accepted, devices))
    return moved, ChainState(
        _running(step == 0, sampler.decay, chains.square, now),
        chains.scale * jnp.exp(GAIN * (rate - sampler.acceptance)),
        noise,
        _running(step == 0, sampler.decay, chains.acceptance, rate),
    )


def _accepts(key: Key, gain: Any) -> Any:
    """Return whether a proposal with this log ratio is accepted; never if it is NaN."""
    return jnp.log(jax.random.uniform(key)) < gain


def _kinetic(momentum: Any) -> Any:
    """Return `|p|²/2`."""
    return 0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(momentum))
