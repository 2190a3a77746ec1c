"""Tables of a study: results of tasks to tidy rows, their summary, CSV and Markdown, beside the paper's numbers.

The paper's numbers are in `published.csv`, copied from its tables and text: Lorch, Rothfuss, Schölkopf and Krause,
DiBS: Differentiable Bayesian Structure Learning, NeurIPS 2021. Results on simulated networks and the ablations are
published as plots only. Column `where` of that file names a row by columns of our tables; what the paper calls DiBS is
`dibs-paper` there, DiBS+ is `dibs-paper+`. Numbers of edges come from the text of the paper.
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
"""Name of the permuted consensus graph behind the paper's Sachs tables; see `experiments/sachs.py`."""

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
"""Names of methods in print, in the order of tables. `dibs-paper` is our run with everything as published."""

SCORED = ", cyclic runs scored as published"
"""Suffix of a method in rows whose means contain the runs without a DAG."""

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


def display_name(column: str, value: object) -> str:
    """Return a value of a column as tables and figures print it."""
    if column == "method":
        name = str(value).removesuffix(SCORED)
        return METHODS.get(name, name) + str(value)[len(name) :]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return VALUES.get(str(value), str(value))


def sort_key(column: str, value: object) -> float:
    """Return the rank of a value in its column: methods as in `METHODS`, numbers by size, other values all 0."""
    if column == "method":
        name = str(value).removesuffix(SCORED)
        return list(METHODS).index(name) if name in METHODS else len(METHODS)
    return float(value) if isinstance(value, int | float) else 0.0


@dataclass(frozen=True)
class Published:
    """One number of the paper.

    Attributes
    ----------
    metric
        Column of our table that holds the same quantity.
    where
        Columns and values that name its row in our table.
    mean, sd
        Published mean and standard deviation; `sd` is None where the paper gives none.
    """

    metric: str
    where: tuple[tuple[str, str], ...]
    mean: float
    sd: float | None

    def matches(self, names: Mapping[str, Any]) -> bool:
        """Return whether a row of our table with these values corresponds to this number."""
        return all(name in names and _same(names[name], value) for name, value in self.where)


def _same(ours: Any, theirs: str) -> bool:
    """Return whether a value of our table equals one of published.csv."""
    return float(theirs) == float(ours) if isinstance(ours, int | float) else str(ours) == theirs


@lru_cache(maxsize=1)
def _read_published() -> dict[str, tuple[Published, ...]]:
    """Return the content of published.csv by study."""
    text = (resources.files("dagpost.studies") / "published.csv").read_text(encoding="utf-8")
    out: dict[str, list[Published]] = {}
    for row in csv.DictReader(text.splitlines()):
        where = tuple((name, value) for name, _, value in (w.partition("=") for w in row["where"].split(";")))
        sd = float(row["sd"]) if row["sd"] else None
        out.setdefault(row["study"], []).append(Published(row["metric"], where, float(row["mean"]), sd))
    return {study: tuple(numbers) for study, numbers in out.items()}


def published(study: str) -> tuple[Published, ...]:
    """Return the paper's numbers for a study; none where it has plots only."""
    return _read_published().get(study, ())


Row = dict[str, Any]
DIGITS = 1
"""Decimal places of a metric for which the layout gives none."""


