"""Components shared by Gaussian models: normal density, observation noise, and Gram matrices of the data."""

from __future__ import annotations

from math import lgamma, log, pi
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dagpost.data import Dataset
from dagpost.errors import positive


def log_normal(x, variance):
    """Return `log N(x; 0, variance)`, elementwise."""
    return -0.5 * (x**2 / variance + jnp.log(2 * pi * variance))


class Noise(NamedTuple):
    """Observation noise of each node: a fixed variance, or unknown with an inverse-gamma prior.

    Unknown noise is a parameter on the log scale, `v = log variance`, so that it is unconstrained; its log density
    `a log b - log Γ(a) - a v - b e^(-v)` includes the Jacobian of the change of variable.

    Attributes
    ----------
    variance
        Fixed variance; None if it is unknown.
    shape, rate
        Parameters a and b of the inverse-gamma prior.
    """

    variance: float | None
    shape: float
    rate: float

    @property
    def learned(self) -> bool:
        """Whether the variance is unknown."""
        return self.variance is None

    def variance_from(self, log_variance: Any) -> Any:
        """Return the fixed variance, or that of the parameter if it is unknown."""
        return jnp.exp(log_variance) if self.learned else self.variance

    def log_prior(self, log_variance):
        """Return the log prior density of the log variance."""
        a, b = self.shape, self.rate
        return a * log(b) - lgamma(a) - a * log_variance - b * jnp.exp(-log_variance)

    def sample_log_variance(self, key, shape):
        """Return draws of the log variance from its prior."""
        return jnp.log(self.rate) - jnp.log(jax.random.gamma(key, self.shape, shape))

    def check(self) -> None:
        """Raise an error for a setting that is not positive."""
        for name, value in (
            ("noise_variance", self.variance),
            ("noise_shape", self.shape),
            ("noise_rate", self.rate),
        ):
            if value is not None:
                positive(name, value)


def grams(data: Dataset, centre: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the statistics of each group of rows (see `Dataset.regimes`), and the group of each node.

    For g groups: `XᵀX` of shape (g, d, d), column means of shape (g, d) and row counts of shape (g,). With `centre`,
    `XᵀX` is that of the centred columns; without it, the means are 0.
    """
    regimes, group = data.regimes
    d = data.nodes
    products = np.empty((len(regimes), d, d))
    means = np.zeros((len(regimes), d))
    counts = np.empty(len(regimes))
    for g, left_out in enumerate(regimes):
        values = data.values if not left_out.any() else data.values[~left_out]
        counts[g] = len(values)
        if centre:
            means[g] = values.mean(axis=0) if len(values) else 0.0
            values = values - means[g]
        products[g] = values.T @ values
    return products, means, counts, group
