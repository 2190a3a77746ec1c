"""What a loop knows of checkpoints: where it was left, what it has reached, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from dagpost.checkpoints.container import State

PART_SECONDS = 0.4
"""How long a call may take, about, while somebody may want to end the run."""

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

    def parts(self, total: int) -> Iterator[int]:
        """An amount of work in parts that are short enough to be interrupted in between."""
        if total > 0:
            yield total


NOWHERE = Section()


class Sections(Protocol):
    """Who hands out sections."""

    def section(self, name: str) -> Section: ...


def section_of(sections: Sections | None, name: str) -> Section:
    """The stage of this name, of a run that may have no checkpoints."""
    return NOWHERE if sections is None else sections.section(name)


class Pace:
    """How much work takes about `PART_SECONDS`, learned on the way."""

    def __init__(self):
        self.amount = 1

    def parts(self, total: int) -> Iterator[int]:
        """The total in parts."""
        while total > 0:
            part = min(self.amount, total)
            began = time.perf_counter()
            yield part
            took = time.perf_counter() - began
            total -= part
            if took > PART_SECONDS:
                self.amount = max(1, part // 2)
            elif took < PART_SECONDS / 2 and part == self.amount:
                self.amount *= 2
