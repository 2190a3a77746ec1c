"""The time limit holds for every part of a run, by a clock that goes on by a fixed amount whenever it is looked at."""

from contextlib import nullcontext
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numba import njit

import dagpost as dp
from dagpost._util import clock as module
from dagpost._util.clock import Clock, Pace
from dagpost.errors import InputError
from dagpost.inference.mcmc import ensembles, refine
from dagpost.inference.mcmc.refine import BATCHES, KEPT, Block, thinned_block


@pytest.fixture
def ticking(monkeypatch):
    """A clock of 0.25 seconds for each look, whatever the machine does; compiling takes no time. Parts seem to take
    so long that none grows. No thread looks at it: how often it does so depends on the machine."""
    now = [0.0]

    def look():
        now[0] += 0.25
        return now[0]

    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=look))
    monkeypatch.setattr(module, "_compile_time", lambda: SimpleNamespace(seconds=0.0))
    monkeypatch.setattr(ensembles, "_stop_at_expiry", lambda clock, stop: nullcontext())
    return now


SIM = dp.simulate("linear", nodes=6, observations=50, seed=1, interventional_sets=0).train


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "model", "options"),
    [
        ("auto", "bge", {"precision": 1e-9}),
        ("auto", "linear", {"precision": 1e-9, "start": "dibs", "steps": 100_000}),
        ("auto", "linear", {"precision": 1e-9, "start": "ges"}),
        ("dibs", "linear", {"steps": 100_000, "moves": 10**9, "particles": 3}),
        ("dibs", "mlp", {"steps": 100_000, "parameter_steps": 10**9, "particles": 2}),
        ("dibs-paper", "bge", {"steps": 100_000, "particles": 2}),
        ("mc3", "bge", {"burn_in": 100, "thin": 10**8}),
        ("g-mc3", "linear", {"burn_in": 10, "thin": 10**8}),
    ],
)
def test_whatever_there_is_when_time_is_up_is_returned(method, model, options, ticking):
    """Each of these would go on for hours."""
    began = ticking[0]
    post = dp.fit(SIM, model, method=method, time_limit=60.0, progress=False, **options)
    assert ticking[0] - began < 75.0
    assert post.info["ended_by"] == "limit"
    assert "time" in post.info["verdict"] or "Do not trust" in post.info["verdict"]
    assert not post.info.get("trusted", False)
    assert post.graphs.shape[1:] == (6, 6)
    assert post.info["options"]["time_limit"] == 60.0


@pytest.mark.slow
def test_dibs_goes_through_its_schedules_in_the_time_it_has(ticking):
    seen = []
    post = dp.fit(
        SIM, "linear", method="dibs", steps=100_000, moves=0, particles=2, time_limit=60.0, progress=False,
        callback=lambda snapshot: seen.append(snapshot.alpha),
    )  # fmt: skip
    assert post.info["steps"] < 100_000
    assert max(seen) > 200  # of 250, where the last temperature is


def test_without_a_limit_nothing_is_cut_short(ticking):
    post = dp.fit(SIM, "linear", method="dibs", steps=40, moves=100, particles=2, progress=False)
    assert post.info["steps"] == 40 and post.info["moves"] == 100 and post.info["ended_by"] == "steps"
    assert "cut" not in post.info["verdict"]


def test_jitted_does_not_count():
    """Real time: the clock leaves out what JAX and numba report."""
    watch = Clock(1000.0)

    @njit
    def compiled(x):
        return x**2 + 1

    compiled(2.0)
    assert watch.compiling > 0
    after_numba = watch.compiling
    jax.jit(lambda x: jnp.sin(x @ x).sum())(np.ones((7, 7)))
    assert watch.compiling > after_numba
    assert watch.seconds + watch.left == pytest.approx(1000.0, abs=1e-2)


def test_parts_end_with_the_clock(ticking):
    assert sum(Pace().parts(1000, Clock(1e6))) == 1000
    assert 0 < sum(Pace().parts(10**9, Clock(20.0))) < 100
    assert sum(Pace().parts(5, Clock(1e-9))) == 0


def test_an_earlier_block_is_thinned_to_the_batches_and_graphs_of_a_longer_one():
    rounds = 5 * KEPT // BATCHES
    frequencies = np.random.default_rng(0).random((2, BATCHES, 3, 3))
    block = Block(np.zeros((2, KEPT, 3, 3), bool), np.tile(np.arange(KEPT), (2, 1)), frequencies)
    half = thinned_block(block, rounds, 2 * rounds)
    assert half.graphs.shape[1] == KEPT // 2 and half.log_posterior[0].tolist() == list(range(1, KEPT, 2))
    assert half.frequencies.shape[1] == BATCHES // 2  # two short batches make one long one
    assert half.frequencies.mean(axis=1) == pytest.approx(frequencies.mean(axis=1))


def test_two_blocks_before_the_unfinished_one_count_when_the_clock_expires(ticking, monkeypatch):
    """Of 1, 2, 4, … blocks of rounds, what came before these three is the warm-up: an eighth to a quarter."""
    blocks, real = [], refine.run_block

    def listening(*arguments):
        blocks.append((arguments[4], *real(*arguments)))
        return blocks[-1][1:]

    monkeypatch.setattr(refine, "run_block", listening)
    real_diagnostics = refine.block_diagnostics  # chains that agree would prolong a block
    monkeypatch.setattr(refine, "block_diagnostics", lambda *block: real_diagnostics(*block)._replace(rhat=2.0))
    post = dp.fit(SIM, "bge", start="empty", time_limit=4000.0, precision=1e-9, max_moves=10**12, progress=False)
    lengths = [rounds for rounds, _, _ in blocks]
    assert len(lengths) >= 4 and [complete for _, _, complete in blocks] == [True] * (len(lengths) - 1) + [False]
    assert lengths == [lengths[0] * 2**k for k in range(len(lengths))]
    last = post.info["rounds"] - (BATCHES // 2 + BATCHES // 4) * lengths[-1]
    assert 0 <= last < BATCHES * lengths[-1]
    all_rounds = BATCHES * sum(lengths[:-1]) + last
    assert 0.7 < post.info["rounds"] / all_rounds < 0.9


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "soon"])
def test_limits_are_checked(wrong):
    with pytest.raises(InputError, match="time_limit"):
        dp.fit(SIM, "bge", time_limit=wrong)


def test_exact_has_no_limit():
    with pytest.raises(InputError, match="leave `time_limit` out"):
        dp.fit(SIM, "bge", method="exact", time_limit=3)


def test_the_clock_stands_still_while_code_is_compiled(monkeypatch):
    now, compiled = [100.0], SimpleNamespace(seconds=50.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(module, "_compile_time", lambda: compiled)
    watch = Clock(10.0)
    now[0], compiled.seconds = 107.0, 54.0
    assert (watch.seconds, watch.left, watch.compiling, watch.expired) == (3.0, 7.0, 4.0, False)
    now[0] = 114.0
    assert watch.expired
