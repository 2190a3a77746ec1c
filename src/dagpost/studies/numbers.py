"""Numbers of committed tables for the text of a page: means, paired means, published numbers.

A `Number` prints itself with its digits. What a table does not hold is an error that names the study and the filter.
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
from dagpost.studies.tables import AS_PUBLISHED, DIGITS, Row, published, selected

BENCHMARKS = Path("benchmarks", "results")
"""Tables of benchmarks, beside the folder of results."""
NETWORK = ("graphs", "set", "truth", "model", "noise", "restart", "embedding", "latent")
"""Columns that tell on which data, and in which setting of the study, a method ran."""
WHOLE = ("nll", "inll")
"""Metrics in the hundreds and more, which pages show without a decimal place."""


class Number(float):
    """A float that prints itself with so many decimal places; so do sums and differences.

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
    """How many of how many, such as "21 of 41"."""

    count: int
    total: int

    def __str__(self) -> str:
        return f"{self.count} of {self.total}"


@dataclass(frozen=True)
class Paired:
    """A metric of several methods on the networks that all of them ran on; `paired["dibs"]` is the mean of one."""

    methods: tuple[str, ...]
    values: Mapping[str, Sequence[float]]
    digits: int

    def __getitem__(self, method: str | int) -> Number:
        return self._of(method, statistics.fmean)

    def median(self, method: str | int) -> Number:
        """The median of one method over the networks."""
        return self._of(method, statistics.median)

    @property
    def networks(self) -> int:
        """How many networks all methods ran on."""
        return len(self.values[self.methods[0]])

    @property
    def difference(self) -> Number:
        """Mean of the first method less that of the second."""
        return self[0] - self[1]

    @property
    def errors(self) -> Number:
        """The difference of the first two methods in its standard errors; nan with a single network."""
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

    def _of(self, method: str | int, statistic: Callable[[Sequence[float]], float]) -> Number:
        name = self.methods[method] if isinstance(method, int) else method
        return Number(statistic(self.values[name]), self.digits)


