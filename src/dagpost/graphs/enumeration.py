"""Enumerate all DAGs on a few nodes."""

from __future__ import annotations

import numpy as np

from dagpost._util.compiled import njit
from dagpost.errors import InputError
from dagpost.typing import Graphs

COUNTS = (1, 1, 3, 25, 543, 29281, 3781503, 1138779265)
"""Number of labelled DAGs on 0, 1, 2, … nodes (OEIS A003024)."""

LARGEST = 6
"""Largest number of nodes to enumerate."""


@njit
def _descendants(parents, d):
    """Return the bit set of descendants of each node, itself included, from bit sets of parents."""
    below = np.empty(d, dtype=np.int64)
    for i in range(d):
        below[i] = 1 << i
    for _ in range(d):
        for j in range(d):
            for i in range(d):
                if parents[j] >> i & 1:
                    below[i] |= below[j]
    return below


@njit
def _extend(smaller, d, out):
    """Write the DAGs on d + 1 nodes to `out`, given those on d nodes; return their number.

    Every DAG on d + 1 nodes restricts to exactly one DAG on the first d. The new node takes children C and any parents
    that are not descendants of C. Graphs are parent bit sets.
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
    """Return every DAG on `d` nodes.

    Parameters
    ----------
    d
        Number of nodes, 1 to 6. There are 29,281 DAGs on 5 nodes and 3,781,503 on 6 (136 MB).

    Returns
    -------
    Graphs
        Adjacency matrices of shape (m, d, d).

    Examples
    --------
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
