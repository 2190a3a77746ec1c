import errno
import os

import pytest

from dagpost._util.files import try_lock
from dagpost.inference.checkpoints import Checkpoint
from dagpost.interfaces.cli.output import output_folder

fcntl = pytest.importorskip("fcntl")


@pytest.fixture
def handles(tmp_path):
    opened = [os.open(tmp_path, os.O_RDONLY) for _ in range(2)]
    yield opened
    for handle in opened:
        os.close(handle)


def test_one_holder_at_a_time(handles):
    one, two = handles
    assert try_lock(one) and not try_lock(two) and try_lock(one)
    fcntl.flock(one, fcntl.LOCK_UN)
    assert try_lock(two)


def test_a_file_system_without_locks_is_no_obstacle(handles, tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert try_lock(handles[0]) and try_lock(handles[1])
    with Checkpoint(tmp_path / "state").locked(), output_folder(tmp_path / "run", [], overwrite=False) as folder:
        assert folder.is_dir()
