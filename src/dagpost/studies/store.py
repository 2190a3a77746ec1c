"""The folder of results: a file for each finished task, shared by all studies, and tables for each study."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagpost._util.atomic import write_atomically
from dagpost.errors import InputError, printable
from dagpost.studies.task import Task

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
