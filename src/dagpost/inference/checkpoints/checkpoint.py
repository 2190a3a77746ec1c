"""`Checkpoint`: a folder that holds the last two states of one run, and the file format of a state.

A state is a sealed file (`dagpost._util.files`):

    magic (16 bytes) | length of the header (8) | header | arrays

The header is JSON: the facts, and the name, type and shape of every array. Nothing in it is executed. JAX trees, random
keys included, are stored as arrays by name (`tree_to_arrays`).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from dagpost._util.files import PARTIAL, Damaged, content_of, seal, try_lock, write_atomically
from dagpost.errors import CheckpointWarning, InputError, positive

MAGIC = b"dagpost-state-2\n"
LENGTH = struct.Struct("<Q")
KINDS = "biuf"  # NumPy kinds of arrays: booleans, integers and floats


class State(NamedTuple):
    """State of a run.

    Attributes
    ----------
    arrays
        Arrays by name.
    facts
        JSON values by name.
    """

    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]


def encode(state: State) -> bytes:
    """Return the state as bytes."""
    arrays = {name: np.asarray(array) for name, array in state.arrays.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in KINDS:
            raise TypeError(f"array {name!r} of type {array.dtype} cannot be saved in a checkpoint")
    table = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({"facts": state.facts, "arrays": table}).encode()
    return seal(b"".join([MAGIC, LENGTH.pack(len(header)), header, *(array.tobytes() for array in arrays.values())]))


def decode(content: bytes) -> State:
    """Return the state that was encoded; raise `Damaged` if the bytes differ."""
    inside = content_of(content)
    if bytes(inside[: len(MAGIC)]) != MAGIC:
        raise Damaged("it does not start like a checkpoint")
    try:
        return _unpack(inside[len(MAGIC) :])
    except (ValueError, TypeError, KeyError, struct.error) as error:
        raise Damaged(f"its header is invalid ({error})") from None


def read(path: Path) -> State:
    """Return the state in a file; raise `Damaged` if it is not intact."""
    return decode(path.read_bytes())


def _unpack(rest: memoryview) -> State:
    """Return the state in the bytes after the magic."""
    end = LENGTH.size + LENGTH.unpack_from(rest)[0]
    header = json.loads(bytes(rest[LENGTH.size : end]))
    arrays = {}
    for name, kind, shape in header["arrays"]:
        dtype = np.dtype(kind)
        if dtype.kind not in KINDS:
            raise ValueError(f"array {name!r} has type {kind}")
        count = math.prod(shape)
        arrays[name] = np.frombuffer(rest, dtype, count, end).reshape(shape).copy()
        end += count * dtype.itemsize
    if end != len(rest):
        raise ValueError("bytes after the last array")
    return State(arrays, header["facts"])


Tree = TypeVar("Tree")


def tree_to_arrays(tree: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the leaves by their path in the tree."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {f"{prefix}{jax.tree_util.keystr(path)}": _as_array(leaf) for path, leaf in leaves}


def tree_from_arrays(like: Tree, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Tree:
    """Return the tree with these leaves; `like` has the same paths, shapes and types."""
    leaves, shape = jax.tree_util.tree_flatten_with_path(like)
    out = []
    for path, leaf in leaves:
        name = f"{prefix}{jax.tree_util.keystr(path)}"
        array, expected = arrays.get(name), _as_array(leaf)
        if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
            raise InputError(f"the checkpoint has no {name!r} of shape {expected.shape} and type {expected.dtype}")
        bits = jnp.asarray(array)
        out.append(jax.random.wrap_key_data(bits, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else bits)
    return jax.tree.unflatten(shape, out)


def _is_key(leaf: Any) -> bool:
    """Return whether a leaf is a typed JAX random key."""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _as_array(leaf: Any) -> np.ndarray:
    """Return a leaf as a NumPy array; of a random key, its data."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


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
