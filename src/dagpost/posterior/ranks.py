"""Between the values of a column and the latent standard normal column that they are a monotone transform of.

Ranks are all that the copula knows of a column: a value stands for the normal quantile of its middle rank, and a latent
value for the observed value at its rank.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from dagpost.data import Dataset
from dagpost.data.missing import completed
from dagpost.errors import InputError
from dagpost.posterior.sample import GraphSample


def _known(post: GraphSample, j: int) -> np.ndarray:
    """Return the observed values of a column in ascending order."""
    if post.data is None:
        raise InputError("values of latent columns need the data: call with_data(data) on the posterior first")
    column = post.data.values[:, j]
    return np.sort(column[~np.isnan(column)])


def latent_value(post: GraphSample, j: int, value: float) -> float:
    """Return the latent value that a value of a column stands for: the normal quantile of its middle rank.

    Parameters
    ----------
    post
        Posterior of a copula, with its data.
    j
        Index of the column.
    value
        A number or a code; beyond the observed values it is taken as the nearest of them.
    """
    known = _known(post, j)
    first, last = np.searchsorted(known, value, side="left"), np.searchsorted(known, value, side="right")
    return float(ndtri(np.clip((first + last) / 2, 0.5, len(known) - 0.5) / len(known)))


def observed_values(post: GraphSample, latent: Float[np.ndarray, "n d"]) -> pd.DataFrame:
    """Return latent rows in the units and levels of the table: for each cell the observed value at its rank.

    Parameters
    ----------
    post
        Posterior of a copula, with its data.
    latent
        Latent rows, each column standard normal.
    """
    out = np.empty(latent.shape)
    for j in range(post.nodes):
        known = _known(post, j)
        place = (ndtr(latent[:, j]) * len(known)).astype(np.int64)
        out[:, j] = known[np.clip(place, 0, len(known) - 1)]
    assert post.data is not None
    return Dataset(completed(post.data, out).raw().values, post.names, levels=post.data.levels).frame()
