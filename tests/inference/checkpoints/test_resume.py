"""Interrupted and resumed runs return what undisturbed ones return, bit for bit."""

import signal
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost._util import clock
from dagpost.errors import CheckpointWarning, InputError
from dagpost.inference.checkpoints import Checkpoint, Interrupted, recorder
from dagpost.inference.checkpoints.recorder import Recorder
from dagpost.inference.dibs.svgd import Diverged
from dagpost.inference.mcmc import refine
from dagpost.priors import GraphPrior
from tests.digests import digest

SIM = dp.simulate(nodes=5, observations=50, seed=1, interventional_sets=0)
CHAIN = {"particles": 4, "burn_in": 50, "thin": 8}


class Slow(GraphPrior):
    """A prior that compiled loops ask Python for."""

    name = "slow"

    def log_column(self, column, node):
        return -0.3 * jnp.sum(column)

    def sample(self, key, d):
        return np.zeros((d, d), dtype=np.bool_)


class Whole(Slow):
    """A prior that does not decompose by column."""

    decomposes = False

    def log_density(self, graph):
        return -0.3 * jnp.sum(jnp.asarray(graph, dtype=float))


GUMBEL = dp.dibs.Estimator("gumbel", samples=2)
"""Noise that is part of the chains of HMC."""

RUNS = {
    "auto": {"method": "auto", "particles": 4, "steps": 20, "draws": 50, "precision": 0.03},
    "auto, families in Python": {
        "method": "auto", "particles": 3, "steps": 10, "draws": 20, "precision": 0.2, "prior": Slow(),
    },
    "auto, DiBS alone": {"method": "auto", "particles": 3, "steps": 12, "prior": Whole()},
    "dibs": {"method": "dibs", "particles": 11, "steps": 23, "moves": 3000},
    "dibs, joint": {"method": "dibs", "model": "linear", "collapsed": False, "particles": 3, "steps": 12},
    "dibs, sgld": {"method": "dibs", "sampler": "sgld", "particles": 3, "steps": 12, "moves": 0},
    "dibs, hmc": {"method": "dibs", "sampler": "hmc", "estimator": GUMBEL, "particles": 3, "steps": 8, "moves": 0},
    "dibs-paper": {"method": "dibs-paper", "particles": 3, "steps": 8, "cyclic": "repair"},
    "mc3": {"method": "mc3", **CHAIN},
    "mc3, families in Python": {"method": "mc3", "prior": Slow(), **CHAIN},
    "m-mc3": {"method": "m-mc3", "model": "linear", **CHAIN},
    "g-mc3": {"method": "g-mc3", "model": "mlp", **CHAIN},
    "bootstrap-pc": {"method": "bootstrap-pc", "particles": 5},
    "bootstrap-ges": {"method": "bootstrap-ges", "particles": 5},
}  # fmt: skip

LONG = ("auto, families in Python", "dibs, joint", "m-mc3", "g-mc3")  # what they add is tested by shorter ones too
SLOW = (
    "mc3, families in Python",
    "dibs",
    "dibs, sgld",
    "dibs, hmc",
    "dibs-paper",
    "bootstrap-pc",
    "bootstrap-ges",
    "auto, DiBS alone",
)
MARKS = {**dict.fromkeys(LONG, pytest.mark.long), **dict.fromkeys(SLOW, pytest.mark.slow)}


def fit(name: str, **more) -> dp.Posterior:
    return dp.fit(SIM.train, **{"model": "bge", "seed": 3, **RUNS[name], **more})


@pytest.fixture
def interrupt(monkeypatch):
    """`interrupt(where, after)`: as if a signal came at that call of `reached` or `check`; None for never."""
    real = {where: getattr(Recorder, where) for where in ("reached", "check")}

    def arrange(where: str, after: int | None):
        for name, function in real.items():
            monkeypatch.setattr(Recorder, name, function)
        if after is None:
            return
        calls = 0

        def counted(self, *arguments):
            nonlocal calls
            calls += 1
            if calls == after:
                self.caught.number = signal.SIGTERM
            real[where](self, *arguments)

        monkeypatch.setattr(Recorder, where, counted)

    return arrange


