"""Conversion between finished tasks and the files of a study that are committed.

`collect` writes the rows of all finished tasks into table.csv, how long each took into tasks.csv, and versions and
hardware into provenance.json; table.md and figure.png are made from the rows. `unpack` restores the tasks from these
files, so that a study in a fresh clone continues where it was committed.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dagpost.plot.canvas import has_matplotlib
from dagpost.studies.experiments import STUDIES
from dagpost.studies.figures import draw_figure
from dagpost.studies.provenance import ENVIRONMENT, aggregate, command, task_records
from dagpost.studies.study import EXTRAS, Scale, Study
from dagpost.studies.tables import as_csv, markdown, tidy
from dagpost.studies.task import TASKS, Store, Task

TABLE, MARKDOWN, FIGURE, PROVENANCE, TASK_TABLE = "table.csv", "table.md", "figure.png", "provenance.json", "tasks.csv"


@dataclass(frozen=True)
class Collected:
    """What `collect` wrote.

    Attributes
    ----------
    finished, tasks
        Number of tasks in the table, and of all tasks.
    folder, files
        Where the files are, and their names.
    """

    finished: int
    tasks: int
    folder: Path
    files: tuple[str, ...]


def folder_of(study: Study, scale: Scale) -> str:
    """Return the folder name of a study; smoke tests have their own, since their numbers mean nothing."""
    return f"{study.name}-smoke" if scale.smoke else study.name


def with_finished_extras(study: Study, scale: Scale, store: Store) -> Scale:
    """Return the scale with the extra methods that have results, so that collecting without them keeps their rows."""
    extras = (task for task in study.tasks(replace(scale, include=EXTRAS)) if task.run.get("method") in EXTRAS)
    finished = {task.run["method"] for task in extras if store.get(task) is not None}.union(scale.include)
    return replace(scale, include=tuple(extra for extra in EXTRAS if extra in finished))


def collect(study: Study, scale: Scale, store: Store) -> Collected:
    """Write the files of a study from its finished tasks; the same tasks give the same bytes.

    Parameters
    ----------
    study, scale
        What to collect; extra methods that have results are included.
    store
        Folder of results.

    Returns
    -------
    Collected
        Counts of tasks and files; no file is written where no task is finished.
    """
    scale = with_finished_extras(study, scale, store)
    tasks = study.tasks(scale)
    results = [result for task in tasks if (result := store.get(task)) is not None]
    name, files = folder_of(study, scale), []

    def write(file: str, content: str | bytes) -> None:
        store.write(name, file, content)
        files.append(file)

    if results:
        rows = tidy(results)
        write(TABLE, as_csv(rows))
        write(MARKDOWN, markdown(study, rows))
        if has_matplotlib():
            write(FIGURE, draw_figure(study, rows))
        record = {
            "study": study.name,
            "command": command(study.name, scale.seeds, scale.smoke, scale.include),
            "seeds": "of each task from its own words (dagpost.studies.task); data sets or restarts 0 to "
            f"{len(scale.replicates) - 1}",
            "replicates": len(scale.replicates),
            "tasks": len(tasks),
            "finished": len(results),
            **aggregate(results),
        }
        write(PROVENANCE, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        write(TASK_TABLE, as_csv(list(task_records(results))))
    return Collected(len(results), len(tasks), store.folder / name, tuple(files))


def unpack(path: str | os.PathLike[str]) -> int:
    """Restore the result files of all tasks in the tables of a folder of results.

    Does nothing where result files exist already, so that deleted ones stay deleted. The files appear all at once: an
    interrupted call leaves none.

    Parameters
    ----------
    path
        Folder of results.

    Returns
    -------
    int
        Number of tasks restored.
    """
    folder = Path(path)
    results = {} if (folder / TASKS).exists() else _read_all_finished(folder)
    if results:
        with TemporaryDirectory(dir=folder) as temporary:
            store = Store.at(temporary)
            for task, result in results.items():
                store.put(task, result)
            (store.folder / TASKS).rename(folder / TASKS)
    return len(results)


def _read_all_finished(folder: Path) -> dict[Task, dict[str, Any]]:
    """Return the finished tasks of all studies in a folder of results."""
    return {task: result for s in STUDIES.values() for task, result in read_finished(folder / s.name, s)}


def read_finished(folder: Path, study: Study) -> Iterator[tuple[Task, dict[str, Any]]]:
    """Yield the tasks in the files of a study, with their results; none where there are no files."""
    try:
        record = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        table, each = read_rows(folder / TABLE), {line.pop("task"): line for line in read_rows(folder / TASK_TABLE)}
    except (FileNotFoundError, NotADirectoryError):
        return
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in table:
        rows.setdefault(line.pop("task"), []).append(line)
    for task in study.tasks(Scale(record["replicates"], include=EXTRAS)):
        if task.key in each:
            own = each[task.key]
            environment = {name: _without_count(record[name][own[name]]) for name in ENVIRONMENT}
            yield task, {"rows": rows.get(task.key, []), "seconds": own["seconds"], **environment}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV file; a column without a value is left out of its row."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: _value(name, text) for name, text in line.items() if text} for line in csv.DictReader(file)]


def _without_count(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of `aggregate` without its number of tasks."""
    return {name: value for name, value in record.items() if name != "tasks"}


def _value(name: str, text: str) -> Any:
    """Return the value of a CSV cell; the key of a task stays text, though it may look like a number.

    >>> [_value("nodes", "12"), _value("shd", "0.5"), _value("final", "True"), _value("task", "12e4")]
    [12, 0.5, True, '12e4']
    """
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float) if name != "task" else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text
