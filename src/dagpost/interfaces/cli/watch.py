"""`dagpost fit --watch`: a live view of the run in the terminal, or plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dagpost.errors import printable
from dagpost.interfaces.cli.output import say

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

TOP = 12
"""Edges shown."""
EVERY = 10
"""DiBS steps between two updates."""
BAR = 24
"""Characters of a full bar."""


class View(Protocol):
    """A callback that displays snapshots of a run, every `every` steps."""

    every: int

    def __call__(self, snapshot: Any) -> None: ...


@contextmanager
def live_view(names: Sequence[str], console: Console | None = None) -> Iterator[View]:
    """Yield a live view on standard error, which disappears at the end; plain lines without a terminal."""
    from rich.console import Console
    from rich.live import Live

    console = console or Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        say("--watch: standard error is not a terminal; printing a line for every tenth of the run instead")
        yield Lines(names)
        return
    with Live(console=console, transient=True, refresh_per_second=5) as live:
        yield Panel(names, live)


class RemainingTime:
    """Estimate of the time left, from the share of the work that is done."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.first_share = 0.0

    def left(self, share: float) -> str:
        """Return minutes and seconds left; '--' until two updates give a speed.

        The clock starts at the share of the first update, which is above 0 in a resumed run.
        """
        now = time.monotonic()
        if self.began is None or share < self.first_share:
            self.began, self.first_share = now, share
        done = share - self.first_share
        if done <= 0:
            return "--"
        return _minutes((now - self.began) * max(1 - share, 0.0) / done)


def _minutes(seconds: float) -> str:
    """Return seconds as minutes:seconds."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


class Panel:
    """Live view of the newest snapshot: a progress bar, a line of numbers and the most probable edges."""

    every = EVERY

    def __init__(self, names: Sequence[str], live: Live):
        self.names, self.live = [printable(name) for name in names], live
        self.clocks: dict[str, RemainingTime] = {}

    def __call__(self, snapshot: Any) -> None:
        phase, share, facts, probabilities = describe_snapshot(snapshot)
        left = self.clocks.setdefault(phase, RemainingTime()).left(share)
        self.live.update(self.render(phase, share, {**facts, "left": left}, probabilities))

    def render(self, phase: str, share: float, facts: dict[str, str], probabilities: np.ndarray) -> RenderableType:
        """Return what the terminal shows."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        head = Table.grid(padding=(0, 1))
        head.add_row(Text(phase, style="bold"), ProgressBar(total=1.0, completed=min(share, 1.0), width=30))
        numbers = Text("   ".join(f"{name} {value}" for name, value in facts.items()))
        table = Table.grid(padding=(0, 1))
        for cause, effect, p in top_edges(self.names, probabilities):
            filled = round(BAR * p)
            bar = Text("█" * filled, style="blue") + Text("·" * (BAR - filled), style="dim")
            table.add_row(Text(f"{p:.2f}"), bar, Text(f"{cause} -> {effect}"))
        return Group(head, numbers, Text(""), table)


class Lines:
    """Plain lines for log files, one for every tenth of each phase."""

    every = EVERY

    def __init__(self, names: Sequence[str]):
        self.names = [printable(name) for name in names]
        self.last_tenth: dict[str, int] = {}
        self.clocks: dict[str, RemainingTime] = {}

    def __call__(self, snapshot: Any) -> None:
        phase, share, facts, probabilities = describe_snapshot(snapshot)
        left = self.clocks.setdefault(phase, RemainingTime()).left(share)
        tenth = int(10 * share + 1e-9)
        if self.last_tenth.get(phase) == tenth:
            return
        self.last_tenth[phase] = tenth
        best = ", ".join(f"{a} -> {b} {p:.2f}" for a, b, p in top_edges(self.names, probabilities)[:3])
        say(f"{phase}: " + ", ".join(f"{k} {v}" for k, v in {**facts, "left": left}.items()) + f"; {best}")


def describe_snapshot(snapshot: Any) -> tuple[str, float, dict[str, str], np.ndarray]:
    """Return the phase (DiBS, or the chains that follow it), the share done, facts to print, and edge probabilities."""
    if hasattr(snapshot, "moves"):
        diagnostics = snapshot.diagnostics
        facts = {"moves": f"{snapshot.moves:,}", "error": "--"}
        if diagnostics is not None:
            facts["error"] = f"{diagnostics.error:.4f}"
            facts["R̂"] = f"{max(diagnostics.rhat, diagnostics.rhat_log_posterior):.3f}"
        facts["error"] += f" (target {snapshot.precision:g})"
        return "chains", snapshot.share, facts, snapshot.edge_probabilities
    probabilities = snapshot.edge_probabilities.mean(axis=0)
    facts = {
        "step": f"{snapshot.step} of {snapshot.steps}",
        "cyclic": f"{snapshot.cyclic} of {len(snapshot.graphs)}",
        "edges": f"{probabilities.sum():.1f}",
        "alpha": f"{snapshot.alpha:.3g}",
        "beta": f"{snapshot.beta:.3g}",
    }
    return "DiBS", snapshot.step / snapshot.steps, facts, probabilities


def top_edges(names: Sequence[str], probabilities: np.ndarray, top: int = TOP) -> list[tuple[str, str, float]]:
    """Return the most probable edges as (cause, effect, probability)."""
    pairs = [divmod(int(k), len(names)) for k in np.argsort(-probabilities, axis=None, kind="stable")[:top]]
    return [(names[i], names[j], float(probabilities[i, j])) for i, j in pairs if i != j]
