"""What a model keeps of the data, and posterior moments of linear weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dagpost.typing import RowGroups


class Statistics(NamedTuple):
    """Statistics of the data that `log_family` needs.

    The statistics of one node, `stats_j`, are the same tuple with `node` indexed by j.

    Attributes
    ----------
    shared
        Pytree that all nodes share.
    node
        Pytree whose leaves have a leading node axis.
    """

    shared: Any
    node: Any


class WeightMoments(NamedTuple):
    """Posterior mean and covariance of the weights of one node."""

    mean: Float[np.ndarray, " p"]
    covariance: Float[np.ndarray, "p p"]


class SharedRows(NamedTuple):
    """Default shared statistics: the rows of the data."""

    values: Any  # (n, d)


class NodeRows(NamedTuple):
    """Default statistics of a node: its index, and 1 for rows in which it was not intervened on."""

    index: Any  # (d,)
    observed: Any  # (d, n)


def chosen_groups(groups: RowGroups | None, count: int) -> RowGroups:
    """Return which of so many groups of rows are meant: those given, or all."""
    return np.ones(count, np.bool_) if groups is None else groups
