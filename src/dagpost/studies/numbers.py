"""Numbers from committed tables for the text of a page: means, paired means, published numbers.

A `Number` prints itself with its digits. A query that no row answers raises an error that names the study and the
filter.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dagpost.errors import InputError, printable
from dagpost.studies.collect import TABLE, read_rows
from dagpost.studies.experiments import STUDIES, study_by_name
from dagpost.studies.tables import AS_PUBLISHED, DIGITS, Row, published, select_rows

BENCHMARKS = Path("benchmarks", "results")
"""Folder of benchmark tables, relative to the parent of the folder of results."""
NETWORK = ("graphs", "set", "truth", "model", "noise", "restart", "embedding", "latent")
"""Columns that identify the data, and the setting of the study, on which a method ran."""
WHOLE = ("nll", "inll")
"""Metrics with values in the hundreds or more, printed without decimal places."""


class Number(float):
    """A float that prints itself with `digits` decimal places, as do its sums and differences.

    >>> str(Number(1234.56)), str(Number(0.91, 3) - Number(0.9, 3))
    ('1,234.6', '0.010')
    """

    digits: int

    def __new__(cls, value: float, digits: int = DIGITS) -> Number:
        number = super().__new__(cls, value)
        number.digits = digits
        return number

    def __str__(self) -> str:
        return f"{float(self):,.{self.digits}f}"

    def __add__(self, other: float) -> Number:
        return Number(float(self) + other, self.digits)

    def __sub__(self, other: float) -> Number:
        return Number(float(self) - other, self.digits)

    def __abs__(self) -> Number:
        return Number(abs(float(self)), self.digits)


@dataclass(frozen=True)
class Share:
    """A count out of a total, printed as "21 of 41"."""

    count: int
    total: int

    def __str__(self) -> str:
        return f"{self.count} of {self.total}"


@dataclass(frozen=True)
class Paired:
    """A metric of several methods on the networks that all of them ran on; `paired["dibs"]` is the mean of one.

    Attributes
    ----------
    methods
        Names of the methods; comparisons are between the first two.
    values
        Values by method, in the same order of networks.
    digits
        Decimal places in print.
    """

    methods: tuple[str, ...]
    values: Mapping[str, Sequence[float]]
    digits: int

    def __getitem__(self, method: str | int) -> Number:
        return self._statistic(method, statistics.fmean)

    def median(self, method: str | int) -> Number:
        """Return the median of one method over the networks."""
        return self._statistic(method, statistics.median)

    @property
    def networks(self) -> int:
        """Number of networks that all methods ran on."""
        return len(self.values[self.methods[0]])

    @property
    def difference(self) -> Number:
        """Mean of the first method minus that of the second."""
        return self[0] - self[1]

    @property
    def errors(self) -> Number:
        """Difference of the first two methods in units of its standard error; nan with a single network."""
        first, second = (self.values[method] for method in self.methods[:2])
        each = [a - b for a, b in zip(first, second)]
        error = statistics.stdev(each) / math.sqrt(len(each)) if len(each) > 1 else math.nan
        return Number(self.difference / error if error else math.nan)

    @property
    def below(self) -> bool:
        """Whether the mean of the first method is below that of the second."""
        return self.difference < 0

    @property
    def above(self) -> bool:
        """Whether the mean of the first method is above that of the second."""
        return self.difference > 0

    @property
    def lower(self) -> bool:
        """Whether the first method is below the second by more than two standard errors."""
        return self.errors < -2

    @property
    def higher(self) -> bool:
        """Whether the first method is above the second by more than two standard errors."""
        return self.errors > 2

    @property
    def level(self) -> bool:
        """Whether the first two methods are within two standard errors of each other."""
        return abs(self.errors) <= 2

    def _statistic(self, method: str | int, statistic: Callable[[Sequence[float]], float]) -> Number:
        """Return a statistic of the values of one method, given by name or index."""
        name = self.methods[method] if isinstance(method, int) else method
        return Number(statistic(self.values[name]), self.digits)


class Tables:
    """Committed tables in and beside a folder of results; its methods are the functions of a page template.

    In all methods `where` holds values that rows must have, by column; a tuple allows several.

    Parameters
    ----------
    results
        Folder of results; tables of benchmarks are in `benchmarks/results` beside it.
    """

    def __init__(self, results: Path) -> None:
        self.results = results

    @cached_property
    def _cache(self) -> dict[str, list[Row]]:
        """Rows of the tables read so far, by study."""
        return {}

    def rows(self, study: str) -> list[Row]:
        """Return the rows behind the study's table on the page."""
        if study not in self._cache:
            path = self.results / study_by_name(study).name / TABLE
            if not path.is_file():
                raise InputError(f"{printable(path)}: no such table: run `dagpost study {study}`")
            self._cache[study] = select_rows(read_rows(path), STUDIES[study].layout)
        return self._cache[study]

    def benchmark(self, name: str) -> list[Row]:
        """Return the rows of `benchmarks/results/NAME.csv`."""
        path = self.results.parent / BENCHMARKS / f"{name}.csv"
        if not path.is_file():
            raise InputError(f"{printable(path)}: no such table: run the benchmark with --out")
        return read_rows(path)

    def digits(self, study: str, metric: str) -> int:
        """Return the decimal places of a metric in text."""
        return 0 if metric in WHOLE else study_by_name(study).layout.digits.get(metric, DIGITS)

    def mean(self, study: str, metric: str, **where: Any) -> Number:
        """Return the mean over the rows of a study that have these values."""
        return Number(statistics.fmean(self._values(study, metric, where)), self.digits(study, metric))

    def median(self, study: str, metric: str, **where: Any) -> Number:
        """Return the median over the rows of a study that have these values."""
        return Number(statistics.median(self._values(study, metric, where)), self.digits(study, metric))

    def sd(self, study: str, metric: str, **where: Any) -> Number:
        """Return the standard deviation over the rows of a study that have these values."""
        values = self._values(study, metric, where)
        if len(values) < 2:
            raise InputError(f"{_describe(study, where)}: one row has no standard deviation")
        return Number(statistics.stdev(values), self.digits(study, metric))

    def runs(self, study: str, **where: Any) -> int:
        """Return the number of runs (networks or restarts) with these values."""
        return len({row["task"] for row in matching(self.rows(study), where)})

    def paper(self, study: str, metric: str, **where: Any) -> Number:
        """Return the published number; for protein data that of the graph in file order, as it was computed."""
        names = {"truth": AS_PUBLISHED, **where}
        numbers = [p for p in published(study) if p.metric == metric and p.matches(names)]
        if len(numbers) != 1:
            raise InputError(f"{_describe(study, where)}: the paper has {len(numbers) or 'no'} numbers for {metric!r}")
        return Number(numbers[0].mean, self.digits(study, metric))

    def share(self, study: str, column: str, **where: Any) -> Share:
        """Return in how many rows a column is true, out of those that have it."""
        known = [row[column] for row in self._rows(study, where) if row.get(column) is not None]
        return Share(sum(map(bool, known)), len(known))

    def paired(self, study: str, metric: str, methods: Sequence[str], trusted: bool = False, **where: Any) -> Paired:
        """Return a metric of several methods on the networks that all of them ran on.

        With `trusted`, only networks on which the chains of `auto` agreed.
        """
        networks = self.common(study, methods, trusted, **where)
        paired = paired_metric(networks, metric, methods, self.digits(study, metric))
        if not paired.networks:
            raise InputError(f"{_describe(study, where)}: no network has {metric!r} for {', '.join(methods)}")
        return paired

    def common(self, study: str, methods: Sequence[str], trusted: bool = False, **where: Any) -> list[dict[str, Row]]:
        """Return the row of each method for each network that all methods ran on; `trusted` as in `paired`."""
        networks: dict[tuple[Any, ...], dict[str, Row]] = {}
        for row in matching(self.rows(study), where):
            each = networks.setdefault(tuple(row.get(name) for name in NETWORK), {})
            if row["method"] in each and row["method"] in (*methods, "auto"):
                raise InputError(
                    f"{_describe(study, where)}: {row['method']} has two rows for a network: narrow the filter"
                )
            each[row["method"]] = row
        complete = [each for each in networks.values() if all(method in each for method in methods)]
        return [each for each in complete if not trusted or each.get("auto", {}).get("trusted") is True]

    def measured(self, benchmark: str, column: str, digits: int = DIGITS, **where: Any) -> Number:
        """Return the mean of a column of a benchmark's table over the rows that have these values."""
        values = [float(row[column]) for row in matching(self.benchmark(benchmark), where) if column in row]
        if not values:
            raise InputError(f"benchmark {_describe(benchmark, where)}: no row has {column!r}")
        return Number(statistics.fmean(values), digits)

    def _rows(self, study: str, where: Mapping[str, Any]) -> list[Row]:
        """Return the rows of a study that have these values; raise an error if there are none."""
        rows = list(matching(self.rows(study), where))
        if not rows:
            raise InputError(f"{_describe(study, where)}: no such rows in its table")
        return rows

    def _values(self, study: str, metric: str, where: Mapping[str, Any]) -> list[float]:
        """Return the known values of a metric in these rows; raise an error if there are none."""
        values = [float(row[metric]) for row in self._rows(study, where) if row.get(metric) is not None]
        if not values:
            raise InputError(f"{_describe(study, where)}: no row has {metric!r}")
        return values


def matching(rows: Iterable[Row], where: Mapping[str, Any]) -> Iterable[Row]:
    """Yield the rows that have these values; a tuple or list allows several."""
    for row in rows:
        if all(row.get(k) in v if isinstance(v, tuple | list) else row.get(k) == v for k, v in where.items()):
            yield row


def paired_metric(networks: Sequence[Mapping[str, Row]], metric: str, methods: Sequence[str], digits: int) -> Paired:
    """Return a metric on the networks for which every method has it."""
    known = [each for each in networks if all(each[m].get(metric) is not None for m in methods)]
    return Paired(tuple(methods), {m: [float(each[m][metric]) for each in known] for m in methods}, digits)


def _describe(study: str, where: Mapping[str, Any]) -> str:
    """Return a study and a filter as text for an error message."""
    return f"{study} ({', '.join(f'{name}={value!r}' for name, value in where.items()) or 'all rows'})"
