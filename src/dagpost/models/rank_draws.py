"""Compiled draws of latent Gaussian columns that are known by their ranks alone (extended rank likelihood; Hoff, 2007).

Rows of a lower level have lower latent values: z_aj < z_bj wherever x_aj < x_bj; nothing else is known of z. Given a
graph, `p(z | G)` is the BGe evidence of the latent table, restricted to tables in that order. Two kinds of steps leave
it invariant:

* `move_columns`: monotone maps of a whole column, z_j + delta h, with the parameters integrated out: a shift, a change
  of scale, and for every boundary between two blocks of ranks a piecewise linear map that moves the boundary alone.
  One number delta is drawn by slice sampling; the Jacobian of the map is in its density. Cells alone would move a
  boundary by 1/n at a time, and its posterior is 1/sqrt(n) wide.
* `draw_cells`: every cell given graph, parameters and the rest of its row, a normal distribution truncated to the gap
  that the neighbouring levels leave.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dagpost._util.compiled import njit
from dagpost.models.conjugate import factorise

MOST_BLOCKS = 32
"""Most blocks of ranks whose boundaries are moved; a column with more levels has several of them in a block."""
SHIFT, SCALE, BOUNDARY = 0, 1, 2
"""Kinds of maps of a column."""
STEPS_OUT = 20
"""Most steps by which an interval of the slice sampler grows on either side."""


class Ranks(NamedTuple):
    """What is known of the latent columns: rows by level, in ascending order, those with a missing cell last."""

    rows: np.ndarray  # (d, n) row numbers
    known: np.ndarray  # (d,) how many of them have a value
    levels: np.ndarray  # (d,) number of levels
    level_start: np.ndarray  # (d, most levels + 1) first position of each level in `rows`
    blocks: np.ndarray  # (d,) number of blocks
    block_start: np.ndarray  # (d, most blocks + 1)


def ranks_of(values: np.ndarray) -> Ranks:
    """Return the ranks of a table with NaN in missing cells.

    Parameters
    ----------
    values
        Table of n rows and d columns; only the order of the values in each column matters.
    """
    n, d = values.shape
    rows = np.argsort(values, axis=0, kind="stable").T.copy()  # NaN comes last
    known = n - np.isnan(values).sum(axis=0)
    levels = [np.unique(column[~np.isnan(column)], return_counts=True)[1] for column in values.T]
    starts = [np.concatenate([[0], np.cumsum(counts)]) for counts in levels]
    blocks = []
    for j, start in enumerate(starts):
        if len(start) - 1 > MOST_BLOCKS:  # the levels nearest to equal parts
            wanted = np.linspace(0, known[j], MOST_BLOCKS + 1)
            start = np.unique(start[np.abs(start[:, None] - wanted).argmin(axis=0)])
        blocks.append(start)

    def padded(lists: list[np.ndarray]) -> np.ndarray:
        out = np.full((d, max(map(len, lists))), n, dtype=np.int64)
        for j, one in enumerate(lists):
            out[j, : len(one)] = one
        return out

    def counts(lists: list[np.ndarray]) -> np.ndarray:
        return np.array([len(one) - 1 for one in lists])

    return Ranks(rows, known, counts(starts), padded(starts), counts(blocks), padded(blocks))


# ---- truncated normal draws


@njit
def _tail(low, high, rng):
    """Return a standard normal draw in [low, high] with low >= 0, by rejection from an exponential (Robert, 1995)."""
    rate = 0.5 * (low + np.sqrt(low * low + 4.0))
    share = 1.0 - np.exp(-rate * (high - low))
    best = min(high, rate)  # where exp(-(x - rate)^2 / 2) is largest
    while True:
        x = low - np.log1p(-rng.random() * share) / rate
        if np.log1p(-rng.random()) <= 0.5 * ((best - rate) ** 2 - (x - rate) ** 2):
            return min(max(x, low), high)


@njit
def truncated_normal(mean, deviation, low, high, rng):
    """Return a normal draw between low and high, which may be infinite."""
    a, b = (low - mean) / deviation, (high - mean) / deviation
    if not a < b:
        return low
    if a >= 0.0:
        x = _tail(a, b, rng)
    elif b <= 0.0:
        x = -_tail(-b, -a, rng)
    elif b - a > 2.0:
        x = rng.standard_normal()
        while x < a or x > b:
            x = rng.standard_normal()
    else:
        x = a + (b - a) * rng.random()
        while np.log1p(-rng.random()) > -0.5 * x * x:
            x = a + (b - a) * rng.random()
    return min(max(mean + deviation * x, low), high)


@njit(nogil=True)
def draw_cells(z, ranks, weights, intercept, variance, rng):
    """Redraw every latent cell once, in place.

    Given the rest of its row a cell is normal: with residuals e_c = z_c - intercept_c - sum_i w_ic z_i,

        1 / s^2 = 1 / v_j + sum_c w_jc^2 / v_c,    mean = z_j - s^2 (e_j / v_j - sum_c w_jc e_c / v_c).

    Parameters
    ----------
    z
        Latent table, of shape (d, n).
    ranks
        Ranks of the columns.
    weights, intercept, variance
        Parameters of the nodes, `weights[i, j]` that of i -> j.
    rng
        Generator.
    """
    d, n = z.shape
    residual = z.copy()
    for j in range(d):
        residual[j] -= intercept[j]
        for i in range(d):
            if weights[i, j] != 0.0:
                for r in range(n):
                    residual[j, r] -= weights[i, j] * z[i, r]
    for j in range(d):
        precision = 1.0 / variance[j]
        for c in range(d):
            precision += weights[j, c] ** 2 / variance[c]
        spread = np.sqrt(1.0 / precision)
        low = -np.inf
        for level in range(ranks.levels[j] + 1):
            missing = level == ranks.levels[j]
            first = ranks.level_start[j, level]
            last = n if missing else ranks.level_start[j, level + 1]
            high = np.inf
            if level < ranks.levels[j] - 1:  # the least value of the next level
                for a in range(last, ranks.level_start[j, level + 2]):
                    high = min(high, z[j, ranks.rows[j, a]])
            if missing:
                low = -np.inf
            largest = -np.inf
            for a in range(first, last):
                r = ranks.rows[j, a]
                gradient = residual[j, r] / variance[j]
                for c in range(d):
                    if weights[j, c] != 0.0:
                        gradient -= weights[j, c] * residual[c, r] / variance[c]
                drawn = truncated_normal(z[j, r] - gradient / precision, spread, low, high, rng)
                change = drawn - z[j, r]
                z[j, r] = drawn
                residual[j, r] += change
                for c in range(d):
                    if weights[j, c] != 0.0:
                        residual[c, r] -= weights[j, c] * change
                largest = max(largest, drawn)
            low = largest


# ---- maps of whole columns, parameters integrated out


class Direction(NamedTuple):
    """A map z_j + delta h of a column, and what its density needs."""

    kind: int
    total: float  # sum of h
    products: np.ndarray  # (d,) h . z_i
    square: float  # h . h
    below: float  # rows that move with the boundary below it, and above it
    above: float
    room_below: float  # how far the boundary can go
    room_above: float


@njit
def _families_score(matrix, j, parents, counts, power, floor, lower):
    """Return the part of the log evidence that depends on column j: the families of j and of its children."""
    d = matrix.shape[0]
    _, schur = factorise(matrix, j, parents[j], counts[j], floor, lower)
    score = -power[counts[j]] * np.log(schur)
    for c in range(d):
        for a in range(counts[c]):
            if parents[c, a] == j:
                log_determinant, schur = factorise(matrix, c, parents[c], counts[c], floor, lower)
                score -= 0.5 * log_determinant + power[counts[c]] * np.log(schur)
    return score


@njit
def _delta(way, x):
    """Return delta at a place x of the slice sampler, which is the log of the factor for a change of scale."""
    return np.expm1(x) if way.kind == SCALE else x


@njit
def _log_density(way, x, j, matrix, products, sums, prior_matrix, weight, parents, counts, power, floor, lower, n):
    """Return the log density of a map; column j of `matrix`, R = T + Z'Z - m m' / (n + alpha_mu), is overwritten."""
    delta = _delta(way, x)
    d = matrix.shape[0]
    own = sums[j] + delta * way.total
    for i in range(d):
        if i != j:
            value = prior_matrix[i, j] + products[i, j] + delta * way.products[i] - sums[i] * own / weight
            matrix[i, j] = value
            matrix[j, i] = value
    square = products[j, j] + 2.0 * delta * way.products[j] + delta * delta * way.square
    matrix[j, j] = prior_matrix[j, j] + square - own * own / weight
    score = _families_score(matrix, j, parents, counts, power, floor, lower)
    if way.kind == SCALE:  # the Haar measure of the group of scales: a^n da / a
        score += n * x
    elif way.kind == BOUNDARY:
        score += way.below * np.log1p(delta / way.room_below) + way.above * np.log1p(-delta / way.room_above)
    return score


@njit
def _slice_draw(way, width, j, matrix, products, sums, prior_matrix, weight, parents, counts, power, floor, lower, n,
                rng):  # fmt: skip
    """Return a draw of the place x by slice sampling (Neal, 2003) from 0, where the column is now."""

    def density(x):
        return _log_density(
            way, x, j, matrix, products, sums, prior_matrix, weight, parents, counts, power, floor, lower, n
        )

    height = density(0.0) + np.log1p(-rng.random())
    if way.kind == BOUNDARY:
        low, high = -way.room_below, way.room_above
    else:
        low = -width * rng.random()
        high = low + width
        left = int(STEPS_OUT * rng.random())
        right = STEPS_OUT - 1 - left
        while left > 0 and density(low) > height:
            low -= width
            left -= 1
        while right > 0 and density(high) > height:
            high += width
            right -= 1
    while high - low > 1e-14:
        x = low + (high - low) * rng.random()
        if (x < 0.0 or x > 0.0) and density(x) > height:
            return x
        if x < 0.0:
            low = x
        else:
            high = x
    return 0.0


@njit
def _boundary(z, j, block, ranks, h):
    """Write the direction that moves the boundary above a block to h; return its `Direction`, with kind -1 if it cannot
    move.

    The largest cell of the block goes from `middle` to anywhere between `low` and `high`, which stay: order statistics
    of the column, as it is, so that the map back is of the same kind. Cells between are carried along linearly.
    """
    d = z.shape[0]
    start = ranks.block_start[j]
    blocks = ranks.blocks[j]
    low, middle, high = -np.inf, -np.inf, np.inf
    first, last = start[block], start[block + 2]
    for a in range(first, start[block + 1]):
        middle = max(middle, z[j, ranks.rows[j, a]])
    if block > 0:
        for a in range(start[block - 1], first):
            low = max(low, z[j, ranks.rows[j, a]])
    else:
        low = middle
        for a in range(first, start[1]):
            low = min(low, z[j, ranks.rows[j, a]])
    if block + 2 < blocks:
        for a in range(last, start[block + 3]):
            high = min(high, z[j, ranks.rows[j, a]])
    else:
        high = -np.inf
        for a in range(start[block + 1], last):
            high = max(high, z[j, ranks.rows[j, a]])
    products = np.zeros(d)
    if not (low < middle and middle < high):
        return Direction(-1, 0.0, products, 0.0, 0.0, 0.0, 0.0, 0.0)
    total, square, below, above = 0.0, 0.0, 0.0, 0.0
    for a in range(first, last):
        r = ranks.rows[j, a]
        if z[j, r] <= middle and a < start[block + 1]:
            h[r] = (z[j, r] - low) / (middle - low)
            below += 1.0 if z[j, r] > low and z[j, r] < middle else 0.0
        else:
            h[r] = (high - z[j, r]) / (high - middle)
            above += 1.0 if z[j, r] < high else 0.0
        total += h[r]
        square += h[r] * h[r]
        for i in range(d):
            products[i] += h[r] * z[i, r]
    return Direction(BOUNDARY, total, products, square, below, above, middle - low, high - middle)


@njit(nogil=True)
def move_columns(z, ranks, adjacency, prior_matrix, prior_weight, power, floor, rng):
    """Map every latent column monotonically, in place: boundaries of its blocks, shift, scale.

    Parameters
    ----------
    z
        Latent table, of shape (d, n).
    ranks
        Ranks of the columns.
    adjacency
        Graph.
    prior_matrix, prior_weight
        T and alpha_mu of the BGe prior, whose mean is 0.
    power
        Half the degrees of freedom of a family by number of parents, with the data.
    floor
        Smallest eigenvalue of T.
    rng
        Generator.
    """
    d, n = z.shape
    parents = np.zeros((d, d), np.int64)
    counts = np.zeros(d, np.int64)
    for j in range(d):
        for i in range(d):
            if adjacency[i, j]:
                parents[j, counts[j]] = i
                counts[j] += 1
    weight = n + prior_weight
    products = z @ z.T
    sums = z.sum(axis=1)
    matrix = prior_matrix + products - np.outer(sums, sums) / weight
    lower = np.empty((d + 1, d + 1))
    h = np.empty(n)
    for j in range(d):
        for move in range(ranks.blocks[j] + 1):
            h[:] = 0.0
            width = 1.0
            if move < ranks.blocks[j] - 1:
                way = _boundary(z, j, move, ranks, h)
                if way.kind < 0:
                    continue
            elif move == ranks.blocks[j] - 1:
                h[:] = 1.0
                way = Direction(SHIFT, float(n), sums.copy(), float(n), 0.0, 0.0, 0.0, 0.0)
                width = np.sqrt(matrix[j, j] / n)
            else:
                h[:] = z[j]
                way = Direction(SCALE, sums[j], products[j].copy(), products[j, j], 0.0, 0.0, 0.0, 0.0)
            x = _slice_draw(
                way, width, j, matrix, products, sums, prior_matrix, weight, parents, counts, power, floor, lower, n,
                rng,
            )  # fmt: skip
            delta = _delta(way, x)
            z[j] += delta * h
            products[j, j] += 2.0 * delta * way.products[j] + delta * delta * way.square
            for i in range(d):
                if i != j:
                    products[i, j] += delta * way.products[i]
                    products[j, i] = products[i, j]
            sums[j] += delta * way.total
            _log_density(
                way, 0.0, j, matrix, products, sums, prior_matrix, weight, parents, counts, power, floor, lower, n
            )
