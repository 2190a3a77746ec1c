"""Conversion between finished tasks and the files of a study that are committed, and the figure among them.

`collect` writes the rows of all finished tasks into table.csv, how long each took into tasks.csv, and versions and
hardware into provenance.json; table.md and figure.png are made from the rows. `unpack` restores the tasks from these
files, so that a study in a fresh clone continues where it was committed.

The figure has boxes or lines, with the paper's numbers, where there are any, as open diamonds.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dagpost.plot.canvas import has_matplotlib
from dagpost.studies.experiments import STUDIES
from dagpost.studies.study import EXTRAS, Layout, Scale, Study
from dagpost.studies.tables import HEADINGS, Line, Row, as_csv, display_name, markdown, sort_key, summary, tidy
from dagpost.studies.task import ENVIRONMENT, TASKS, Store, Task, aggregate, command, task_records

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


def finished_keys(path: str | os.PathLike[str], tasks: Iterable[Task]) -> set[str]:
    """Return the keys of the tasks that are finished, in result files or in tables of a clone; writes nothing.

    Parameters
    ----------
    path
        Folder of results.
    tasks
        Tasks to look for.

    Returns
    -------
    set of str
        Their keys.
    """
    folder = Path(path)
    if (folder / TASKS).exists():
        return Store(folder).finished(tasks)
    return {task.key for task in tasks} & {task.key for task in _read_all_finished(folder)}


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


WIDE = 100.0
"""Ratio of the largest to the smallest value from which on boxes have a logarithmic axis."""


def draw_figure(study: Study, rows: Iterable[Row]) -> bytes:
    """Return the figure as PNG: a row of panels for each value of the layout's `panels`, a column for each metric."""
    from matplotlib.figure import Figure

    layout, lines = study.layout, summary(study, rows)
    values = list(dict.fromkeys(line.names[layout.panels] for line in lines)) if layout.panels else [None]
    metrics = list(layout.metrics)
    height = max(2.4, 0.22 * len({series(layout, line) for line in lines}) + 0.8)
    figure = Figure(figsize=(max(7.0, 2.9 * len(metrics)), max(3.0, height) * len(values)), layout="constrained")
    axes = figure.subplots(len(values), len(metrics), squeeze=False)
    draw = draw_boxes if layout.figure == "boxes" else draw_lines
    for panels, value in zip(axes, values):
        for number, (panel, metric) in enumerate(zip(panels, metrics)):
            panel_lines = [
                line
                for line in lines
                if line.metric == metric and (layout.panels is None or line.names[layout.panels] == value)
            ]
            draw(panel, layout, panel_lines, labelled=number == 0)
            panel.set_title(layout.metrics[metric], fontsize=9)
            panel.tick_params(labelsize=7)
        if layout.panels:
            panels[0].set_ylabel(display_name(layout.panels, value), fontsize=9)
    figure.suptitle(study.title, fontsize=10)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()


def series(layout: Layout, line: Line) -> str:
    """Return the label that distinguishes a line or box within its panel."""
    inside = {name: value for name, value in line.names.items() if name not in (layout.panels, layout.x)}
    if layout.figure == "boxes":
        inside = {name: value for name, value in line.names.items() if name != layout.panels}
    words = [
        f"{HEADINGS.get(name, name)} = {display_name(name, value)}"
        if isinstance(value, int | float)
        else display_name(name, value)
        for name, value in inside.items()
    ]
    return ", ".join(words)


def draw_boxes(panel: Any, layout: Layout, lines: list[Line], labelled: bool) -> None:
    """Draw a horizontal box for each line; `labelled` names them on the axis."""
    panel.boxplot([line.values for line in lines], orientation="horizontal", widths=0.6, flierprops={"markersize": 2})
    names = [series(layout, line) for line in lines] if labelled else [""] * len(lines)
    panel.set_yticks(range(1, len(lines) + 1), names)
    panel.invert_yaxis()
    values = [value for line in lines for value in line.values]
    if values and 0 < WIDE * min(values) < max(values):
        panel.set_xscale("log")
    theirs = [(k + 1, *line.paper) for k, line in enumerate(lines) if line.paper[0] is not None]
    if theirs:
        positions, means, deviations = zip(*theirs)
        panel.errorbar(
            means, positions, xerr=[sd or 0.0 for sd in deviations], fmt="D", markerfacecolor="none", color="tab:red",
            markersize=4, linewidth=1, label="paper",
        )  # fmt: skip
        panel.legend(fontsize=6)


def draw_lines(panel: Any, layout: Layout, lines: list[Line], labelled: bool) -> None:
    """Draw means with standard deviations along the layout's `x`; `labelled` adds the legend."""
    column = layout.x
    assert column is not None
    ticks = sorted(dict.fromkeys(line.names[column] for line in lines), key=lambda value: sort_key(column, value))
    for k, name in enumerate(dict.fromkeys(series(layout, line) for line in lines)):
        part = [line for line in lines if series(layout, line) == name and line.mean is not None]
        part.sort(key=lambda line: ticks.index(line.names[column]))
        positions = [ticks.index(line.names[column]) for line in part]
        panel.errorbar(
            positions, [line.mean for line in part], yerr=[line.sd or 0.0 for line in part], fmt="o-", markersize=3,
            linewidth=1, elinewidth=0.6, color=f"C{k % 10}", label=name,
        )  # fmt: skip
        theirs = [(x, line.paper[0]) for x, line in zip(positions, part) if line.paper[0] is not None]
        if theirs:
            panel.plot(
                *zip(*theirs), marker="D", markerfacecolor="none", markersize=4, linestyle="--", linewidth=0.8,
                color=f"C{k % 10}", label=f"{name}, paper",
            )  # fmt: skip
    panel.set_xticks(range(len(ticks)), [display_name(column, v) for v in ticks], rotation=30 if len(ticks) > 6 else 0)
    panel.set_xlabel(HEADINGS.get(column, column), fontsize=8)
    if layout.logarithmic:
        panel.set_yscale("log")
    if labelled:
        panel.legend(fontsize=5)
