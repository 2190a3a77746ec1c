"""Targets of experiments: what is known beforehand of which condition changes the mechanism of which node.

Condition k changes the mechanism of node j with probability `p_kj`, independently of all others. For node j that is a
prior over sets T of conditions,

    p_j(T) = prod_(k in T) p_kj prod_(k not in T) (1 - p_kj),

restricted to sets of at most `most` uncertain conditions, and normalised, where `most` is given.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from dagpost.data import Dataset
from dagpost.data.conditions import check_conditions, conditions_of_mask
from dagpost.data.slices import past_columns
from dagpost.errors import DataWarning, InputError, nearest, printable, whole_number

CHANGES = ("soft", "hard")
MOST_SETS = 4096
"""Most different sets of conditions that are summed over: 12 uncertain conditions, if all subsets of them count."""


@dataclass(frozen=True)
class Targets:
    """What the conditions of a table may do to its nodes, and how probable that is.

    Interventions that the table records are known targets: their probability is 1.

    Parameters
    ----------
    change
        What a condition does to a mechanism. "soft": the node keeps its parents, with new parameters. "hard": the node
        no longer depends on its parents, and has a distribution of its own.
    probability
        Prior probability that a condition changes the mechanism of a node; 0 if no targets but the known ones exist.
    probabilities
        Other probabilities by condition and node, such as `{"U0126": {"pmek": 0.9}}`.
    observational
        Condition that changes nothing, besides rows without a condition.
    most
        Most uncertain conditions that may change one mechanism; None for all. Needed for more than 12 conditions.

    Examples
    --------
    >>> Targets(probabilities={"drug": {"x": 0.5}}).probabilities
    (('drug', 'x', 0.5),)
    """

    change: Literal["soft", "hard"] = "soft"
    probability: float = 0.1
    probabilities: Any = ()
    observational: str | None = None
    most: int | None = None

    def __post_init__(self):
        if self.change not in CHANGES:
            raise InputError(f"change={self.change!r}: {nearest(str(self.change), CHANGES)}")
        _check_probability("probability", self.probability)
        given = self.probabilities
        if isinstance(given, Mapping):
            for condition, by_node in given.items():
                if not isinstance(by_node, Mapping):
                    raise InputError(
                        f"probabilities of condition '{printable(condition)}' are {by_node!r:.40}: give them by node, "
                        '{"node": 0.5}'
                    )
            given = ((c, node, p) for c, by_node in given.items() for node, p in by_node.items())
        triples = tuple((str(condition), str(node), p) for condition, node, p in given or ())
        for condition, node, p in triples:
            _check_probability(f"probability of '{printable(condition)}' for '{printable(node)}'", p)
        object.__setattr__(self, "probabilities", triples)
        if self.most is not None:
            whole_number("most", self.most, least=1)

    def prior(self, data: Dataset) -> Float[np.ndarray, "k d"]:
        """Return the prior probability that each condition changes the mechanism of each node."""
        conditions = data.conditions
        assert conditions is not None
        out = np.full((len(conditions.labels), data.nodes), float(self.probability))
        out[:, past_columns(data.names) & bool(data.lags)] = 0.0  # nothing leads into the past
        if self.observational is not None:
            out[conditions.index(self.observational)] = 0.0
        for condition, node, p in self.probabilities:
            if node not in data.names:
                raise InputError(f"condition '{printable(condition)}' has a probability for an unknown node: "
                                 f"{nearest(node, data.names)}")  # fmt: skip
            out[conditions.index(condition), data.names.index(node)] = p
        return np.where(self.known(data), 1.0, out)

    def known(self, data: Dataset) -> Bool[np.ndarray, "k d"]:
        """Return the known targets of each condition: the interventions that its rows record."""
        conditions = data.conditions
        assert conditions is not None
        out = np.zeros((len(conditions.labels), data.nodes), dtype=np.bool_)
        for k in range(-1, len(conditions.labels)):
            rows = np.flatnonzero(conditions.of_row == k)
            mask = data.intervened[rows]
            label = conditions.labels[k] if k >= 0 else "none"
            if len(rows) and (mask != mask[0]).any():
                row = int(rows[(mask != mask[0]).any(axis=1)][0]) + 1
                raise InputError(
                    f"condition '{printable(label)}' has rows with different known targets, row {row} for one: give "
                    "them conditions of their own"
                )
            if len(rows) and mask[0].any() and (k < 0 or label == self.observational):
                raise InputError(
                    f"row {rows[0] + 1} has a known target, '{printable(data.names[int(mask[0].argmax())])}', but a "
                    "condition in which nothing was done: name its condition"
                )
            if len(rows) and k >= 0:
                out[k] = mask[0]
        return out

    def sets(self, data: Dataset) -> TargetSets:
        """Return the sets of conditions that are possible for some node, with their prior probabilities by node."""
        prior = self.prior(data)
        count = len(prior)
        columns, which = np.unique(prior, axis=1, return_inverse=True)  # nodes with the same prior share their sets
        places: dict[tuple[int, ...], int] = {}
        entries: list[tuple[int, int, float]] = []
        for c, column in enumerate(columns.T):
            certain, doubtful = np.flatnonzero(column == 1), np.flatnonzero((column > 0) & (column < 1))
            largest = len(doubtful) if self.most is None else min(self.most, len(doubtful))
            _check_count(len(doubtful), largest)
            log_odds = np.zeros(count)
            log_odds[doubtful] = np.log(column[doubtful]) - np.log1p(-column[doubtful])
            logs, found = [], []
            for some in chain.from_iterable(combinations(doubtful.tolist(), size) for size in range(largest + 1)):
                logs.append(log_odds[list(some)].sum())
                found.append(places.setdefault(tuple(sorted((*certain.tolist(), *some))), len(places)))
            whole = np.logaddexp.reduce(logs)  # of all subsets it is -sum_k log(1 - p_k)
            entries += [(at, c, log - whole) for at, log in zip(found, logs)]
        members, log_prior = np.zeros((len(places), count), np.bool_), np.full((len(places), columns.shape[1]), -np.inf)
        for some, at in places.items():
            members[at, list(some)] = True
        for at, c, log in entries:
            log_prior[at, c] = log
        return TargetSets(members, log_prior[:, which.reshape(-1)])


class TargetSets(NamedTuple):
    """Sets of conditions that may change the mechanism of a node."""

    members: Bool[np.ndarray, "s k"]
    log_prior: Float[np.ndarray, "s d"]  # -inf for a set that a node cannot have


def _check_probability(name: str, value: Any) -> None:
    """Raise an error unless the value is a probability."""
    if isinstance(value, bool | str) or not np.isscalar(value) or not 0 <= value <= 1:  # type: ignore[operator]
        raise InputError(f"{name}={value!r:.40}: give a number from 0 to 1")


def _check_count(doubtful: int, largest: int) -> None:
    """Raise an error if there are too many sets to sum over."""
    count, term = 0, 1
    for size in range(largest + 1):
        count += term
        term = term * (doubtful - size) // (size + 1)
    if count > MOST_SETS:
        raise InputError(
            f"{doubtful} conditions with uncertain targets are {count:,} sets that may change a node, more than "
            f"{MOST_SETS}: bound how many change one mechanism (most=2, --most-changes 2), say what is known of "
            "some, or join conditions"
        )


def as_targets(targets: Any, data: Dataset) -> tuple[Targets, Dataset] | None:
    """Return what is assumed of targets, and the data with their conditions; None where interventions are perfect.

    Parameters
    ----------
    targets
        A `Targets`, a dict of its fields, "unknown" (the defaults), "known" (no targets but those of the recorded
        interventions, which then are soft), or None: "unknown" if the data have conditions, else nothing.
    data
        The table.
    """
    if targets is None and data.conditions is None:
        return None
    if isinstance(targets, Mapping):
        unknown = [str(name) for name in targets if name not in Targets.__dataclass_fields__]
        if unknown:
            raise InputError(
                f"targets have no setting {unknown[0]!r}: {nearest(unknown[0], Targets.__dataclass_fields__)}"
            )
        targets = Targets(**targets)
    words = {None: Targets(), "unknown": Targets(), "known": Targets(probability=0.0)}
    if not isinstance(targets, Targets):
        if not isinstance(targets, str | None) or targets not in words:
            raise InputError(
                f"targets={targets!r:.40}: {nearest(str(targets), ['unknown', 'known'])}, or dp.Targets(…)"
            )
        targets = words[targets]
    conditions = data.conditions
    if conditions is None:
        if not data.intervened.any():
            raise InputError(
                "targets are asked for, but the table has no conditions: name their column, "
                "conditions=… (--conditions COLUMN)"
            )
        conditions = conditions_of_mask(data.intervened, data.names)
    check_conditions(conditions)
    if targets.observational is None and targets.probability > 0 and (conditions.of_row >= 0).all():
        warnings.warn(
            "every row has a condition that may change mechanisms: what most of them share counts as unchanged, unless "
            "one is named that changes nothing, Targets(observational=…) (--observational LABEL)",
            DataWarning,
            stacklevel=4,
        )
    return targets, replace(data, conditions=conditions)