class Tables:
    """The committed tables in and beside a folder of results; methods are the functions that a page can use."""

    def __init__(self, results: Path) -> None:
        self.results = results

    @cached_property
    def _read(self) -> dict[str, list[Row]]:
        return {}

    def rows(self, study: str) -> list[Row]:
        """The rows that the study's table on the page rests on."""
        if study not in self._read:
            path = self.results / study_by_name(study).name / TABLE
            if not path.is_file():
                raise InputError(f"{printable(path)}: no such table: run `dagpost study {study}`")
            self._read[study] = selected(read_rows(path), STUDIES[study].layout)
        return self._read[study]

    def benchmark(self, name: str) -> list[Row]:
        """The rows of `benchmarks/results/NAME.csv`."""
        path = self.results.parent / BENCHMARKS / f"{name}.csv"
        if not path.is_file():
            raise InputError(f"{printable(path)}: no such table: run the benchmark with --out")
        return read_rows(path)

    def digits(self, study: str, metric: str) -> int:
        """Decimal places of a metric in text."""
        return 0 if metric in WHOLE else study_by_name(study).layout.digits.get(metric, DIGITS)

    def mean(self, study: str, metric: str, **where: Any) -> Number:
        """Mean over the rows of a study that have these values."""
        return Number(statistics.fmean(self._values(study, metric, where)), self.digits(study, metric))

    def median(self, study: str, metric: str, **where: Any) -> Number:
        """Median over the rows of a study that have these values."""
        return Number(statistics.median(self._values(study, metric, where)), self.digits(study, metric))

    def sd(self, study: str, metric: str, **where: Any) -> Number:
        """Standard deviation over the rows of a study that have these values."""
        values = self._values(study, metric, where)
        if len(values) < 2:
            raise InputError(f"{_named(study, where)}: one row has no standard deviation")
        return Number(statistics.stdev(values), self.digits(study, metric))

    def runs(self, study: str, **where: Any) -> int:
        """Number of runs (networks or restarts) with these values; 0 where there are none."""
        return len({row["task"] for row in matching(self.rows(study), where)})

    def paper(self, study: str, metric: str, **where: Any) -> Number:
        """The published number; of protein data in file order, as it was computed."""
        names = {"truth": AS_PUBLISHED, **where}
        found = [p for p in published(study) if p.metric == metric and p.is_about(names)]
        if len(found) != 1:
            raise InputError(f"{_named(study, where)}: the paper has {len(found) or 'no'} numbers for {metric!r}")
        return Number(found[0].mean, self.digits(study, metric))

    def share(self, study: str, column: str, **where: Any) -> Share:
        """In how many rows a column is true, of those that have it."""
        known = [row[column] for row in self._rows(study, where) if row.get(column) is not None]
        return Share(sum(map(bool, known)), len(known))

    def paired(self, study: str, metric: str, methods: Sequence[str], trusted: bool = False, **where: Any) -> Paired:
        """A metric of several methods on the networks that all ran on; with `trusted`, where `auto` agreed as well."""
        found = of_metric(self.common(study, methods, trusted, **where), metric, methods, self.digits(study, metric))
        if not found.networks:
            raise InputError(f"{_named(study, where)}: no network has {metric!r} for {', '.join(methods)}")
        return found

    def common(self, study: str, methods: Sequence[str], trusted: bool = False, **where: Any) -> list[dict[str, Row]]:
        """For each network that all methods ran on, the row of each method."""
        networks: dict[tuple[Any, ...], dict[str, Row]] = {}
        for row in matching(self.rows(study), where):
            each = networks.setdefault(tuple(row.get(name) for name in NETWORK), {})
            if row["method"] in each and row["method"] in (*methods, "auto"):
                raise InputError(f"{_named(study, where)}: {row['method']} has two rows for a network: narrow it down")
            each[row["method"]] = row
        both = [each for each in networks.values() if all(method in each for method in methods)]
        return [each for each in both if not trusted or each.get("auto", {}).get("trusted") is True]

    def measured(self, benchmark: str, column: str, digits: int = DIGITS, **where: Any) -> Number:
        """Mean of a column of a benchmark's table over the rows that have these values."""
        values = [float(row[column]) for row in matching(self.benchmark(benchmark), where) if column in row]
        if not values:
            raise InputError(f"benchmark {_named(benchmark, where)}: no row has {column!r}")
        return Number(statistics.fmean(values), digits)

    def _rows(self, study: str, where: Mapping[str, Any]) -> list[Row]:
        found = list(matching(self.rows(study), where))
        if not found:
            raise InputError(f"{_named(study, where)}: no such rows in its table")
        return found

    def _values(self, study: str, metric: str, where: Mapping[str, Any]) -> list[float]:
        values = [float(row[metric]) for row in self._rows(study, where) if row.get(metric) is not None]
        if not values:
            raise InputError(f"{_named(study, where)}: no row has {metric!r}")
        return values


def matching(rows: Iterable[Row], where: Mapping[str, Any]) -> Iterable[Row]:
    """The rows that have these values; a tuple allows several."""
    for row in rows:
        if all(row.get(k) in v if isinstance(v, tuple | list) else row.get(k) == v for k, v in where.items()):
            yield row


def of_metric(networks: Sequence[Mapping[str, Row]], metric: str, methods: Sequence[str], digits: int) -> Paired:
    """A metric on those of these networks where every method has it."""
    known = [each for each in networks if all(each[m].get(metric) is not None for m in methods)]
    return Paired(tuple(methods), {m: [float(each[m][metric]) for each in known] for m in methods}, digits)


def _named(study: str, where: Mapping[str, Any]) -> str:
    return f"{study} ({', '.join(f'{name}={value!r}' for name, value in where.items()) or 'all rows'})"
