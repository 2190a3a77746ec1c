"""A study: a declaration of what varies, what is measured and how it is laid out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dagpost.errors import InputError, nearest
from dagpost.studies.task import Task

EXTRAS = ("dibs-lib",)
"""Methods that run only when asked for."""


@dataclass(frozen=True)
class Scale:
    """How much of a study to run."""

    seeds: int = 30
    """Data sets, or restarts where there is one data set."""
    smoke: bool = False
    """Tiny sizes and two seeds: does everything work?"""
    include: tuple[str, ...] = ()
    """Methods that are left out unless asked for, such as "dibs-lib"."""

    @property
    def replicates(self) -> range:
        return range(min(self.seeds, 2) if self.smoke else self.seeds)


@dataclass(frozen=True)
class Layout:
    """How the tidy table becomes a Markdown table and a figure."""

    rows: tuple[str, ...]
    """Columns of the tidy table that name a row."""
    metrics: Mapping[str, str]
    """Columns of the tidy table that hold numbers, and their headings."""
    spread: str | None = None
    """A column whose values are headings, for tables with one metric."""
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Values that rows must have to be shown."""
    filled: Mapping[str, Any] = field(default_factory=dict)
    """What rows that do not name a column have there."""
    figure: Literal["boxes", "lines"] = "boxes"
    panels: str | None = None
    """Column with a row of panels for each of its values."""
    x: str | None = None
    """Column along the horizontal axis of lines."""
    logarithmic: bool = False
    digits: Mapping[str, int] = field(default_factory=dict)
    """Of a metric, after the point; 1 unless told."""


@dataclass(frozen=True)
class Study:
    """One table or figure of the paper, on our methods and its own."""

    name: str
    title: str
    source: str
    """Which table or figure of the paper it is."""
    shows: str
    """What it is about, in a sentence or two."""
    tasks: Callable[[Scale], list[Task]]
    layout: Layout
    published: bool = False
    """Whether the paper gives numbers, and not a plot alone."""
    alone: bool = False
    """Whether tasks measure time, and so run one after the other with all cores."""
    seeds: int = 30
    """How many the paper has."""


def known_extras(names: Iterable[str]) -> tuple[str, ...]:
    """The names, once it is clear that they are known."""
    for name in names:
        if name not in EXTRAS:
            raise InputError(f"--include {name}: {nearest(name, EXTRAS)}")
    return tuple(names)
