"""Ensembles in other processes give the bits of ensembles in this one, whoever is lost on the way."""

import os
import signal
import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest

import dagpost as dp
from dagpost._util.workers import use_workers
from dagpost.errors import InputError
from dagpost.inference import fit as fit_module
from dagpost.inference.checkpoints import Interrupted
from dagpost.inference.checkpoints.recorder import Recorder
from dagpost.inference.mcmc import elsewhere, ensembles, refine
from dagpost.inference.mcmc.ensembles import ensembles_to_arrays, recipe, start
from dagpost.inference.mcmc.ladder import LARGE
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.models import BGe, MlpGaussian
from dagpost.priors import ErdosRenyi
from tests.crews import Crew
from tests.digests import digest
from tests.inference.checkpoints.test_resume import Slow

SIM = dp.simulate(nodes=5, observations=50, seed=1, interventional_sets=0)
RUN = {"model": "bge", "seed": 3, "draws": 20, "precision": 0.03, "max_moves": 200_000, "ensembles": 3}


def fit(**more) -> dp.Posterior:
    return dp.fit(SIM.train, **{**RUN, **more})


@pytest.fixture
def crew(monkeypatch):
    """`crew(count, lose)`: what `workers=` of `fit` means in this test."""

    def arrange(count: int, lose: int = 0) -> Crew:
        made = Crew(count, lose)
        monkeypatch.setattr(fit_module, "workers_of", lambda workers, cluster: made if workers else None)
        return made

    return arrange


def ensembles_for(scoring):
    empty = np.zeros((4, 5, 5), np.bool_)
    return [start(empty, scoring, seed) for seed in (5, 6, 7)]


