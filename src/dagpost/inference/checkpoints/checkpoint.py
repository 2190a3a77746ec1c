"""`Checkpoint`: a folder that holds the last two states of one run."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagpost._util.files import PARTIAL, Damaged, try_lock, write_atomically
from dagpost.errors import CheckpointWarning, InputError, positive
from dagpost.inference.checkpoints.state import State, encode, read

SLOTS = ("state-0", "state-1")


class Checkpoint:
    """Folder for the last two states of a run.

    States alternate between two files, each replaced atomically: while one is written, the other is complete. They
    remain when the run is finished; `clear` removes them.

    Parameters
    ----------
    folder
        Folder for the states; it is created if necessary.
    every
        Seconds between saves, approximately.

    Examples
    --------
    >>> import tempfile
    >>> checkpoint = Checkpoint(tempfile.mkdtemp())
    >>> checkpoint.save(State({}, {"step": 5}))
    >>> checkpoint.load().facts["step"]
    5
    >>> checkpoint.clear()
    """

    def __init__(self, folder: str | os.PathLike[str], every: float = 60.0):
        if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
            raise InputError(f"checkpoint={folder!r}: must be the path of a folder")
        self.folder = Path(folder)
        self.every = positive("checkpoint_every", every)
        self._number: int | None = None  # number of the newest intact state; None before the folder was read

    @property
    def exists(self) -> bool:
        """Whether the folder has a state, intact or damaged."""
        return any((self.folder / slot).exists() for slot in SLOTS)

    def save(self, state: State) -> None:
        """Write the state over the older of the two.

        Parameters
        ----------
        state
            Arrays and facts; facts must be JSON values.
        """
        if self._number is None:
            self._number = self._newest()[1]
        number = self._number + 1
        content = encode(State(state.arrays, {"number": number, "facts": state.facts}))
        write_atomically(self.folder / SLOTS[number % 2], content, overwrite=True)
        self._number = number

    def load(self) -> State | None:
        """Return the newest intact state; a damaged one is skipped with a warning.

        Returns
        -------
        State or None
            None if there is no state.
        """
        state, self._number, damaged = self._newest()
        if state is None and damaged:
            reasons = "; ".join(f"{slot}: {why}" for slot, why in damaged.items())
            raise InputError(f"no state in '{self.folder}' can be read ({reasons}): delete the folder and start again")
        for slot, why in damaged.items():
            warnings.warn(
                f"'{self.folder / slot}' is damaged ({why}): continuing from the other state in the folder",
                CheckpointWarning,
                stacklevel=2,
            )
        return state

    def _newest(self) -> tuple[State | None, int, dict[str, str]]:
        """Return the newest intact state, its number, and what is wrong with damaged ones."""
        newest, highest, damaged = None, -1, {}
        for slot in SLOTS:
            try:
                state = read(self.folder / slot)
                number, facts = int(state.facts["number"]), state.facts["facts"]
            except FileNotFoundError:
                continue
            except OSError as error:
                damaged[slot] = f"it cannot be read: {error.strerror}"
                continue
            except Damaged as error:
                damaged[slot] = str(error)
                continue
            if number > highest:
                newest, highest = State(state.arrays, facts), number
        if newest is None and damaged:
            highest = -1  # both slots may be overwritten
        return newest, highest, damaged

    def clear(self) -> None:
        """Delete the states, and the folder if it is then empty."""
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
        """Lock the folder for this process; create it if necessary. The lock is released when the process ends."""
        is_new = not self.folder.exists()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
        except OSError as error:
            cure = "give a folder that can be written to"
            raise InputError(f"checkpoint='{self.folder}': {error.strerror or error}: {cure}") from None
        with _lock(self.folder):
            for left_over in self.folder.glob(f".*{PARTIAL}"):
                left_over.unlink(missing_ok=True)  # from a write that was killed
            try:
                yield
            finally:
                if is_new:
                    with contextlib.suppress(OSError):
                        self.folder.rmdir()  # removed only if nothing was saved


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder, or raise if another process holds it."""
    if os.name != "posix":  # folders cannot be opened on other systems
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not try_lock(handle):
            raise InputError(f"another run writes checkpoints to '{folder}': wait for it to end, or use another folder")
        yield
    finally:
        os.close(handle)
