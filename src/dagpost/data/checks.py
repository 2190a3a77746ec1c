"""Checks of data before inference, and batches of data sets of one shape.

`check_for_inference` rejects tables that no structure-learning method can use. The batch helpers stack several data
sets, so that a GPU can process them at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import lapack

from dagpost.data.dataset import Dataset
from dagpost.data.missing import completed
from dagpost.data.values import (
    CURE_MISSING,
    DEPENDENT,
    columns_phrase,
    constant_columns,
    describe_constant,
    describe_duplicates,
    duplicate_columns,
    list_names,
    raise_problems,
)
from dagpost.errors import DataWarning, InputError, printable

NEARLY_CONSTANT = 1e-7
"""A column whose standard deviation is below this share of its largest value is rejected: scatter matrices would lose
all digits to the offset."""


CURE_CATEGORIES = (
    "use --model bdeu if all columns are categorical, --model copula if they have two levels or an order, leave them "
    "out (--drop NAME), or recode them as numbers and call them continuous (--kinds NAME=continuous)"
)


def kind_problems(data: Dataset, model: str, categories: bool = False, missing: bool = False) -> list[str]:
    """Return what a model for numbers cannot take: categorical columns, and missing cells.

    Parameters
    ----------
    data
        The table.
    model
        Name of the model.
    categories, missing
        Whether the model takes categorical columns, and missing cells.
    """
    problems = []
    names = [name for name, is_category in zip(data.names, data.is_categorical) if is_category]
    if names and not categories:
        what = columns_phrase(names, "holds categories", "hold categories")
        problems.append(f"{what}, and the model {model!r} takes numbers alone: {CURE_CATEGORIES}")
    holes = [name for name, column in zip(data.names, data.is_missing.T) if column.any()]
    if holes and not missing:
        cells = int(data.is_missing.sum())
        what = columns_phrase(holes, "has missing values", "have missing values")
        problems.append(f"{what} ({cells} in all), and the model {model!r} needs all of them: {CURE_MISSING}")
    return [*problems, *constant_problems(data)] if problems else []


def constant_problems(data: Dataset) -> list[str]:
    """Return the problem of columns with one value where they are not intervened on, if there are any."""
    constant = constant_columns(data.values, ~data.intervened)
    first = np.nan_to_num(data.values[(~data.intervened & ~data.is_missing).argmax(axis=0), np.arange(data.nodes)])
    return describe_constant(first, data.names, constant, data.levels)


def check_ranks(data: Dataset) -> Dataset:
    """Check that the data are suitable for a model that uses their ranks alone, whatever their units.

    Columns of numbers with the same ranks are a problem, those with levels a warning.

    Parameters
    ----------
    data
        Data to check.

    Returns
    -------
    Dataset
        The same data.
    """
    problems = constant_problems(data) if data.observations > 1 else []
    ranks = np.full(data.values.shape, np.nan)
    for j, column in enumerate(data.values.T):
        known = ~np.isnan(column)
        ranks[known, j] = np.unique(column[known], return_inverse=True)[1].reshape(-1)
    numbers = np.flatnonzero(~data.is_categorical & (np.nanmax(ranks, axis=0, initial=0.0) > 0))
    for one in duplicate_columns(ranks[:, numbers]):
        first, second = (printable(data.names[numbers[j]]) for j in (one.original, one.column))
        problems.append(f"columns '{first}' and '{second}' have the same ranks, up or down: drop one of them")
    raise_problems(problems)
    check_for_inference(completed(data, ranks))
    return data


def check_for_inference(data: Dataset) -> Dataset:
    """Check that the data are suitable for structure learning.

    Constant, nearly constant, duplicated and linearly dependent columns are problems; one error lists them all and
    names the columns. Fewer rows than columns, very different scales, and categorical columns that repeat each other
    are warnings.

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
    problems = []
    if d < 2:
        problems.append(f"the table has 1 column ('{printable(data.names[0])}'): a graph needs at least 2")
    if n < 2:
        problems.append(f"the table has {n} row(s): structure learning needs at least 2, better 100")
    raise_problems(problems)
    large = _too_large(data)
    fixed, described = _without_variation(data, large)
    usable = [j for j in range(d) if j not in large and j not in fixed]
    numbers, categories = ([j for j in usable if data.is_categorical[j] == kind] for kind in (False, True))
    raise_problems([*large.values(), *described, *_dependence(data, numbers)])
    _warn_of_scales(data)
    for text in describe_duplicates([data.names[j] for j in categories], duplicate_columns(data.values[:, categories])):
        warnings.warn(text, DataWarning, stacklevel=3)
    if n < d:
        warnings.warn(
            f"{n} rows for {d} columns: the posterior will be wide and depend strongly on the priors",
            DataWarning,
            stacklevel=3,
        )
    return data


