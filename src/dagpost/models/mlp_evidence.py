"""Evidence of the families of a neural network with one hidden layer, compiled: tempering from the prior to the data.

The second layer is integrated out exactly (`mlp_network.py`). What is left is `Z = ∫ p(y | U, v) p(U) p(v)` over the
first layer U and the noise v. Networks are drawn from the prior, and move through `p(y | U, v)^β p(U) p(v)` with β from
0 to 1 (a sequential Monte Carlo sampler): they are weighted by `p(y | U, v)^Δβ`, resampled, and moved. The product of
the mean weights is an unbiased estimate of Z. Each Δβ is as large as leaves half of the networks their weight.

* Hidden units move one at a time, by elliptical slice sampling (Murray, Adams, MacKay 2010): a unit and another draw of
  its prior span an ellipse, on which a point is chosen whose likelihood is above a random level. It needs no step size,
  and each point takes one row of `ΦᵀΦ`. Unknown noise moves by a slice of its logarithm.
* All states on the way of a moved network are used, not just the last (Dau and Chopin 2022): few networks are
  resampled, `chains`, and each makes `steps - 1` moves.

No mode is searched for, and orders of the hidden units need no attention: networks that differ in them alone have the
same neighbourhood.
"""

from __future__ import annotations

from math import cos, exp, log, pi, sin, sqrt
from typing import NamedTuple

import numpy as np

from dagpost._util.compiled import njit
from dagpost.models.mlp_network import (
    factorise,
    log_likelihood,
    put_network,
    put_signal,
    take_unit,
    try_unit,
    workspace,
)

SHARE = 0.5
"""Effective share of the networks after each change of temperature."""
MOST_TRIES = 100
"""Points of a slice that are tried before the network stays where it is: rounding may leave it no room."""
UNKNOWN = 10.0
"""Standard error of a log evidence whose networks all descend from one."""
WIDTH = 1.0
"""First width of the slice of log noise."""


class NoisePrior(NamedTuple):
    """Inverse-gamma prior of unknown noise; `known` is 1 where it is fixed."""

    known: int
    shape: float
    rate: float


@njit(nogil=True)
def _move_unit(inputs, y, u, e, net, v, beta, value, squares, work, rng):
    """Move hidden unit e of the network; return its log likelihood."""
    scale = sqrt(net.prior_variance)
    for i in range(len(inputs)):
        work.other_unit[i] = scale * rng.standard_normal()
    put_signal(inputs, work.other_unit, work.other_signal)
    rest = factorise(e, v, net, work)
    level = beta * value + log(1.0 - rng.random())
    angle = 2 * pi * rng.random()
    low, high = angle - 2 * pi, angle
    for _ in range(MOST_TRIES):
        c, s = cos(angle), sin(angle)
        there, moment = try_unit(y, e, c, s, v, rest, squares, net, work)
        if beta * there > level:
            for i in range(len(inputs)):
                u[e, i] = c * u[e, i] + s * work.other_unit[i]
            take_unit(e, c, s, moment, net, work)
            return there
        if angle < 0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * rng.random()
    return value


@njit(nogil=True)
def _noise_density(at, noise, beta, squares, n, net, work):
    """Return the log likelihood at a log noise, and the log density that its slice has."""
    value = log_likelihood(squares, exp(at), n, net, work)
    return value, beta * value - noise.shape * at - noise.rate * exp(-at)


@njit(nogil=True)
def move_noise(at, noise, beta, squares, n, net, work, rng):
    """Move the log noise; return it and the log likelihood there."""
    value, here = _noise_density(at, noise, beta, squares, n, net, work)
    level = here + log(1.0 - rng.random())
    low = at - WIDTH * rng.random()
    high = low + WIDTH
    while _noise_density(low, noise, beta, squares, n, net, work)[1] > level:
        low -= WIDTH
    while _noise_density(high, noise, beta, squares, n, net, work)[1] > level:
        high += WIDTH
    for _ in range(MOST_TRIES):
        tried = low + (high - low) * rng.random()
        there, density = _noise_density(tried, noise, beta, squares, n, net, work)
        if density > level:
            return tried, there
        if tried < at:
            low = tried
        else:
            high = tried
    return at, value


