"""Writing a file as a whole or not at all."""

import errno
import os

import pytest

from dagpost import atomic
from dagpost.atomic import write_atomically
from dagpost.errors import InputError

CALLS = ("write", "fsync", "close", "replace", "link", "open")


class Failing:
    """The `os` module, except that its n-th call of those in CALLS fails; with `onwards`, so do all after it."""

    def __init__(self, at: int, onwards: bool = False):
        self.at, self.onwards, self.calls = at, onwards, 0

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in CALLS and not (self.onwards and name == "unlink" and self.calls > self.at):
            return real

        def call(*arguments):
            self.calls += 1
            if self.calls - 1 == self.at or (self.onwards and self.calls > self.at):
                if name == "write":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])  # what fits on a full disk
                if name == "close":
                    real(*arguments)
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments)

        return call


def calls_of_a_write(tmp_path, monkeypatch) -> int:
    counter = Failing(at=10**9)
    monkeypatch.setattr(atomic, "os", counter)
    write_atomically(tmp_path / "counted", b"x" * 100)
    monkeypatch.setattr(atomic, "os", os)
    return counter.calls


@pytest.mark.parametrize("onwards", [False, True])
def test_a_failure_at_any_call_leaves_the_old_file_or_the_new(tmp_path, monkeypatch, onwards):
    path, old, new = tmp_path / "file", b"old" * 50, b"new" * 50
    total = calls_of_a_write(tmp_path, monkeypatch)
    assert total >= 6  # write, fsync, close, replace; open, fsync, close of the folder
    for at in range(total):
        path.write_bytes(old)
        monkeypatch.setattr(atomic, "os", Failing(at, onwards))
        with pytest.raises(OSError, match="No space"):
            write_atomically(path, new)
        monkeypatch.setattr(atomic, "os", os)
        assert path.read_bytes() in (old, new)
        if not onwards:
            assert sorted(p.name for p in tmp_path.iterdir()) == ["counted", "file"]


def test_short_writes_are_completed(tmp_path, monkeypatch):
    class Slow(Failing):
        def __getattr__(self, name):
            return (lambda handle, data: os.write(handle, data[:7])) if name == "write" else getattr(os, name)

    monkeypatch.setattr(atomic, "os", Slow(0))
    write_atomically(tmp_path / "file", bytes(range(100)))
    assert (tmp_path / "file").read_bytes() == bytes(range(100))


def test_existing_files_stay_unless_told_otherwise(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"one", overwrite=False)
    with pytest.raises(InputError, match="exists"):
        write_atomically(path, b"two", overwrite=False)
    assert path.read_bytes() == b"one"
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]
