"""What a loop knows of checkpoints: where it was left, what it has reached, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from dagpost._util.clock import Clock, Pace
from dagpost.inference.checkpoints.container import State

Snapshot = Callable[[], State]
"""Gives a state, the same one however late it is called."""


class Section:
    """One stage of a run. As it stands it keeps nothing and never interferes: for runs without checkpoints."""

    found: State | None = None
    """Where the stage was left, if it was begun before."""

    @property
    def stopping(self) -> bool:
        """Whether the run has been told to end."""
        return False

    def reached(self, snapshot: Snapshot) -> None:
        """A boundary: this is where the stage can be taken up again."""

    def check(self) -> None:
        """Between boundaries: end here if told to; the state of the last boundary is saved."""

    def parts(self, total: int, clock: Clock | None = None) -> Iterator[int]:
        """An amount of work in parts that are short enough to be interrupted in between; they end with the clock."""
        if clock is not None and clock.limit is not None:
            yield from Pace().parts(total, clock)
        elif total > 0:
            yield total


NOWHERE = Section()


class Sections(Protocol):
    """Who hands out sections."""

    def section(self, name: str) -> Section: ...


def section_of(sections: Sections | None, name: str) -> Section:
    """The stage of this name, of a run that may have no checkpoints."""
    return NOWHERE if sections is None else sections.section(name)
