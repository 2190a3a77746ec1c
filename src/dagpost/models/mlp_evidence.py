"""Evidence of the families of a neural network with one hidden layer, compiled.

Given the first layer U (weights and biases of the h hidden units) the output is linear in the second, `f = Φ w` with
Φ = σ(X U), so that w is integrated out exactly: with prior variance s² and noise v,

    log p(y | U) = log N(y; 0, v I + s² Φ Φᵀ),    A = ΦᵀΦ/v + I/s²,    ŵ = A⁻¹ Φᵀy/v.

What is left is the integral of `p(y | U) p(U)` over U, in three steps:

1. Levenberg–Marquardt from the best of many draws of the prior. Steps use the Gauss–Newton curvature with ŵ eliminated
   (variable projection), `H = JᵀJ/v + I/s² - JᵀΦ A⁻¹ ΦᵀJ/v²`, J being the derivatives of Φŵ by U. Fits are narrowed
   down in stages: a few iterations for many starts, more for the best.
2. A mixture q of multivariate t densities at the modes, with scale H⁻¹.
3. Importance sampling, `Z = E_q[p(y | U) p(U) / q(U)]`, with q averaged over all h! orders of the hidden units: the
   posterior has that symmetry, and modes at which units are alike (or off) are their own images, which the usual
   factor h! counts too often.

Random numbers are tables that all families share, so that a family's estimate depends on the seed and on nothing else,
and errors of similar families partly cancel.
"""

from __future__ import annotations

from itertools import permutations
from math import lgamma
from typing import NamedTuple

import numpy as np

from dagpost._util.compiled import njit

DEGREES = 6.0
"""Degrees of freedom of the proposal: heavy tails, so that no weight is huge."""
FAR = 1e7
"""Ratio of densities beyond which an image is left out."""
NEAR = 9.0
"""Squared distance, per dimension, beyond which an image of a mode adds nothing to the density of the proposal."""


class Network(NamedTuple):
    """Settings of the network that the compiled code reads."""

    hidden: int
    activation: int  # index in `ACTIVATIONS`
    bias: int  # 0 or 1
    prior_variance: float
    noise_variance: float


ACTIVATIONS = ("relu", "tanh", "leaky_relu", "sigmoid")


class Search(NamedTuple):
    """How much work an estimate takes."""

    starts: int  # draws of the prior that are compared
    fits: np.ndarray  # fits continued in each stage; those of the last are the candidates for modes
    iterations: np.ndarray  # of each fit in each stage
    modes: int  # of the proposal
    samples: int  # of importance sampling


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
def _activate(kind, a):
    """Return the activation and its derivative."""
    if kind == 0:
        return (a, 1.0) if a > 0 else (0.0, 0.0)
    if kind == 1:
        t = np.tanh(a)
        return t, 1.0 - t * t
    if kind == 2:
        return (a, 1.0) if a > 0 else (0.01 * a, 0.01)
    s = 1.0 / (1.0 + np.exp(-a))
    return s, s * (1.0 - s)


@njit(fastmath=True, nogil=True)
def _cholesky(matrix, k):
    """Replace the lower triangle by its Cholesky factor and return the log determinant."""
    total = 0.0
    for a in range(k):
        for b in range(a + 1):
            t = matrix[a, b]
            for c in range(b):
                t -= matrix[a, c] * matrix[b, c]
            if a == b:
                t = max(t, 1e-12)
                total += np.log(t)
                matrix[a, a] = np.sqrt(t)
            else:
                matrix[a, b] = t / matrix[b, b]
    return total


@njit(fastmath=True, nogil=True)
def _forward(lower, k, x):
    """Replace x by L⁻¹ x."""
    for a in range(k):
        t = x[a]
        for c in range(a):
            t -= lower[a, c] * x[c]
        x[a] = t / lower[a, a]


@njit(fastmath=True, nogil=True)
def _backward(lower, k, x):
    """Replace x by L⁻ᵀ x."""
    for a in range(k - 1, -1, -1):
        t = x[a]
        for c in range(a + 1, k):
            t -= lower[c, a] * x[c]
        x[a] = t / lower[a, a]


