"""Time limits: a clock that excludes compilation time, and work split into parts of roughly equal duration.

Compiling takes up to a minute on a new installation and almost no time afterwards, so a limit that included it would
depend on the state of the caches. JAX and numba report their compilation times; the clock subtracts them, and a run
records the total.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import cache

from dagpost.errors import positive

PART_SECONDS = 0.4
"""Target duration of one call of compiled code; the clock is checked between calls."""

JAX_EVENTS = tuple(
    f"/jax/core/compile/{stage}_duration" for stage in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")
)


class _CompileTime:
    """Total seconds this process has spent compiling, as reported by JAX and numba."""

    def __init__(self):
        from jax import monitoring
        from numba.core import event

        self.seconds = 0.0
        self._spans: list[tuple[float, float]] = []  # disjoint, in order of time
        self._began: list[float] = []  # start times of the numba compilations in progress
        self._now = time.perf_counter
        total = self

        class Listener(event.Listener):
            def on_start(self, event: object) -> None:
                total._began.append(total._now())

            def on_end(self, event: object) -> None:
                total._add(total._began.pop())

        def add(event: str, duration_secs: float, **_: str | int) -> None:
            if event in JAX_EVENTS:
                total._add(total._now() - duration_secs)

        event.register("numba:compile", Listener())
        monitoring.register_event_duration_secs_listener(add)

    def _add(self, began: float) -> None:
        """Count a compilation from `began` to now, merged with earlier ones that overlap it (nested compilations)."""
        while self._spans and self._spans[-1][1] > began:
            earlier, ended = self._spans.pop()
            self.seconds -= ended - earlier
            began = min(began, earlier)
        self._spans.append((began, self._now()))
        self.seconds += self._spans[-1][1] - began


@cache
def _compile_time() -> _CompileTime:
    """Return the listener of this process, registered on first use."""
    return _CompileTime()


FOREVER = 1e9
"""Limit in seconds of a clock that only `Clock.stopped` ends."""


class Clock:
    """Stopwatch that excludes compilation time, with an optional limit.

    Parameters
    ----------
    limit
        Time limit in seconds; None for no limit.
    stopped
        Set when the clock is stopped; that of another clock makes this one stop with it.
    """

    def __init__(self, limit: float | None = None, stopped: threading.Event | None = None):
        self.limit = None if limit is None else positive("time_limit", limit)
        self.stopped = stopped or threading.Event()
        self._began, self._compiled = time.perf_counter(), _compile_time().seconds

    @property
    def compiling(self) -> float:
        """Seconds spent compiling since the clock was created."""
        return _compile_time().seconds - self._compiled

    @property
    def seconds(self) -> float:
        """Seconds since the clock was created, compilation excluded."""
        return time.perf_counter() - self._began - self.compiling

    @property
    def left(self) -> float:
        """Seconds until the limit; infinite without one."""
        if self.stopped.is_set():
            return 0.0
        return float("inf") if self.limit is None else self.limit - self.seconds

    @property
    def expired(self) -> bool:
        """Whether the limit has been reached."""
        return self.left <= 0

    def put_back(self, seconds: float) -> None:
        """Add seconds used by an earlier, interrupted part of the run."""
        self._began -= seconds

    def until(self, share: float) -> Clock:
        """Return a new clock that expires after this share of the remaining time."""
        return self.within(None if self.limit is None else share * self.left)

    def within(self, seconds: float | None) -> Clock:
        """Return a new clock with this limit that stops when this one is stopped."""
        return Clock(None if seconds is None else max(seconds, 1e-3), self.stopped)


class Pace:
    """Adaptive part size: the amount of work that takes about `PART_SECONDS`."""

    def __init__(self):
        self.amount = 1

    def parts(self, total: int, clock: Clock | None = None) -> Iterator[int]:
        """Yield the total in parts; stop early once the clock has expired or would expire during the next part."""
        took = 0.0
        while total > 0:
            if clock is not None and (clock.left <= 0 or took > 2 * clock.left):
                return
            part = min(self.amount, total)
            began = time.perf_counter(), _compile_time().seconds
            yield part
            took = time.perf_counter() - began[0] - (_compile_time().seconds - began[1])
            total -= part
            if took > PART_SECONDS:
                self.amount = max(1, part // 2)
            elif took < PART_SECONDS / 2 and part == self.amount:
                self.amount *= 2
            took *= min(self.amount, max(total, 1)) / part
