"""Whatever fails, and wherever, the previous file is there; damage to a sealed one is seen."""

import errno
import os
import stat

import pytest

from dagpost._util import files
from dagpost._util.files import TRAILER, read_sealed, seal, unseal, write_atomically
from dagpost.errors import InputError
from tests.faults import OF_ONE_WRITE, Failing


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        path = write_atomically(tmp_path / "a", b"one")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_nothing_is_overwritten_unasked(tmp_path):
    path = write_atomically(tmp_path / "a", b"one")
    with pytest.raises(InputError, match="a exists: give another name, or overwrite=True"):
        write_atomically(path, b"two")
    assert path.read_bytes() == b"one"
    write_atomically(path, b"two", overwrite=True)
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_taken_in_the_meantime_is_respected(tmp_path, monkeypatch):
    """Another process writes the file while ours is being written."""
    path, real = tmp_path / "a", os.write

    def slow(handle, data):
        path.write_bytes(b"theirs")
        return real(handle, data)

    monkeypatch.setattr(os, "write", slow)
    with pytest.raises(InputError, match="exists"):
        write_atomically(path, b"ours")
    assert path.read_bytes() == b"theirs"
    assert len(list(tmp_path.iterdir())) == 1


def test_file_systems_without_links(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "link", no_links)
    assert write_atomically(tmp_path / "a", b"one").read_bytes() == b"one"
    with pytest.raises(InputError, match="exists"):
        write_atomically(tmp_path / "a", b"two")


@pytest.mark.parametrize(
    "path, message",
    [
        ("", "not the path"),
        ("a\0b", "not the path"),
        (3, "not the path"),
        ("no/such/folder/a", "no folder"),
        (".", "is a folder"),
    ],
)
def test_bad_paths_are_named(path, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        write_atomically(path, b"")


def test_all_calls_are_counted(tmp_path, monkeypatch):
    counter = Failing(at=10**9)
    monkeypatch.setattr(files, "os", counter)
    write_atomically(tmp_path / "file", b"x" * 100, overwrite=True)
    assert counter.calls == OF_ONE_WRITE


@pytest.mark.parametrize("onwards", [False, True])
def test_a_failure_at_any_call_leaves_the_old_file_or_the_new(tmp_path, monkeypatch, onwards):
    path, old, new = tmp_path / "file", b"old" * 50, b"new" * 50
    for at in range(OF_ONE_WRITE):
        path.write_bytes(old)
        monkeypatch.setattr(files, "os", Failing(at, onwards))
        with pytest.raises(OSError, match=r"file could not be written \(No space"):
            write_atomically(path, new, overwrite=True)
        monkeypatch.setattr(files, "os", os)
        assert path.read_bytes() in (old, new)
        if not onwards:
            assert list(tmp_path.iterdir()) == [path]


def test_short_writes_are_completed(tmp_path, monkeypatch):
    class Slow(Failing):
        def __getattr__(self, name):
            return (lambda handle, data: os.write(handle, data[:7])) if name == "write" else getattr(os, name)

    monkeypatch.setattr(files, "os", Slow(0))
    write_atomically(tmp_path / "file", bytes(range(100)))
    assert (tmp_path / "file").read_bytes() == bytes(range(100))


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
