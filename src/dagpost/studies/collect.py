"""From finished tasks to what is committed of a study: table.csv, table.md, figure.png; provenance.json, tasks.csv.

Committed tables back to finished tasks: on a fresh clone a study goes on where it was when it was committed.

`collect` writes the rows of all tasks into table.csv, how long each took into tasks.csv, and with what into
provenance.json; that is all there is of a result.
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
from dagpost.studies.figures import drawn
from dagpost.studies.provenance import WITH, command, gathered, of_each
from dagpost.studies.study import EXTRAS, Scale, Study
from dagpost.studies.tables import as_csv, markdown, tidy
from dagpost.studies.task import TASKS, Store, Task

TABLE, MARKDOWN, FIGURE, PROVENANCE, EACH = "table.csv", "table.md", "figure.png", "provenance.json", "tasks.csv"


@dataclass(frozen=True)
class Collected:
    """How many tasks the table rests on, of how many, and what was written where."""

    finished: int
    tasks: int
    folder: Path
    files: tuple[str, ...]


def folder_of(study: Study, scale: Scale) -> str:
    """Smoke tests have a folder of their own: their tables mean nothing."""
    return f"{study.name}-smoke" if scale.smoke else study.name


def with_finished_extras(study: Study, scale: Scale, store: Store) -> Scale:
    """Who runs a study again without dibs-lib does not lose its rows."""
    extras = (task for task in study.tasks(replace(scale, include=EXTRAS)) if task.run.get("method") in EXTRAS)
    shown = {task.run["method"] for task in extras if store.get(task) is not None}.union(scale.include)
    return replace(scale, include=tuple(extra for extra in EXTRAS if extra in shown))


def collect(study: Study, scale: Scale, store: Store) -> Collected:
    """Write the tables of a study from the tasks that are finished; the same tasks give the same bytes."""
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
            write(FIGURE, drawn(study, rows))
        record = {
            "study": study.name,
            "command": command(study.name, scale.seeds, scale.smoke, scale.include),
            "seeds": "of each task from its own words (dagpost.studies.task); data sets or restarts 0 to "
            f"{len(scale.replicates) - 1}",
            "replicates": len(scale.replicates),
            "tasks": len(tasks),
            "finished": len(results),
            **gathered(results),
        }
        write(PROVENANCE, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        write(EACH, as_csv(list(of_each(results))))
    return Collected(len(results), len(tasks), store.folder / name, tuple(files))


def unpack(path: str | os.PathLike[str]) -> int:
    """Give every task that the tables of this folder hold its own file again; returns how many. All at once, and only
    where no task has been kept yet: whoever is interrupted begins anew, and what somebody took away stays away."""
    folder = Path(path)
    found = {} if (folder / TASKS).exists() else _finished(folder)
    if found:
        with TemporaryDirectory(dir=folder) as aside:
            store = Store.at(aside)
            for task, result in found.items():
                store.put(task, result)
            (store.folder / TASKS).rename(folder / TASKS)
    return len(found)


def _finished(folder: Path) -> dict[Task, dict[str, Any]]:
    return {task: result for s in STUDIES.values() for task, result in finished_in(folder / s.name, s)}


def finished_in(folder: Path, study: Study) -> Iterator[tuple[Task, dict[str, Any]]]:
    """The tasks that the study's files tell of, with their results; none where there are no files."""
    try:
        record = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        table, each = read_rows(folder / TABLE), {line.pop("task"): line for line in read_rows(folder / EACH)}
    except (FileNotFoundError, NotADirectoryError):
        return
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in table:
        rows.setdefault(line.pop("task"), []).append(line)
    for task in study.tasks(Scale(record["replicates"], include=EXTRAS)):
        if task.key in each:
            told = each[task.key]
            made_with = {name: _uncounted(record[name][told[name]]) for name in WITH}
            yield task, {"rows": rows.get(task.key, []), "seconds": told["seconds"], **made_with}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a CSV file; a name without a value is left out."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: _value(name, text) for name, text in line.items() if text} for line in csv.DictReader(file)]


def _uncounted(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "tasks"}


def _value(name: str, text: str) -> Any:
    """What was written as this text; the key of a task may look like a number, and is none.

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