def _too_large(data: Dataset) -> dict[int, str]:
    """Return the columns whose sum of squares would overflow, with a description each."""
    limit = np.sqrt(np.finfo(np.float64).max / max(data.observations, 1)) / 4
    largest = np.nanmax(np.abs(data.values), axis=0)
    return {
        j: f"column '{printable(data.names[j])}' reaches {value:.1e}, whose square overflows: rescale the column"
        for j, value in enumerate(largest)
        if value > limit
    }


def _without_variation(data: Dataset, skipped: Mapping[int, str]) -> tuple[set[int], list[str]]:
    """Return the columns that are (nearly) constant where they are not intervened on, and a description of them."""
    free = ~data.intervened & ~data.is_missing
    constant = [j for j in constant_columns(data.values, free) if j not in skipped]
    value = data.values[free.argmax(axis=0), np.arange(data.nodes)]
    problems = describe_constant(value, data.names, constant, data.levels)
    fixed = set(constant)
    for j, name in enumerate(data.names):
        if j in fixed or j in skipped:
            continue
        problem = _variation_problem(data.values[free[:, j], j], printable(name), bool(data.intervened[:, j].any()))
        if problem is not None:
            fixed.add(j)
            problems.append(problem)
    return fixed, problems


def _variation_problem(values: np.ndarray, shown: str, intervened: bool) -> str | None:
    """Return why the observed values of a column, where it is not intervened on, do not suffice; None if they do."""
    if len(values) == 1 and not intervened:
        return f"column '{shown}' has one observed cell, too few to learn from: leave it out (--drop '{shown}')"
    if len(values) == 0:
        return (
            f"node '{shown}' was intervened on in every row, so nothing can be learnt about its parents: "
            f"add rows without an intervention on it, or leave the column out (--drop '{shown}')"
        )
    if len(values) == 1:
        return f"node '{shown}' was intervened on in all rows but one: add rows, or leave it out (--drop '{shown}')"
    deviation = values.std()
    if not deviation > 0:
        return f"column '{shown}' has values too small to square ({values[0]:.1e}): rescale the column"
    if deviation < NEARLY_CONSTANT * np.abs(values).max():
        return (
            f"column '{shown}' is nearly constant (it varies by {deviation:.1e} around {values.mean():g}): "
            f"leave it out (--drop '{shown}') or subtract its offset"
        )
    return None


def _warn_of_scales(data: Dataset) -> None:
    """Warn of columns with very different scales."""
    free = ~data.intervened & ~data.is_missing
    if data.is_categorical.all():
        return
    deviations = np.array([data.values[free[:, j], j].std() for j in range(data.nodes)])
    deviations[data.is_categorical] = np.median(deviations[~data.is_categorical])
    small, large = int(deviations.argmin()), int(deviations.argmax())
    if deviations[large] > 1e6 * deviations[small]:
        warnings.warn(
            f"columns '{printable(data.names[large])}' and '{printable(data.names[small])}' differ in scale by "
            f"a factor of {deviations[large] / deviations[small]:.0e}: consider standardising",
            DataWarning,
            stacklevel=4,
        )


def _dependence(data: Dataset, usable: Sequence[int]) -> list[str]:
    """Return the problems of usable columns that are copies or linear combinations of others."""
    names, values = [data.names[j] for j in usable], data.values[:, usable]
    duplicates = duplicate_columns(values) if len(values) > data.nodes else []
    problems = describe_duplicates(names, duplicates)
    copies = {one.column for one in duplicates}
    left = [j for j in range(len(usable)) if j not in copies]
    values = values[~np.isnan(values).any(axis=1)]
    if len(values) <= data.nodes or len(left) < 2:
        return problems  # with so few rows always dependent; the caller warns
    centred = values[:, left] - values[:, left].mean(axis=0)
    scaled = centred / np.sqrt((centred**2).sum(axis=0))
    _, pivots, rank, _ = lapack.dpstrf(scaled.T @ scaled, tol=DEPENDENT, lower=1)  # pyright: ignore
    pivots = pivots - 1
    basis = pivots[:rank]
    for culprit in pivots[rank:]:
        weights = np.linalg.lstsq(scaled[:, basis], scaled[:, culprit], rcond=None)[0]
        involved = [names[left[i]] for i in sorted(basis[np.abs(weights) > 1e-6])]
        name = printable(names[left[culprit]])
        problems.append(f"column '{name}' is a linear combination of {list_names(involved)}: drop one of them")
    return problems


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
