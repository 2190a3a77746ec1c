"""Every task gets its result, however many workers there are and whichever of them are lost."""

import os
import signal
import time
from pathlib import Path

import pytest

from dagpost._util import workers as module
from dagpost._util.workers import LocalWorkers, current_workers, use_workers, workers_of
from dagpost.errors import InputError, RunError
from tests.crews import Crew


def square(number):
    return number**2


def slow_square(number):
    time.sleep(0.05)
    return number**2


def fail(number):
    raise InputError(f"no such number: {number}")


def die_once(item):
    number, folder = item
    if number == 3 and not (Path(folder) / "died").exists():
        (Path(folder) / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("lose", [0, 2, 5])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_item_has_its_result(count, lose):
    crew = Crew(count, lose)
    assert dict(crew.results(square, range(10))) == {k: k**2 for k in range(10)}
    assert crew.recovered == (0 if not lose else (crew.tasks) // lose)
    assert crew.tasks == 10 + crew.recovered


def test_a_result_can_have_a_sequel():
    """Numbers are squared again until they exceed 1000; the index stays."""
    found = list(Crew(2, lose=3).results(square, [3, 40], lambda index, result: result if result < 1000 else None))
    assert sorted(found) == [(0, 9), (0, 81), (0, 6561), (1, 1600)]


def test_an_error_of_a_task_is_raised_here():
    with pytest.raises(InputError, match="no such number: 7"):
        list(Crew(2).results(fail, [7]))


def test_what_cannot_be_sent_is_named():
    with pytest.raises(InputError, match=r"cannot be sent to other processes \(.*pickle.*\): define their classes in"):
        list(Crew(1).results(square, [(k for k in range(3))]))


def test_workers_that_always_get_lost_end_the_run(monkeypatch):
    monkeypatch.setattr(module, "LOSSES", 3)
    with pytest.raises(RunError, match=r"lost 4 times in a row, the last with Lost"):
        list(Crew(1, lose=1).results(square, [1]))


def test_stopping_hands_out_no_more():
    done = []
    for _ in Crew(1).results(slow_square, range(100), stopping=lambda: len(done) > 2):
        done.append(1)
    assert 3 <= len(done) <= 5


def test_what_takes_too_long_to_stop_is_left(monkeypatch):
    monkeypatch.setattr(module, "GRACE", 0.0)
    assert list(Crew(1).results(slow_square, range(3), stopping=lambda: True)) == []


def test_another_version_is_refused():
    with pytest.raises(RunError, match=r"a worker has dagpost .*, and the run 0\.0: install"):
        module._perform(square, 3, "0.0")


def test_options():
    assert workers_of() is None
    assert isinstance(workers_of(2), LocalWorkers)
    with pytest.raises(InputError, match="workers=0"):
        workers_of(0)
    with pytest.raises(InputError, match="give one of the two"):
        workers_of(2, "tcp://127.0.0.1:9")


def test_workers_hold_for_their_context_only():
    crew = Crew(1)
    with use_workers(crew):
        assert current_workers() is crew
    assert current_workers() is None
    with pytest.raises(RuntimeError, match="shutdown"):
        crew.pool.submit(square, 1)


@pytest.mark.slow
def test_processes_are_replaced_when_one_is_killed(tmp_path):
    local = LocalWorkers(2)
    try:
        assert dict(local.results(die_once, [(k, str(tmp_path)) for k in range(6)])) == {k: k**2 for k in range(6)}
        assert (tmp_path / "died").exists()
    finally:
        local.close()


@pytest.mark.slow
def test_a_task_that_kills_its_processes_ends_the_run(monkeypatch):
    monkeypatch.setattr(module, "LOSSES", 1)
    local = LocalWorkers(1)
    try:
        with pytest.raises(RunError, match="lost 2 times in a row"):
            list(local.results(die, [1]))
        assert dict(local.results(square, [4])) == {0: 16}  # and leaves the workers usable
    finally:
        local.close()


@pytest.mark.slow
def test_a_killed_dask_worker_costs_its_tasks_only(tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        dask = workers_of(cluster=cluster.scheduler_address)
        assert dask is not None
        try:
            assert dict(dask.results(die_once, [(k, str(tmp_path)) for k in range(6)])) == {k: k**2 for k in range(6)}
            assert (tmp_path / "died").exists()
        finally:
            dask.close()


def test_where_no_scheduler_answers_one_line_says_so():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        module.DaskWorkers("tcp://127.0.0.1:9", patience=0.5)
