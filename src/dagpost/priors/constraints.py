"""Prior knowledge about edges by node index: the form that priors and methods use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from dagpost.graphs.acyclicity import with_few_parents, without_cycles
from dagpost.typing import Graph, Graphs, Matrix


@dataclass(frozen=True)
class Constraints:
    """Forbidden and required edges, the largest number of parents, and log odds of single edges.

    The required edges form a DAG that satisfies all other constraints; `Knowledge.bound` ensures it. Fields are tuples
    rather than arrays because constraints are compared by value.

    Parameters
    ----------
    nodes
        Number of nodes.
    absent
        Forbidden edges, as pairs (cause, effect) of indices.
    present
        Required edges.
    max_parents
        Largest number of parents of a node; None for no limit.
    odds
        Triples (cause, effect, log odds) for edges with a given prior probability.
    """

    nodes: int
    absent: tuple[tuple[int, int], ...] = ()
    present: tuple[tuple[int, int], ...] = ()
    max_parents: int | None = None
    odds: tuple[tuple[int, int, float], ...] = ()

    @cached_property
    def allowed(self) -> Bool[np.ndarray, "d d"]:
        """Edges that may be present."""
        return _read_only(~self._matrix(self.absent) & ~np.eye(self.nodes, dtype=np.bool_))

    @cached_property
    def required(self) -> Bool[np.ndarray, "d d"]:
        """Edges that must be present."""
        return _read_only(self._matrix(self.present))

    @cached_property
    def free(self) -> Bool[np.ndarray, "d d"]:
        """Edges that are neither forbidden nor required."""
        return _read_only(self.allowed & ~self.required)

    @cached_property
    def stated(self) -> Bool[np.ndarray, "d d"]:
        """Edges with given prior odds."""
        return _read_only(self._matrix(tuple((i, j) for i, j, _ in self.odds)))

    @cached_property
    def log_odds(self) -> Float[np.ndarray, "d d"]:
        """Log of the given prior odds; 0 for all other edges."""
        out = np.zeros((self.nodes, self.nodes))
        for i, j, value in self.odds:
            out[i, j] = value
        return _read_only(out)

    @property
    def most_parents(self) -> int:
        """`max_parents`, or the number of nodes if there is no limit."""
        return self.nodes if self.max_parents is None else self.max_parents

    def _matrix(self, edges: tuple[tuple[int, int], ...]) -> Graph:
        """Return the adjacency matrix with these edges."""
        out = np.zeros((self.nodes, self.nodes), dtype=np.bool_)
        for edge in edges:
            out[edge] = True
        return out

    def honoured_by(self, graphs: Graphs) -> Bool[np.ndarray, " m"]:
        """Return whether each graph satisfies the hard constraints.

        Parameters
        ----------
        graphs
            Adjacency matrices of shape (m, d, d).
        """
        forbidden, missing = (graphs & ~self.allowed), (~graphs & self.required)
        crowded = graphs.sum(axis=-2).max(axis=-1, initial=0) > self.most_parents
        return ~(forbidden | missing).any(axis=(-2, -1)) & ~crowded

    def strength(self, scores: Matrix) -> Matrix:
        """Return the edge scores with those of required edges set to infinity."""
        return np.where(self.required, np.inf, scores)

    def repaired(self, graph: Graph, scores: Matrix) -> Graph:
        """Return a DAG that satisfies the hard constraints, with the lowest-scoring edges of the graph removed.

        Parameters
        ----------
        graph
            Adjacency matrix, possibly cyclic.
        scores
            Score of each edge, of shape (d, d).
        """
        strength = self.strength(scores)
        within = with_few_parents((graph & self.allowed) | self.required, strength, self.most_parents)
        return without_cycles(within, strength)


def _read_only(array: np.ndarray) -> np.ndarray:
    """Return the array, marked read-only."""
    array.setflags(write=False)
    return array
