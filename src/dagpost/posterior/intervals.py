"""How far an edge probability may be off because it was sampled: Monte Carlo intervals, not posterior ones.

An edge probability is itself the statement of uncertainty about the edge. What is left is the error of the method that
computed it, and there are three cases:

* "exact": sums over all DAGs carry no sampling error, the interval is a point;
* "chains": the average over all rounds of MCMC, with the standard error that batch means give for each edge;
* "graphs": a weighted set of graphs, as so many independent draws as its weights are worth, `1 / sum_m w_m²`; then
  Wilson's interval for a share, which does not collapse at 0 and 1. Particles of DiBS repel each other and are no
  independent draws, so theirs is a rough guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from dagpost.errors import InputError

if TYPE_CHECKING:
    from dagpost.posterior.posterior import Posterior

Source = Literal["exact", "chains", "graphs"]
ERRORS = "edge_errors"
"""Under this name `info` holds the standard errors of a run that knows them."""


class EdgeIntervals(NamedTuple):
    """Bounds for every edge probability, and where they come from."""

    lower: Float[np.ndarray, "d d"]
    upper: Float[np.ndarray, "d d"]
    source: Source


def edge_intervals(post: Posterior, level: float) -> EdgeIntervals:
    """Central intervals of this coverage."""
    if isinstance(level, bool) or not 0 < level < 1:
        raise InputError(f"level={level!r}: give a probability between 0 and 1")
    p, z = post.edge_marginals, float(norm.ppf((1 + level) / 2))
    if post.is_exhaustive or (post.marginals is not None and post.info.get("method") == "exact"):
        return EdgeIntervals(p, p, "exact")
    if post.marginals is not None and post.info.get(ERRORS) is not None:
        half = z * np.asarray(post.info[ERRORS], dtype=float)
        return EdgeIntervals(np.maximum(p - half, 0.0), np.minimum(p + half, 1.0), "chains")
    lower, upper = wilson(p, effective_draws(post), z)
    off = ~np.eye(post.nodes, dtype=np.bool_)  # nothing is open about self-loops
    return EdgeIntervals(lower * off, upper * off, "graphs")


def effective_draws(post: Posterior) -> float:
    """As many draws of equal weight as the weights are worth."""
    return float(1 / np.sum(post.weights**2))


def wilson(p: np.ndarray, n: float, z: float) -> tuple[np.ndarray, np.ndarray]:
    """`(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)`.

    >>> low, high = wilson(np.array([0.0, 0.5]), 30, 1.96)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.332], [0.114, 0.668])
    """
    middle = p + z**2 / (2 * n)
    half = z * np.sqrt(np.maximum(p * (1 - p), 0.0) / n + (z / (2 * n)) ** 2)
    scale = 1 + z**2 / n
    return np.clip((middle - half) / scale, 0.0, 1.0), np.clip((middle + half) / scale, 0.0, 1.0)
