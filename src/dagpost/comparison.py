"""Models side by side on one table: which predicts rows that it has not seen best, and how much evidence each has.

The rows are divided into folds; every model is fitted without each fold and asked for the log density of its rows, with
graphs and parameters integrated out, in the units of the table. That can be compared between all models for one kind of
columns, whatever their priors. The log evidence of the whole table is beside it where the run was exact.

Rows in the order of time are not exchangeable: a fold is then some of the series, or a stretch of time, predicted from
what was before it. With conditions, targets are summed out of densities and evidence, and every fold has its share of
each condition.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from dagpost._util.compiled import announced
from dagpost._util.numerics import generator, key_from_seed
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset, as_dataset
from dagpost.data.missing import missing_problems
from dagpost.data.values import columns_phrase, raise_problems
from dagpost.errors import InputError, printable, whole_number
from dagpost.inference.defaults import assume, binary_columns
from dagpost.inference.exact import ExactPosterior
from dagpost.inference.fit import fit
from dagpost.metrics import log_predictive_density
from dagpost.models import BDeu, Model, as_model
from dagpost.posterior import Posterior
from dagpost.posterior.notebook import titled_table
from dagpost.priors import GraphPrior

CLEAR = 2.0
"""Standard errors from which on a difference is called clear."""
FOR_NUMBERS: tuple[str, ...] = ("bge", "linear", "additive")
FOR_CATEGORIES = (BDeu(), BDeu(10.0), BDeu(variant="k2"), BDeu(variant="bds"))
"""Models that are compared if nobody names any."""
COMPILE_SECONDS = 30
"""Roughly how long the first comparison on a new installation compiles."""
VARIANTS = {"k2": "K2", "bds": "BDs"}
"""Variants of a model by the name that the literature has for them."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models compared on one table, the best first.

    Attributes
    ----------
    table
        A row for each model: `log_density` of a held-out row (with lags: given the row before it), in nats, and its
        standard error over folds; `behind` the best model by how much, with its own standard error; `log_evidence` of
        the whole table (with lags: past columns included), NaN where the run was not exact; `seconds` that all fits
        took.
    by_fold
        Log density of a held-out row by model and fold.
    """

    table: pd.DataFrame
    by_fold: Float[np.ndarray, "m f"]

    @property
    def best(self) -> str:
        """Name of the model with the largest held-out density."""
        return str(self.table.index[0])

    @property
    def sentence(self) -> str:
        """The result in plain words."""
        best = printable(self.best)
        if len(self.table) == 1:
            return f"Only {best} was compared."
        others = self.table.iloc[1:]
        beaten = others["behind"] > CLEAR * others["behind_error"]
        second = others.iloc[0]
        if not beaten.iloc[0]:
            near = [printable(name) for name in others.index[~beaten]]
            return (
                f"No clear difference: {best} predicts held-out rows best, but {' and '.join(near)} "
                f"{'is' if len(near) == 1 else 'are'} within the error ({second['behind']:.3g} ± "
                f"{CLEAR * second['behind_error']:.2g} nats per row). Take the simplest of them."
            )
        lead, error = second["behind"], CLEAR * second["behind_error"]
        return (
            f"{best} predicts held-out rows best: {lead:.3g} ± {error:.2g} nats per row better than "
            f"{printable(others.index[0])}, the next."
        )

    def _repr_html_(self) -> str:
        """The table and the sentence, in notebooks."""
        return titled_table("Models by held-out log density", self.table.reset_index(), self.sentence)

    def __repr__(self) -> str:
        return f"{self.table.round(3).to_string()}\n{self.sentence}"


def compare(
    data: Any,
    models: Sequence[str | Model] | None = None,
    prior: str | GraphPrior | None = None,
    method: str = "auto",
    *,
    folds: int = 5,
    seed: int = 0,
    time_limit: float | None = 30.0,
    interventions: Any = None,
    kinds: Any = None,
    lags: int | None = None,
    series: Any = None,
    conditions: Any = None,
    missing_values: Any = None,
    targets: Any = None,
    progress: bool | None = None,
    **options: Any,
) -> Comparison:
    """Compare models on one table by the density of held-out rows, and by evidence where it is exact.

    Parameters
    ----------
    data, interventions, kinds, missing_values
        The table, as in `fit`.
    lags, series
        Time series, as in `fit`.
    conditions, targets
        Experiments, as in `fit`: what they change is summed out, for models that can.
    models
        Names or objects. Named models have the defaults of the command line: columns are standardised, noise is learnt.
        By default "bge", "linear" and "additive", or for categories "bdeu" with four priors. "copula" has no evidence
        that could be compared.
    prior, method
        As in `fit`, for all models; by default "unknown-density" and "auto".
    folds
        Parts that the rows are divided into, at random; each is held out once. With lags, whole series are; where there
        are fewer series than folds, the later half of each series is cut into so many stretches of time, and models
        are fitted to what was before each of them.
    seed
        Fixes folds and fits.
    time_limit
        Seconds of each fit, of which there are one for each fold and model, and one more for the evidence.
    progress
        Whether to show a progress bar; by default on a terminal.
    **options
        Options of the method.

    Returns
    -------
    Comparison
        A table with the best model first, and a sentence.

    Examples
    --------
    >>> import dagpost as dp
    >>> data = dp.simulate("linear", nodes=4, observations=100, seed=1).train
    >>> found = dp.compare(data, ["bge", "linear"], folds=2)
    >>> sorted(found.table.index)
    ['bge', 'linear']
    """
    table = as_dataset(
        data, interventions=interventions, kinds=kinds, lags=lags, series=series, conditions=conditions,
        missing_values=missing_values,
    )  # fmt: skip
    raise_problems(missing_problems(table, "a comparison of models"))
    folds = whole_number("folds", folds, least=2)
    if table.observations < 2 * folds:
        raise InputError(f"folds={folds}: {table.observations} rows are too few, give at most half as many folds")
    chosen = list(models) if models is not None else _models_for(table)
    if isinstance(models, str) or not chosen:
        raise InputError(f"models={models!r}: give a list of models")
    names = _names(chosen)
    for model in chosen:
        if as_model(model).latent:
            raise InputError(
                f"models: '{printable(as_model(model).name)}' sees ranks alone, so that its evidence and the density "
                "of held-out rows cannot be compared with those of other models: leave it out"
            )
    splits = _splits(table, folds, generator(key_from_seed(seed)))
    common = {"seed": seed, "progress": False, "targets": targets, **options}
    if method != "exact":
        common["time_limit"] = time_limit
    by_fold = np.zeros((len(chosen), folds))
    evidence, seconds = np.full(len(chosen), np.nan), np.zeros(len(chosen))
    with (
        announced(COMPILE_SECONDS, progress),
        progress_bar("comparing models", len(chosen) * (folds + 1), progress) as advance,
    ):
        for m, model in enumerate(chosen):
            began = time.perf_counter()
            whole = _fit(table, model, prior, method, common)
            evidence[m] = _evidence_in_raw_units(whole)
            advance(1)
            for fold, (seen, unseen) in enumerate(splits):
                held_out = table.rows(unseen)
                try:
                    post = _fit(table.rows(seen), model, prior, method, common)
                except InputError as error:
                    raise InputError(f"without fold {fold + 1} of {folds}: {error}; or give fewer folds") from None
                by_fold[m, fold] = log_predictive_density(post, held_out) / held_out.observations
                advance(1)
            seconds[m] = time.perf_counter() - began
    return _summary(names, by_fold, evidence, seconds)


def _splits(table: Dataset, folds: int, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows to fit to and those to predict, as masks, for each fold.

    With lags no row that is predicted is among those that are fitted, be it as the past of another row; it may follow
    one of them, which it is predicted from.
    """
    n = table.observations
    if not table.lags:
        group = np.full(n, -1) if table.conditions is None else table.conditions.of_row
        part = np.empty(n, dtype=np.int64)
        part[np.lexsort([rng.permutation(n), group])] = np.arange(n) % folds  # every condition spread over the folds
        return [(part != fold, part == fold) for fold in range(folds)]
    series = np.zeros(n) if table.series is None else table.series.of_row
    of_row = np.unique(series, return_inverse=True)[1]
    rows = np.bincount(of_row)
    if len(rows) >= folds:
        part = (rng.permutation(len(rows)) % folds)[of_row]
        return [(part != fold, part == fold) for fold in range(folds)]
    place = np.empty(n, dtype=np.int64)  # of a row in its series
    place[np.argsort(of_row, kind="stable")] = np.concatenate([np.arange(size) for size in rows])
    when = (place + 1) / rows[of_row]
    later = np.flatnonzero(when > 0.5)
    part = np.full(n, -1)
    part[later[np.argsort(when[later], kind="stable")]] = np.arange(len(later)) * folds // len(later)
    return [(part < fold, part == fold) for fold in range(folds)]


