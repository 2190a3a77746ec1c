"""Convergence diagnostics: split-R̂ and effective sample sizes of edges and of the log posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

LARGEST_RHAT = 1.01
"""Largest split-R̂ of chains that agree (Vehtari, Gelman, Simpson, Carpenter and Bürkner, 2021)."""
SMALLEST_ESS = 400.0
"""Smallest effective sample size of a run that can be trusted."""
RARE = 0.02
"""Edges with a probability below this, or above one minus this, say little about mixing."""
FEWEST_BATCHES = 4
"""Fewest batches that give a standard error."""


class Convergence(NamedTuple):
    """Diagnostics of the worst edge and of the log posterior; `error` is the largest standard error of an edge."""

    rhat: float
    ess: float
    error: float
    rhat_log_posterior: float
    ess_log_posterior: float

    @property
    def largest_rhat(self) -> float:
        """Split-R̂ of the worst edge or of the log posterior; nan if one of them could not be computed."""
        return float(np.maximum(self.rhat, self.rhat_log_posterior))

    @property
    def smallest_ess(self) -> float:
        """Effective sample size of the worst edge or of the log posterior; nan if one of them could not be computed."""
        return float(np.minimum(self.ess, self.ess_log_posterior))

    @property
    def trusted(self) -> bool:
        """Whether all diagnostics could be computed and are within their limits."""
        return self.largest_rhat <= LARGEST_RHAT and self.smallest_ess >= SMALLEST_ESS

    def verdict(self, worst: str = "") -> str:
        """Return how far edge probabilities may be off, what failed, and what helps.

        Parameters
        ----------
        worst
            The edge with the largest error, in words.
        """
        rhat, ess = self.largest_rhat, self.smallest_ess
        where = f", largest at {worst}" if worst and self.error > 0 else ""
        size = f"edge probabilities are accurate to about ±{2 * self.error:.3f}{where}"
        if self.trusted:
            return f"The chains agree: {size} (split-R̂ {rhat:.3f}, effective sample size {ess:.0f})."
        failed = []
        if np.isnan(rhat):
            failed.append("the chains are too short to tell whether they agree")
        elif not rhat <= LARGEST_RHAT:
            failed.append(f"the chains disagree (split-R̂ {rhat:.3f}, should be at most {LARGEST_RHAT})")
        if not ess >= SMALLEST_ESS:
            failed.append(
                f"the chains are too short (effective sample size {ess:.0f}, should be at least {SMALLEST_ESS:.0f})"
            )
        off = f"Edge probabilities may be off by more than ±{2 * self.error:.2f}{where}"
        if self.error >= 0.5:
            failed, off = ["the chains are too short to be judged"], "Edge probabilities may be anything"
        return (
            f"Do not trust this run yet: {' and '.join(failed)}. {off}. "
            "A longer time limit helps (--time-limit, time_limit=)."
        )


def diagnose(
    frequencies: Float[np.ndarray, "e b d d"], rounds: int, log_posterior: Float[np.ndarray, "e n"]
) -> Convergence:
    """Return diagnostics from edge frequencies in successive batches of `rounds` rounds and draws of the log posterior.

    Every round counts, not only the graphs that are kept. The variance of a 0/1 variable follows from its mean, so
    split-R̂ over all rounds needs the means of half-chains alone:

        W = mean of m (1 - m) n / (n - 1),  R̂² = (n - 1) / n + Var(m) / W,

    with m the edge's frequency in each half-chain of n rounds. Half-chains that do not move, in different states, have
    W = 0 and an infinite R̂. The effective sample size is p (1 - p) / error², with the standard error of batch means.
    """
    from arviz_stats.base.array import array_stats

    e, b = frequencies.shape[:2]
    if b < FEWEST_BATCHES or log_posterior.shape[1] < FEWEST_BATCHES:
        return Convergence(np.inf, 0.0, 0.5, np.inf, 0.0)
    rhat_density, ess_density = (_number(f(log_posterior)) for f in (array_stats.rhat, array_stats.ess))
    if np.ptp(log_posterior) == 0:  # no variation: all draws are one graph
        rhat_density, ess_density = 1.0, float(e * b * rounds)
    p = frequencies.mean(axis=(0, 1))
    moving = (p > 0) & (p < 1)
    if not moving.any():
        return Convergence(1.0, float(e * b * rounds), 0.0, rhat_density, ess_density)
    common = moving & (np.minimum(p, 1 - p) >= RARE)
    assessed = common if common.any() else moving
    error = edge_errors(frequencies)
    with np.errstate(divide="ignore"):
        ess = p[assessed] * (1 - p[assessed]) / error[assessed] ** 2
    # at most one effective draw per round: batch means that vary less do so by chance
    smallest = float(np.minimum(np.nan_to_num(ess, nan=0.0), e * b * rounds).min())
    largest = float(split_rhat(frequencies, rounds)[assessed].max())
    return Convergence(largest, smallest, float(np.nan_to_num(error, nan=0.5).max()), rhat_density, ess_density)


def split_rhat(frequencies: Float[np.ndarray, "e b d d"], rounds: int) -> Float[np.ndarray, "d d"]:
    """Return the split-R̂ of every edge over all rounds; 1 where an edge never varies."""
    half = frequencies.shape[1] // 2
    halves = np.concatenate([frequencies[:, :half], frequencies[:, -half:]])
    means, n = halves.mean(axis=1), half * rounds
    within = (means * (1 - means)).mean(axis=0) * n / max(n - 1, 1)
    between = means.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(between > 0, between / within, 0.0)
    return np.maximum(np.sqrt((n - 1) / n + ratio), 1.0)


def edge_errors(frequencies: Float[np.ndarray, "e b d d"]) -> Float[np.ndarray, "d d"]:
    """Return the standard error of every edge's overall frequency; 0 for edges whose frequency never varies."""
    e, b, d, _ = frequencies.shape
    means = np.moveaxis(frequencies.reshape(e, b, -1), -1, 0)
    moving = means.std(axis=(1, 2)) > 0
    out = np.zeros(d * d)
    if moving.any():
        out[moving] = standard_errors(means[moving]) if b >= FEWEST_BATCHES else 0.5
    return out.reshape(d, d)


