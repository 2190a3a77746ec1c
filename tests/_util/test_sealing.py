import pytest

from dagpost._util.sealing import TRAILER, read_sealed, seal, unseal
from dagpost.errors import InputError


def test_round_trip():
    for content in (b"", b"a", bytes(range(256)) * 10):
        assert bytes(unseal(seal(content), "f")) == content


def test_every_bit_flip_and_truncation_is_seen():
    raw = seal(b"some content")
    for place in range(len(raw)):
        for bit in range(8):
            damaged = bytearray(raw)
            damaged[place] ^= 1 << bit
            with pytest.raises(InputError, match="f is"):
                unseal(bytes(damaged), "f")
    for length in range(len(raw)):
        with pytest.raises(InputError, match="f is"):
            unseal(raw[:length], "f")
    with pytest.raises(InputError):
        unseal(raw + b"x", "f")


def test_a_seal_within_a_seal_is_not_taken_for_the_end():
    inner = seal(b"inner")
    assert bytes(unseal(seal(inner), "f")) == inner
    with pytest.raises(InputError):
        unseal(b"before" + inner, "f")


def test_files_are_looked_at_before_they_are_read(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(seal(b"x" * 100))
    assert bytes(read_sealed(path, 1000)) == b"x" * 100
    with pytest.raises(InputError, match="above the limit"):
        read_sealed(path, 99 + TRAILER)
    with pytest.raises(InputError, match="no such file"):
        read_sealed(tmp_path / "b", 1000)
    with pytest.raises(InputError, match="is a folder: give a file that dagpost wrote"):
        read_sealed(tmp_path, 1000)
    with pytest.raises(InputError, match="not the path"):
        read_sealed("", 1000)
