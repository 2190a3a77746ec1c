"""A folder that holds the last two states of one run."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagpost._util.files import PARTIAL, try_lock, write_atomically
from dagpost.errors import CheckpointWarning, InputError, positive
from dagpost.inference.checkpoints.state import Damaged, State, encode, read

SLOTS = ("state-0", "state-1")


class Checkpoint:
    """Two generations of a run's state in `folder`, saved about every `every` seconds.

    States take turns in two files, each replaced as a whole: while one is written the other is complete. They stay
    when a run is finished; `clear` removes them.

    >>> import tempfile
    >>> checkpoint = Checkpoint(tempfile.mkdtemp())
    >>> checkpoint.save(State({}, {"step": 5}))
    >>> checkpoint.load().facts["step"]
    5
    >>> checkpoint.clear()
    """

    def __init__(self, folder: str | os.PathLike[str], every: float = 60.0):
        if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
            raise InputError(f"checkpoint={folder!r}: give the path of a folder")
        self.folder = Path(folder)
        self.every = positive("checkpoint_every", every)
        self._number: int | None = None  # of the newest whole state; None before anybody has looked

    @property
    def exists(self) -> bool:
        """Whether a state is there, whole or not."""
        return any((self.folder / slot).exists() for slot in SLOTS)

    def save(self, state: State) -> None:
        """Put the state where the older of the two is."""
        if self._number is None:
            self._number = self._newest()[1]
        number = self._number + 1
        content = encode(State(state.arrays, {"number": number, "facts": state.facts}))
        write_atomically(self.folder / SLOTS[number % 2], content, overwrite=True)
        self._number = number

    def load(self) -> State | None:
        """The newest state that is whole, None where there is none; a damaged one is left out, with a warning."""
        state, self._number, damaged = self._newest()
        if state is None and damaged:
            what = "; ".join(f"{slot}: {why}" for slot, why in damaged.items())
            raise InputError(f"no state in '{self.folder}' can be read ({what}): delete the folder and start anew")
        for slot, why in damaged.items():
            warnings.warn(
                f"'{self.folder / slot}' is damaged ({why}): going on from the other state there",
                CheckpointWarning,
                stacklevel=2,
            )
        return state

    def _newest(self) -> tuple[State | None, int, dict[str, str]]:
        """The newest whole state and its number, and what is wrong with the others."""
        newest, highest, damaged = None, -1, {}
        for slot in SLOTS:
            try:
                state = read(self.folder / slot)
                number, facts = int(state.facts["number"]), state.facts["facts"]
            except FileNotFoundError:
                continue
            except OSError as error:
                damaged[slot] = f"it cannot be read, {error.strerror}"
                continue
            except Damaged as error:
                damaged[slot] = str(error)
                continue
            if number > highest:
                newest, highest = State(state.arrays, facts), number
        if newest is None and damaged:
            highest = -1  # both slots may be written
        return newest, highest, damaged

    def clear(self) -> None:
        """Remove the states, and the folder if nothing else is in it."""
        if not self.folder.exists():
            return
        with self.locked():
            for slot in SLOTS:
                (self.folder / slot).unlink(missing_ok=True)
        self._number = None
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The folder for one process only; it is made if need be. The lock ends with the process, however that ends."""
        is_new = not self.folder.exists()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
        except OSError as error:
            cure = "give a folder that can be written"
            raise InputError(f"checkpoint='{self.folder}': {error.strerror or error}: {cure}") from None
        with _lock(self.folder):
            for left_over in self.folder.glob(f".*{PARTIAL}"):
                left_over.unlink(missing_ok=True)  # a write that was killed
            try:
                yield
            finally:
                if is_new:
                    with contextlib.suppress(OSError):
                        self.folder.rmdir()  # nothing came of it


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    if os.name != "posix":  # folders cannot be opened there
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not try_lock(handle):
            what = f"another run writes checkpoints to '{folder}'"
            raise InputError(f"{what}: wait for it, or give another folder")
        yield
    finally:
        os.close(handle)
