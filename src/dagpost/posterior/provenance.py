"""Where a posterior comes from: the table behind it, its hash and units, and the options of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dagpost.data import Dataset, as_dataset
from dagpost.data.markers import own_markers
from dagpost.errors import InputError, nearest, printable
from dagpost.models import Perturbed, perturbed
from dagpost.posterior.records import Provenance
from dagpost.posterior.sample import GraphSample, Sample


def with_provenance(post: Sample, data: Dataset, provenance: Provenance) -> Sample:
    """The posterior with its data at hand, and a record of them and of the options."""
    scaling = data.scaling
    categorical = bool(data.is_categorical.any())
    provenance = replace(
        provenance,
        kinds=list(data.kinds) if categorical else None,
        levels=[list(levels) for levels in data.levels] if categorical else None,
        lags=data.lags or None,
        series=None if data.series is None else data.series.column,
        missing={n: int(c) for n, c in zip(data.names, data.is_missing.sum(axis=0)) if c} or None,
        missing_values=own_markers(data.markers) or None,
        conditions=None if data.conditions is None else data.conditions.column,
        rows=data.observations,
        data_hash=data.fingerprint,
        scaling=None if scaling is None else {"mean": scaling.mean.tolist(), "scale": scaling.scale.tolist()},
        options={name: _plain(value) for name, value in provenance.options.items()},
    )
    assumptions = dict(post.record.assumptions)
    if data.notes:
        assumptions["table"] = "; ".join(data.notes)
    return replace(post, data=data, record=replace(post.record, provenance=provenance, assumptions=assumptions))


def _plain(value: Any) -> Any:
    """The value as it is if a file can hold it, else its text."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else repr(value)


def aligned(data: Dataset, post: GraphSample) -> Dataset:
    """The data with columns and levels as the posterior has them; data without names go by position."""
    names = post.names
    if data.nodes != len(names):
        raise InputError(f"the data have {data.nodes} columns, the posterior {len(names)} nodes")
    if data.names == names or data.names == tuple(f"x{j}" for j in range(data.nodes)):
        return data.with_levels(post.levels)
    missing = [n for n in names if n not in data.names]
    if missing:
        raise InputError(f"the data have no column '{printable(missing[0])}': {nearest(missing[0], data.names)}")
    return data.columns(names).with_levels(post.levels)


def in_time(data: Any, post: GraphSample) -> dict[str, Any]:
    """The options that put a table in slices as that of the fit was; none for one that has its past, or needs none."""
    source = post.record.provenance
    return {"lags": source.lags, "series": source.series} if source.lags and not getattr(data, "lags", 0) else {}


def with_data(post: Sample, data: Any, interventions: Any = None, conditions: Any = None) -> Sample:
    """The posterior with its data at hand again, once it is clear that they are the ones it was fitted to."""
    source = post.record.provenance
    if conditions is None and getattr(data, "conditions", None) is None:
        conditions = source.conditions
    keep: dict[str, Any] = {"missing": "keep"} if source.missing else {}
    options = {"conditions": conditions, "keep": post.names, **keep, **in_time(data, post)}
    if not isinstance(data, Dataset):
        options["missing_values"] = source.missing_values
    table = as_dataset(data, interventions=interventions, **options)
    table = replace(aligned(table, post), names=post.names)
    if isinstance(post.model, Perturbed):
        table = perturbed(post.model.base, post.model.targets, table)[1]
    expected = source.data_hash
    candidates = [table]
    if source.scaling is not None and table.scaling is None:  # it was fitted to standardised data
        scaled = table.standardised()
        candidates += [scaled, scaled.rounded()]
    for candidate in candidates:
        if expected is None or candidate.fingerprint == expected:
            return replace(post, data=candidate)
    raise InputError(
        "these are not the data that the posterior was fitted to: give the same rows, columns, standardising, "
        "interventions and conditions"
    )
