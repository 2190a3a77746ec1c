"""Tasks, the store of their results, and what these were computed with.

A task is one run of one method on one data set, as plain data whose content fixes every random number. The store is a
folder with a file for each finished task, shared by all studies, and a folder of tables for each study. Results record
versions, hardware and times, without names of machines or people.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dagpost._util.environment import available_cores
from dagpost._util.files import write_atomically
from dagpost.errors import InputError, printable


@dataclass(frozen=True, eq=False)
class Task:
    """One run of one method on one data set.

    The data set depends on `data` alone, so that every method gets the same one; the random numbers of the method
    depend on the whole task.

    Parameters
    ----------
    kind
        What is measured: a name in `dagpost.studies.experiments.MEASURES`.
    data
        Which data, in values that JSON can hold.
    run
        Method, model and options, in values that JSON can hold.

    Examples
    --------

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
        """Canonical JSON of the task; tasks with the same identity are equal."""
        return canonical_json(self.as_dict())

    @property
    def key(self) -> str:
        """Hash of the identity, the name of its result file."""
        return hashlib.sha256(self.identity.encode()).hexdigest()[:24]

    @property
    def seed(self) -> int:
        """Random seed of the method."""
        return _seed(self.identity)

    @property
    def data_seed(self) -> int:
        """Random seed of the data."""
        return _seed(canonical_json(dict(self.data)))

    @property
    def labels(self) -> dict[str, Any]:
        """Data and run merged: the values that tables group by and `--only` selects by."""
        return {**self.data, **self.run}

    def as_dict(self) -> dict[str, Any]:
        """Return the task as plain data; `Task(**d)` restores it."""
        return {"kind": self.kind, "data": dict(self.data), "run": dict(self.run)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __str__(self) -> str:
        return " ".join(f"{name}={_plain(value)}" for name, value in self.labels.items())


def _plain(value: Any) -> str:
    """Return a label value as short text."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    """Return the value as JSON that does not depend on the order of names."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _seed(text: str) -> int:
    """Return a seed of 31 bits, which every random generator in use accepts."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1


TASKS = "tasks"
"""Folder of result files inside the store."""


@dataclass(frozen=True)
class Store:
    """Folder of results. Files are written atomically, so that a crash loses only tasks that were running."""

    folder: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Store:
        """Return the store at this path, created if necessary; raise an error if it cannot be used."""
        folder = Path(path)
        try:
            (folder / TASKS).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise InputError(f"{printable(folder)} is a file: give a folder with --out") from None
        except OSError as error:
            raise InputError(
                f"{printable(folder)}: cannot be created ({error.strerror}): give another folder with --out"
            ) from None
        if not os.access(folder / TASKS, os.W_OK | os.X_OK):
            raise InputError(f"{printable(folder)}: cannot be written to: give another folder with --out")
        return cls(folder)

    def path(self, task: Task) -> Path:
        """Return the path of the result file of a task."""
        return self.folder / TASKS / f"{task.key}.json"

    def get(self, task: Task) -> dict[str, Any] | None:
        """Return the result of a finished task, None if it is not finished; a damaged file counts as not finished."""
        try:
            result = json.loads(self.path(task).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        usable = isinstance(result, dict) and result.get("task") == task.as_dict() and "rows" in result
        return result if usable else None

    def put(self, task: Task, result: dict[str, Any]) -> None:
        """Write the result file of a task."""
        text = json.dumps({"task": task.as_dict(), **result}, indent=1)
        write_atomically(self.path(task), text.encode(), overwrite=True)

    def finished(self, tasks: Iterable[Task]) -> set[str]:
        """Return the keys of the tasks that are finished."""
        return {task.key for task in tasks if self.get(task) is not None}

    def write(self, study: str, name: str, content: str | bytes) -> Path:
        """Write a file into the folder of a study, replacing an existing one, and return its path."""
        folder = self.folder / study
        folder.mkdir(exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        return write_atomically(folder / name, data, overwrite=True)


ENVIRONMENT = ("versions", "hardware")
"""Keys of a result that hold what it was computed with."""


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions of dagpost, Python and the libraries that results depend on."""
    from dagpost.inference.checkpoints import versions as library_versions

    return {**library_versions(), "python": platform.python_version()}


@lru_cache(maxsize=1)
def hardware() -> dict[str, Any]:
    """Return the processor, the cores available to this process, the memory, and the device that JAX computes on."""
    import jax

    device = jax.devices()[0]
    return {
        "processor": _processor(),
        "cores": available_cores(),
        "memory_gib": _memory(),
        "device": device.device_kind if device.platform != "cpu" else "cpu",
    }


def _processor() -> str:
    """Return the model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> int | None:
    """Return the memory of the machine in GiB; None where it is unknown."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError, AttributeError):
        return None


def command(study: str, seeds: int, smoke: bool, include: Iterable[str] = ()) -> str:
    """Return the command that reproduces the table; output folder and number of workers do not affect it."""
    words = ["dagpost", "study", study, "--seeds", str(seeds)]
    words += ["--smoke"] * smoke + [word for name in include for word in ("--include", name)]
    return shlex.join(words)


def aggregate(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the versions and the hardware that occur, with their numbers of tasks, and the mean time by method."""
    seconds: dict[str, list[float]] = {}
    for result in results:
        seconds.setdefault(result["task"]["run"].get("method", ""), []).append(result["seconds"])
    return {
        **{name: [{**record, "tasks": n} for record, n in _count_records(results, name)] for name in ENVIRONMENT},
        "hours_of_computing": round(sum(map(sum, seconds.values())) / 3600, 2),
        "mean_seconds_of_a_task": {name: round(sum(s) / len(s), 1) for name, s in sorted(seconds.items())},
    }


def task_records(results: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the seconds of each task, and the indices of its versions and hardware in the lists of `aggregate`."""
    kinds = {name: [record for record, _ in _count_records(results, name)] for name in ENVIRONMENT}
    for result in results:
        indices = {name: records.index(result[name]) for name, records in kinds.items()}
        yield {"task": Task(**result["task"]).key, "seconds": result["seconds"], **indices}


def _count_records(results: Sequence[Mapping[str, Any]], name: str) -> list[tuple[dict[str, Any], int]]:
    """Return each distinct record of this name, the most frequent first, with its number of occurrences."""
    records = {repr(result[name]): result[name] for result in results}
    return [(records[r], n) for r, n in Counter(repr(result[name]) for result in results).most_common()]
