"""A table of the evidence of families among candidate parents, which compiled chains read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from dagpost._util.compiled import njit
from dagpost.typing import Graphs

ABSENT, ALWAYS = -1, -2
"""Places in a `FamilyTable` of nodes that are no candidates, and of required parents."""


class FamilyTable(NamedTuple):
    """Log evidence of the families whose parents are candidates; others have evidence 0.

    Attributes
    ----------
    place
        `place[j, i]` is the bit of candidate i of node j, `ABSENT`, or `ALWAYS` for a parent that all families have.
    evidence
        `evidence[j, code]` for the set of candidates whose bits `code` has; -inf for sets left out.
    """

    place: Int[np.ndarray, "d d"]
    evidence: Float[np.ndarray, "d sets"]

    def code(self, node: int, row: Bool[np.ndarray, " d"]) -> int | None:
        """Return the code of a family, None if it has a parent that is no candidate."""
        places = self.place[node, np.flatnonzero(row)].tolist()
        return None if ABSENT in places else sum(1 << place for place in places if place != ALWAYS)

    def row(self, node: int, code: int) -> Bool[np.ndarray, " d"]:
        """Return the parents that a code stands for."""
        place = self.place[node]
        return (place == ALWAYS) | ((place >= 0) & (code >> np.maximum(place, 0) & 1 > 0))

    def nearest(self, graphs: Graphs) -> Graphs:
        """Return the graphs with as few edges removed as it takes for all their families to be in the table."""
        out = graphs.copy()
        for j in range(graphs.shape[-1]):
            columns, where = np.unique(graphs[:, :, j], axis=0, return_inverse=True)
            out[:, :, j] = np.array([self._nearest_row(j, column) for column in columns])[where.reshape(-1)]
        return out

    def _nearest_row(self, node: int, row: Bool[np.ndarray, " d"]) -> Bool[np.ndarray, " d"]:
        """Return the largest subset of the parents that is in the table, the best of equal ones."""
        code = self.code(node, row & (self.place[node] != ABSENT))
        assert code is not None, "all these parents are candidates"
        subsets = np.flatnonzero(np.isfinite(self.evidence[node]))
        subsets = subsets[(subsets & ~code) == 0]
        kept = max(subsets, key=lambda subset: (int(subset).bit_count(), self.evidence[node, subset]))
        return self.row(node, int(kept))


@njit
def listed_evidence(place, evidence, j, parents, p):
    """Return the evidence of node j with the first p of `parents` from the arrays of a `FamilyTable`."""
    code = 0
    for a in range(p):
        at = place[j, parents[a]]
        if at == ABSENT:
            return -np.inf
        if at != ALWAYS:
            code |= 1 << at
    return evidence[j, code]
