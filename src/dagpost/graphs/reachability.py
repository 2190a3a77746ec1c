"""Which node can be reached from which."""

from __future__ import annotations

from typing import Any

from dagpost.graphs.acyclicity import as_graphs
from dagpost.typing import GraphBatch


def descendants(graphs: Any) -> GraphBatch:
    """Entry (i, j) is True where a directed path leads from i to j: the transitive closure of each graph.

    >>> descendants([[0, 1, 0], [0, 0, 1], [0, 0, 0]]).astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    reach = as_graphs(graphs).copy()
    # Warshall: after step k, paths may pass through the nodes 0..k
    for k in range(reach.shape[-1]):
        reach |= reach[..., :, k, None] & reach[..., None, k, :]
    return reach
