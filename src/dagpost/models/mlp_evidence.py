"""Evidence of the families of a neural network with one hidden layer, compiled.

The second layer is integrated out exactly (`mlp_fits.py`). What is left is the integral of `p(y | U) p(U)` over the
first layer U, by importance sampling: `Z = E_q[p(y | U) p(U) / q(U)]`. The proposal q is a mixture of multivariate t
densities at the modes that the fits find, with their curvature H, averaged over all h! orders of the hidden units: the
posterior has that symmetry, and modes at which units are alike (or off) are their own images, which the usual factor h!
counts too often.

Random numbers are tables that all families share, so that a family's estimate depends on the seed and on nothing else,
and errors of similar families partly cancel.
"""

from __future__ import annotations

from itertools import permutations
from math import lgamma
from typing import NamedTuple

import numpy as np

from dagpost._util.compiled import njit
from dagpost.models.mlp_fits import (
    Noises,
    Search,
    backward_solve,
    cholesky,
    differentiate,
    find_modes,
    log_joint,
    workspace,
)

DEGREES = 6.0
"""Degrees of freedom of the proposal: heavy tails, so that no weight is huge."""
FAR = 1e7
"""Ratio of densities beyond which an image is left out."""
NEAR = 9.0
"""Squared distance, per dimension, beyond which an image of a mode adds nothing to the density of the proposal."""


class Tables(NamedTuple):
    """Random numbers that all families share."""

    starts: np.ndarray  # (starts, d + 1, h)
    normals: np.ndarray  # (samples, (d + 1) h)
    shrink: np.ndarray  # (samples,) square roots of χ²/degrees
    places: np.ndarray  # (samples,) in [0, 1), stratified
    orders: np.ndarray  # (h!, h) of the hidden units


def random_tables(search: Search, d: int, hidden: int, rng: np.random.Generator) -> Tables:
    """Return the tables for d nodes."""
    return Tables(
        rng.standard_normal((search.starts, d + 1, hidden)),
        rng.standard_normal((search.samples, (d + 1) * hidden)),
        np.sqrt(rng.chisquare(DEGREES, search.samples) / DEGREES),
        (np.arange(search.samples) + rng.random(search.samples)) / search.samples,
        np.array(list(permutations(range(hidden)))),
    )


@njit(fastmath=True, nogil=True)
def _distances(point, centre, factor, orders, wanted, q, h, parts, prefix, out):
    """Write `|Lᵀ (image of the point - centre)|²` for every wanted order of the hidden units to `out`.

    `Lᵀ image = sum_e V[e, order[e]]` with V[e, a] what unit a adds in the place of unit e: neighbouring orders
    begin alike, and share the sums of their beginnings. `parts` (h, h, k) and `prefix` (h + 1, k) are scratch.
    """
    k = q * h
    for e in range(h):
        for a in range(h):
            for b in range(k):
                parts[e, a, b] = 0.0
            for i in range(q):
                value = point[i * h + a]
                for b in range(i * h + e + 1):
                    parts[e, a, b] += value * factor[i * h + e, b]
    for b in range(k):
        prefix[0, b] = 0.0
    for a in range(k):
        for b in range(a + 1):
            prefix[0, b] -= centre[a] * factor[a, b]
    last = -1
    for o in range(len(orders)):
        if not wanted[o]:
            continue
        same = 0
        if last >= 0:
            while same < h and orders[o, same] == orders[last, same]:
                same += 1
        for e in range(same, h):
            unit = orders[o, e]
            for b in range(k):
                prefix[e + 1, b] = prefix[e, b] + parts[e, unit, b]
        total = 0.0
        for b in range(k):
            total += prefix[h, b] * prefix[h, b]
        out[o] = total
        last = o


@njit(nogil=True)
def _proposal(inputs, y, net, noises, starts, warm, search, work):
    """Return the modes with most mass by Laplace's formula: points, Cholesky factors of H, halves of log|H|, the logs
    of their masses, up to a constant, and the noise of each. Modes with the same mass are images of each other, and one
    is enough."""
    points, densities = find_modes(inputs, y, net, noises, starts, warm, search, work)
    count, k = points.shape
    factors, half_logs, noise = np.empty((count, k, k)), np.empty(count), np.empty(count)
    for m in range(count):
        log_joint(inputs, y, points[m], net, noises, -1, work)
        noise[m] = work.noise[0]
        differentiate(inputs, y, points[m], net, work)
        factors[m] = work.curvature
        half_logs[m] = 0.5 * cholesky(factors[m], k)
    masses = densities - half_logs
    chosen = np.empty(count, np.int64)
    size = 0
    for m in np.argsort(-masses):
        new = size == 0 or abs(masses[m] - masses[chosen[size - 1]]) > 1e-3
        if new and size < search.modes:
            chosen[size] = m
            size += 1
    kept = chosen[:size]
    return points[kept], factors[kept], half_logs[kept], masses[kept], noise[kept]


