"""A neural network with one hidden layer for one node, compiled: its likelihood with the second layer integrated out.

Given the first layer U (weights and biases of the h hidden units) the output is linear in the second, `f = Φ w` with
Φ = σ(U X), so that w, with prior variance s² and noise v, is integrated out exactly:

    log p(y | U, v) = log N(y; 0, v I + s² Φ Φᵀ)
                    = -½ (n log 2πv + m log s² + log|A| + yᵀy/v - bᵀA⁻¹b),    A = ΦᵀΦ/v + I/s²,    b = Φᵀy/v.

Only `ΦᵀΦ` and `Φᵀy` enter. Where one hidden unit changes, A is factorised once without it, and each feature that is
tried in its place adds one row.
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
    inner: np.ndarray  # (m, m) ΦᵀΦ
    moments: np.ndarray  # (m,) Φᵀy
    factor: np.ndarray  # (m, m) Cholesky factor of A, or of A without one feature
    solved: np.ndarray  # (m,) L⁻¹ b
    tried_feature: np.ndarray  # (n,) of one unit
    tried_inner: np.ndarray  # (m,) its products with all features
    room: np.ndarray  # (m,)
    other_signal: np.ndarray  # (n,)
    other_unit: np.ndarray  # (q,)


@njit
def workspace(q, n, net):
    h = net.hidden
    m = h + net.bias
    return Work(
        np.empty((h, n)), np.ones((m, n)), np.empty((m, m)), np.empty(m), np.empty((m, m)), np.empty(m), np.empty(n),
        np.empty(m), np.empty(m), np.empty(n), np.empty(q),
    )  # fmt: skip


@njit(fastmath=True, nogil=True)
def _activate(kind, n, values):
    """Replace values by their activations; a loop for each kind, so that each is vectorised."""
    if kind == 0:
        for r in range(n):
            values[r] = max(values[r], 0.0)
    elif kind == 1:
        for r in range(n):
            values[r] = tanh(values[r])
    elif kind == 2:
        for r in range(n):
            values[r] = max(values[r], 0.01 * values[r])
    else:
        for r in range(n):
            values[r] = 1.0 / (1.0 + exp(-values[r]))


@njit(fastmath=True, nogil=True)
def put_signal(inputs, weights, out):
    """Write the signal of a hidden unit with these weights to `out`."""
    q, n = inputs.shape
    for r in range(n):
        out[r] = 0.0
    for i in range(q):
        for r in range(n):
            out[r] += weights[i] * inputs[i, r]


@njit(fastmath=True, nogil=True)
def put_network(inputs, y, u, net, work):
    """Compute the features of the network with this first layer, (h, q), and their products."""
    n, m = len(y), net.hidden + net.bias
    for e in range(net.hidden):
        put_signal(inputs, u[e], work.signals[e])
        for r in range(n):
            work.features[e, r] = work.signals[e, r]
        _activate(net.activation, n, work.features[e])
    for a in range(m):
        for b in range(a + 1):
            total = 0.0
            for r in range(n):
                total += work.features[a, r] * work.features[b, r]
            work.inner[a, b] = work.inner[b, a] = total
        total = 0.0
        for r in range(n):
            total += work.features[a, r] * y[r]
        work.moments[a] = total


@njit(fastmath=True, nogil=True)
def factorise(left_out, v, net, work):
    """Compute L and L⁻¹b for all features but one (none where it is negative); return log|A| and bᵀA⁻¹b."""
    factor, solved = work.factor, work.solved
    determinant, log_determinant, explained, row = 1.0, 0.0, 0.0, 0
    for a in range(net.hidden + net.bias):
        if a == left_out:
            continue
        column = 0
        for b in range(a):
            if b == left_out:
                continue
            t = work.inner[a, b] / v
            for c in range(column):
                t -= factor[row, c] * factor[column, c]
            factor[row, column] = t / factor[column, column]
            column += 1
        pivot, t = work.inner[a, a] / v + 1.0 / net.prior_variance, work.moments[a] / v
        for c in range(row):
            pivot -= factor[row, c] * factor[row, c]
            t -= factor[row, c] * solved[c]
        pivot = max(pivot, 1e-12)
        factor[row, row] = sqrt(pivot)
        solved[row] = t / factor[row, row]
        explained += solved[row] * solved[row]
        determinant *= pivot
        if determinant > 1e200 or determinant < 1e-200:
            log_determinant += log(determinant)
            determinant = 1.0
        row += 1
    return log_determinant + log(determinant), explained


@njit(fastmath=True, nogil=True)
def _from_parts(log_determinant, explained, squares, v, n, net):
    m = net.hidden + net.bias
    return -0.5 * (n * log(2 * pi * v) + m * log(net.prior_variance) + log_determinant + squares / v - explained)


@njit(fastmath=True, nogil=True)
def log_likelihood(squares, v, n, net, work):
    """Return `log p(y | U, v)` of the network; `squares` is yᵀy. L and L⁻¹b are left in the workspace."""
    log_determinant, explained = factorise(-1, v, net, work)
    return _from_parts(log_determinant, explained, squares, v, n, net)


@njit(fastmath=True, nogil=True)
def try_unit(y, e, c, s, v, rest, squares, net, work):
    """Return the log likelihood with the signal `c signal + s other_signal` in unit e, and the product of its feature
    with y. The feature and its products with all features are left in the workspace.

    With z = L⁻¹ Φᵀf/v for the feature f and the other ones, L and `rest` from `factorise(e, …)`, A has one more pivot,
    `p = fᵀf/v + 1/s² - zᵀz`, and `(fᵀy/v - zᵀL⁻¹b)²/p` more is explained.
    """
    n, m = len(y), net.hidden + net.bias
    tried, products = work.tried_feature, work.tried_inner
    for r in range(n):
        tried[r] = c * work.signals[e, r] + s * work.other_signal[r]
    _activate(net.activation, n, tried)
    own, moment = 0.0, 0.0
    for r in range(n):
        own += tried[r] * tried[r]
        moment += tried[r] * y[r]
    pivot, t, row = own / v + 1.0 / net.prior_variance, moment / v, 0
    z = work.room
    for a in range(m):
        if a == e:
            continue
        total = 0.0
        for r in range(n):
            total += tried[r] * work.features[a, r]
        products[a] = total
        total /= v
        for k in range(row):
            total -= work.factor[row, k] * z[k]
        z[row] = total / work.factor[row, row]
        pivot -= z[row] * z[row]
        t -= z[row] * work.solved[row]
        row += 1
    products[e] = own
    pivot = max(pivot, 1e-12)
    value = _from_parts(rest[0] + log(pivot), rest[1] + t * t / pivot, squares, v, n, net)
    return value, moment


@njit(fastmath=True, nogil=True)
def take_unit(e, c, s, moment, net, work):
    """Put what `try_unit` tried last in the place of unit e."""
    for r in range(work.signals.shape[1]):
        work.signals[e, r] = c * work.signals[e, r] + s * work.other_signal[r]
        work.features[e, r] = work.tried_feature[r]
    for a in range(net.hidden + net.bias):
        work.inner[e, a] = work.inner[a, e] = work.tried_inner[a]
    work.moments[e] = moment


@njit(nogil=True)
def second_layers(inputs, y, first, variances, normals, net):
    """Return a draw of the second layer given each first one, (s, h, q), and noise: `N(A⁻¹b, A⁻¹)`."""
    n, m = len(y), net.hidden + net.bias
    work = workspace(inputs.shape[0], n, net)
    out = np.empty((len(first), m))
    for s in range(len(first)):
        put_network(inputs, y, first[s], net, work)
        log_likelihood(0.0, variances[s], n, net, work)
        for a in range(m - 1, -1, -1):  # L⁻ᵀ (L⁻¹b + z)
            t = work.solved[a] + normals[s, a]
            for c in range(a + 1, m):
                t -= work.factor[c, a] * out[s, c]
            out[s, a] = t / work.factor[a, a]
    return out