def tidy(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return one row for each measured posterior, in the order of the tasks; the first column is the task's key."""
    rows = []
    for result in results:
        task = Task(**result["task"])
        plain = {name: value for name, value in task.labels.items() if not isinstance(value, dict | list)}
        rows += [{"task": task.key, **plain, **row} for row in result["rows"]]
    return rows


def as_csv(rows: Sequence[Row]) -> str:
    """Return the rows as CSV with all digits; unknown numbers are empty."""
    columns = list(dict.fromkeys(name for row in rows for name, value in row.items() if value is not None))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def select_rows(rows: Iterable[Row], layout: Layout) -> list[Row]:
    """Return the rows that the layout shows, with its defaults for columns that they leave out."""
    kept = [row for row in rows if all(row.get(name) in allowed for name, allowed in layout.where.items())]
    return [{**layout.filled, **row} for row in kept]


def score_all_cyclic(d: int) -> dict[str, float]:
    """Return the authors' scores of a run with `d` nodes whose particles are all cyclic: E-SHD d(d-1)/2, AUROC 0.5.

    The authors have no such convention for likelihoods and numbers of edges.

    >>> score_all_cyclic(20)
    {'shd': 190.0, 'auroc': 0.5}
    """
    return {"shd": d * (d - 1) / 2, "auroc": 0.5}


class Line(NamedTuple):
    """One metric of one row of a table: its values in our runs, and the paper's mean and standard deviation.

    Runs whose particles are all cyclic have no values. Where there are such runs, an additional line, whose method ends
    in `SCORED`, includes them with the authors' scores; `all_cyclic` is their number.
    """

    names: dict[str, Any]
    metric: str
    values: list[float]
    paper: tuple[float | None, float | None]
    all_cyclic: int = 0

    @property
    def mean(self) -> float | None:
        """Mean of the values; None without values."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """Standard deviation of the values; None for fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


def summary(study: Study, rows: Iterable[Row]) -> list[Line]:
    """Return a line for each metric of each combination of the layout's columns, in the order of tables."""
    layout = study.layout
    keys = [*layout.rows, *([layout.spread] if layout.spread else [])]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in select_rows(rows, layout):
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    first_seen = {key: list(dict.fromkeys(values[k] for values in groups)) for k, key in enumerate(keys)}

    def rank(values: tuple[Any, ...]) -> list[tuple[float, int]]:
        return [(sort_key(key, value), first_seen[key].index(value)) for key, value in zip(keys, values)]

    out = []
    for values in sorted(groups, key=rank):
        names = dict(zip(keys, values))
        for metric in layout.metrics:
            numbers = [float(row[metric]) for row in groups[values] if row.get(metric) is not None]
            paper = next((p for p in published(study.name) if p.metric == metric and p.matches(names)), None)
            out.append(Line(names, metric, numbers, (paper.mean, paper.sd) if paper else (None, None)))
        out += _with_cyclic_runs(out[-len(layout.metrics) :], groups[values])
    return out


def _with_cyclic_runs(lines: Sequence[Line], rows: Sequence[Row]) -> list[Line]:
    """Return copies of the lines that include all-cyclic runs, scored as published; none without such runs."""
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


def format_mean(mean: float | None, sd: float | None, digits: int) -> str:
    """Return a mean and its standard deviation, or a dash.

    >>> format_mean(34.0, 0.71, 1), format_mean(None, None, 1)
    ('34.0 ± 0.7', '–')
    """
    if mean is None:
        return "–"
    return f"{mean:.{digits}f}" if sd is None else f"{mean:.{digits}f} ± {sd:.{digits}f}"


class Column(NamedTuple):
    """A column of numbers in the Markdown table: of one metric, ours or the paper's, for one value of `spread`."""

    spread: Any
    metric: str
    of_paper: bool


def markdown(study: Study, rows: Iterable[Row]) -> str:
    """Return the summary as a Markdown table, with columns of the paper's numbers beside ours where it has some."""
    layout, lines = study.layout, summary(study, rows)
    columns = _columns(layout, lines)
    headings = [HEADINGS.get(c, c) for c in layout.rows] + [_heading(layout, column) for column in columns] + ["runs"]
    table = [headings, ["---"] * len(headings)]
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault(tuple(line.names[c] for c in layout.rows), []).append(line)
    for values, group in groups.items():
        cells = [display_name(c, v) for c, v in zip(layout.rows, values)]
        cells += [_cell(layout, column, group) for column in columns]
        table.append([*cells, _runs(group)])
    return "".join("| " + " | ".join(cells) + " |\n" for cells in table)


def _runs(group: Sequence[Line]) -> str:
    """Return the number of runs behind the means and, where all-cyclic runs are scored, how many there are."""
    counts = sorted({len(line.values) for line in group if line.values or not line.all_cyclic})
    text = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{text}, {group[0].all_cyclic} all cyclic" if group[0].all_cyclic else text


def _columns(layout: Layout, lines: Sequence[Line]) -> list[Column]:
    """Return the columns of numbers; the paper has one only where it has a number."""

    def spread_of(line: Line) -> Any:
        return line.names[layout.spread] if layout.spread else None

    out = []
    for value in dict.fromkeys(spread_of(line) for line in lines):
        for metric in layout.metrics:
            out.append(Column(value, metric, False))
            if any(spread_of(line) == value and line.metric == metric and line.paper[0] is not None for line in lines):
                out.append(Column(value, metric, True))
    return out


def _cell(layout: Layout, column: Column, group: Iterable[Line]) -> str:
    """Return the cell of a column in the row of these lines."""
    digits = layout.digits.get(column.metric, DIGITS)
    for line in group:
        if line.metric == column.metric and (layout.spread is None or line.names[layout.spread] == column.spread):
            return format_mean(*(line.paper if column.of_paper else (line.mean, line.sd)), digits)
    return format_mean(None, None, digits)


def _heading(layout: Layout, column: Column) -> str:
    """Return the heading of a column."""
    name = layout.metrics[column.metric]
    if layout.spread:
        label = display_name(layout.spread, column.spread)
        label = label if layout.spread == "method" else f"{HEADINGS.get(layout.spread, layout.spread)} = {label}"
        name = f"{label}, {name}" if len(layout.metrics) > 1 else label
    return f"{name}, paper" if column.of_paper else name
