"""Writing a file as a whole or not at all."""

import os

import pytest

from dagpost import atomic
from dagpost.atomic import write_atomically
from dagpost.errors import InputError
from tests.faults import OF_ONE_WRITE, Failing


def test_all_calls_are_counted(tmp_path, monkeypatch):
    counter = Failing(at=10**9)
    monkeypatch.setattr(atomic, "os", counter)
    write_atomically(tmp_path / "file", b"x" * 100)
    assert counter.calls == OF_ONE_WRITE


@pytest.mark.parametrize("onwards", [False, True])
def test_a_failure_at_any_call_leaves_the_old_file_or_the_new(tmp_path, monkeypatch, onwards):
    path, old, new = tmp_path / "file", b"old" * 50, b"new" * 50
    for at in range(OF_ONE_WRITE):
        path.write_bytes(old)
        monkeypatch.setattr(atomic, "os", Failing(at, onwards))
        with pytest.raises(OSError, match="No space"):
            write_atomically(path, new)
        monkeypatch.setattr(atomic, "os", os)
        assert path.read_bytes() in (old, new)
        if not onwards:
            assert list(tmp_path.iterdir()) == [path]


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
