"""Pairs of nodes: how probable it is that two nodes are adjacent, and whether the direction of their edge is settled.

Figures and reports ask these two questions one after the other. Data without interventions often settle the first and
leave the second open; a threshold on single directions would then hide pairs that are certainly adjacent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dagpost.typing import Graph, Matrix

LEAST_SHARE = 0.75
"""Least share of the adjacency that a direction needs to count as settled."""


class Pair(NamedTuple):
    """A pair of nodes, in the order of its more probable direction.

    Attributes
    ----------
    cause, effect
        Node indices; `cause -> effect` is the more probable direction.
    adjacency
        Probability of an edge in either direction.
    share
        Share of the adjacency that the more probable direction has, from 0.5 to 1; 0 where the adjacency is 0.
    """

    cause: int
    effect: int
    adjacency: float
    share: float

    @property
    def is_open(self) -> bool:
        """Whether the direction is open."""
        return self.share < LEAST_SHARE


def adjacency(probabilities: Matrix) -> Matrix:
    """Return the probability of an edge in either direction, a symmetric matrix.

    Parameters
    ----------
    probabilities
        Edge probabilities; row i, column j for i -> j.

    Returns
    -------
    ndarray
        `Pr(i -> j) + Pr(j -> i)`, at most 1.
    """
    return np.minimum(probabilities + probabilities.T, 1.0)


def settled_directions(probabilities: Matrix) -> Graph:
    """Return the directions that have at least `LEAST_SHARE` of the adjacency of their pair.

    Each pair is judged by itself, so the directions may form a cycle.

    Parameters
    ----------
    probabilities
        Edge probabilities; row i, column j for i -> j.

    Returns
    -------
    ndarray
        True at row i, column j where i -> j is settled, given that the two nodes are adjacent.
    """
    return (probabilities > 0) & (probabilities >= LEAST_SHARE * adjacency(probabilities))


def ranked_pairs(probabilities: Matrix, least: float = 0.0) -> list[Pair]:
    """Return pairs, the most probably adjacent first.

    Parameters
    ----------
    probabilities
        Edge probabilities; row i, column j for i -> j.
    least
        Least probability of an edge in either direction.

    Returns
    -------
    list of Pair
        One for each of the d (d - 1) / 2 pairs that are so probably adjacent.
    """
    either = adjacency(probabilities)
    rows, columns = np.nonzero(np.triu(either >= least, 1))
    order = np.argsort(-either[rows, columns], kind="stable")
    rows, columns = rows[order], columns[order]
    back = probabilities[columns, rows] > probabilities[rows, columns]
    cause, effect = np.where(back, columns, rows), np.where(back, rows, columns)
    total, likelier = either[cause, effect], probabilities[cause, effect]
    share = np.minimum(np.divide(likelier, total, out=np.zeros_like(total), where=total > 0), 1.0)
    return [Pair(*pair) for pair in zip(cause.tolist(), effect.tolist(), total.tolist(), share.tolist())]
