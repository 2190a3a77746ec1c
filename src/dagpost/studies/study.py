"""Declaration of a study: its tasks, its scale, and the layout of its table and figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dagpost.errors import InputError, nearest
from dagpost.studies.task import Task

EXTRAS = ("dibs-lib",)
"""Methods that run only on request (`--include`)."""


@dataclass(frozen=True)
class Scale:
    """How much of a study to run.

    Attributes
    ----------
    seeds
        Number of data sets, or of restarts where there is one data set.
    smoke
        Tiny sizes and at most two seeds, to check that everything works.
    include
        Members of `EXTRAS` to run as well.
    """

    seeds: int = 30
    smoke: bool = False
    include: tuple[str, ...] = ()

    @property
    def replicates(self) -> range:
        """Numbers of the data sets or restarts."""
        return range(min(self.seeds, 2) if self.smoke else self.seeds)


@dataclass(frozen=True)
class Layout:
    """How the tidy table becomes a Markdown table and a figure.

    Attributes
    ----------
    rows
        Columns of the tidy table that name a row of the Markdown table.
    metrics
        Columns of the tidy table that hold numbers, and their headings.
    spread
        Column whose values become headings, for tables with one metric.
    where
        Values that rows must have to be shown, by column.
    filled
        Values of rows that leave a column out, by column.
    figure
        Kind of figure.
    panels
        Column with a row of panels for each of its values.
    x
        Column along the horizontal axis of a figure with lines.
    logarithmic
        Whether the vertical axis of lines is logarithmic.
    digits
        Decimal places by metric; 1 for metrics left out.
    """

    rows: tuple[str, ...]
    metrics: Mapping[str, str]
    spread: str | None = None
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    filled: Mapping[str, Any] = field(default_factory=dict)
    figure: Literal["boxes", "lines"] = "boxes"
    panels: str | None = None
    x: str | None = None
    logarithmic: bool = False
    digits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """One table or figure of the paper, with its methods and ours.

    Attributes
    ----------
    name, title
        Name on the command line, and heading on the page.
    source
        Table or figure of the paper.
    shows
        Description in a sentence or two.
    tasks
        Function from a scale to the tasks.
    layout
        Layout of table and figure.
    published
        Whether the paper gives numbers, not only a plot.
    alone
        Whether tasks measure time, and therefore run one after the other with all cores.
    seeds
        Number of data sets or restarts in the paper.
    """

    name: str
    title: str
    source: str
    shows: str
    tasks: Callable[[Scale], list[Task]]
    layout: Layout
    published: bool = False
    alone: bool = False
    seeds: int = 30


def known_extras(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names given with `--include`; raise an error for one that is not in `EXTRAS`."""
    for name in names:
        if name not in EXTRAS:
            raise InputError(f"--include {name}: {nearest(name, EXTRAS)}")
    return tuple(names)