class Work(NamedTuple):
    """Memory of one family: q inputs, h hidden units, m = h + bias features, k = q h parameters, n rows."""

    features: np.ndarray  # (m, n) Φᵀ
    slopes: np.ndarray  # (h, n) σ'
    gram: np.ndarray  # (m, m) Cholesky factor of A
    weights: np.ndarray  # (m,) ŵ
    jacobian: np.ndarray  # (k, n) Jᵀ
    cross: np.ndarray  # (k, m) JᵀΦ/v L⁻ᵀ
    curvature: np.ndarray  # (k, k) H
    factor: np.ndarray  # (k, k)
    gradient: np.ndarray  # (k,)
    proposal: np.ndarray  # (k,)
    residual: np.ndarray  # (n,)
    room: np.ndarray  # (m,)


@njit
def _work(q, n, net):
    h = net.hidden
    m, k = h + net.bias, q * h
    return Work(
        np.ones((m, n)), np.empty((h, n)), np.empty((m, m)), np.empty(m), np.empty((k, n)), np.empty((k, m)),
        np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k), np.empty(n), np.empty(m),
    )  # fmt: skip


@njit(fastmath=True, nogil=True)
def _log_joint(inputs, y, u, net, work):
    """Return `log p(y | U) + log p(U)`, and the part of it that the fits maximise; update Φ, σ', A and ŵ."""
    q, n = inputs.shape
    h, v, s2 = net.hidden, net.noise_variance, net.prior_variance
    m, features, slopes, gram, weights = h + net.bias, work.features, work.slopes, work.gram, work.weights
    for e in range(h):
        for r in range(n):
            features[e, r] = 0.0
        for i in range(q):
            weight = u[i * h + e]
            for r in range(n):
                features[e, r] += weight * inputs[i, r]
        for r in range(n):
            features[e, r], slopes[e, r] = _activate(net.activation, features[e, r])
    squares = 0.0
    for r in range(n):
        squares += y[r] * y[r]
    for a in range(m):
        for b in range(a + 1):
            t = 0.0
            for r in range(n):
                t += features[a, r] * features[b, r]
            gram[a, b] = t / v
        gram[a, a] += 1.0 / s2
        t = 0.0
        for r in range(n):
            t += features[a, r] * y[r]
        weights[a] = t / v
    log_determinant = _cholesky(gram, m)
    _forward(gram, m, weights)
    explained = 0.0
    for a in range(m):
        explained += weights[a] * weights[a]
    _backward(gram, m, weights)
    penalty = 0.0
    for a in range(q * h):
        penalty += u[a] * u[a]
    fit = -0.5 * (squares / v - explained + penalty / s2)
    constant = m * np.log(s2) + n * np.log(2 * np.pi * v) + q * h * np.log(2 * np.pi * s2)
    return fit - 0.5 * (log_determinant + constant), fit


@njit(fastmath=True, nogil=True)
def _differentiate(inputs, y, u, net, work):
    """Write the gradient of -fit and the curvature H at the point of the last `_log_joint`."""
    q, n = inputs.shape
    h, v, s2 = net.hidden, net.noise_variance, net.prior_variance
    m, k = h + net.bias, q * h
    jacobian, residual, room = work.jacobian, work.residual, work.room
    for r in range(n):
        residual[r] = y[r]
    for a in range(m):
        weight = work.weights[a]
        for r in range(n):
            residual[r] -= weight * work.features[a, r]
    for i in range(q):
        for e in range(h):
            weight = work.weights[e]
            for r in range(n):
                jacobian[i * h + e, r] = weight * work.slopes[e, r] * inputs[i, r]
    for a in range(k):
        t = 0.0
        for r in range(n):
            t += jacobian[a, r] * residual[r]
        work.gradient[a] = u[a] / s2 - t / v
        for b in range(m):
            t = 0.0
            for r in range(n):
                t += jacobian[a, r] * work.features[b, r]
            room[b] = t / v
        _forward(work.gram, m, room)
        for b in range(m):
            work.cross[a, b] = room[b]
    for a in range(k):
        for b in range(a + 1):
            t = 0.0
            for r in range(n):
                t += jacobian[a, r] * jacobian[b, r]
            t /= v
            for c in range(m):
                t -= work.cross[a, c] * work.cross[b, c]
            work.curvature[a, b] = t
        work.curvature[a, a] += 1.0 / s2


