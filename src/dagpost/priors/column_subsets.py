"""Log prior factors of every node and parent set, from the table of a prior that decomposes by column."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numba import prange

from dagpost._util.compiled import njit
from dagpost.priors.base import ColumnTable


@njit
def _size(bits):
    """Return the number of members of a bit set."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@njit(parallel=True)
def _sum_factors(by_count, by_edge, counted, required, most, out):
    """Write `by_count` and the sum of `by_edge` over the members of each set, -inf where the set is ruled out."""
    d, sets = out.shape
    for j in prange(d):
        edges = np.zeros(sets)
        for i in range(d):
            for s in range(1 << i):
                edges[s | 1 << i] = edges[s] + by_edge[i, j]
        for s in range(sets):
            if s >> j & 1 or required[j] & ~s or _size(s) > most:
                out[j, s] = -np.inf
            else:
                out[j, s] = by_count[j, _size(s & counted[j])] + edges[s]


def factors_of_subsets(table: ColumnTable) -> Float[np.ndarray, "d s"]:
    """Return the log prior factor of every node and parent set (bit set); -inf where the set is ruled out."""
    d = len(table.by_edge)
    bits = 1 << np.arange(d)
    counted = np.full(d, (1 << d) - 1) if table.uncounted is None else (~table.uncounted).T @ bits
    required = np.zeros(d, dtype=np.int64) if table.required is None else table.required.T @ bits
    out = np.empty((d, 1 << d))
    _sum_factors(table.by_count, table.by_edge, counted, required, d if table.most is None else table.most, out)
    return out
