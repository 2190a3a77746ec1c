"""All DAGs on a few nodes."""

from __future__ import annotations

import numpy as np
from numba import njit

from dagpost.errors import InputError
from dagpost.typing import Graphs

COUNTS = (1, 1, 3, 25, 543, 29281, 3781503, 1138779265)
"""How many labelled DAGs there are on 0, 1, 2, … nodes (OEIS A003024)."""

LARGEST = 6


@njit(cache=True)
def _descendants(parents, d):
    """Bit sets of descendants, each node included, from bit sets of parents."""
    below = np.empty(d, dtype=np.int64)
    for i in range(d):
        below[i] = 1 << i
    for _ in range(d):
        for j in range(d):
            for i in range(d):
                if parents[j] >> i & 1:
                    below[i] |= below[j]
    return below


@njit(cache=True)
def _extend(smaller, d, out):
    """DAGs on d + 1 nodes from those on d: every DAG restricts to exactly one on the first d nodes.

    The new node takes children C and any parents that are not below C. Graphs are parent bit sets.
    """
    count = 0
    for m in range(smaller.shape[0]):
        below = _descendants(smaller[m], d)
        for children in range(1 << d):
            blocked = 0
            for c in range(d):
                if children >> c & 1:
                    blocked |= below[c]
            free = ((1 << d) - 1) & ~blocked
            parents = free
            while True:
                for j in range(d):
                    out[count, j] = smaller[m, j] | ((children >> j & 1) << d)
                out[count, d] = parents
                count += 1
                if parents == 0:
                    break
                parents = (parents - 1) & free
    return count


def all_dags(d: int) -> Graphs:
    """Every DAG on `d` nodes, for `d` up to 6 (29,281 at 5; 3,781,503 at 6, 136 MB).

    >>> len(all_dags(3))
    25
    """
    if not 1 <= d <= LARGEST:
        raise InputError(f"all_dags({d}): can list the DAGs on 1 to {LARGEST} nodes only")
    parents = np.zeros((1, 1), dtype=np.int64)
    for size in range(1, d):
        larger = np.empty((COUNTS[size + 1], size + 1), dtype=np.int64)
        written = _extend(parents, size, larger)
        assert written == len(larger)
        parents = larger
    # bit i of parents[m, j] -> graphs[m, i, j]
    return (parents[:, None, :] >> np.arange(d)[None, :, None] & 1).astype(np.bool_)
