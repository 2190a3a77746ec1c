"""Can a run be trusted? Split-R̂ and effective sample sizes of edges and of the log posterior, by ArviZ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dagpost.typing import Graphs

LARGEST_RHAT = 1.05
SMALLEST_ESS = 400.0


class Diagnostics(NamedTuple):
    """The worst edge, and the log posterior; `error` is the largest standard error of an edge probability."""

    rhat: float
    ess: float
    error: float
    rhat_log_posterior: float
    ess_log_posterior: float

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the run."""
        return (
            max(self.rhat, self.rhat_log_posterior) <= LARGEST_RHAT
            and min(self.ess, self.ess_log_posterior) >= SMALLEST_ESS
        )

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        figures = (
            f"largest split-R̂ {max(self.rhat, self.rhat_log_posterior):.3f}, "
            f"smallest effective sample size {min(self.ess, self.ess_log_posterior):.0f}"
        )
        if self.trusted:
            return f"The chains agree ({figures}); edge probabilities are good to about ±{2 * self.error:.3f}."
        return (
            f"Do not trust this run yet: the chains have not mixed ({figures}). "
            "Let it run longer (max_moves) or compare runs with other seeds."
        )


def diagnose(
    graphs: Graphs, log_posterior: Float[np.ndarray, "e n"], batches: Float[np.ndarray, "e b d d"]
) -> Diagnostics:
    """From some draws of every chain, (e, n, d, d), their log posterior, and edge frequencies over successive batches
    of all rounds.

    R̂ and effective sample sizes speak of the draws; edges that every chain has always, or never, have nothing to vary.
    Where one chain always has an edge and another never, R̂ is infinite. The standard error speaks of the average over
    all rounds: batch means vary as that average does.
    """
    from arviz_stats.base.array import array_stats

    rhat_density, ess_density = (_number(f(log_posterior)) for f in (array_stats.rhat, array_stats.ess))
    e, n = graphs.shape[:2]
    edges = np.moveaxis(graphs.reshape(e, n, -1), -1, 0).astype(float)
    share = edges.mean(axis=2)  # by edge and chain
    moving = (share.min(axis=1) < 1) & (share.max(axis=1) > 0)
    if not moving.any():
        return Diagnostics(1.0, float(e * n), _error(batches), rhat_density, ess_density)
    if (moving & np.isin(share, (0.0, 1.0)).all(axis=1)).any():  # chains that stand still in different places
        return Diagnostics(np.inf, float(e), 0.5, rhat_density, ess_density)
    overall = share.mean(axis=1)
    common = moving & (np.minimum(overall, 1 - overall) >= 0.02)  # rarer edges say little about mixing
    judged = edges[common if common.any() else moving]
    # rank-normalised R̂ of a 0/1 variable is dominated by ties: the plain split version speaks of its mean
    rhat = np.asarray(array_stats.rhat(judged, chain_axis=1, draw_axis=2, method="split"))
    ess = np.asarray(array_stats.ess(judged, chain_axis=1, draw_axis=2, method="mean"))
    return Diagnostics(float(np.nanmax(rhat)), float(np.nanmin(ess)), _error(batches), rhat_density, ess_density)


def edge_errors(batches: Float[np.ndarray, "e b d d"]) -> Float[np.ndarray, "d d"]:
    """The standard error of every edge's overall frequency; 0 for edges that no batch saw come or go."""
    from arviz_stats.base.array import array_stats

    e, b, d, _ = batches.shape
    means = np.moveaxis(batches.reshape(e, b, -1), -1, 0)
    moving = means.std(axis=(1, 2)) > 0
    out = np.zeros(d * d)
    if moving.any():
        out[moving] = np.asarray(array_stats.mcse(means[moving], chain_axis=1, draw_axis=2))
    return out.reshape(d, d)


def _error(batches: Float[np.ndarray, "e b d d"]) -> float:
    """The largest of them."""
    return float(np.nanmax(edge_errors(batches)))


def _number(value: Any) -> float:
    return float(np.asarray(value).reshape(()))
