"""States as bytes: what goes in comes out, or is refused."""

import json

import numpy as np
import pytest

from dagpost._util.files import Damaged, seal
from dagpost.inference.checkpoints.state import LENGTH, MAGIC, State, decode, encode, read

RNG = np.random.default_rng(0)
STATE = State(
    {
        "floats": RNG.normal(size=(3, 4)),
        "bits": RNG.random((2, 2, 2)) < 0.5,
        "words": RNG.integers(2**63, size=5, dtype=np.uint64),
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