@pytest.mark.filterwarnings("ignore:no checkpoint in")  # where it was interrupted before the first boundary
@pytest.mark.parametrize(("where", "after"), [("reached", (1, 5, 2, 17)), ("check", (3, 8, 40))])
@pytest.mark.parametrize("name", [pytest.param(n, marks=MARKS.get(n, ())) for n in RUNS])
def test_resumed_again_and_again(name, where, after, tmp_path, interrupt, monkeypatch):
    """Interrupted at boundaries or between them, so many of them after the last time; parts of any size."""
    whole = digest(fit(name))
    monkeypatch.setattr(clock, "PART_SECONDS", 0.01)
    kept = {"checkpoint": tmp_path / "state", "checkpoint_every": 1e-9}
    stops = 0
    for count in after:
        interrupt(where, count)
        try:
            fit(name, resume=stops > 0, **kept)
            break  # finished before it was interrupted
        except Interrupted as stop:
            assert stop.exit_code == 143
            stops += 1
    assert stops > 0
    interrupt(where, None)
    assert digest(fit(name, resume=True, **kept)) == whole
    assert digest(fit(name, resume=True, **kept)) == whole  # a finished run, once more


def test_a_resumed_run_that_is_out_of_time_has_the_blocks_before(tmp_path, interrupt):
    kept = {"checkpoint": tmp_path / "state", "checkpoint_every": 1e-9}
    options = {"start": "empty", "precision": 1e-9, "draws": 50, "seed": 3, "progress": False, **kept}
    passes, batches = 4, (refine.BATCHES, refine.BATCHES, refine.BATCHES, 5)
    interrupt("reached", passes + sum(batches))
    with pytest.raises(Interrupted):
        dp.fit(SIM.train, "bge", **options)
    interrupt("reached", None)
    post = dp.fit(SIM.train, "bge", time_limit=1e-3, resume=True, **options)
    first = 5  # rounds of a batch of the first block, which is the warm-up; the next are twice and four times as long
    assert post.info["rounds"] == first * (2 * refine.BATCHES + 4 * refine.BATCHES + 8 * 5)


@pytest.mark.slow
def test_resumed_in_a_block_that_is_prolonged(tmp_path, interrupt, monkeypatch):
    """Chains that agree fill what is left before the limit with batches of the last block."""
    limited = {"precision": 1e-9, "max_moves": 300_000}
    lengths, real, calls = [], refine.run_block, 0

    def listening(*arguments):
        lengths.append(arguments[5])
        return real(*arguments)

    def counting(self, *arguments):
        nonlocal calls
        calls += 1
        return reached(self, *arguments)

    reached = Recorder.reached
    with monkeypatch.context() as patch:
        patch.setattr(refine, "run_block", listening)
        patch.setattr(Recorder, "reached", counting)
        whole = fit("auto", checkpoint=tmp_path / "whole", **limited)
    *before, last = lengths
    assert set(before) == {refine.BATCHES} and last > refine.BATCHES
    assert 290_000 < whole.info["moves"] <= 300_000
    kept = {"checkpoint": tmp_path / "state", "checkpoint_every": 1e-9}
    interrupt("reached", calls - 2)
    with pytest.raises(Interrupted):
        fit("auto", **limited, **kept)
    interrupt("reached", None)
    assert digest(fit("auto", **limited, resume=True, **kept)) == digest(whole)


@pytest.mark.slow
def test_a_crash_loses_what_came_after_the_last_save(tmp_path, monkeypatch):
    """As after kill -9: nothing is saved on the way out."""
    whole = digest(fit("auto"))
    real = Recorder.save
    for saves in (1, 5, 30):
        folder, made = tmp_path / str(saves), 0

        def save(self, saves=saves):
            nonlocal made
            made += 1
            if made <= saves:
                real(self)
            if made == saves + 5:
                raise MemoryError

        monkeypatch.setattr(Recorder, "save", save)
        with pytest.raises(MemoryError):
            fit("auto", checkpoint=folder, checkpoint_every=1e-9)
        monkeypatch.setattr(Recorder, "save", real)
        assert digest(fit("auto", checkpoint=folder, resume=True)) == whole


def test_a_damaged_state_is_left_out(tmp_path, interrupt):
    whole = digest(fit("mc3"))
    interrupt("reached", 5)
    with pytest.raises(Interrupted):
        fit("mc3", checkpoint=tmp_path, checkpoint_every=1e-9)
    interrupt("reached", None)
    newest = max(tmp_path.iterdir(), key=lambda p: p.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-3])
    with pytest.warns(CheckpointWarning, match="damaged"):
        assert digest(fit("mc3", checkpoint=tmp_path, resume=True)) == whole


