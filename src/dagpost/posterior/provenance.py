"""Where a posterior comes from: the data behind it, their hash and units, and the options of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from dagpost.data import Dataset, as_dataset
from dagpost.errors import InputError, nearest, printable
from dagpost.posterior.records import Provenance
from dagpost.posterior.sample import GraphSample

Sample = TypeVar("Sample", bound="GraphSample")


def with_provenance(post: Sample, data: Dataset, provenance: Provenance) -> Sample:
    """The posterior with its data at hand, and a record of them and of the options."""
    scaling = data.scaling
    provenance = replace(
        provenance,
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


def aligned(data: Dataset, names: tuple[str, ...]) -> Dataset:
    """The data with their columns in this order of names; data without names go by position."""
    if data.nodes != len(names):
        raise InputError(f"the data have {data.nodes} columns, the posterior {len(names)} nodes")
    if data.names == names or data.names == tuple(f"x{j}" for j in range(data.nodes)):
        return data
    missing = [n for n in names if n not in data.names]
    if missing:
        raise InputError(f"the data have no column '{printable(missing[0])}': {nearest(missing[0], data.names)}")
    return data.columns(names)


def with_data(post: Sample, data: Any, interventions: Any = None) -> Sample:
    """The posterior with its data at hand again, once it is clear that they are the ones it was fitted to."""
    table = replace(aligned(as_dataset(data, interventions=interventions), post.names), names=post.names)
    expected = post.record.provenance.data_hash
    candidates = [table]
    if post.record.provenance.scaling is not None and table.scaling is None:  # it was fitted to standardised data
        scaled = table.standardised()
        candidates += [scaled, scaled.rounded()]
    for candidate in candidates:
        if expected is None or candidate.fingerprint == expected:
            return replace(post, data=candidate)
    raise InputError(
        "these are not the data that the posterior was fitted to: give the same rows, columns, standardising and "
        "interventions"
    )
