"""Recording of checkpoints during a run.

A loop sees a `Section`: the state it was left in, a call to report boundaries at which it can be resumed, and a check
whether to stop. A `Recorder` holds the newest state of every section and decides when to save. `catch_signals` turns
Ctrl-C and SIGTERM into a flag that the sections check, so that a run saves its state before it ends.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from dagpost._util.clock import Clock, Pace
from dagpost._util.environment import differences
from dagpost.errors import CheckpointWarning, InputError
from dagpost.inference.checkpoints.checkpoint import Checkpoint, State

Snapshot = Callable[[], State]
"""A function that returns a state, the same one however late it is called."""


class Section:
    """One stage of a run. This base class saves nothing and never stops: it is for runs without checkpoints.

    Attributes
    ----------
    found
        State that the stage was left in, None if it starts from the beginning.
    """

    found: State | None = None

    @property
    def stopping(self) -> bool:
        """Whether the run has been asked to stop."""
        return False

    def reached(self, snapshot: Snapshot) -> None:
        """Report a boundary, from which the stage can be resumed.

        Parameters
        ----------
        snapshot
            Function that returns the state at the boundary, called only if it is saved.
        """

    def check(self) -> None:
        """Stop between boundaries if asked to; the state of the last boundary is saved."""

    def parts(self, total: int, clock: Clock | None = None) -> Iterator[int]:
        """Yield an amount of work in parts short enough to be interrupted in between.

        Parameters
        ----------
        total
            Amount of work, such as a number of steps.
        clock
            Time limit; the parts end when it expires.
        """
        if clock is not None and clock.limit is not None:
            yield from Pace().parts(total, clock)
        elif total > 0:
            yield total


NULL_SECTION = Section()
"""Section of a run without checkpoints."""


class Sections(Protocol):
    """Factory of sections."""

    def section(self, name: str) -> Section:
        """Return the section of this name."""
        ...


def section_of(sections: Sections | None, name: str) -> Section:
    """Return the section of this name; `NULL_SECTION` if `sections` is None."""
    return NULL_SECTION if sections is None else sections.section(name)


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Raised when a signal stops a run, after its state is saved.

    Attributes
    ----------
    exit_code
        130 after Ctrl-C, 143 after SIGTERM.
    """

    def __init__(self, message: str, number: int = signal.SIGINT):
        super().__init__(message)
        self.exit_code = 128 + number


class CaughtSignal:
    """Number of the signal caught, or 0."""

    number: int = 0


