"""Names of methods, models and graphs as tables and figures print them.

The paper's own figures, as far as it gives numbers: `published.csv`, copied from its tables and text.

Lorch, Rothfuss, Schölkopf and Krause, DiBS: Differentiable Bayesian Structure Learning, NeurIPS 2021. Results on
simulated networks and the ablations are given as plots alone. Column `where` names the row by columns of our tables;
what the paper calls DiBS is `dibs-paper` there, DiBS+ is `dibs-paper+`. Numbers of edges come from its text.

From the results of tasks to tidy rows, their summary, CSV and Markdown.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

from dagpost.studies.study import Layout, Study
from dagpost.studies.task import Task

AS_PUBLISHED = "cdt, file order (as published)"
"""The permuted consensus graph that the paper's Sachs tables rest on; see `measures/sachs.py`."""

METHODS = {
    "mc3": "MC³",
    "m-mc3": "M-MC³",
    "g-mc3": "G-MC³",
    "bootstrap-pc": "BPC",
    "bootstrap-ges": "BGES",
    "bootstrap-pc*": "BPC*",
    "bootstrap-ges*": "BGES*",
    "dibs-lib": "DiBS (dibs-lib)",
    "dibs-lib+": "DiBS+ (dibs-lib)",
    "dibs-paper": "DiBS (dibs-paper)",
    "dibs-paper+": "DiBS+ (dibs-paper)",
    "dibs": "dibs",
    "dibs+": "dibs+",
    "auto": "auto",
    "exact": "exact",
}
"""In the order in which they are listed. `dibs-paper` is our run with everything as published."""

SCORED = ", cyclic runs scored as published"
"""Ends the name of a method in rows whose means contain the runs without a DAG."""

VALUES = {
    "erdos-renyi": "Erdős–Rényi",
    "scale-free": "scale-free",
    "bge": "BGe",
    "linear": "linear",
    "mlp": "MLP",
    "inner product": "inner product (k = d)",
}

HEADINGS = {
    "method": "method",
    "graphs": "graphs",
    "model": "model",
    "nodes": "d",
    "particles": "M",
    "latent": "k",
    "truth": "scored against",
    "feature": "edges",
    "noise": "noise",
}


def shown(column: str, value: object) -> str:
    """A value of a column as a person reads it."""
    if column == "method":
        name = str(value).removesuffix(SCORED)
        return METHODS.get(name, name) + str(value)[len(name) :]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return VALUES.get(str(value), str(value))


def place(column: str, value: object) -> float:
    """Where a value comes in its column: methods in the order above, numbers by size, the rest as it came."""
    if column == "method":
        name = str(value).removesuffix(SCORED)
        return list(METHODS).index(name) if name in METHODS else len(METHODS)
    return float(value) if isinstance(value, int | float) else 0.0


@dataclass(frozen=True)
class Published:
    """One number of the paper; `sd` is None where it gives none."""

    metric: str
    where: tuple[tuple[str, str], ...]
    mean: float
    sd: float | None

    def is_about(self, names: Mapping[str, Any]) -> bool:
        """Whether a row of ours with these values is the same thing."""
        return all(name in names and _same(names[name], value) for name, value in self.where)


def _same(ours: Any, theirs: str) -> bool:
    return float(theirs) == float(ours) if isinstance(ours, int | float) else str(ours) == theirs


@lru_cache(maxsize=1)
def _all() -> dict[str, tuple[Published, ...]]:
    text = (resources.files("dagpost.studies") / "published.csv").read_text(encoding="utf-8")
    out: dict[str, list[Published]] = {}
    for row in csv.DictReader(text.splitlines()):
        where = tuple((name, value) for name, _, value in (w.partition("=") for w in row["where"].split(";")))
        sd = float(row["sd"]) if row["sd"] else None
        out.setdefault(row["study"], []).append(Published(row["metric"], where, float(row["mean"]), sd))
    return {study: tuple(numbers) for study, numbers in out.items()}


def published(study: str) -> tuple[Published, ...]:
    """What the paper gives in numbers for a study; nothing where it has plots alone."""
    return _all().get(study, ())


Row = dict[str, Any]
DIGITS = 1


