"""What a loop knows of checkpoints: where it was left, what it has reached, and when to stop.

Ctrl-C and SIGTERM as a note that loops read when it suits them.

The run that saves itself: sections report what they have reached, the recorder decides when to write it down.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from dagpost._util.clock import Clock, Pace
from dagpost.errors import CheckpointWarning, InputError
from dagpost.inference.checkpoints.checkpoint import Checkpoint
from dagpost.inference.checkpoints.fingerprint import differences
from dagpost.inference.checkpoints.state import State

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


NULL_SECTION = Section()


class Sections(Protocol):
    """Who hands out sections."""

    def section(self, name: str) -> Section: ...


def section_of(sections: Sections | None, name: str) -> Section:
    """The stage of this name, of a run that may have no checkpoints."""
    return NULL_SECTION if sections is None else sections.section(name)


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A run was told to end and has saved its state first; `exit_code` is 130 after Ctrl-C, 143 after SIGTERM."""

    def __init__(self, message: str, number: int = signal.SIGINT):
        super().__init__(message)
        self.exit_code = 128 + number


class CaughtSignal:
    """The number of the signal that came, or 0."""

    number: int = 0


@contextmanager
def catch_signals() -> Iterator[CaughtSignal]:
    """Signals are noted instead of ending the process; a second one does what it always did.

    Handlers can be set in the main thread only: elsewhere signals stay as they are. So do ignored ones.
    """
    caught = CaughtSignal()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {s: h for s in SIGNALS if (h := signal.getsignal(s)) not in (signal.SIG_IGN, None)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        caught.number = number
        restore()

    try:
        for number in before:
            signal.signal(number, handle)
        yield caught
    finally:
        restore()


class Recorder:
    """Holds the newest snapshot of every section, and writes all of them together."""

    def __init__(
        self, checkpoint: Checkpoint, fingerprint: dict[str, Any], found: dict[str, State], caught: CaughtSignal
    ):
        self.checkpoint, self.fingerprint, self.found, self.caught = checkpoint, fingerprint, found, caught
        self.latest: dict[str, Snapshot] = {name: lambda state=state: state for name, state in found.items()}
        self.saved_at = time.monotonic()
        self.unsaved = False

    def section(self, name: str) -> Section:
        """One stage of the run, with the state that it was left in."""
        return _RecordedSection(self, name, self.found.get(name))

    def reached(self, name: str, snapshot: Snapshot) -> None:
        """A section is at a boundary: save if it is time to, end if told to."""
        self.latest[name], self.unsaved = snapshot, True
        self.check()
        if time.monotonic() - self.saved_at >= self.checkpoint.every:
            self.save()

    def check(self) -> None:
        """End the run if a signal asked for it, with the last boundary saved."""
        if self.caught.number:
            self.save()
            where = f"the state is in '{self.checkpoint.folder}': the same call with resume=True goes on"
            raise Interrupted(
                f"interrupted; {where if self.latest else 'there was no state to save yet'}", self.caught.number
            )

    def save(self) -> None:
        """Write the newest states; a run does not end because a disk is full."""
        if not self.unsaved:
            return
        try:
            self.checkpoint.save(
                _merge_sections({name: snapshot() for name, snapshot in self.latest.items()}, self.fingerprint)
            )
            self.unsaved = False
        except OSError as error:
            warnings.warn(
                f"no state saved in '{self.checkpoint.folder}' ({error.strerror or error}): the one before stays",
                CheckpointWarning,
                stacklevel=2,
            )
        self.saved_at = time.monotonic()


class _RecordedSection(Section):
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
def recording(checkpoint: Checkpoint, fingerprint: dict[str, Any], resume: bool) -> Iterator[Recorder]:
    """A recorder for one run; however the run ends, its last boundary is saved."""
    with checkpoint.locked():
        found = _load_sections(checkpoint, fingerprint, resume)
        with catch_signals() as caught:
            recorder = Recorder(checkpoint, fingerprint, found, caught)
            try:
                yield recorder
            finally:
                recorder.save()


def _load_sections(checkpoint: Checkpoint, fingerprint: dict[str, Any], resume: bool) -> dict[str, State]:
    if not resume:
        if checkpoint.exists:
            raise InputError(
                f"'{checkpoint.folder}' holds the checkpoint of a run: resume it (resume=True), "
                "delete it, or give another folder"
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
    apart = list(differences(state.facts["fingerprint"], fingerprint))
    if apart:
        raise InputError(f"the checkpoint in '{checkpoint.folder}' is of another run: {'; '.join(apart)}")
    return _split_sections(state)


def _merge_sections(states: dict[str, State], fingerprint: dict[str, Any]) -> State:
    arrays = {f"{name}/{key}": array for name, state in states.items() for key, array in state.arrays.items()}
    facts = {name: state.facts for name, state in states.items()}
    return State(arrays, {"fingerprint": fingerprint, "sections": facts})


def _split_sections(state: State) -> dict[str, State]:
    out = {name: State({}, facts) for name, facts in state.facts["sections"].items()}
    for key, array in state.arrays.items():
        name, rest = key.split("/", 1)
        out[name].arrays[rest] = array
    return out
