"""A task: one run of one method on one data set, as plain data whose identity fixes every random number."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Task:
    """What is measured (`kind`, a name in `dagpost.studies.measures`), on which data, and what is run on them.

    `data` and `run` hold nothing but what JSON can hold. The data set depends on `data` alone, so that every method
    sees the same one; the method's random numbers depend on all of it.

    >>> one = Task("synthetic", {"nodes": 20, "set": 3}, {"method": "mc3"})
    >>> two = Task("synthetic", {"set": 3, "nodes": 20}, {"method": "auto"})
    >>> one.data_seed == two.data_seed, one.seed == two.seed
    (True, False)
    """

    kind: str
    data: Mapping[str, Any]
    run: Mapping[str, Any]

    @property
    def identity(self) -> str:
        """The task in words; two tasks with the same words are the same task."""
        return words(self.as_dict())

    @property
    def key(self) -> str:
        """A name for a file: a hash of the identity."""
        return hashlib.sha256(self.identity.encode()).hexdigest()[:24]

    @property
    def seed(self) -> int:
        """Of the method."""
        return _seed(self.identity)

    @property
    def data_seed(self) -> int:
        """Of the data."""
        return _seed(words(dict(self.data)))

    @property
    def labels(self) -> dict[str, Any]:
        """Data and run in one; what tables are grouped by and `--only` picks from."""
        return {**self.data, **self.run}

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "data": dict(self.data), "run": dict(self.run)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __str__(self) -> str:
        return " ".join(f"{name}={_plain(value)}" for name, value in self.labels.items())


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def words(value: Any) -> str:
    """The value in JSON, the same whatever the order of names."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _seed(text: str) -> int:
    """31 bits, which every generator in use takes."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1