@njit(fastmath=True, nogil=True)
def _optimise(inputs, y, u, net, work, iterations, damping):
    """Improve u in place by Levenberg–Marquardt steps; return its log joint density and the damping reached."""
    k = u.shape[0]
    density, fit = _log_joint(inputs, y, u, net, work)
    for _ in range(iterations):
        _differentiate(inputs, y, u, net, work)
        gain, there, better = -1.0, density, fit
        for _ in range(6):
            for a in range(k):
                for b in range(a + 1):
                    work.factor[a, b] = work.curvature[a, b]
                work.factor[a, a] *= 1.0 + damping
                work.proposal[a] = -work.gradient[a]
            _cholesky(work.factor, k)
            _forward(work.factor, k, work.proposal)
            _backward(work.factor, k, work.proposal)
            for a in range(k):
                work.proposal[a] += u[a]
            there, better = _log_joint(inputs, y, work.proposal, net, work)
            gain = better - fit
            if gain > 0:
                break
            damping *= 4.0
        if gain <= 0:
            break
        for a in range(k):
            u[a] = work.proposal[a]
        density, fit = there, better
        damping = max(0.3 * damping, 1e-6)
        if gain < 1e-3:
            break
    return density, damping


@njit(nogil=True)
def _find_modes(inputs, y, net, starts, warm, search, work):
    """Return the best points found, (last fits, k), and their log joint densities; `warm` are further starts."""
    k = starts.shape[1]
    values = np.empty(len(starts))
    for s in range(len(starts)):
        values[s], _ = _log_joint(inputs, y, starts[s], net, work)
    order = np.argsort(-values)
    count = search.fits[0] + len(warm)
    points, density, damping = np.empty((count, k)), np.empty(count), np.ones(count)
    points[: len(warm)] = warm
    for a in range(search.fits[0]):
        points[len(warm) + a] = starts[order[a]]
    ranked = np.arange(count)
    for stage in range(len(search.fits)):
        going = count if stage == 0 else min(search.fits[stage], count)
        for a in range(going):
            r = ranked[a]
            density[r], damping[r] = _optimise(
                inputs, y, points[r], net, work, search.iterations[stage], damping[r]
            )  # fmt: skip
        ranked[:going] = ranked[:going][np.argsort(-density[ranked[:going]])]
    best = ranked[: min(search.fits[-1], count)]
    return points[best], density[best]


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
def _proposal(inputs, y, net, starts, warm, search, work):
    """Return the modes with most mass by Laplace's formula: points, Cholesky factors of H, halves of log|H|, and the
    logs of their masses, up to a constant. Modes with the same mass are images of each other, and one is enough."""
    points, densities = _find_modes(inputs, y, net, starts, warm, search, work)
    count, k = points.shape
    factors, half_logs = np.empty((count, k, k)), np.empty(count)
    for m in range(count):
        _log_joint(inputs, y, points[m], net, work)
        _differentiate(inputs, y, points[m], net, work)
        factors[m] = work.curvature
        half_logs[m] = 0.5 * _cholesky(factors[m], k)
    masses = densities - half_logs
    chosen = np.empty(count, np.int64)
    size = 0
    for m in np.argsort(-masses):
        new = size == 0 or abs(masses[m] - masses[chosen[size - 1]]) > 1e-3
        if new and size < search.modes:
            chosen[size] = m
            size += 1
    kept = chosen[:size]
    return points[kept], factors[kept], half_logs[kept], masses[kept]


@njit(nogil=True)
def family_samples(inputs, y, net, starts, warm, search, tables):
    """Return draws of U, (samples, k), the logs of their importance weights, and the best mode."""
    q, n = inputs.shape
    h, samples = net.hidden, search.samples
    k = q * h
    work = _work(q, n, net)
    modes, factors, half_logs, masses = _proposal(inputs, y, net, starts, warm, search, work)
    size = len(modes)
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
        _backward(factors[m], k, draws[s])
        for a in range(k):
            draws[s, a] += modes[m, a]
        joint, _ = _log_joint(inputs, y, draws[s], net, work)
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
    return draws, logs, modes[0]


@njit(nogil=True)
def log_mean_weight(logs):
    """Return the log of the mean weight and its standard error, from logs of weights."""
    top = logs.max()
    weights = np.exp(logs - top)
    first, second = weights.sum(), (weights * weights).sum()
    return top + np.log(first / len(logs)), np.sqrt(max(second / first**2 - 1.0 / len(logs), 0.0))


@njit(nogil=True)
def second_layers(inputs, y, draws, normals, net):
    """Return a draw of the second layer given each first one, `N(ŵ, A⁻¹)`."""
    work, m = _work(inputs.shape[0], inputs.shape[1], net), net.hidden + net.bias
    out = np.empty((len(draws), m))
    for s in range(len(draws)):
        _log_joint(inputs, y, draws[s], net, work)
        out[s] = normals[s]
        _backward(work.gram, m, out[s])
        for a in range(m):
            out[s, a] += work.weights[a]
    return out
