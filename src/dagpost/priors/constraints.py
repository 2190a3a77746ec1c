"""What is known about the edges, by index: the form in which priors and methods use knowledge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from dagpost.graphs.acyclicity import with_few_parents, without_cycles
from dagpost.typing import Graph, Graphs, Matrix


@dataclass(frozen=True)
class Constraints:
    """Edges that must not and that must be there, the largest number of parents, and log odds of single edges.

    The edges that must be there form a DAG that keeps to all the rest (`Knowledge.bound` sees to it). Pairs are
    (cause, effect). Tuples, not arrays: constraints are compared by value.
    """

    nodes: int
    absent: tuple[tuple[int, int], ...] = ()
    present: tuple[tuple[int, int], ...] = ()
    max_parents: int | None = None
    odds: tuple[tuple[int, int, float], ...] = ()

    @cached_property
    def allowed(self) -> Bool[np.ndarray, "d d"]:
        """Edges that may be there."""
        return _read_only(~self._matrix(self.absent) & ~np.eye(self.nodes, dtype=np.bool_))

    @cached_property
    def required(self) -> Bool[np.ndarray, "d d"]:
        """Edges that must be there."""
        return _read_only(self._matrix(self.present))

    @cached_property
    def free(self) -> Bool[np.ndarray, "d d"]:
        """Edges about which the data decide."""
        return _read_only(self.allowed & ~self.required)

    @cached_property
    def stated(self) -> Bool[np.ndarray, "d d"]:
        """Edges whose prior odds are given."""
        return _read_only(self._matrix(tuple((i, j) for i, j, _ in self.odds)))

    @cached_property
    def log_odds(self) -> Float[np.ndarray, "d d"]:
        """Those odds; 0 elsewhere."""
        out = np.zeros((self.nodes, self.nodes))
        for i, j, value in self.odds:
            out[i, j] = value
        return _read_only(out)

    @property
    def most_parents(self) -> int:
        """`max_parents`, or the number of nodes where there is no limit."""
        return self.nodes if self.max_parents is None else self.max_parents

    def _matrix(self, edges: tuple[tuple[int, int], ...]) -> Graph:
        out = np.zeros((self.nodes, self.nodes), dtype=np.bool_)
        for edge in edges:
            out[edge] = True
        return out

    def honoured_by(self, graphs: Graphs) -> Bool[np.ndarray, " m"]:
        """Whether each graph keeps to what must and must not be there."""
        forbidden, missing = (graphs & ~self.allowed), (~graphs & self.required)
        crowded = graphs.sum(axis=-2).max(axis=-1, initial=0) > self.most_parents
        return ~(forbidden | missing).any(axis=(-2, -1)) & ~crowded

    def strength(self, scores: Matrix) -> Matrix:
        """The scores of edges, with required ones above all."""
        return np.where(self.required, np.inf, scores)

    def repaired(self, graph: Graph, scores: Matrix) -> Graph:
        """A DAG that honours the constraints: of the graph's own edges, the ones with the smallest scores go."""
        strength = self.strength(scores)
        within = with_few_parents((graph & self.allowed) | self.required, strength, self.most_parents)
        return without_cycles(within, strength)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
