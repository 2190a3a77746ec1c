"""Structural Hamming distance."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from dagpost.graphs.acyclicity import as_graphs
from dagpost.graphs.essential import essential_graph
from dagpost.typing import GraphBatch


def structural_hamming_distance(first: GraphBatch, second: GraphBatch) -> Int[np.ndarray, "*batch"]:
    """The number of node pairs that are joined differently: absent, i -> j, j -> i or undirected.

    A missing, an additional and a reversed edge each count once, for DAGs and for essential graphs alike.
    """
    differs = as_graphs(first) != as_graphs(second)
    pair = differs | np.swapaxes(differs, -1, -2)
    return np.triu(pair, 1).sum(axis=(-2, -1))


def essential_hamming_distance(first: GraphBatch, second: GraphBatch) -> Int[np.ndarray, "*batch"]:
    """The paper's SHD: the distance between the essential graphs of two DAGs."""
    return structural_hamming_distance(essential_graph(first), essential_graph(second))
