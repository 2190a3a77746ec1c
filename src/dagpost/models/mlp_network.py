"""A neural network with one hidden layer for one node, compiled: its likelihood with the second layer integrated out.

Given the first layer U (weights and biases of the h hidden units) the output is linear in the second, `f = Φ w` with
Φ = σ(U X), so that w, with prior variance s² and noise v, is integrated out exactly:

    log p(y | U, v) = log N(y; 0, v I + s² Φ Φᵀ)
                    = -½ (n log 2πv + m log s² + log|A| + yᵀy/v - bᵀA⁻¹b),    A = ΦᵀΦ/v + I/s²,    b = Φᵀy/v.

Only `ΦᵀΦ` and `Φᵀy` enter, and a change of one hidden unit changes one row of them.
"""

from __future__ import annotations

from math import exp, log, pi, sqrt, tanh
from typing import NamedTuple

import numpy as np

from dagpost._util.compiled import njit


class Network(NamedTuple):
    """Settings of the network that the compiled code reads."""

    hidden: int
    activation: int  # index in `ACTIVATIONS`
    bias: int  # 0 or 1
    prior_variance: float


ACTIVATIONS = ("relu", "tanh", "leaky_relu", "sigmoid")


class Work(NamedTuple):
    """Where one network stands, and memory for its moves: q inputs, h hidden units, m = h + bias features, n rows."""

    signals: np.ndarray  # (h, n) U X
    features: np.ndarray  # (m, n) Φᵀ
    inner: np.ndarray  # (m, m) ΦᵀΦ, lower triangle
    moments: np.ndarray  # (m,) Φᵀy
    factor: np.ndarray  # (m, m) Cholesky factor of A
    solved: np.ndarray  # (m,) L⁻¹ b
    tried_inner: np.ndarray  # (m, m)
    tried_moments: np.ndarray  # (m,)
    tried_feature: np.ndarray  # (n,)
    other_signal: np.ndarray  # (n,)
    other_unit: np.ndarray  # (q,)


@njit
def workspace(q, n, net):
    h = net.hidden
    m = h + net.bias
    return Work(
        np.empty((h, n)), np.ones((m, n)), np.empty((m, m)), np.empty(m), np.empty((m, m)), np.empty(m),
        np.empty((m, m)), np.empty(m), np.empty(n), np.empty(n), np.empty(q),
    )  # fmt: skip


@njit(fastmath=True, nogil=True)
def activate(kind, a):
    """Return the activation of a number."""
    if kind == 0:
        return a if a > 0 else 0.0
    if kind == 1:
        return tanh(a)
    if kind == 2:
        return a if a > 0 else 0.01 * a
    return 1.0 / (1.0 + exp(-a))


@njit(fastmath=True, nogil=True)
def put_network(inputs, y, u, net, work):
    """Compute the features of the network with this first layer, (h, q), and their products."""
    q, n = inputs.shape
    m = net.hidden + net.bias
    for e in range(net.hidden):
        for r in range(n):
            work.signals[e, r] = 0.0
        for i in range(q):
            weight = u[e, i]
            for r in range(n):
                work.signals[e, r] += weight * inputs[i, r]
        for r in range(n):
            work.features[e, r] = activate(net.activation, work.signals[e, r])
    for a in range(m):
        for b in range(a + 1):
            work.inner[a, b] = _dot(work.features[a], work.features[b], n)
        work.moments[a] = _dot(work.features[a], y, n)


@njit(fastmath=True, nogil=True)
def _dot(a, b, n):
    total = 0.0
    for r in range(n):
        total += a[r] * b[r]
    return total


@njit(fastmath=True, nogil=True)
def try_unit(y, e, net, work):
    """Compute the products of features with `tried_feature` in the place of unit e."""
    n, m = len(y), net.hidden + net.bias
    for a in range(m):
        for b in range(a + 1):
            work.tried_inner[a, b] = work.inner[a, b]
        work.tried_moments[a] = work.moments[a]
    for a in range(m):
        other = work.tried_feature if a == e else work.features[a]
        work.tried_inner[max(a, e), min(a, e)] = _dot(work.tried_feature, other, n)
    work.tried_moments[e] = _dot(work.tried_feature, y, n)


@njit(fastmath=True, nogil=True)
def log_likelihood(inner, moments, squares, v, n, net, work):
    """Return `log p(y | U, v)` from products of features, and `yᵀy`; L and L⁻¹b are left in the workspace."""
    m, s2, factor, solved = net.hidden + net.bias, net.prior_variance, work.factor, work.solved
    determinant, explained = 1.0, 0.0
    log_determinant = 0.0
    for a in range(m):
        for b in range(a + 1):
            t = inner[a, b] / v
            if a == b:
                t += 1.0 / s2
            for c in range(b):
                t -= factor[a, c] * factor[b, c]
            if a == b:
                t = max(t, 1e-12)
                determinant *= t
                factor[a, a] = sqrt(t)
            else:
                factor[a, b] = t / factor[b, b]
        if determinant > 1e200 or determinant < 1e-200:
            log_determinant += log(determinant)
            determinant = 1.0
        t = moments[a] / v
        for c in range(a):
            t -= factor[a, c] * solved[c]
        solved[a] = t / factor[a, a]
        explained += solved[a] * solved[a]
    log_determinant += log(determinant)
    return -0.5 * (n * log(2 * pi * v) + m * log(s2) + log_determinant + squares / v - explained)


@njit(nogil=True)
def second_layers(inputs, y, first, variances, normals, net):
    """Return a draw of the second layer given each first one, (s, h, q), and noise: `N(A⁻¹b, A⁻¹)`."""
    n, m = len(y), net.hidden + net.bias
    work = workspace(inputs.shape[0], n, net)
    out = np.empty((len(first), m))
    for s in range(len(first)):
        put_network(inputs, y, first[s], net, work)
        log_likelihood(work.inner, work.moments, 0.0, variances[s], n, net, work)
        for a in range(m - 1, -1, -1):  # L⁻ᵀ (L⁻¹b + z)
            t = work.solved[a] + normals[s, a]
            for c in range(a + 1, m):
                t -= work.factor[c, a] * out[s, c]
            out[s, a] = t / work.factor[a, a]
    return out
