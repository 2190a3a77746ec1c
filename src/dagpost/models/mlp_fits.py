"""Fits of a neural network with one hidden layer to one node, compiled; see `mlp_evidence.py` for what they are for.

Given the first layer U (weights and biases of the h hidden units) the output is linear in the second, `f = Φ w` with
Φ = σ(X U), so that w is integrated out exactly: with prior variance s² and noise v,

    log p(y | U) = log N(y; 0, v I + s² Φ Φᵀ),    A = ΦᵀΦ/v + I/s²,    ŵ = A⁻¹ Φᵀy/v.

The maximum over U is found by Levenberg–Marquardt steps from the best of many draws of the prior, with the Gauss–Newton
curvature after ŵ is eliminated (variable projection), `H = JᵀJ/v + I/s² - JᵀΦ A⁻¹ ΦᵀJ/v²`, J being the derivatives of
Φŵ by U. Fits are narrowed down in stages: a few iterations for many starts, more for the best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dagpost._util.compiled import njit


class Network(NamedTuple):
    """Settings of the network that the compiled code reads."""

    hidden: int
    activation: int  # index in `ACTIVATIONS`
    bias: int  # 0 or 1
    prior_variance: float


class Noises(NamedTuple):
    """Values of the noise variance that are summed over, with the logs of their weights; one where it is known."""

    values: np.ndarray  # (g,)
    log_weights: np.ndarray  # (g,)


ACTIVATIONS = ("relu", "tanh", "leaky_relu", "sigmoid")


class Search(NamedTuple):
    """How much work an estimate takes."""

    starts: int  # draws of the prior that are compared
    fits: np.ndarray  # fits continued in each stage; those of the last are the candidates for modes
    iterations: np.ndarray  # of each fit in each stage
    modes: int  # of the proposal
    samples: int  # of importance sampling


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
def cholesky(matrix, k):
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
def forward_solve(lower, k, x):
    """Replace x by L⁻¹ x."""
    for a in range(k):
        t = x[a]
        for c in range(a):
            t -= lower[a, c] * x[c]
        x[a] = t / lower[a, a]


@njit(fastmath=True, nogil=True)
def backward_solve(lower, k, x):
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
    inner: np.ndarray  # (m, m) ΦᵀΦ
    moments: np.ndarray  # (m,) Φᵀy
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
    noise: np.ndarray  # (1,) variance at which A, ŵ and H are


@njit
def workspace(q, n, net):
    h = net.hidden
    m, k = h + net.bias, q * h
    return Work(
        np.ones((m, n)), np.empty((h, n)), np.empty((m, m)), np.empty(m), np.empty((m, m)), np.empty(m),
        np.empty((k, n)), np.empty((k, m)), np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k), np.empty(n),
        np.empty(m), np.ones(1),
    )  # fmt: skip


@njit(fastmath=True, nogil=True)
def _at_noise(v, s2, m, squares, work):
    """Update A and ŵ for this noise; return log|A|, and what the fits maximise but for the penalty of U."""
    gram, weights = work.gram, work.weights
    for a in range(m):
        for b in range(a + 1):
            gram[a, b] = work.inner[a, b] / v
        gram[a, a] += 1.0 / s2
        weights[a] = work.moments[a] / v
    log_determinant = cholesky(gram, m)
    forward_solve(gram, m, weights)
    explained = 0.0
    for a in range(m):
        explained += weights[a] * weights[a]
    backward_solve(gram, m, weights)
    work.noise[0] = v
    return log_determinant, -0.5 * (squares / v - explained)


@njit(fastmath=True, nogil=True)
def log_joint(inputs, y, u, net, noises, fixed, work):
    """Return `log p(y | U) + log p(U)`, summed over the noise; the part that the fits maximise at one noise, and which.

    That noise is number `fixed`, or where that is negative the most probable one. Φ, σ', A and ŵ are updated.
    """
    q, n = inputs.shape
    h, s2 = net.hidden, net.prior_variance
    m, features, slopes = h + net.bias, work.features, work.slopes
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
            work.inner[a, b] = t
        t = 0.0
        for r in range(n):
            t += features[a, r] * y[r]
        work.moments[a] = t
    penalty = 0.0
    for a in range(q * h):
        penalty += u[a] * u[a]
    constant = m * np.log(s2) + n * np.log(2 * np.pi) + q * h * np.log(2 * np.pi * s2)
    best, chosen, fit, total = -1e300, 0, 0.0, 0.0
    for g in range(len(noises.values)):
        if 0 <= fixed != g:
            continue
        log_determinant, here = _at_noise(noises.values[g], s2, m, squares, work)
        value = here + noises.log_weights[g] - 0.5 * (log_determinant + n * np.log(noises.values[g]))
        if value > best:
            total = total * np.exp(best - value) + 1.0
            best, chosen, fit = value, g, here
        else:
            total += np.exp(value - best)
    if work.noise[0] != noises.values[chosen]:
        _at_noise(noises.values[chosen], s2, m, squares, work)
    density = best + np.log(total) - 0.5 * (penalty / s2 + constant)
    return density, fit - 0.5 * penalty / s2, chosen


@njit(fastmath=True, nogil=True)
def differentiate(inputs, y, u, net, work):
    """Write the gradient of -fit and the curvature H at the point of the last `log_joint`."""
    q, n = inputs.shape
    h, v, s2 = net.hidden, work.noise[0], net.prior_variance
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
        forward_solve(work.gram, m, room)
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
def _optimise(inputs, y, u, net, noises, work, iterations, damping):
    """Improve u in place by Levenberg–Marquardt steps; return its log joint density and the damping reached."""
    k = u.shape[0]
    density, fit, at = log_joint(inputs, y, u, net, noises, -1, work)
    for _ in range(iterations):
        differentiate(inputs, y, u, net, work)
        gain, there, better = -1.0, density, fit
        for _ in range(6):
            for a in range(k):
                for b in range(a + 1):
                    work.factor[a, b] = work.curvature[a, b]
                work.factor[a, a] *= 1.0 + damping
                work.proposal[a] = -work.gradient[a]
            cholesky(work.factor, k)
            forward_solve(work.factor, k, work.proposal)
            backward_solve(work.factor, k, work.proposal)
            for a in range(k):
                work.proposal[a] += u[a]
            there, better, _ = log_joint(inputs, y, work.proposal, net, noises, at, work)
            gain = better - fit
            if gain > 0:
                break
            damping *= 4.0
        if gain <= 0:
            break
        for a in range(k):
            u[a] = work.proposal[a]
        density, fit = there, better
        if len(noises.values) > 1:  # the noise that suits the new point
            density, fit, at = log_joint(inputs, y, u, net, noises, -1, work)
        damping = max(0.3 * damping, 1e-6)
        if gain < 1e-3:
            break
    return density, damping


@njit(nogil=True)
def find_modes(inputs, y, net, noises, starts, warm, search, work):
    """Return the best points found, (last fits, k), and their log joint densities; `warm` are further starts."""
    k = starts.shape[1]
    values = np.empty(len(starts))
    for s in range(len(starts)):
        values[s], _, _ = log_joint(inputs, y, starts[s], net, noises, -1, work)
    order = np.argsort(-values)
    extra = len(warm)
    count = extra + search.fits[0]
    points, density, damping = np.empty((count, k)), np.empty(count), np.ones(count)
    points[:extra] = warm
    for a in range(search.fits[0]):
        points[extra + a] = starts[order[a]]
    # further starts always go on: they are fitted already, and would crowd out the others
    ranked = np.arange(count)
    for stage in range(len(search.fits)):
        going = extra + search.fits[stage]
        for a in range(going):
            r = ranked[a]
            density[r], damping[r] = _optimise(
                inputs, y, points[r], net, noises, work, search.iterations[stage], damping[r]
            )  # fmt: skip
        ranked[extra:going] = ranked[extra:going][np.argsort(-density[ranked[extra:going]])]
    best = ranked[: extra + search.fits[-1]]
    return points[best], density[best]