def standard_errors(draws: Float[np.ndarray, "k e b"]) -> Float[np.ndarray, " k"]:
    """Return Monte Carlo standard errors of k means over e chains of b draws: `sd / sqrt(ess)`.

    The effective sample size is that of Vehtari et al. (2021), without ranks, as in ArviZ: split chains, Geyer's
    initial monotone sequence of autocorrelations. Vectorised over edges; ArviZ takes a second for a thousand.
    """
    half = draws.shape[2] // 2
    chains = np.concatenate([draws[:, :, :half], draws[:, :, -half:]], axis=1)
    k, m, n = chains.shape
    centred = chains - chains.mean(axis=2, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=2)) ** 2
    autocovariance = np.fft.irfft(spectrum, axis=2)[:, :, :n].mean(axis=1) / n
    within = autocovariance[:, 0] * n / (n - 1)
    total = within * (n - 1) / n + chains.mean(axis=2).var(axis=1, ddof=1)
    rho = 1 - (within[:, None] - autocovariance) / np.maximum(total, 1e-300)[:, None]
    rho[:, 0] = 1.0
    pairs = rho[:, 0 : n - n % 2 : 2] + rho[:, 1 : n - n % 2 + 1 : 2]
    positive = np.logical_and.accumulate(pairs > 0, axis=1)
    monotone = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=1)
    time = np.maximum(2 * monotone.sum(axis=1) - 1, 1 / np.log10(m * n))
    spread = draws.reshape(k, -1).std(axis=1, ddof=1)
    return spread * np.sqrt(time / (m * n))


def _number(value: Any) -> float:
    """Return an array of one element as a float."""
    return float(np.asarray(value).reshape(()))
