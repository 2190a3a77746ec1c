"""What is assumed of a table that nobody described, and said aloud: for the command line and the estimator.

`fit` assumes nothing of the kind: there, "linear" is the paper's model and data stay in their units.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from dagpost.data import Dataset, check_for_inference
from dagpost.errors import DataWarning, InputError, nearest, positive, printable
from dagpost.models import MODELS, Model, as_model
from dagpost.priors import GraphPrior, as_prior


@dataclass(frozen=True)
class Assumed:
    """The data as they will be used, the model, the prior and the method; `said` explains each choice not asked for."""

    data: Dataset
    model: Model
    prior: GraphPrior
    method: str
    said: Mapping[str, str]


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
) -> Assumed:
    """Fill in what was not said. Columns are standardised, and the noise of every node is learnt (`noise=None`),
    so that the answer does not depend on units.

    >>> from dagpost.data import Dataset
    >>> found = assume(Dataset([[1.0, 20.0], [2.0, 70.0], [4.0, 40.0]]))
    >>> found.model.noise_variance, found.data.scaling is not None, found.method
    (None, True, 'auto')
    """
    said: dict[str, str] = {}
    scored = _model(model, noise, dict(model_settings or {}))
    if standardise is None:
        standardise = data.scaling is None
        if standardise:
            said["units"] = "every column standardised (mean 0, standard deviation 1)"
    if standardise:
        data = in_standard_units(data)
    if model is None:
        said["model"] = "linear, Gaussian noise of unknown size at each node"
    elif noise is None and getattr(scored, "noise_variance", 0) is None:
        said["noise"] = "of unknown size at each node, learnt"
    if prior is None:
        said["prior"] = "erdos-renyi: all edges alike, about two a node"
    if method is None:
        said["method"] = (
            "auto: MCMC over graphs until the edge probabilities are precise (DiBS where evidence has no closed form)"
        )
    if not data.intervened.any():
        said["rows"] = "all observed, none from an intervention"
    said |= _about_columns(data)
    graph_prior = _built("prior", prior or "erdos-renyi", as_prior, dict(prior_settings or {}))
    return Assumed(data, scored, graph_prior, method or "auto", said)


def in_standard_units(data: Dataset) -> Dataset:
    """Checked, standardised and rounded."""
    if data.observations == 2:
        raise InputError("the table has 2 rows: standardised columns would all look alike, give more rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # scales will not matter, and the rest is said again later
        check_for_inference(data)
    return data.standardised().rounded()


def _about_columns(data: Dataset) -> dict[str, str]:
    values = data.values
    two_valued = ((values == values.min(axis=0)) | (values == values.max(axis=0))).all(axis=0)
    two = [printable(name) for name, is_two in zip(data.names, two_valued) if is_two]
    if not two or data.observations <= 2:
        return {}
    shown = ", ".join(f"'{name}'" for name in two[:3]) + (", …" if len(two) > 3 else "")
    return {"columns": f"two values only, treated as numbers: {shown}"}


def _model(model: str | Model | None, noise: float | None, settings: dict[str, Any]) -> Model:
    if isinstance(model, Model):
        if noise is not None or settings:
            raise InputError("noise and settings go into the model object itself")
        return model
    name = model or "linear"
    kind = MODELS.get(name) if isinstance(name, str) else None
    if kind is not None and "noise_variance" in {f.name for f in fields(kind)}:  # type: ignore[arg-type]
        settings.setdefault("noise_variance", None if noise is None else positive("noise", noise))
    elif noise is not None and kind is not None:
        raise InputError(f"noise={noise!r}: the model {name!r} integrates its noise out, leave this option out")
    return _built("model", name, as_model, settings)


def _built(what: str, name: Any, default: Any, settings: dict[str, Any]) -> Any:
    """The named class with these settings, or an error that names the setting."""
    if not settings:
        return default(name)
    kind = type(default(name))
    own = [f.name for f in fields(kind)]
    for setting in settings:
        if setting not in own:
            raise InputError(f"the {what} {kind.name!r} has no setting {setting!r}: {nearest(setting, own)}")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return replace(default(name), **values)
