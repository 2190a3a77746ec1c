"""Time limits by default, and Ctrl-C: both give an answer with its verdict."""

import os
import signal
import threading

import numpy as np
import pytest

import dagpost as dp
from dagpost._util.clock import Clock
from dagpost.inference.auto import NUMERICAL_TIME_LIMIT, TIME_LIMIT, Auto
from dagpost.inference.fit import is_interactive
from dagpost.inference.method import Problem
from dagpost.models import as_model
from dagpost.priors import as_prior

pytestmark = pytest.mark.usefixtures("usual_ctrl_c")
SIM = dp.simulate(nodes=21, observations=60, seed=2, interventional_sets=0)


def problem(model="bge", data=SIM.train, clock=None):
    return Problem(data, as_model(model), as_prior("unknown-density"), 0, clock or Clock())


def test_chains_have_a_limit_by_default_and_nothing_else_has():
    few = dp.simulate(nodes=5, observations=30, seed=1, interventional_sets=0).train
    assert Auto().default_time_limit(problem()) == TIME_LIMIT
    assert Auto(precision=0.01).default_time_limit(problem()) is None
    assert Auto(max_moves=1000).default_time_limit(problem()) is None
    assert Auto().default_time_limit(problem(data=few)) is None  # exact
    some = dp.simulate(nodes=15, observations=30, seed=1, interventional_sets=0).train
    assert Auto().default_time_limit(problem(data=some)) == TIME_LIMIT  # draws
    assert Auto().default_time_limit(problem("mlp")) == NUMERICAL_TIME_LIMIT
    assert dp.Dibs().default_time_limit(problem()) is None


def test_the_plan_is_said_beforehand():
    few = dp.simulate(nodes=5, observations=30, seed=1, interventional_sets=0).train
    assert "exact sum over all graphs of 5 columns" in Auto().plan(problem(data=few))
    assert "chains" in Auto().plan(problem(clock=Clock(120.0))) and "120 s" in Auto().plan(problem(clock=Clock(120.0)))
    assert "for" not in Auto().plan(problem()).rpartition("at most")[2]
    assert "chains over graphs, on numerical evidence" in Auto().plan(problem("mlp"))


def interrupt_at(batch):
    calls = 0

    def callback(snapshot):
        nonlocal calls
        calls += 1
        if calls == batch:
            os.kill(os.getpid(), signal.SIGINT)

    return callback


@pytest.mark.slow
def test_ctrl_c_gives_an_answer(capsys):
    before = signal.getsignal(signal.SIGINT)
    post = dp.fit(SIM.train, "bge", precision=1e-6, on_interrupt="answer", callback=interrupt_at(8), progress=False)
    assert len(post) == 1000 and "Stopped by Ctrl-C" in post.record.verdict.text
    assert post.record.verdict.trusted is False and post.record.diagnostics.ended_by == "limit"
    assert "Ctrl-C again" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_in_a_script_ctrl_c_raises():
    assert not is_interactive()
    with pytest.raises(KeyboardInterrupt):
        dp.fit(SIM.train, "bge", precision=1e-6, callback=interrupt_at(3), progress=False)


@pytest.mark.slow
def test_a_stopped_run_goes_on(tmp_path):
    """What Ctrl-C left is the state of an undisturbed run."""
    options = {"method": "auto", "max_moves": 3_000_000, "seed": 4, "progress": False}
    whole = dp.fit(SIM.train, "bge", **options)
    kept = {"checkpoint": tmp_path / "state", "checkpoint_every": 1e-9}
    stopped = dp.fit(SIM.train, "bge", **options, **kept, on_interrupt="answer", callback=interrupt_at(5))
    assert "Stopped" in stopped.record.verdict.text
    resumed = dp.fit(SIM.train, "bge", **options, **kept, resume=True)
    np.testing.assert_array_equal(resumed.graphs, whole.graphs)


def test_clocks_stop_together():
    clock = Clock(100.0)
    child, unlimited = clock.until(0.5), Clock(None).within(None)
    assert not child.expired and not unlimited.expired
    threading.Timer(0.01, clock.stopped.set).start()
    assert clock.stopped.wait(5) and clock.expired and child.expired and child.until(0.1).expired
    assert not unlimited.expired
