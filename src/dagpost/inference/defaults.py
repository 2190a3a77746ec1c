"""Defaults for a table whose user names no model: one set for `dagpost.fit`, `dagpost.exact`, the command line and the
scikit-learn estimator.

Every default that is applied comes with a message. `benchmarks/foreign_networks.py` measures what they are chosen by.
In `dagpost.fit` a named model is the paper's: "linear" has known noise, and data stay in their units.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dagpost.data import Dataset, check_for_inference
from dagpost.data.checks import constant_problems
from dagpost.data.kinds import BINARY, CATEGORICAL, COUNT, ORDINAL
from dagpost.data.missing import missing_assumption
from dagpost.data.slices import PAST, past_columns
from dagpost.data.values import columns_phrase, list_names, problems_error
from dagpost.errors import DataWarning, InputError, nearest, positive, printable
from dagpost.models import MODELS, Model, as_model
from dagpost.priors import GraphPrior, as_prior


@dataclass(frozen=True)
class Assumptions:
    """Data, model, prior and method of a run, with defaults filled in.

    Attributes
    ----------
    data
        The data as inference uses them, standardised or not.
    model, prior, method
        As requested, or the defaults.
    messages
        What each applied default means, by topic: "units", "model", "noise", "prior", "method", "missing", "rows",
        "columns".
    """

    data: Dataset
    model: Model
    prior: GraphPrior
    method: str
    messages: Mapping[str, str]


def assume(
    data: Dataset,
    model: str | Model | None = None,
    prior: str | GraphPrior | None = None,
    method: str | None = None,
    *,
    noise: float | None = None,
    standardise: bool | None = None,
    model_settings: Mapping[str, Any] | None = None,
    prior_settings: Mapping[str, Any] | None = None,
) -> Assumptions:
    """Fill in defaults for what is None.

    Columns are standardised and the noise of every node is learnt or integrated out, so that results do not depend on
    units.

    Parameters
    ----------
    data
        The table.
    model, prior, method
        Names or objects, as in `dagpost.fit`; by default "bge" for continuous columns, "bdeu" for categories and
        "copula" for columns of several kinds, counts and ordinal columns; "unknown-density" and "auto".
    noise
        Known noise variance of every node; None to learn it. Models that integrate their noise out take none.
    standardise
        Whether to standardise columns; None to do so unless they are standardised already.
    model_settings, prior_settings
        Fields of the model and of the prior that differ from their defaults.

    Returns
    -------
    Assumptions
        What to run, and a message for each default.

    Raises
    ------
    InputError
        If a name or a setting is unknown, or the data cannot be standardised.

    >>> from dagpost.data import Dataset
    >>> assumptions = assume(Dataset([[1.0, 20.0], [2.0, 70.0], [4.0, 40.0]]))
    >>> assumptions.model.name, assumptions.data.scaling is not None, assumptions.method
    ('bge', True, 'auto')
    """
    messages: dict[str, str] = {}
    built_model = _build_model(model or _model_for(data, noise, method), noise, dict(model_settings or {}))
    binary = binary_columns(data)
    data = built_model.accept(data)
    if built_model.categorical or built_model.latent:
        standardise = False
    if standardise is None:
        standardise = data.scaling is None
        if standardise:
            messages["units"] = "every column standardised (mean 0, standard deviation 1)"
    if standardise:
        data = _standardise(data)
    if built_model.latent:
        messages["units"] = "none: the order of the values in each column is all that matters"
    if model is None and built_model.latent:
        messages["model"] = (
            f"{_kinds_text(data)}: each column a monotone transform of a latent Gaussian one, with linear effects "
            "among those; weights and noise variances integrated out (copula)"
        )
        if binary:
            messages["columns"] = f"0 and 1 taken as two levels: {list_names(binary, shown=3)}"
    elif model is None and built_model.categorical:
        messages["model"] = (
            "every column is categorical: a table of probabilities for each node, by the levels of its parents, with a "
            "Dirichlet prior, integrated out (bdeu)"
        )
        if binary:
            messages["columns"] = f"0 and 1 taken as categories: {list_names(binary, shown=3)}"
    elif model is None:
        messages["model"] = (
            "linear effects, Gaussian noise; weights and noise variances integrated out (bge)"
            if noise is None
            else f"linear effects, Gaussian noise of variance {noise:g}"
        )
    elif noise is None and getattr(built_model, "noise_variance", 0) is None:
        messages["noise"] = "variance learnt for each node"
    if prior is None:
        messages["prior"] = "all edges equally probable; how many there are is learnt (unknown-density)"
    if method is None:
        messages["method"] = (
            "auto: chains over graphs and latent columns"
            if built_model.latent
            else "auto: exact for few columns, chains over graphs for more"
        )
    if data.is_missing.any():
        messages["missing"] = missing_assumption(data)
    if not data.intervened.any() and data.conditions is None:
        messages["rows"] = "all observed, none from an intervention"
    if not built_model.categorical and not built_model.latent:
        messages |= _two_valued_columns(data)
    if model is None and not built_model.latent:
        messages |= _ranks_unused(data, _barred(data, noise, method), messages.get("columns"))
    graph_prior = _build("prior", prior or "unknown-density", as_prior, dict(prior_settings or {}))
    return Assumptions(data, built_model, graph_prior, method or "auto", messages)


def _model_for(data: Dataset, noise: float | None, method: str | None) -> str:
    """Return the model for the kinds of columns that a table has.

    Numbers, and categories, have a model without latent columns where the copula cannot go: with interventions,
    conditions, time slices, known noise or a method other than "auto".
    """
    binary = binary_columns(data)
    levels = [len(own) or 2 * (name in binary) for name, own in zip(data.names, data.levels)]
    unordered = [kind == CATEGORICAL and count > 2 for kind, count in zip(data.kinds, levels)]
    barred = _barred(data, noise, method)
    if all(levels) and (noise is None or data.is_categorical.any()):
        return "copula" if ORDINAL in data.kinds and not any(unordered) and not barred else "bdeu"
    if data.is_categorical.any():
        if data.lags:
            raise problems_error([_lagged_problem(data, levels), *constant_problems(data)])
        if any(unordered) or method not in (None, "auto"):
            raise problems_error([_mixed_problem(data, unordered, levels, method), *constant_problems(data)])
        return "copula"
    if not barred and (binary or COUNT in data.kinds):
        return "copula"
    return "bge" if noise is None else "linear"


def _barred(data: Dataset, noise: float | None, method: str | None) -> str | None:
    """Return what keeps a table from the model with latent columns, None if nothing does."""
    if data.lags:
        return "lags"
    if data.intervened.any():
        return "interventions"
    if data.conditions is not None:
        return "conditions"
    if noise is not None:
        return "known noise"
    return None if method in (None, "auto") else f"the method {method!r}"


def _lagged_problem(data: Dataset, levels: Sequence[int]) -> str:
    """Return the problem of a table in time with numbers and categories, which no model takes together."""
    present = ~past_columns(data.names)
    categories = [name for name, own, is_present in zip(data.names, data.levels, present) if own and is_present]
    numbers = [name for name, count, is_present in zip(data.names, levels, present) if not count and is_present]
    label = next((name for name in categories if data.series is None and _names_series(data, name)), None)
    series = (
        f"'{printable(label)}' changes seldom: if it says which series a row belongs to, name it (--series "
        f"{printable(label)}, series={printable(label)!r}); otherwise "
        if label
        else ""
    )
    return (
        f"{columns_phrase(categories, 'holds categories', 'hold categories')} and "
        f"{columns_phrase(numbers, 'numbers', 'numbers')}, and no model takes both with lags: {series}leave one "
        "kind out (--drop NAME), recode categories as numbers, or cut numbers into intervals and call them categorical "
        "(--kinds NAME=categorical)"
    )


def _names_series(data: Dataset, name: str) -> bool:
    """Return whether a column of slices has few levels, each in one run of rows, as labels of series have."""
    column = data.values[:, data.names.index(name)]
    before = data.values[:, data.names.index(name + PAST)]
    changes, different = int((column != before).sum()), len(np.unique(column))
    return changes <= different - 1 and 4 * different <= len(column)


def _mixed_problem(data: Dataset, unordered: Sequence[bool], levels: Sequence[int], method: str | None) -> str:
    """Return the problem of a table with numbers and categories that have no order, or are not for this method."""
    categories = [name for name, hit in zip(data.names, unordered) if hit]
    numbers = [name for name, count in zip(data.names, levels) if not count]
    if not categories:
        names = [name for name, is_category in zip(data.names, data.is_categorical) if is_category]
        return (
            f"{columns_phrase(names, 'holds categories', 'hold categories')} and "
            f"{columns_phrase(numbers, 'numbers', 'numbers')}, and no model takes both with the method {method!r}: use "
            "auto (--method auto), leave one kind out (--drop NAME), or cut numbers into intervals and call them "
            "categorical (--kinds NAME=categorical)"
        )
    return (
        f"{columns_phrase(categories, 'holds categories', 'hold categories')} without an order and "
        f"{columns_phrase(numbers, 'numbers', 'numbers')}, and no model takes both: declare their order (--kinds "
        "'NAME=low<mid<high'), leave one kind out (--drop NAME), or cut numbers into intervals and call them "
        "categorical (--kinds NAME=categorical)"
    )


def _kinds_text(data: Dataset) -> str:
    """Return how many columns there are of each kind.

    >>> _kinds_text(Dataset([[1.5, "a"], [2.0, "b"], [0.0, "a"]]))
    '1 continuous and 1 binary column'
    """
    binary = binary_columns(data)
    kinds = [
        BINARY if name in binary or len(levels) == 2 else kind
        for name, kind, levels in zip(data.names, data.kinds, data.levels)
    ]
    counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
    listed = " and ".join([", ".join(counts[:-1]), counts[-1]]) if len(counts) > 1 else counts[0]
    return f"{listed} column{'s' * (not counts[-1].startswith('1 '))}"


def binary_columns(data: Dataset) -> list[str]:
    """Return the names of continuous columns that hold 0 and 1 and nothing else."""
    values = data.raw().values
    if data.observations <= 2:
        return []
    holds = [bool(np.isin(column[~np.isnan(column)], (0.0, 1.0)).all()) for column in values.T]
    return [name for name, both, kind in zip(data.names, holds, data.is_categorical) if both and not kind]


def _standardise(data: Dataset) -> Dataset:
    """Return the data standardised, and rounded so that units leave no trace; raise an error if they cannot be used."""
    if data.observations == 2:
        raise InputError("the table has 2 rows: standardised columns would all be the same, give more rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # scales will not matter; `fit` repeats the other warnings
        check_for_inference(data)
    return data.standardised().rounded()


def _two_valued_columns(data: Dataset) -> dict[str, str]:
    """Return a message about columns that hold two values only; nothing where there are none."""
    values = data.values
    ends = (values == np.nanmin(values, axis=0)) | (values == np.nanmax(values, axis=0))
    two_valued = (ends | data.is_missing).all(axis=0)
    names = [printable(name) for name, is_two_valued in zip(data.names, two_valued) if is_two_valued]
    if not names or data.observations <= 2:
        return {}
    listed = ", ".join(f"'{name}'" for name in names[:3]) + (", …" if len(names) > 3 else "")
    return {"columns": f"two values only, treated as numbers: {listed}"}


def _ranks_unused(data: Dataset, barred: str | None, said: str | None) -> dict[str, str]:
    """Return a message about counts and orders that the model without latent columns makes nothing of, added to what
    is said of columns; nothing where there are none."""
    out = [] if said is None else [said]
    for kind, what in ((COUNT, "counts taken as continuous"), (ORDINAL, "order of levels not used")):
        names = [name for name, own in zip(data.names, data.kinds) if own == kind]
        names = [name for name in names if not data.lags or not name.endswith(PAST)]
        if names and barred:
            out.append(f"{what}, since 'copula' does not go with {barred}: {list_names(names, shown=3)}")
    return {"columns": "; ".join(out)} if out else {}


def _build_model(model: str | Model, noise: float | None, settings: dict[str, Any]) -> Model:
    """Return the model with its settings and noise variance."""
    if isinstance(model, Model):
        if noise is not None or settings:
            raise InputError("noise and settings go into the model object itself: pass them to its constructor")
        return model
    kind = MODELS.get(model) if isinstance(model, str) else None
    if kind is not None and "noise_variance" in {f.name for f in fields(kind)}:  # type: ignore[arg-type]
        settings.setdefault("noise_variance", None if noise is None else positive("noise", noise))
    elif noise is not None and kind is not None:
        raise InputError(f"noise={noise!r}: the model {model!r} integrates its noise out: leave this option out")
    return _build("model", model, as_model, settings)


def _build(what: str, name: Any, default: Any, settings: dict[str, Any]) -> Any:
    """Return the named model or prior with these settings; raise an error that names an unknown setting."""
    if not settings:
        return default(name)
    kind = type(default(name))
    own = [f.name for f in fields(kind)]
    for setting in settings:
        if setting not in own:
            raise InputError(f"the {what} {kind.name!r} has no setting {setting!r}: {nearest(setting, own)}")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return replace(default(name), **values)
