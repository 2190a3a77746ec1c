"""Two generations in a folder: whatever happens to one, the other is there. States as bytes: what goes in comes out."""

import json
import os
import warnings

import numpy as np
import pytest

from dagpost._util import files
from dagpost._util.files import Damaged, seal
from dagpost.errors import CheckpointWarning, InputError
from dagpost.inference.checkpoints import Checkpoint, State
from dagpost.inference.checkpoints.checkpoint import LENGTH, MAGIC, decode, encode, read
from tests.faults import OF_ONE_WRITE, Failing, flipped, truncated

RNG = np.random.default_rng(1)


def state(number: int) -> State:
    return State({"x": np.full(50, float(number))}, {"number": number})


def number_in(folder) -> int:
    """Of the state that loads, whose parts must fit together; -1 if there is none."""
    found = Checkpoint(folder).load()
    if found is None:
        return -1
    assert (found.arrays["x"] == found.facts["number"]).all()
    return found.facts["number"]


def test_the_newest_state_loads(tmp_path):
    checkpoint = Checkpoint(tmp_path / "new" / "folder")
    assert checkpoint.load() is None and not checkpoint.exists
    with checkpoint.locked():
        for n in range(5):
            checkpoint.save(state(n))
            assert number_in(checkpoint.folder) == n
    again = Checkpoint(checkpoint.folder)  # goes on counting without having loaded
    again.save(state(5))
    assert number_in(checkpoint.folder) == 5
    again.clear()
    assert not checkpoint.folder.exists()
    again.clear()


@pytest.mark.parametrize("onwards", [False, True])
def test_failures_at_any_call_leave_a_state(tmp_path, monkeypatch, onwards):
    for at in range(OF_ONE_WRITE):
        checkpoint = Checkpoint(tmp_path / str(at))
        with checkpoint.locked():
            for n in range(3):
                checkpoint.save(state(n))
            monkeypatch.setattr(files, "os", Failing(at, onwards))
            with pytest.raises(OSError, match="No space"):
                checkpoint.save(state(3))
            monkeypatch.setattr(files, "os", os)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert number_in(checkpoint.folder) in (2, 3)
            checkpoint.save(state(4))
            assert number_in(checkpoint.folder) == 4
        with checkpoint.locked():
            pass
        assert not list(checkpoint.folder.glob(".*"))  # left-over temporary files


@pytest.mark.slow
@pytest.mark.parametrize(("how", "times"), [(flipped, 1000), (truncated, 200)])
def test_damage_is_never_accepted(tmp_path, how, times):
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save(state(0))
    checkpoint.save(state(1))
    newest = tmp_path / "state-1"
    content = newest.read_bytes()
    for _ in range(times):
        newest.write_bytes(how(content, RNG))
        with pytest.warns(CheckpointWarning, match="state-1.*damaged"):
            assert number_in(tmp_path) == 0
    with pytest.warns(CheckpointWarning):
        checkpoint = Checkpoint(tmp_path)
        checkpoint.load()
    checkpoint.save(state(7))  # takes the place of the damaged one, not of the good one
    assert number_in(tmp_path) == 7
    newest.unlink()
    assert number_in(tmp_path) == 0


def test_when_both_are_damaged_it_says_so(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    for n in range(2):
        checkpoint.save(state(n))
        path = tmp_path / f"state-{n}"
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"state-0: its checksum trailer is missing; state-1"):
        Checkpoint(tmp_path).load()


def test_one_writer_at_a_time(tmp_path):
    second = Checkpoint(tmp_path).locked()
    with Checkpoint(tmp_path).locked(), pytest.raises(InputError, match="another run"):
        second.__enter__()
    with Checkpoint(tmp_path).locked():
        pass


@pytest.mark.parametrize("folder", ["", 3, None])
def test_folders_are_named(folder):
    with pytest.raises(InputError, match="folder"):
        Checkpoint(folder)


def test_folders_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can be written"), Checkpoint(tmp_path / "file").locked():
        pass
    with pytest.raises(InputError, match="checkpoint_every=0"):
        Checkpoint(tmp_path, every=0)


DRAWN = np.random.default_rng(0)
STATE = State(
    {
        "floats": DRAWN.normal(size=(3, 4)),
        "bits": DRAWN.random((2, 2, 2)) < 0.5,
        "words": DRAWN.integers(2**63, size=5, dtype=np.uint64),
        "scalar": np.asarray(np.float32(np.nan)),
        "empty": np.zeros((0, 7), np.int32),
    },
    {"step": 3, "name": "Erk ½", "big": 2**127, "nested": {"list": [1.5, None, True]}},
)


def test_round_trip():
    back = decode(encode(STATE))
    assert back.facts == STATE.facts and list(back.arrays) == list(STATE.arrays)
    for name, array in STATE.arrays.items():
        assert back.arrays[name].dtype == array.dtype and back.arrays[name].shape == array.shape
        assert back.arrays[name].tobytes() == array.tobytes()
        assert back.arrays[name].flags.writeable


def test_objects_have_no_place():
    with pytest.raises(TypeError, match="'thing'"):
        encode(State({"thing": np.array([object()])}, {}))


def test_every_flipped_bit_is_noticed():
    content = encode(STATE)
    for place in range(len(content)):
        for bit in (0, 7):
            wrong = bytearray(content)
            wrong[place] ^= 1 << bit
            with pytest.raises(Damaged):
                decode(bytes(wrong))


def test_every_truncation_and_addition_is_noticed(tmp_path):
    content, path = encode(STATE), tmp_path / "state"
    for length in range(len(content)):
        with pytest.raises(Damaged):
            decode(content[:length])
    path.write_bytes(content + b"\0")
    with pytest.raises(Damaged, match="trailer"):
        read(path)


def test_other_sealed_files_are_no_checkpoints():
    with pytest.raises(Damaged, match="start like a checkpoint"):
        decode(seal(b"a posterior, say"))


@pytest.mark.parametrize(
    "arrays", [[["x", "O", [1]]], [["x", "<f8", [10**6]]], [["x", "<f8", [-1]]], [["x", "nonsense", [1]]], "x", []]
)
def test_headers_are_not_trusted(arrays):
    """With a checksum that fits: a file made on purpose."""
    header = json.dumps({"facts": {}, "arrays": arrays}).encode()
    with pytest.raises(Damaged):
        decode(seal(MAGIC + LENGTH.pack(len(header)) + header + bytes(16)))
