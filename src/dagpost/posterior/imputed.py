"""Tables with their missing cells filled in by draws of the posterior, in the units and levels of the table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dagpost.data import Dataset
from dagpost.data.missing import completed
from dagpost.errors import InputError, whole_number
from dagpost.posterior.sample import GraphSample


def completed_data(post: GraphSample, n: int) -> list[Dataset]:
    """Return draws of the completed table in units of the fit, evenly spaced among those that were kept.

    Parameters
    ----------
    post
        Posterior of a table with missing cells, with its data.
    n
        Most tables to return.
    """
    if post.cells is None:
        raise InputError("no cell of the table was missing, so that there is nothing to impute: use the table itself")
    if post.data is None:
        raise InputError("completed tables need the observed cells: call with_data(data) on the posterior first")
    kept = post.cells.values
    chosen = np.linspace(0, len(kept) - 1, min(n, len(kept))).round().astype(int)
    out = []
    for draw in kept[chosen]:
        values = post.data.values.copy()
        values[post.cells.rows, post.cells.columns] = draw
        out.append(completed(post.data, values))
    return out


def imputed_tables(post: GraphSample, n: int) -> list[pd.DataFrame]:
    """Return draws of the completed table as frames; see `Posterior.imputed`."""
    return [data.raw().frame() for data in completed_data(post, whole_number("n", n, least=1))]