def tidy(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One row for each posterior that was measured, in the order of the tasks; columns tell what it was, the first one
    which task."""
    rows = []
    for result in results:
        task = Task(**result["task"])
        plain = {name: value for name, value in task.labels.items() if not isinstance(value, dict | list)}
        rows += [{"task": task.key, **plain, **row} for row in result["rows"]]
    return rows


def as_csv(rows: Sequence[Row]) -> str:
    """Every digit of every number; nothing where a number is not known."""
    columns = list(dict.fromkeys(name for row in rows for name, value in row.items() if value is not None))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def selected(rows: Iterable[Row], layout: Layout) -> list[Row]:
    """The rows that the layout shows, with what they leave unsaid filled in."""
    kept = [row for row in rows if all(row.get(name) in allowed for name, allowed in layout.where.items())]
    return [{**layout.filled, **row} for row in kept]


def score_all_cyclic(d: int) -> dict[str, float]:
    """Scores that the authors give a run with `d` nodes whose particles are all cyclic: E-SHD d(d-1)/2, AUROC 0.5.

    There is no such convention for likelihoods and numbers of edges.

    >>> score_all_cyclic(20)
    {'shd': 190.0, 'auroc': 0.5}
    """
    return {"shd": d * (d - 1) / 2, "auroc": 0.5}


class Line(NamedTuple):
    """One metric of what has the same names: its values in our runs, and what the paper has.

    Runs whose particles are all cyclic have no values. Where there are some, a further line, whose method ends in
    `SCORED`, has them with the authors' scores; `all_cyclic` is their number.
    """

    names: dict[str, Any]
    metric: str
    values: list[float]
    paper: tuple[float | None, float | None]
    all_cyclic: int = 0

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None


def summary(study: Study, rows: Iterable[Row]) -> list[Line]:
    """A line for each metric of each combination of the layout's columns, sorted as tables show them."""
    layout = study.layout
    keys = [*layout.rows, *([layout.spread] if layout.spread else [])]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in selected(rows, layout):
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    came = {key: list(dict.fromkeys(values[k] for values in groups)) for k, key in enumerate(keys)}

    def rank(values: tuple[Any, ...]) -> list[tuple[float, int]]:
        return [(place(key, value), came[key].index(value)) for key, value in zip(keys, values)]

    out = []
    for values in sorted(groups, key=rank):
        names = dict(zip(keys, values))
        for metric in layout.metrics:
            numbers = [float(row[metric]) for row in groups[values] if row.get(metric) is not None]
            found = next((p for p in published(study.name) if p.metric == metric and p.is_about(names)), None)
            out.append(Line(names, metric, numbers, (found.mean, found.sd) if found else (None, None)))
        out += _scored(out[-len(layout.metrics) :], groups[values])
    return out


def _scored(lines: Sequence[Line], rows: Sequence[Row]) -> list[Line]:
    """The lines once more with runs that are all cyclic scored as published; none where there are no such runs."""
    scores = [score_all_cyclic(row["nodes"]) for row in rows if row.get("all_cyclic")]
    if not any(line.metric in score for line in lines for score in scores):
        return []
    return [
        line._replace(
            names={**line.names, "method": f"{line.names['method']}{SCORED}"},
            values=[*line.values, *(s[line.metric] for s in scores)] if line.metric in scores[0] else [],
            all_cyclic=len(scores),
        )
        for line in lines
    ]


def written(mean: float | None, sd: float | None, digits: int) -> str:
    """A mean and its standard deviation, or a dash.

    >>> written(34.0, 0.71, 1), written(None, None, 1)
    ('34.0 ± 0.7', '–')
    """
    if mean is None:
        return "–"
    return f"{mean:.{digits}f}" if sd is None else f"{mean:.{digits}f} ± {sd:.{digits}f}"


class Column(NamedTuple):
    """A column of numbers in the Markdown table."""

    spread: Any
    metric: str
    of_paper: bool


def markdown(study: Study, rows: Iterable[Row]) -> str:
    """The summary as a Markdown table; columns of the paper stand beside ours where it has numbers."""
    layout, lines = study.layout, summary(study, rows)
    columns = _columns(layout, lines)
    headings = [HEADINGS.get(c, c) for c in layout.rows] + [_heading(layout, column) for column in columns] + ["runs"]
    table = [headings, ["---"] * len(headings)]
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault(tuple(line.names[c] for c in layout.rows), []).append(line)
    for values, group in groups.items():
        cells = [shown(c, v) for c, v in zip(layout.rows, values)]
        cells += [_cell(layout, column, group) for column in columns]
        table.append([*cells, _runs(group)])
    return "".join("| " + " | ".join(cells) + " |\n" for cells in table)


def _runs(group: Sequence[Line]) -> str:
    """How many runs the means are over, and how many of them are all cyclic where these are scored."""
    counts = sorted({len(line.values) for line in group if line.values or not line.all_cyclic})
    text = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{text}, {group[0].all_cyclic} all cyclic" if group[0].all_cyclic else text


def _columns(layout: Layout, lines: Sequence[Line]) -> list[Column]:
    def of(line: Line) -> Any:
        return line.names[layout.spread] if layout.spread else None

    out = []
    for value in dict.fromkeys(of(line) for line in lines):
        for metric in layout.metrics:
            out.append(Column(value, metric, False))
            if any(of(line) == value and line.metric == metric and line.paper[0] is not None for line in lines):
                out.append(Column(value, metric, True))
    return out


def _cell(layout: Layout, column: Column, group: Iterable[Line]) -> str:
    digits = layout.digits.get(column.metric, DIGITS)
    for line in group:
        if line.metric == column.metric and (layout.spread is None or line.names[layout.spread] == column.spread):
            return written(*(line.paper if column.of_paper else (line.mean, line.sd)), digits)
    return written(None, None, digits)


def _heading(layout: Layout, column: Column) -> str:
    name = layout.metrics[column.metric]
    if layout.spread:
        label = shown(layout.spread, column.spread)
        label = label if layout.spread == "method" else f"{HEADINGS.get(layout.spread, layout.spread)} = {label}"
        name = f"{label}, {name}" if len(layout.metrics) > 1 else label
    return f"{name}, paper" if column.of_paper else name
