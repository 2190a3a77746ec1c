"""The time limit of a run: a clock that stands still while code is compiled.

Compiling takes a minute on a new installation and nothing later on, so a limit that counted it would mean something
else on every call. JAX and numba report how long they compile; the clock leaves that out, and a run says how long that
was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache

from dagpost.errors import positive

PART_SECONDS = 0.4
"""How long a call of compiled code may take, about, before somebody looks at the clock."""

JAX_EVENTS = tuple(
    f"/jax/core/compile/{stage}_duration" for stage in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")
)


class _Compiling:
    """Seconds spent compiling by this process so far, as JAX and numba report them."""

    def __init__(self):
        from jax import monitoring
        from numba.core import event

        self.seconds = 0.0
        self._spans: list[tuple[float, float]] = []  # that do not overlap, in order of time
        self._began: list[float] = []  # of the numba compilations under way
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
        """A compilation from then to now; those within it, which have ended before, are part of it."""
        while self._spans and self._spans[-1][1] > began:
            earlier, ended = self._spans.pop()
            self.seconds -= ended - earlier
            began = min(began, earlier)
        self._spans.append((began, self._now()))
        self.seconds += self._spans[-1][1] - began


@cache
def _compiling() -> _Compiling:
    return _Compiling()


class Clock:
    """Seconds since it was made, without those spent compiling, and how many are left of `limit` (None: no limit)."""

    def __init__(self, limit: float | None = None):
        self.limit = None if limit is None else positive("time_limit", limit)
        self._began, self._compiled = time.perf_counter(), _compiling().seconds

    @property
    def compiling(self) -> float:
        """Seconds spent compiling since the clock was made."""
        return _compiling().seconds - self._compiled

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began - self.compiling

    @property
    def left(self) -> float:
        """Seconds until the limit; infinite without one."""
        return float("inf") if self.limit is None else self.limit - self.seconds

    @property
    def expired(self) -> bool:
        return self.left <= 0

    def put_back(self, seconds: float) -> None:
        """Count seconds of an earlier, interrupted part of the run."""
        self._began -= seconds

    def until(self, share: float) -> Clock:
        """A clock that expires when this share of the time that is left now is over."""
        return Clock(None if self.limit is None else max(share * self.left, 1e-3))


class Pace:
    """How much work takes about `PART_SECONDS`, learned on the way."""

    def __init__(self):
        self.amount = 1

    def parts(self, total: int, clock: Clock | None = None) -> Iterator[int]:
        """The total in parts; the rest is left out when the clock has expired, or would before the next part ends."""
        took = 0.0
        while total > 0:
            if clock is not None and (clock.left <= 0 or took > 2 * clock.left):
                return
            part = min(self.amount, total)
            began = time.perf_counter(), _compiling().seconds
            yield part
            took = time.perf_counter() - began[0] - (_compiling().seconds - began[1])
            total -= part
            if took > PART_SECONDS:
                self.amount = max(1, part // 2)
            elif took < PART_SECONDS / 2 and part == self.amount:
                self.amount *= 2
            took *= min(self.amount, max(total, 1)) / part