def _models_for(table: Dataset) -> list[str | Model]:
    """Return the models for the kinds of columns of a table."""
    if all(levels or name in binary_columns(table) for name, levels in zip(table.names, table.levels)):
        return [*FOR_CATEGORIES]
    if table.is_categorical.any():
        names = [name for name, is_category in zip(table.names, table.is_categorical) if is_category]
        raise InputError(
            f"{columns_phrase(names, 'holds categories', 'hold categories')} and other columns numbers: the one model "
            "that takes both is 'copula', which sees ranks alone and has no evidence to compare; name models for one "
            "kind, and leave the other out (--drop NAME)"
        )
    return [*FOR_NUMBERS]


def _names(models: Sequence[str | Model]) -> list[str]:
    """Return a name for each model: its own, with what differs from its defaults where several have the same."""
    short = [model if isinstance(model, str) else model.name for model in models]
    names = [
        name if short.count(name) == 1 or isinstance(model, str) else f"{name}{_settings_text(model)}"
        for name, model in zip(short, models)
    ]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"models: '{printable(name)}' is there twice: leave one out")
    return names


def _settings_text(model: Model) -> str:
    """Return the settings of a model that differ from its defaults in brackets, "" if there are none.

    >>> _settings_text(BDeu(10.0)), _settings_text(BDeu(variant="k2"))
    (' (equivalent sample size 10)', ' (K2)')
    """
    if not is_dataclass(model):
        return f" ({model!r})"
    texts = []
    for one in fields(model):
        value = getattr(model, one.name)
        default = one.default if one.default_factory is MISSING else one.default_factory()
        if one.init and repr(value) != repr(default):
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            texts.append(VARIANTS.get(shown) or f"{one.name.replace('_', ' ')} {shown}")
    return f" ({', '.join(texts)})" if texts else ""


