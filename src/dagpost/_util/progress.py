"""Progress bar with the time left, on standard error, for work that may take more than two seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """Callback that takes the amount of work done since the last call."""

    def __call__(self, amount: float) -> None: ...


def is_shown(show: bool | None) -> bool:
    """Return whether to show progress; None shows it only if standard error is a terminal."""
    return sys.stderr.isatty() if show is None else show


@contextmanager
def progress_bar(title: str, total: float, show: bool | None = None) -> Iterator[Advance]:
    """Show a progress bar that disappears when done.

    Parameters
    ----------
    title
        Text to the left of the bar.
    total
        Total amount of work.
    show
        Whether to show the bar; None shows it only if standard error is a terminal.

    Yields
    ------
    Advance
        Callback to report finished work.
    """
    if not is_shown(show):
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda amount: bar.advance(task, amount)