@njit(nogil=True)
def _effective_share(values, top, step):
    """Return the effective share of networks that are weighted by `exp(step value)`."""
    first, second = 0.0, 0.0
    for value in values:
        weight = exp(step * (value - top))
        first += weight
        second += weight * weight
    return first * first / (second * len(values))


@njit(nogil=True)
def _next_step(values, most):
    """Return the change of temperature that leaves `SHARE` of the networks, or `most` where that leaves more."""
    top = values.max()
    if _effective_share(values, top, most) >= SHARE:
        return most
    low, high = 0.0, most
    for _ in range(25):
        middle = 0.5 * (low + high)
        if _effective_share(values, top, middle) < SHARE:
            high = middle
        else:
            low = middle
    return low if low > 0 else high


@njit(nogil=True)
def _error(weights, ancestors):
    """Return the standard error of the log evidence, at most `UNKNOWN`.

    Networks that descend from one of the first chains stand for one draw, however many they have become: with W the
    shares of the first chains in the weights, `V = Σ (W - 1/chains)²` is the relative variance of the estimate (Chan
    and Lai 2013; Lee and Whiteley 2018), and `-log(1 - V)` that of its logarithm where it is lognormal. V is 1 where
    all descend from one chain, and nothing is known.
    """
    chains = len(ancestors)
    steps = len(weights) // chains
    shares = np.zeros(chains)
    for c in range(chains):
        shares[ancestors[c]] += weights[c * steps : (c + 1) * steps].sum()
    shares /= shares.sum()
    variance = ((shares - 1.0 / chains) ** 2).sum() * chains / (chains - 1.0)
    return min(sqrt(-log(max(1.0 - variance, 1e-300))), UNKNOWN)


@njit(nogil=True)
def temper(inputs, y, first, log_noise, net, noise, chains, rng):
    """Return networks, (s, h, q), log noises and log weights that represent the posterior, the log evidence, and its
    standard error.

    Parameters
    ----------
    inputs, y
        Inputs, (q, n), and the node's values.
    first, log_noise
        Draws of the prior: first layers and logs of the noise, as many as a multiple of `chains`. They are changed.
    net, noise
        Settings of the network, and the noise's prior.
    chains
        How many networks are moved.
    rng
        Random numbers of the moves.
    """
    q, n = inputs.shape
    size, squares = len(first), (y * y).sum()
    steps = size // chains
    work = workspace(q, n, net)
    values = np.empty(size)
    for s in range(size):
        put_network(inputs, y, first[s], net, work)
        values[s] = log_likelihood(squares, exp(log_noise[s]), n, net, work)
    beta, log_evidence = 0.0, 0.0
    ancestors, next_ancestors = np.arange(chains), np.empty(chains, np.int64)
    other_first, other_noise, other_values = np.empty_like(first), np.empty_like(log_noise), np.empty(size)
    while True:
        step = _next_step(values, 1.0 - beta)
        beta += step
        logs = step * (values - values.max())
        weights = np.exp(logs)
        mean = weights.mean()
        log_evidence += step * values.max() + log(mean)
        if beta > 1.0 - 1e-9:
            return first, log_noise, logs, log_evidence, _error(weights, ancestors)
        reached, place, at = weights[0], rng.random(), 0
        for c in range(chains):
            while reached < (c + place) / chains * mean * size and at < size - 1:
                at += 1
                reached += weights[at]
            u, v, value = first[at].copy(), log_noise[at], values[at]
            next_ancestors[c] = ancestors[at // steps]
            put_network(inputs, y, u, net, work)
            for s in range(c * steps, (c + 1) * steps):
                if s > c * steps:
                    for e in range(net.hidden):
                        value = _move_unit(inputs, y, u, e, net, exp(v), beta, value, squares, work, rng)
                    if not noise.known:
                        v, value = move_noise(v, noise, beta, squares, n, net, work, rng)
                other_first[s], other_noise[s], other_values[s] = u, v, value
        ancestors, next_ancestors = next_ancestors, ancestors
        first, other_first = other_first, first
        log_noise, other_noise = other_noise, log_noise
        values, other_values = other_values, values