def _fit(table: Dataset, model: str | Model, prior: Any, method: str, common: dict[str, Any]) -> Posterior:
    """Return the posterior of one model, with the defaults of the command line."""
    assumptions = assume(table, model, prior, method)
    return fit(assumptions.data, assumptions.model, assumptions.prior, assumptions.method, **common)


def _evidence_in_raw_units(post: Posterior) -> float:
    """Return `log p(table)` where the posterior is exact, else NaN."""
    if not isinstance(post, ExactPosterior) or post.data is None:
        return float("nan")
    scaling = post.scaling
    change = 0.0 if scaling is None else float((post.model.counted(post.data) @ np.log(scaling.scale)).sum())
    return post.log_evidence - change


def _summary(names: Sequence[str], by_fold: np.ndarray, evidence: np.ndarray, seconds: np.ndarray) -> Comparison:
    """Return the comparison, the best model first."""
    order = np.argsort(-by_fold.mean(axis=1), kind="stable")
    by_fold = by_fold[order]
    behind = by_fold[0] - by_fold
    root = np.sqrt(by_fold.shape[1])
    columns = {
        "log_density": by_fold.mean(axis=1),
        "error": by_fold.std(axis=1, ddof=1) / root,
        "behind": behind.mean(axis=1),
        "behind_error": behind.std(axis=1, ddof=1) / root,
        "log_evidence": evidence[order],
        "seconds": seconds[order],
    }
    return Comparison(pd.DataFrame(columns, index=pd.Index([names[k] for k in order], name="model")), by_fold)