@contextmanager
def catch_signals(
    signals: Iterable[signal.Signals] = SIGNALS, react: Callable[[], None] = lambda: None
) -> Iterator[CaughtSignal]:
    """Record the first signal instead of ending the process; a second one has its usual effect.

    Handlers can be set in the main thread only; in other threads signals keep their handlers. So do ignored signals.

    Parameters
    ----------
    signals
        Signals to catch.
    react
        Called when one is caught.
    """
    caught = CaughtSignal()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {s: h for s in signals if (h := signal.getsignal(s)) not in (signal.SIG_IGN, None)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        caught.number = number
        restore()
        react()

    try:
        for number in before:
            signal.signal(number, handle)
        yield caught
    finally:
        restore()


class Recorder:
    """Holds the newest snapshot of every section and saves all of them in one state.

    Parameters
    ----------
    checkpoint
        Folder to save to.
    fingerprint
        Description of the run, saved with the state.
    found
        States by section to resume from; empty for a new run.
    caught
        Flag of a signal that asks the run to stop.
    """

    def __init__(
        self, checkpoint: Checkpoint, fingerprint: dict[str, Any], found: dict[str, State], caught: CaughtSignal
    ):
        self.checkpoint, self.fingerprint, self.found, self.caught = checkpoint, fingerprint, found, caught
        self.latest: dict[str, Snapshot] = {name: lambda state=state: state for name, state in found.items()}
        self.saved_at = time.monotonic()
        self.unsaved = False

    def section(self, name: str) -> Section:
        """Return the section of this name, with the state that it was left in."""
        return _RecordedSection(self, name, self.found.get(name))

    def reached(self, name: str, snapshot: Snapshot) -> None:
        """Record the boundary of a section; save if it is time to, stop if a signal was caught."""
        self.latest[name], self.unsaved = snapshot, True
        self.check()
        if time.monotonic() - self.saved_at >= self.checkpoint.every:
            self.save()

    def check(self) -> None:
        """Save the last boundary and stop the run if a signal was caught."""
        if self.caught.number:
            self.save()
            where = f"the state is in '{self.checkpoint.folder}': repeat the call with resume=True to continue"
            raise Interrupted(
                f"interrupted; {where if self.latest else 'there was no state to save yet'}", self.caught.number
            )

    def save(self) -> None:
        """Save the newest states; if that fails, as on a full disk, warn and continue."""
        if not self.unsaved:
            return
        try:
            self.checkpoint.save(
                _merge_sections({name: snapshot() for name, snapshot in self.latest.items()}, self.fingerprint)
            )
            self.unsaved = False
        except OSError as error:
            warnings.warn(
                f"cannot save to '{self.checkpoint.folder}' ({error.strerror or error}): the previous state is kept",
                CheckpointWarning,
                stacklevel=2,
            )
        self.saved_at = time.monotonic()


class _RecordedSection(Section):
    """A section that reports to a recorder."""

    def __init__(self, recorder: Recorder, name: str, found: State | None):
        self.recorder, self.name, self.found = recorder, name, found
        self.pace = Pace()

    @property
    def stopping(self) -> bool:
        return bool(self.recorder.caught.number)

    def reached(self, snapshot: Snapshot) -> None:
        self.recorder.reached(self.name, snapshot)

    def check(self) -> None:
        self.recorder.check()

    def parts(self, total: int, clock: Clock | None = None) -> Iterator[int]:
        return self.pace.parts(total, clock)


@contextmanager
def recording(
    checkpoint: Checkpoint, fingerprint: dict[str, Any], resume: bool, signals: Iterable[signal.Signals] = SIGNALS
) -> Iterator[Recorder]:
    """Provide a recorder for one run; however the run ends, its last boundary is saved.

    Parameters
    ----------
    checkpoint
        Folder to save to and resume from.
    fingerprint
        Description of the run; resuming requires the same one.
    resume
        Whether to continue from the state in the folder; without it the folder must have none.
    signals
        Signals that make the run save its state and stop.
    """
    with checkpoint.locked():
        found = _load_sections(checkpoint, fingerprint, resume)
        with catch_signals(signals) as caught:
            recorder = Recorder(checkpoint, fingerprint, found, caught)
            try:
                yield recorder
            finally:
                recorder.save()


def _load_sections(checkpoint: Checkpoint, fingerprint: dict[str, Any], resume: bool) -> dict[str, State]:
    """Return the states to resume from, by section; empty if the run starts from the beginning."""
    if not resume:
        if checkpoint.exists:
            raise InputError(
                f"'{checkpoint.folder}' holds the checkpoint of a run: resume it (resume=True), "
                "delete it, or use another folder"
            )
        return {}
    state = checkpoint.load()
    if state is None:
        warnings.warn(
            f"no checkpoint in '{checkpoint.folder}' to resume: the run starts from the beginning",
            CheckpointWarning,
            stacklevel=2,
        )
        return {}
    changes = list(differences(state.facts["fingerprint"], fingerprint))
    if changes:
        raise InputError(f"the checkpoint in '{checkpoint.folder}' belongs to another run: {'; '.join(changes)}")
    return _split_sections(state)


def _merge_sections(states: dict[str, State], fingerprint: dict[str, Any]) -> State:
    """Return one state that holds those of all sections."""
    arrays = {f"{name}/{key}": array for name, state in states.items() for key, array in state.arrays.items()}
    facts = {name: state.facts for name, state in states.items()}
    return State(arrays, {"fingerprint": fingerprint, "sections": facts})


def _split_sections(state: State) -> dict[str, State]:
    """Return the states by section; the inverse of `_merge_sections`."""
    out = {name: State({}, facts) for name, facts in state.facts["sections"].items()}
    for key, array in state.arrays.items():
        name, rest = key.split("/", 1)
        out[name].arrays[rest] = array
    return out
