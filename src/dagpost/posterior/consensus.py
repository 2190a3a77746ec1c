"""One DAG that stands for the posterior."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dagpost.errors import InputError
from dagpost.typing import Graph


def consensus(probabilities: Float[np.ndarray, "d d"], threshold: float) -> Graph:
    """Edges above the threshold, most probable first, as long as they close no cycle.

    With threshold t this is the greedy answer to: which DAG has the largest sum of `Pr(i -> j) - t` over its edges?
    At 1/2 that DAG has the smallest expected number of wrong entries in its adjacency matrix. Greedy is optimal where
    the edges above the threshold form no cycle; a weaker edge gives way where they do.
    """
    if isinstance(threshold, bool) or not 0 <= threshold < 1:
        raise InputError(f"threshold={threshold!r}: give a probability from 0, below 1")
    d = len(probabilities)
    graph = np.zeros((d, d), dtype=np.bool_)
    reach = np.eye(d, dtype=np.bool_)  # reach[i, j]: i is j, or a path leads from i to j
    for edge in np.argsort(-probabilities, axis=None, kind="stable"):
        i, j = divmod(int(edge), d)
        if probabilities[i, j] <= threshold:
            break
        if not reach[j, i]:
            graph[i, j] = True
            reach |= reach[:, i, None] & reach[None, j, :]
    return graph