def test_any_exception_saves_the_last_boundary(tmp_path):
    seen = []

    def callback(snapshot):
        seen.append(snapshot.step)
        if snapshot.step == 15:
            raise ZeroDivisionError

    options = {"every": 5, "callback": callback, "checkpoint": tmp_path}
    with pytest.raises(ZeroDivisionError):
        fit("dibs", **options)
    assert digest(fit("dibs", resume=True, **options)) == digest(fit("dibs"))
    assert seen == [5, 10, 15, 20, 23]


@dataclass(frozen=True)
class Breaking:
    """A schedule that is no number from step 10 on."""

    def __call__(self, step):
        return jnp.where(step < 10, 1.0, jnp.nan)


@pytest.mark.slow
def test_a_diverged_run_keeps_its_last_good_state(tmp_path):
    with pytest.raises(Diverged):
        fit("dibs", alpha=Breaking(), every=1, checkpoint=tmp_path)
    found = Checkpoint(tmp_path).load()
    assert found is not None and found.arrays["dibs/.step"] == 10
    assert np.isfinite(found.arrays["dibs/.z"]).all()


OTHER = {
    "seed": ({"seed": 4}, "seed was 3, is 4"),
    "draws": ({"particles": 5}, "particles was 4, is 5"),
    "option": ({"thin": 9}, "thin was 8, is 9"),
    "new option": ({"neighbourhood": "exact"}, "neighbourhood was approximate, is exact"),
    "model": ({"model": dp.BGe(alpha_mu=2.0)}, "model.alpha_mu was 1.0, is 2.0"),
    "prior": ({"prior": "uniform"}, "prior.kind was .*ErdosRenyi, is .*Uniform"),
    "method": ({"method": "m-mc3", "model": "linear"}, "method was mc3, is m-mc3"),
    "interventions": ({"interventions": np.eye(50, 5)}, "data.interventions.content was"),
}


@pytest.mark.parametrize("what", OTHER)
def test_another_run_is_refused_by_name(what, tmp_path):
    fit("mc3", checkpoint=tmp_path)
    change, message = OTHER[what]
    with pytest.raises(InputError, match=message):
        fit("mc3", checkpoint=tmp_path, resume=True, **change)


def test_other_data_and_versions_are_refused_by_name(tmp_path, monkeypatch):
    fit("mc3", checkpoint=tmp_path)
    options = {**RUNS["mc3"], "model": "bge", "seed": 3, "checkpoint": tmp_path, "resume": True}
    for data, message in (
        (SIM.train.rows(slice(40)), r"data.values.shape was \[50, 5\], is \[40, 5\]"),
        (dp.Dataset(SIM.train.values * 2), "data.values.content"),
        (dp.Dataset(SIM.train.values, names=list("abcde")), "data.names"),
    ):
        with pytest.raises(InputError, match=message):
            dp.fit(data, **options)
    monkeypatch.setattr(dp, "__version__", "0.0.1")
    with pytest.raises(InputError, match=r"versions.dagpost was .*, is 0.0.1"):
        dp.fit(SIM.train, **options)


def test_looking_on_is_no_difference(tmp_path):
    fit("dibs", checkpoint=tmp_path)
    fit("dibs", checkpoint=tmp_path, resume=True, progress=False, every=3, callback=lambda snapshot: None)


def test_nothing_is_overwritten_and_nothing_invented(tmp_path):
    with pytest.warns(CheckpointWarning, match="from the beginning"):
        fit("mc3", checkpoint=tmp_path / "new", resume=True)
    with pytest.raises(InputError, match="holds the checkpoint of a run"):
        fit("mc3", checkpoint=tmp_path / "new")
    with pytest.raises(InputError, match="resume=True"):
        fit("mc3", resume=True)
    with pytest.raises(InputError, match="'exact' is one calculation"):
        dp.fit(SIM.train, "bge", method="exact", checkpoint=tmp_path / "exact")
    with pytest.raises(InputError, match="unknown option"):
        fit("mc3", checkpoint=tmp_path / "wrong", bandwith=1)
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


def test_a_full_disk_ends_no_run(tmp_path, monkeypatch):
    def full(self, state):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recorder.Checkpoint, "save", full)
    with pytest.warns(CheckpointWarning, match="No space left"):
        assert digest(fit("mc3", checkpoint=tmp_path, checkpoint_every=1e-9)) == digest(fit("mc3"))
