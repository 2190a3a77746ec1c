"""A task: one run of one method on one data set, as plain data whose identity fixes every random number.

The folder of results: a file for each finished task, shared by all studies, and tables for each study.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagpost._util.files import write_atomically
from dagpost.errors import InputError, printable


@dataclass(frozen=True, eq=False)
class Task:
    """What is measured (`kind`, a name in `dagpost.studies.experiments`), on which data, and what is run on them.

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


TASKS = "tasks"


@dataclass(frozen=True)
class Store:
    """Where results are kept. A task's file is there as a whole or not at all; so a crash loses what was running."""

    folder: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Store:
        """The folder, made if need be, or an error that says why it cannot be used."""
        folder = Path(path)
        try:
            (folder / TASKS).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise InputError(f"{printable(folder)} is a file: give a folder with --out") from None
        except OSError as error:
            raise InputError(
                f"{printable(folder)}: cannot be made ({error.strerror}): give another with --out"
            ) from None
        if not os.access(folder / TASKS, os.W_OK | os.X_OK):
            raise InputError(f"{printable(folder)}: cannot be written to: give another with --out")
        return cls(folder)

    def path(self, task: Task) -> Path:
        return self.folder / TASKS / f"{task.key}.json"

    def get(self, task: Task) -> dict[str, Any] | None:
        """The result of a finished task, None for one that is not; a damaged file counts as not finished."""
        try:
            found = json.loads(self.path(task).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        usable = isinstance(found, dict) and found.get("task") == task.as_dict() and "rows" in found
        return found if usable else None

    def put(self, task: Task, result: dict[str, Any]) -> None:
        text = json.dumps({"task": task.as_dict(), **result}, indent=1)
        write_atomically(self.path(task), text.encode(), overwrite=True)

    def finished(self, tasks: Iterable[Task]) -> set[str]:
        """Keys of the tasks that are done."""
        return {task.key for task in tasks if self.get(task) is not None}

    def write(self, study: str, name: str, content: str | bytes) -> Path:
        """A file of a study, in place of what was there."""
        folder = self.folder / study
        folder.mkdir(exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        return write_atomically(folder / name, data, overwrite=True)
