"""From finished tasks to what is committed of a study: table.csv, table.md, figure.png; provenance.json, tasks.csv."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from dagpost.studies.figures import drawn, has_matplotlib
from dagpost.studies.provenance import command, gathered, of_each
from dagpost.studies.store import Store
from dagpost.studies.study import EXTRAS, Scale, Study
from dagpost.studies.tables import as_csv, markdown, tidy

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
