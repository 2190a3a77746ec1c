"""What is measured, against the library's own functions and known answers."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import AllCyclic
from dagpost.graphs import essential_graph
from dagpost.studies import STUDIES, Scale, Task
from dagpost.studies.dibs_lib import as_posterior
from dagpost.studies.experiments import MEASURES, fitting
from dagpost.studies.experiments.fitting import fit_run, model_of, options_of
from dagpost.studies.experiments.sachs import FILE_ORDER, distance, measurements, references
from dagpost.studies.experiments.synthetic import scores, simulation_of
from dagpost.studies.runner import perform
from dagpost.studies.tables import AS_PUBLISHED

DATA = {"generator": "linear", "graphs": "erdos-renyi", "nodes": 5, "observations": 30, "set": 0}


def test_a_synthetic_task_is_a_fit_and_its_metrics():
    task = Task(
        "synthetic", DATA, {"model": "bge", "method": "mc3", "particles": 5, "options": {"burn_in": 50, "thin": 5}}
    )
    (row,) = MEASURES["synthetic"](task)
    sim = dp.simulate("linear", nodes=5, observations=30, seed=task.data_seed)
    post = dp.fit(sim.train, "bge", method="mc3", particles=5, burn_in=50, thin=5, seed=task.seed)
    assert row["shd"] == dp.metrics.expected_shd(post, sim.graph)
    assert row["auroc"] == dp.metrics.auroc(post, sim.graph)
    assert row["nll"] == dp.metrics.negative_log_likelihood(post, sim.test)
    assert row["inll"] == dp.metrics.negative_log_likelihood(post, sim.interventional)
    assert len(sim.interventional) == 10 and row["method"] == "mc3"
    assert perform(task)["rows"] == [row]  # and once more: the same numbers


@pytest.mark.long
def test_both_weightings_and_steps_on_the_way():
    """What a run of 40 steps looked like after 20 is what a run of 20 steps gives."""
    data = simulation_of(Task("synthetic", DATA, {})).train
    run = {"model": "linear", "method": "dibs-paper", "particles": 4, "record": [20, 40]}
    long = list(fit_run(data, {**run, "options": {"steps": 40, "cyclic": "repair"}}, "erdos-renyi", 3))
    assert [(f.columns["method"], f.columns["steps"], f.columns["final"]) for f in long] == [
        ("dibs-paper", 20, False),
        ("dibs-paper+", 20, False),
        ("dibs-paper", 40, True),
        ("dibs-paper+", 40, True),
    ]
    short = dp.fit(data, "linear", method="dibs-paper", particles=4, steps=20, cyclic="repair", seed=3, progress=False)
    assert long[0].posterior is not None and long[1].posterior is not None
    np.testing.assert_array_equal(long[0].posterior.graphs, short.graphs)
    np.testing.assert_allclose(long[1].posterior.log_weights, short.weighted("posterior").log_weights, rtol=1e-6)


def all_cyclic(number, **more):
    """A task that ends with two steps: of its latent particles, none is a DAG yet."""
    run = {"model": "linear", "method": "dibs-paper", "particles": 3, "options": {"steps": 2}, **more}
    data = {**DATA, "nodes": 12, "set": number, "test_observations": 10, "interventional_sets": 1}
    return Task("synthetic", data, run)


@pytest.mark.slow
def test_a_run_whose_particles_are_all_cyclic_is_finished_and_says_so():
    result = perform(all_cyclic(0))
    assert "failed" not in result
    assert [row["method"] for row in result["rows"]] == ["dibs-paper", "dibs-paper+"]
    for row in result["rows"]:
        assert row["all_cyclic"] is True and row["nodes"] == 12
        assert all(row[name] is None for name in ("shd", "auroc", "nll", "inll", "edges"))


@pytest.mark.slow
def test_steps_of_an_all_cyclic_run_are_told_too():
    rows = perform(all_cyclic(0, record=[1, 2]))["rows"]
    assert [(row["steps"], row["final"], row["all_cyclic"]) for row in rows] == [
        (1, False, True),
        (1, False, True),
        (2, True, True),
        (2, True, True),
    ]


def test_all_cyclic_runs_of_dibs_lib_are_finished_too(monkeypatch):
    def run(data, model, prior, seed, particles):
        return as_posterior(data, model, prior, np.ones((particles, data.nodes, data.nodes), dtype=bool), ())

    monkeypatch.setattr(fitting, "fit_dibs_lib", run)
    rows = perform(Task("sachs", {"rows": 100}, {"model": "bge", "method": "dibs-lib", "particles": 2}))["rows"]
    assert {row["method"] for row in rows} == {"dibs-lib", "dibs-lib+"} and len(rows) == 2 * len(references())
    assert all(row["all_cyclic"] and row["nodes"] == 11 and row["shd"] is None for row in rows)


def test_other_errors_remain_failures(monkeypatch):
    def refuse(*arguments, **options):
        raise dp.InputError("all particles have a cycle")  # the words are not what counts

    monkeypatch.setattr(fitting, "fit", refuse)
    assert perform(all_cyclic(0))["failed"].startswith("InputError")


def test_where_every_particle_has_a_cycle_nothing_is_known(monkeypatch):
    def refuse(*arguments):
        raise AllCyclic("all particles have a cycle")

    monkeypatch.setattr(fitting, "to_posterior", refuse)
    data = simulation_of(Task("synthetic", DATA, {}))
    snapshot = SimpleNamespace(z=np.zeros((2, 5, 5, 2)))
    post = fitting._posterior_at(snapshot, data.train, dp.LinearGaussian(), "erdos-renyi", {"particles": 2})
    assert post is None and set(scores(post, data, "dibs-paper").values()) == {None}


def test_words_become_models_and_settings():
    assert model_of({"model": "bge", "alpha_mu": 10.0}).alpha_mu == 10.0
    assert model_of({"model": "mlp", "noise": 0.01}).noise_variance == 0.01
    assert options_of({"embedding": "scalar"})["embedding"] == dp.dibs.ScalarEmbedding()
    assert options_of({"latent": 5, "particles": 3}) == {"embedding": dp.dibs.InnerProduct(5), "particles": 3}


def test_the_reference_of_the_published_table_is_a_permutation_of_the_consensus_graph():
    graphs = references()
    assert set(FILE_ORDER) == set(dp.sachs_graph("cdt").columns)
    assert graphs[AS_PUBLISHED].sum() == graphs["cdt"].sum() == 18
    assert (graphs[AS_PUBLISHED] != graphs["cdt"]).any()
    names = list(dp.sachs_graph("cdt").columns)
    # entry (0, 1) of the permuted graph is the edge PIP2 -> PKC, at the place of praf -> pmek
    assert graphs[AS_PUBLISHED][0, 1] and graphs["cdt"][names.index("PIP2"), names.index("PKC")]


def test_the_exact_sachs_posterior_scores_as_the_paper_only_against_the_permuted_graph():
    """MC³ in the paper: E-SHD 34.0 ± 0.7, AUROC 0.616 ± 0.027. Tempered chains found 34.3 to 34.8 and 0.618 to 0.648
    against the graph in file order, 31.6 to 32.6 and 0.717 to 0.735 aligned by name. Half an edge is allowed on top:
    the rules for essential graphs leave open what they do to a graph with a cycle."""
    task = Task("sachs", {}, {"model": "bge", "method": "exact", "restart": 0})
    rows = {row["truth"]: row for row in MEASURES["sachs"](task)}
    assert 33.5 < rows[AS_PUBLISHED]["shd"] < 35.3 and 0.60 < rows[AS_PUBLISHED]["auroc"] < 0.66
    assert 31.0 < rows["cdt"]["shd"] < 33.1 and 0.70 < rows["cdt"]["auroc"] < 0.75


def test_distance_to_an_acyclic_truth_is_the_metric():
    data = measurements(100)
    post = dp.fit(data, "bge", method="mc3", particles=5, burn_in=50, thin=5, progress=False)
    for name in ("sachs20", "bnlearn"):
        assert distance(post, references()[name]) == dp.metrics.expected_shd(post, dp.sachs_graph(name))
    assert 100 <= data.observations <= 102 and np.allclose(data.values.std(axis=0), 1, atol=0.02)


def test_four_node_probabilities_are_those_of_the_posterior():
    study = STUDIES["four-node"]
    (task,) = [t for t in study.tasks(Scale(1)) if t.run["method"] == "exact"]
    rows = {row["feature"]: row["probability"] for row in MEASURES["four-node"](task)}
    assert sum(rows.values()) <= 2 + 1e-9 and rows["x1 → x3 ← x2"] > 0.8
    # the three equivalent graphs of the paper score alike, so these differ by what other graphs add
    assert rows["x1 → x0 → x2"] == pytest.approx(rows["x1 ← x0 → x2"], abs=0.05)


def test_wall_times_refuse_another_device():
    (task, *_) = STUDIES["wall-times-gpu"].tasks(Scale(1, smoke=True))
    assert "JAX computes on a CPU" in perform(task)["failed"]


def test_wall_times_are_scaled_to_the_published_steps(monkeypatch):
    wall_time = importlib.import_module("dagpost.studies.experiments.wall_times")
    (task, *_) = STUDIES["wall-times-cpu"].tasks(Scale(1))
    clock = [0.0]
    monkeypatch.setattr(wall_time.time, "perf_counter", lambda: clock[0])

    def timed(task, data, steps, every, cyclic, callback):
        clock[0] += 4.0  # compiling
        for step in range(every, steps + 1, every):
            clock[0] += 0.25 * every
            callback(SimpleNamespace(step=step))
        clock[0] += 30.0  # what a run does at its end

    monkeypatch.setattr(wall_time, "_time_fit", timed)
    (row,) = wall_time.wall_time(task)
    assert row["minutes"] == pytest.approx(3000 * 0.25 / 60) and row["compiling"] == 4.0 and row["scaled"]


def test_a_method_that_refuses_is_told_and_a_fault_is_raised(monkeypatch):
    task = Task("synthetic", DATA, {"model": "mlp", "method": "mc3"})
    assert perform(task)["failed"].startswith("InputError")
    monkeypatch.setitem(MEASURES, "synthetic", lambda task: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        perform(task)


def test_essential_graphs_of_particles_are_used():
    graph = np.zeros((11, 11), dtype=bool)
    graph[0, 1] = True
    data = measurements(50)
    post = dp.Posterior(graph[None], np.zeros(1), data.names, dp.BGe(), dp.ErdosRenyi())
    assert distance(post, graph.T) == 0 and essential_graph(graph)[1, 0]  # one edge has no direction
