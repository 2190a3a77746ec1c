"""Whatever fails, and wherever, the previous file is there."""

import errno
import os
import stat

import pytest

from dagpost.atomic import write_atomically
from dagpost.errors import InputError

CALLS = ("open", "fsync", "replace", "link", "unlink", "close")


def test_bytes_and_writers(tmp_path):
    path = write_atomically(tmp_path / "a", b"one")
    assert path.read_bytes() == b"one"
    write_atomically(path, lambda stream: stream.write(b"two"), overwrite=True)
    assert path.read_bytes() == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


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


def test_a_name_taken_in_the_meantime_is_respected(tmp_path):
    """Another process writes the file while ours is being written."""
    path = tmp_path / "a"

    def slow(stream):
        stream.write(b"ours")
        path.write_bytes(b"theirs")

    with pytest.raises(InputError, match="exists"):
        write_atomically(path, slow)
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


class Failing:
    """Counts the calls to functions of `os` that touch the disk, and fails at the chosen one."""

    def __init__(self, monkeypatch, at=None):
        self.at, self.count, self.names = at, 0, []
        for name in CALLS:
            monkeypatch.setattr(os, name, self.wrapped(name, getattr(os, name)))

    def wrapped(self, name, function):
        def call(*arguments, **options):
            self.count += 1
            self.names.append(name)
            if self.count == self.at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return function(*arguments, **options)

        return call


class FullDisk:
    """A stream whose n-th write fails."""

    def __init__(self, stream, after):
        self.stream, self.left = stream, after

    def write(self, data):
        if self.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.left -= 1
        return self.stream.write(data)


def test_a_failure_at_any_call_leaves_one_whole_file(tmp_path):
    path = write_atomically(tmp_path / "a", b"old")
    with pytest.MonkeyPatch.context() as patch:
        counted = Failing(patch)
        write_atomically(path, b"new", overwrite=True)
    assert {"fsync", "replace"} <= set(counted.names) and counted.names.count("fsync") == 2
    for at in range(1, counted.count + 1):
        write_atomically(path, b"old", overwrite=True)
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, at)
            try:
                write_atomically(path, b"new", overwrite=True)
            except OSError as error:
                assert "a could not be written (No space left on device)" in str(error)
            else:
                assert failing.names[at - 1] == "unlink"  # only the tidying up may fail silently
        renamed = "replace" in failing.names[: at - 1]
        assert path.read_bytes() == (b"new" if renamed else b"old")
        assert len(list(tmp_path.iterdir())) == 1 or failing.names[at - 1] == "unlink"


@pytest.mark.parametrize("after", range(3))
def test_a_failing_write_leaves_the_old_file(tmp_path, after):
    path = write_atomically(tmp_path / "a", b"old")

    def content(stream):
        disk = FullDisk(stream, after)
        for part in (b"n", b"e", b"w"):
            disk.write(part)

    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, content, overwrite=True)
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1
