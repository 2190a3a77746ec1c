"""Ctrl-C and SIGTERM as a note that loops read when it suits them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A run was told to end and has saved its state first; `exit_code` is 130 after Ctrl-C, 143 after SIGTERM."""

    def __init__(self, message: str, number: int = signal.SIGINT):
        super().__init__(message)
        self.exit_code = 128 + number


class Note:
    """The number of the signal that came, or 0."""

    number: int = 0


@contextmanager
def noted_signals() -> Iterator[Note]:
    """Signals are noted instead of ending the process; a second one does what it always did.

    Handlers can be set in the main thread only: elsewhere signals stay as they are. So do ignored ones.
    """
    note = Note()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {s: h for s in SIGNALS if (h := signal.getsignal(s)) not in (signal.SIG_IGN, None)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def write_down(number: int, frame: FrameType | None) -> None:
        note.number = number
        restore()

    try:
        for number in before:
            signal.signal(number, write_down)
        yield note
    finally:
        restore()