@njit(nogil=True)
def family_samples(inputs, y, net, noises, prior, starts, warm, search, tables):
    """Return draws of U, (samples, k), the logs of their importance weights, the modes by mass, and the noises that are
    summed over.

    `noises` are those of the search; unknown noise, with the inverse-gamma `prior` (shape, rate), gets finer ones.
    """
    q, n = inputs.shape
    h, samples = net.hidden, search.samples
    k = q * h
    work = workspace(q, n, net)
    modes, factors, half_logs, masses, at = _proposal(inputs, y, net, noises, starts, warm, search, work)
    size = len(modes)
    if len(noises.values) > 1:
        noises = _fine_noises(at, n, prior)
    shares = np.exp(masses - masses.max())
    shares = 0.9 * shares / shares.sum() + 0.1 / size
    # images of other modes that are near enough to add to the density of the proposal at draws around mode m
    orders = tables.orders
    near, reach = np.ones((size, size, len(orders)), np.bool_), np.ones((size, size), np.bool_)
    parts, prefix, distances = np.empty((h, h, k)), np.empty((h + 1, k)), np.empty(len(orders))
    for m in range(size):
        for c in range(size):
            _distances(modes[m], modes[c], factors[c], orders, near[m, c], q, h, parts, prefix, distances)
            near[m, c] = distances < NEAR * k
            reach[m, c] = near[m, c].any()
    scale = lgamma((DEGREES + k) / 2) - lgamma(DEGREES / 2) - 0.5 * k * np.log(DEGREES * np.pi) - np.log(len(orders))
    draws, logs = np.empty((samples, k)), np.empty(samples)
    m, reached = 0, shares[0]
    for s in range(samples):
        while tables.places[s] >= reached and m < size - 1:
            m += 1
            reached += shares[m]
        for a in range(k):
            draws[s, a] = tables.normals[s, a] / tables.shrink[s]
        backward_solve(factors[m], k, draws[s])
        for a in range(k):
            draws[s, a] += modes[m, a]
        joint, _, _ = log_joint(inputs, y, draws[s], net, noises, -1, work)
        largest, total = -1e300, 0.0
        for c in range(size):
            if not reach[m, c]:
                continue
            _distances(draws[s], modes[c], factors[c], orders, near[m, c], q, h, parts, prefix, distances)
            least = 1e300
            for o in range(len(orders)):
                if near[m, c, o] and distances[o] < least:
                    least = distances[o]
            # the images of this mode, relative to the nearest; those far behind it add nothing
            images, far = 0.0, FAR ** (2.0 / (DEGREES + k)) * (DEGREES + least)
            for o in range(len(orders)):
                if near[m, c, o] and DEGREES + distances[o] < far:
                    images += ((DEGREES + distances[o]) / (DEGREES + least)) ** (-0.5 * (DEGREES + k))
            value = np.log(shares[c] * images) + half_logs[c] - 0.5 * (DEGREES + k) * np.log1p(least / DEGREES)
            if value > largest:
                total = total * np.exp(largest - value) + 1.0
                largest = value
            else:
                total += np.exp(value - largest)
        logs[s] = joint - (largest + np.log(total) + scale)
    return draws, logs, modes, noises


@njit(nogil=True)
def log_mean_weight(logs):
    """Return the log of the mean weight and its standard error, from logs of weights."""
    top = logs.max()
    weights = np.exp(logs - top)
    first, second = weights.sum(), (weights * weights).sum()
    return top + np.log(first / len(logs)), np.sqrt(max(second / first**2 - 1.0 / len(logs), 0.0))


@njit(nogil=True)
def second_layers(inputs, y, draws, normals, places, net, noises):
    """Return a draw of the noise and of the second layer given each first one: `N(ŵ, A⁻¹)`; `places` are uniform."""
    work, m = workspace(inputs.shape[0], inputs.shape[1], net), net.hidden + net.bias
    out, variance = np.empty((len(draws), m)), np.empty(len(draws))
    count = len(noises.values)
    values = np.empty(count)
    for s in range(len(draws)):
        for g in range(count):
            values[g], _, _ = log_joint(inputs, y, draws[s], net, noises, g, work)
        weights = np.cumsum(np.exp(values - values.max()))
        g = min(np.searchsorted(weights, places[s] * weights[-1]), count - 1)
        log_joint(inputs, y, draws[s], net, noises, g, work)
        out[s] = normals[s]
        backward_solve(work.gram, m, out[s])
        for a in range(m):
            out[s, a] += work.weights[a]
        variance[s] = noises.values[g]
    return out, variance


def noise_grid(logs: np.ndarray, step: float, prior: tuple[float, float]) -> Noises:
    """Return equally spaced logs of the noise variance with the weights of their inverse-gamma prior (shape, rate)."""
    return Noises(np.exp(logs), _log_prior(logs, step, prior[0], prior[1]))


@njit
def _log_prior(logs, step, a, b):
    """Return the log of step times the density of the log variance, `a log b - log Γ(a) - a v - b e^(-v)`."""
    return np.log(step) + a * np.log(b) - lgamma(a) - a * logs - b * np.exp(-logs)


@njit
def _fine_noises(at, n, prior):
    """Return noises around those of the modes, spaced by a fraction of the posterior's spread, sqrt(2 / n)."""
    spread = np.sqrt(2.0 / max(n, 2))
    low, high = np.log(at.min()) - 4.5 * spread, np.log(at.max()) + 4.5 * spread
    count = min(max(int((high - low) / (0.6 * spread)) + 2, 12), 60)
    logs = np.linspace(low, high, count)
    return Noises(np.exp(logs), _log_prior(logs, logs[1] - logs[0], prior[0], prior[1]))
