"""The run that saves itself: sections report what they have reached, the recorder decides when to write it down."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dagpost._util.clock import Clock, Pace
from dagpost.errors import CheckpointWarning, InputError
from dagpost.inference.checkpoints.checkpoint import Checkpoint
from dagpost.inference.checkpoints.container import State
from dagpost.inference.checkpoints.fingerprint import differences
from dagpost.inference.checkpoints.interruption import Interrupted, Note, noted_signals
from dagpost.inference.checkpoints.section import Section, Snapshot


class Recorder:
    """Holds the newest snapshot of every section, and writes all of them together."""

    def __init__(self, checkpoint: Checkpoint, fingerprint: dict[str, Any], found: dict[str, State], note: Note):
        self.checkpoint, self.fingerprint, self.found, self.note = checkpoint, fingerprint, found, note
        self.latest: dict[str, Snapshot] = {name: lambda state=state: state for name, state in found.items()}
        self.saved_at = time.monotonic()
        self.unsaved = False

    def section(self, name: str) -> Section:
        """One stage of the run, with the state that it was left in."""
        return _Recorded(self, name, self.found.get(name))

    def reached(self, name: str, snapshot: Snapshot) -> None:
        """A section is at a boundary: save if it is time to, end if told to."""
        self.latest[name], self.unsaved = snapshot, True
        self.check()
        if time.monotonic() - self.saved_at >= self.checkpoint.every:
            self.save()

    def check(self) -> None:
        """End the run if a signal asked for it, with the last boundary saved."""
        if self.note.number:
            self.save()
            where = f"the state is in '{self.checkpoint.folder}': the same call with resume=True goes on"
            raise Interrupted(
                f"interrupted; {where if self.latest else 'there was no state to save yet'}", self.note.number
            )

    def save(self) -> None:
        """Write the newest states; a run does not end because a disk is full."""
        if not self.unsaved:
            return
        try:
            self.checkpoint.save(
                _joined({name: snapshot() for name, snapshot in self.latest.items()}, self.fingerprint)
            )
            self.unsaved = False
        except OSError as error:
            warnings.warn(
                f"no state saved in '{self.checkpoint.folder}' ({error.strerror or error}): the one before stays",
                CheckpointWarning,
                stacklevel=2,
            )
        self.saved_at = time.monotonic()


class _Recorded(Section):
    def __init__(self, recorder: Recorder, name: str, found: State | None):
        self.recorder, self.name, self.found = recorder, name, found
        self.pace = Pace()

    @property
    def stopping(self) -> bool:
        return bool(self.recorder.note.number)

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
        found = _found(checkpoint, fingerprint, resume)
        with noted_signals() as note:
            recorder = Recorder(checkpoint, fingerprint, found, note)
            try:
                yield recorder
            finally:
                recorder.save()


def _found(checkpoint: Checkpoint, fingerprint: dict[str, Any], resume: bool) -> dict[str, State]:
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
    return _parted(state)


def _joined(states: dict[str, State], fingerprint: dict[str, Any]) -> State:
    arrays = {f"{name}/{key}": array for name, state in states.items() for key, array in state.arrays.items()}
    facts = {name: state.facts for name, state in states.items()}
    return State(arrays, {"fingerprint": fingerprint, "sections": facts})


def _parted(state: State) -> dict[str, State]:
    out = {name: State({}, facts) for name, facts in state.facts["sections"].items()}
    for key, array in state.arrays.items():
        name, rest = key.split("/", 1)
        out[name].arrays[rest] = array
    return out