@pytest.mark.parametrize("seconds", [2.0, 1e-9], ids=["one task", "a task for every kept graph"])
@pytest.mark.parametrize(
    "prior", [ErdosRenyi(), pytest.param(Slow(), marks=pytest.mark.slow)], ids=["compiled", "in Python"]
)
def test_rounds_elsewhere_are_the_rounds_here(prior, seconds, monkeypatch):
    monkeypatch.setattr(elsewhere, "SECONDS", seconds)
    scoring = scorer_for(BGe(), prior, BGe().summarise(SIM.train), 5)
    heats, moves = np.array([1.0, 0.7, 0.5, 0.3]), recipe(pair=30, most=2, parents=1, reversal=1)
    usual, other = ensembles_for(scoring), ensembles_for(scoring)
    crew = Crew(2, lose=4)
    for rounds, thin in ((11, 3), (6, 1), (2, 4)):
        expected = ensembles.advance(usual, scoring, heats, moves, rounds, thin)
        with use_workers(crew):
            crew.close = lambda: None
            found = elsewhere.advance(other, scoring, heats, moves, rounds, thin)
        assert found.rounds == expected.rounds == rounds
        np.testing.assert_array_equal(found.log_posterior, expected.log_posterior)
        np.testing.assert_array_equal(found.graphs, expected.graphs)
        assert found.graphs.shape == (3, rounds // thin, 5, 5)
        for name, values in ensembles_to_arrays(usual).items():
            np.testing.assert_array_equal(ensembles_to_arrays(other)[name], values, err_msg=name)
    assert crew.recovered > 0
    assert crew.tasks > 9 + crew.recovered if seconds < 1 else crew.tasks == 9 + crew.recovered


def test_a_worker_keeps_no_scores_of_other_data():
    """The cache that a worker keeps belongs to one scoring: the next data set gets its own."""
    prior, crew = ErdosRenyi(), Crew(1)
    crew.close = lambda: None
    heats, moves = np.ones(4), recipe(pair=30)
    for data in (SIM.train, SIM.test):
        scoring = scorer_for(BGe(), prior, BGe().summarise(data), 5)
        usual, other = ensembles_for(scoring), ensembles_for(scoring)
        expected = ensembles.advance(usual, scoring, heats, moves, 20)
        with use_workers(crew):
            found = elsewhere.advance(other, scoring, heats, moves, 20)
        np.testing.assert_array_equal(found.log_posterior, expected.log_posterior)


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_the_same_posterior_with_any_number_of_workers(count, crew):
    made = crew(count, lose=7)
    assert digest(fit(workers=count)) == digest(fit())
    assert made.recovered > 0


@pytest.mark.slow
def test_the_same_posterior_with_the_moves_and_ladders_of_many_nodes(crew, tmp_path, monkeypatch):
    """Near pairs and ladders change from block to block; resumed within the third."""
    real = refine.block_diagnostics  # chains that agree would prolong a block
    monkeypatch.setattr(refine, "block_diagnostics", lambda *block: real(*block)._replace(rhat=2.0))
    sim = dp.simulate("bge", nodes=LARGE, observations=50, seed=1, interventional_sets=0)
    run = {"model": "bge", "seed": 3, "draws": 20, "start": "empty", "precision": 1e-6, "max_moves": 3_000_000}
    undisturbed = dp.fit(sim.train, **run)
    made = crew(2, lose=9)
    assert digest(dp.fit(sim.train, workers=2, **run)) == digest(undisturbed)
    assert made.recovered > 0
    boundaries = []

    def look(snapshot):
        boundaries.append(snapshot.moves)
        if len(boundaries) == 2 * refine.BATCHES + 7:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dp.fit(sim.train, checkpoint=tmp_path, checkpoint_every=1e-9, callback=look, **run)
    assert digest(dp.fit(sim.train, checkpoint=tmp_path, resume=True, **run)) == digest(undisturbed)


@pytest.mark.slow
def test_stopped_with_workers_and_resumed_without(tmp_path, crew, monkeypatch):
    """SIGTERM between batches; what was saved goes on in this process, to the same end."""
    whole, real, calls = digest(fit()), Recorder.reached, []

    def reached(self, *arguments):
        calls.append(1)
        if len(calls) == 30:
            self.caught.number = signal.SIGTERM
        real(self, *arguments)

    monkeypatch.setattr(Recorder, "reached", reached)
    crew(2)
    with pytest.raises(Interrupted):
        fit(workers=2, checkpoint=tmp_path, checkpoint_every=1e-9)
    assert digest(fit(resume=True, checkpoint=tmp_path)) == whole


@pytest.mark.usefixtures("usual_ctrl_c")
def test_ctrl_c_gives_what_there_is(crew):
    """Two seconds into a run that would take minutes."""
    crew(2)
    killer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    killer.start()
    began = time.monotonic()
    post = fit(workers=2, precision=1e-6, max_moves=10**12, time_limit=300, on_interrupt="answer")
    killer.join()
    assert post.record.verdict.text.startswith("Stopped by Ctrl-C")
    assert len(post) == 20 and time.monotonic() - began < 60


@pytest.mark.slow
def test_a_time_limit_holds_where_no_worker_comes(crew, monkeypatch):
    made = crew(1)
    monkeypatch.setattr(made, "submit", lambda *task: Future())  # never done
    post = fit(workers=1, time_limit=1.0)
    assert len(post) == 20 and not post.record.verdict.trusted


def test_methods_without_work_for_others_refuse():
    with pytest.raises(InputError, match=r"method 'dibs' runs in one process: leave `workers` and `cluster` out"):
        dp.fit(SIM.train, model="bge", method="dibs", workers=2)


@pytest.mark.long
def test_evidence_is_estimated_elsewhere(crew):
    """Networks, with draws of their parameters, which come with the evidence."""
    data = dp.simulate(nodes=4, observations=30, seed=1, interventional_sets=0).train
    options = {**RUN, "model": MlpGaussian(hidden=(2,)), "precision": 0.2, "max_moves": 50_000}
    usual = digest(dp.fit(data, **options))
    made = crew(2, lose=5)
    assert digest(dp.fit(data, workers=2, **options)) == usual
    assert made.recovered > 0


@pytest.mark.slow
@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.long), 2, pytest.param(3, marks=pytest.mark.long)])
def test_processes_give_the_same_bits(count):
    assert digest(fit(workers=count)) == digest(fit())


@pytest.mark.slow
def test_a_killed_process_changes_nothing():
    children = set()

    def kill(snapshot):
        if not children and snapshot.moves > 50_000:
            children.update(processes_of(os.getpid()))
            os.kill(min(children), signal.SIGKILL)

    assert digest(fit(workers=2, callback=kill)) == digest(fit())
    assert children


def processes_of(parent: int) -> list[int]:
    """Numbers of the worker processes of a process."""
    out = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/cmdline") as line:
                    if int(stat.read().rsplit(")", 1)[1].split()[1]) == parent and "popen_loky" in line.read():
                        out.append(int(name))
            except OSError:
                continue
    return out


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_bits_though_a_worker_is_killed():
    distributed = pytest.importorskip("distributed")
    killed = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:

        def kill(snapshot):
            if not killed and snapshot.moves > 50_000:
                killed.append(cluster.workers[0].pid)
                os.kill(killed[0], signal.SIGKILL)

        found = digest(fit(cluster=cluster.scheduler_address, callback=kill))
        cluster.scale(3)  # workers may come, too
        with distributed.Client(cluster) as client:
            again = digest(fit(cluster=client))
    assert killed and found == again == digest(fit())
