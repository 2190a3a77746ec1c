"""`dagpost fit --watch`: the run as it goes, in the terminal; as plain lines where there is none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dagpost.errors import printable
from dagpost.interfaces.cli.messages import say

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

TOP = 12
EVERY = 10
"""Steps between two looks on a terminal."""
BAR = 24


class View(Protocol):
    """A callback that shows what it sees."""

    every: int

    def __call__(self, snapshot: Any) -> None: ...


@contextmanager
def watching(names: Sequence[str], console: Console | None = None) -> Iterator[View]:
    """A live view on standard error, taken away in the end; lines where standard error is no terminal."""
    from rich.console import Console
    from rich.live import Live

    console = console or Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        say("--watch: standard error is no terminal; a line for every tenth of the way instead")
        yield Lines(names)
        return
    with Live(console=console, transient=True, refresh_per_second=5) as live:
        yield Panel(names, live)


class Clock:
    """Time gone and time left, from the share of the work that is done."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.at = 0.0

    def left(self, share: float) -> str:
        """In minutes and seconds; '--' until two looks tell how fast it goes. A resumed run starts where it was."""
        now = time.monotonic()
        if self.began is None or share < self.at:
            self.began, self.at = now, share
        done = share - self.at
        if done <= 0:
            return "--"
        return _minutes((now - self.began) * max(1 - share, 0.0) / done)


def _minutes(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


class Panel:
    """The newest snapshot as a table of edges under a line of numbers."""

    every = EVERY

    def __init__(self, names: Sequence[str], live: Live):
        self.names, self.live = [printable(name) for name in names], live
        self.clocks: dict[str, Clock] = {}

    def __call__(self, snapshot: Any) -> None:
        phase, share, facts, probabilities = looked_at(snapshot)
        left = self.clocks.setdefault(phase, Clock()).left(share)
        self.live.update(self.drawn(phase, share, {**facts, "left": left}, probabilities))

    def drawn(self, phase: str, share: float, facts: dict[str, str], probabilities: np.ndarray) -> RenderableType:
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
    """A line for every tenth of each phase, for log files."""

    every = EVERY

    def __init__(self, names: Sequence[str]):
        self.names, self.said = [printable(name) for name in names], {}
        self.clocks: dict[str, Clock] = {}

    def __call__(self, snapshot: Any) -> None:
        phase, share, facts, probabilities = looked_at(snapshot)
        left = self.clocks.setdefault(phase, Clock()).left(share)
        tenth = int(10 * share + 1e-9)
        if self.said.get(phase) == tenth:
            return
        self.said[phase] = tenth
        best = ", ".join(f"{a} -> {b} {p:.2f}" for a, b, p in top_edges(self.names, probabilities)[:3])
        say(f"{phase}: " + ", ".join(f"{k} {v}" for k, v in {**facts, "left": left}.items()) + f"; {best}")


def looked_at(snapshot: Any) -> tuple[str, float, dict[str, str], np.ndarray]:
    """Phase, share of it, what to say, and edge probabilities; of DiBS, or of the chains that follow it."""
    if hasattr(snapshot, "moves"):
        found = snapshot.diagnostics
        facts = {"moves": f"{snapshot.moves:,}", "error": "--"}
        if found is not None:
            facts["error"] = f"{found.error:.4f}"
            facts["R̂"] = f"{max(found.rhat, found.rhat_log_posterior):.3f}"
        facts["error"] += f" (wanted {snapshot.precision:g})"
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
    """The most probable edges by name."""
    pairs = [divmod(int(k), len(names)) for k in np.argsort(-probabilities, axis=None, kind="stable")[:top]]
    return [(names[i], names[j], float(probabilities[i, j])) for i, j in pairs if i != j]
