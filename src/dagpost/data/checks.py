"""Checks of data before inference, and batches of data sets of one shape.

`check_for_inference` rejects tables that no structure-learning method can use. The batch helpers stack several data
sets, so that a GPU can process them at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import lapack

from dagpost.data.dataset import Dataset
from dagpost.errors import DataWarning, InputError, printable

DEPENDENT = 1e-12
"""A column is linearly dependent if the others leave less than this share of its variance unexplained."""

NEARLY_CONSTANT = 1e-7
"""A column whose standard deviation is below this share of its largest value is rejected: scatter matrices would lose
all digits to the offset."""


def check_for_inference(data: Dataset) -> Dataset:
    """Check that the data are suitable for structure learning.

    Constant, nearly constant, duplicated and linearly dependent columns are errors that name the column. Fewer rows
    than columns, and very different scales, are warnings.

    Parameters
    ----------
    data
        Data to check.

    Returns
    -------
    Dataset
        The same data.
    """
    n, d = data.observations, data.nodes
    if d < 2:
        raise InputError(f"the table has 1 column ('{printable(data.names[0])}'): a graph needs at least 2")
    if n < 2:
        raise InputError(f"the table has {n} row(s): structure learning needs at least 2, better 100")
    _check_size(data)
    _check_variation(data)
    _check_dependence(data)
    if n < d:
        warnings.warn(
            f"{n} rows for {d} columns: the posterior will be wide and depend strongly on the priors",
            DataWarning,
            stacklevel=3,
        )
    return data


def _check_size(data: Dataset) -> None:
    """Raise an error for a column whose sum of squares would overflow."""
    limit = np.sqrt(np.finfo(np.float64).max / max(data.observations, 1)) / 4
    largest = np.abs(data.values).max(axis=0)
    for name, value in zip(data.names, largest):
        if value > limit:
            raise InputError(
                f"column '{printable(name)}' reaches {value:.1e}, whose square overflows: rescale the column"
            )


def _check_variation(data: Dataset) -> None:
    """Raise an error for a column that is (nearly) constant where it is not intervened on; warn of different scales."""
    free = ~data.intervened
    deviations = np.empty(data.nodes)
    for j, name in enumerate(data.names):
        values = data.values[free[:, j], j]
        shown = printable(name)
        if len(values) == 0:
            raise InputError(
                f"node '{shown}' was intervened on in every row, so nothing can be learnt about its parents: "
                "add rows without an intervention on it, or drop the column"
            )
        if len(values) == 1:
            raise InputError(f"node '{shown}' was intervened on in all rows but one: add rows, or drop the column")
        if (values == values[0]).all():
            raise InputError(f"column '{shown}' is constant (value {values[0]:g}): drop it or check the file")
        deviations[j] = values.std()
        if not deviations[j] > 0:
            raise InputError(f"column '{shown}' has values too small to square ({values[0]:.1e}): rescale the column")
        if deviations[j] < NEARLY_CONSTANT * np.abs(values).max():
            raise InputError(
                f"column '{shown}' is nearly constant (it varies by {deviations[j]:.1e} around "
                f"{values.mean():g}): drop it or subtract its offset"
            )
    small, large = int(deviations.argmin()), int(deviations.argmax())
    if deviations[large] > 1e6 * deviations[small]:
        warnings.warn(
            f"columns '{printable(data.names[large])}' and '{printable(data.names[small])}' differ in scale by "
            f"a factor of {deviations[large] / deviations[small]:.0e}: consider standardising",
            DataWarning,
            stacklevel=4,
        )


def _check_dependence(data: Dataset) -> None:
    """Raise an error for columns that are identical or linear combinations of others."""
    values = data.values
    centred = values - values.mean(axis=0)
    scaled = centred / np.sqrt((centred**2).sum(axis=0))
    correlation = scaled.T @ scaled
    for i, j in zip(*np.nonzero(np.triu(np.abs(correlation) > 1 - 1e-9, 1))):
        a, b = printable(data.names[i]), printable(data.names[j])
        if (values[:, i] == values[:, j]).all():
            raise InputError(f"columns '{a}' and '{b}' are identical: drop one")
        if data.observations > 2 and np.abs(scaled[:, i] - np.sign(correlation[i, j]) * scaled[:, j]).max() < np.sqrt(
            DEPENDENT
        ):
            raise InputError(f"columns '{a}' and '{b}' are the same up to scale and offset: drop one")
    if data.observations <= data.nodes:
        return  # always dependent; the caller warns
    _, pivots, rank, _ = lapack.dpstrf(correlation, tol=DEPENDENT, lower=1)  # pyright: ignore
    if rank == data.nodes:
        return
    pivots = pivots - 1
    culprit, basis = int(pivots[rank]), pivots[:rank]
    weights = np.linalg.lstsq(scaled[:, basis], scaled[:, culprit], rcond=None)[0]
    involved = sorted(int(i) for i in basis[np.abs(weights) > 1e-6])
    shown = ", ".join(f"'{printable(data.names[i])}'" for i in involved[:5]) + (", …" if len(involved) > 5 else "")
    raise InputError(f"column '{printable(data.names[culprit])}' is a linear combination of {shown}: drop one of them")


def check_same_shape(data: Sequence[Dataset], seeds: Sequence[int]) -> None:
    """Check that there is one seed per data set, and that all sets have the same number of rows and columns."""
    shapes = {(one.observations, one.nodes) for one in data}
    if len(shapes) != 1 or len(data) != len(seeds):
        raise InputError(
            f"{len(data)} data sets, {len(seeds)} seeds, shapes {sorted(shapes)}: give one shape, and a seed for each"
        )


def stack_trees(trees: Sequence[Any]) -> Any:
    """Return one pytree whose leaves are stacked along a new first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)


def member(tree: Any, number: int) -> Any:
    """Return one member of a stacked pytree."""
    return jax.tree.map(lambda leaf: leaf[number], tree)
