"""scikit-learn's own checks, and what the learner adds to them; the consensus graph as a pgmpy network."""

import dataclasses
import itertools
import sys
import types

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import dagpost as dp
from dagpost.errors import InputError
from tests.inference.test_lags import series
from tests.inference.test_targets import table
from tests.interfaces import dowhy_effects
from tests.networks import asia

SIM = dp.simulate(nodes=4, observations=200, seed=3, interventional_sets=0)
FRAME = SIM.train.frame().set_axis(["raf", "mek", "erk", "akt"], axis=1)


@parametrize_with_checks([dp.StructureLearner(method="exact", draws=20)])
@pytest.mark.filterwarnings("ignore::dagpost.errors.DataWarning")
def test_scikit_learn(estimator, check):
    check(estimator)


def test_fitted_attributes():
    learner = dp.StructureLearner(method="exact").fit(FRAME)
    assert list(learner.feature_names_in_) == list(FRAME.columns) and learner.n_features_in_ == 4
    assert isinstance(learner.posterior_, dp.Posterior)
    assert nx.is_directed_acyclic_graph(learner.causal_graph_)
    assert set(learner.causal_graph_.nodes) == set(FRAME.columns)
    assert list(learner.adjacency_matrix_.index) == list(FRAME.columns)
    for cause, effect in learner.causal_graph_.edges:
        assert learner.adjacency_matrix_.loc[cause, effect] == 1
        assert learner.edge_probabilities_.loc[cause, effect] > 0.5
    assert learner.adjacency_matrix_.to_numpy().sum() == learner.causal_graph_.number_of_edges()


def test_units_do_not_matter_unless_asked_to():
    other = FRAME.assign(mek=1000 * FRAME.mek + 5)
    one, two = (clone(dp.StructureLearner(method="exact")).fit(f).edge_probabilities_ for f in (FRAME, other))
    pd.testing.assert_frame_equal(one, two)
    raw = dp.StructureLearner("linear", "erdos-renyi", "exact", noise=0.1, standardise=False).fit(FRAME)
    np.testing.assert_array_equal(raw.edge_probabilities_, dp.fit(FRAME, "linear", method="exact").edge_probabilities)


@pytest.mark.slow
def test_interventions_and_options_reach_the_method():
    mask = np.zeros(FRAME.shape, dtype=bool)
    mask[:50, 1] = True
    learner = dp.StructureLearner(method="exact", options={"parameters": True}, draws=10)
    fitted = learner.fit(FRAME, interventions=mask)
    assert len(fitted.posterior_) == 10
    assert (fitted.edge_probabilities_ != dp.StructureLearner(method="exact").fit(FRAME).edge_probabilities_).any(
        axis=None
    )
    with pytest.raises(InputError, match="unknown model 'liner'"):
        dp.StructureLearner("liner").fit(FRAME)


def test_score_is_the_held_out_log_density():
    """With all DAGs enumerated it is the difference of log evidences, in the units of the table."""
    frame = dp.simulate(nodes=3, observations=60, seed=1, interventional_sets=0).train.frame() * [1, 10, 0.1]
    train, held_out = frame[:40], frame[40:]
    learner = dp.StructureLearner(method="exact").fit(train)
    scaling = learner.posterior_.scaling
    both = dp.Dataset((frame.to_numpy() - scaling.mean) / scaling.scale, learner.posterior_.names)
    known = learner.posterior_.data
    evidences = [dp.exact(d, learner.posterior_.model, learner.posterior_.prior).log_evidence for d in (both, known)]
    expected = evidences[0] - evidences[1] - 20 * np.log(scaling.scale).sum()
    assert learner.score(held_out) == pytest.approx(expected / 20, rel=1e-6)
    assert learner.score(held_out[::-1]) == pytest.approx(learner.score(held_out), rel=1e-9)
    assert learner.score(held_out.add([0, 500, 0])) < learner.score(held_out)


def test_models_are_selected_by_it():
    frame = dp.simulate("linear", nodes=4, observations=60, seed=2, interventional_sets=0).train.frame()
    search = GridSearchCV(
        dp.StructureLearner(method="exact", draws=20), {"prior": ["uniform", "unknown-density"]}, cv=2
    )
    search.fit(frame)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_names_pass_through_a_pipeline():
    frame = (
        dp.simulate(nodes=3, observations=50, seed=1, interventional_sets=0)
        .train.frame()
        .rename(columns={"x0": "gene a"})
    )
    pipeline = make_pipeline(StandardScaler(), dp.StructureLearner(method="exact")).set_output(transform="pandas")
    assert pipeline.fit(frame)[-1].posterior_.names == ("gene a", "x1", "x2")
    assert np.isfinite(pipeline.score(frame))


def same_bits(learner, post):
    assert learner.posterior_.names == post.names
    for one, other in (
        (learner.posterior_.graphs, post.graphs),
        (learner.edge_probabilities_, post.edge_probabilities),
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("unit", [None, "unit"])
def test_time_series_are_those_of_fit(unit):
    frame = series(60, 2, within=[(0, 1)], across=[(0, 0)], weight=0.3).assign(unit=["p"] * 25 + ["q"] * 35)
    frame = frame if unit else frame.drop(columns="unit")
    learner = clone(dp.StructureLearner(method="exact", lags=1, series=unit)).fit(frame)
    assert learner.get_params()["lags"] == 1 and learner.get_params()["series"] == unit
    same_bits(learner, dp.fit(frame, method="exact", lags=1, series=unit))
    assert list(learner.feature_names_in_) == list(frame.columns)
    assert list(learner.adjacency_matrix_.index) == ["v0", "v1", "v0[t-1]", "v1[t-1]"]
    assert ("v0[t-1]", "v0") in learner.causal_graph_.edges
    held_out = dp.data.as_dataset(frame[:20], lags=1, series=unit)
    density = dp.metrics.log_predictive_density(learner.posterior_, held_out) / 19
    assert learner.score(frame[:20]) == pytest.approx(density, rel=1e-12)
    if unit is None:
        same_bits(dp.StructureLearner(method="exact", lags=1).fit(frame.to_numpy()),
                  dp.fit(frame.to_numpy(), method="exact", lags=1))  # fmt: skip


def test_series_are_split_by_scikit_learn():
    frame = series(60, 2, within=[(0, 1)], across=[(0, 0)], weight=0.3)
    learner = dp.StructureLearner(method="exact", lags=1)
    search = GridSearchCV(learner, {"prior": ["uniform", "unknown-density"]}, cv=TimeSeriesSplit(2))
    assert np.isfinite(search.fit(frame).cv_results_["mean_test_score"]).all()


def test_conditions_are_those_of_fit():
    frame = table(30, d=2)
    learner = dp.StructureLearner(method="exact").set_params(conditions="drug", targets=dp.Targets("hard"))
    learner = clone(learner).fit(frame)
    post = dp.fit(frame, method="exact", conditions="drug", targets=dp.Targets("hard"))
    same_bits(learner, post)
    pd.testing.assert_frame_equal(learner.posterior_.targets(), post.targets())
    assert list(learner.edge_probabilities_) == ["v0", "v1"] and learner.n_features_in_ == 3
    assert np.isfinite(learner.score(frame[::5]))
    targets = frame.drug.map({"none": "", "A": "v1", "B": "v0"}).tolist()
    known = dp.StructureLearner(method="exact", conditions="drug").fit(frame, interventions=targets)
    same_bits(known, dp.fit(frame, method="exact", conditions="drug", interventions=targets))


def test_columns_of_series_and_conditions_are_names():
    frame = table(10, d=2)
    for data, settings, message in (
        (frame, {"conditions": frame.drug.tolist()}, "names a column of X: give the name of a column"),
        (frame[["v0", "v1"]].to_numpy(), {"conditions": "drug"}, "conditions='drug' names a column of X: give a Data"),
        (frame, {"conditions": "drugs"}, "names the conditions, 'drugs', is unknown"),
        (frame[["v0", "v1"]], {"lags": 2}, "lags=2: give 1"),
        (frame, {"series": "drug"}, "no lags: add lags=1"),
        (frame[["v0", "v1"]], {"targets": "unknown"}, "no conditions: name their column"),
    ):
        with pytest.raises(InputError, match=message):
            dp.StructureLearner(method="exact", **settings).fit(data)


@pytest.mark.oracle
def test_pgmpy():
    pytest.importorskip("pgmpy")
    learner = dp.StructureLearner(method="exact").fit(FRAME.rename(columns={"raf": "raf, β 2"}))
    network, graph = dp.to_pgmpy(learner), learner.causal_graph_
    assert set(network.nodes()) == set(graph.nodes) and set(network.edges()) == set(graph.edges) != set()
    for one, other in itertools.combinations(graph.nodes, 2):
        for given in ([], *([node] for node in graph.nodes - {one, other})):
            separated = nx.is_d_separator(graph, {one}, {other}, set(given))
            assert network.is_dconnected(one, other, observed=given) != separated
    assert set(dp.to_pgmpy(learner.posterior_).edges()) == set(graph.edges)


@pytest.mark.oracle
def test_pgmpy_network_of_categories():
    """pgmpy's inference in the exported network gives the probabilities of the tables."""
    pytest.importorskip("pgmpy")
    from pgmpy.inference import VariableElimination

    frame = asia().sample(1000, seed=3)[["smoke", "bronc", "dysp"]]
    post = dp.exact(frame)
    network = dp.to_pgmpy(post)
    assert network.check_model()
    for name in post.names:
        table = post.probability_table(name)
        cells = network.get_cpds(name).get_values()
        np.testing.assert_allclose(cells, table.to_numpy().T, atol=1e-9)
    found = VariableElimination(network).query(["dysp"]).values
    np.testing.assert_allclose(found, frame.dysp.value_counts(normalize=True)[["no", "yes"]], atol=0.02)


def test_the_network_of_categories_is_made_of_its_tables(monkeypatch):
    """What is handed to pgmpy, whether it is installed or not."""

    class Network:
        def __init__(self):
            self.cpds = {}

        def add_nodes_from(self, nodes):
            self.nodes = list(nodes)

        def add_edges_from(self, edges):
            self.edges = list(edges)

        def add_cpds(self, cpd):
            self.cpds[cpd[0]] = cpd

    def table(variable, size, values, evidence=(), evidence_card=(), state_names=None):
        assert values.shape == (size, np.prod(evidence_card, dtype=int)) and state_names[variable] == ["no", "yes"]
        return variable, values, tuple(evidence)

    for name, content in {
        "pgmpy": {},
        "pgmpy.base": {"DAG": Network},
        "pgmpy.models": {"DiscreteBayesianNetwork": Network},
        "pgmpy.factors": {},
        "pgmpy.factors.discrete": {"TabularCPD": table},
    }.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["pgmpy"].models = sys.modules["pgmpy.models"]
    post = dp.exact(asia().sample(500, seed=3)[["smoke", "bronc", "dysp"]])
    network = dp.to_pgmpy(post)
    assert set(network.nodes) == set(post.names) and len(network.edges) == post.consensus_graph().sum() > 0
    for name, values, parents in network.cpds.values():
        table = post.probability_table(name)
        assert parents == (tuple(table.index.names) if parents else ())
        np.testing.assert_array_equal(values, table.to_numpy().T)
    with pytest.raises(InputError, match="need the data"):
        dp.to_pgmpy(dataclasses.replace(post, data=None))


def test_without_pgmpy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pgmpy.base", None)
    with pytest.raises(InputError, match="pip install pgmpy"):
        dp.to_pgmpy(dp.fit(FRAME, method="exact"))


def test_estimate_is_fit_under_the_name_of_pgmpy():
    learner = dp.StructureLearner(method="exact")
    graph = learner.estimate(FRAME)
    assert graph is learner.causal_graph_ and set(graph.edges) == set(
        dp.StructureLearner(method="exact").fit(FRAME).causal_graph_.edges
    )
    mask = np.zeros(FRAME.shape, dtype=bool)
    mask[:50, 1] = True
    assert learner.estimate(FRAME, interventions=mask) is learner.causal_graph_
    assert learner.posterior_.data.intervened.sum() == 50


def test_gml_for_dowhy_is_read_back_by_networkx():
    names = {"raf": 'raf "β" [2]', "mek": "a & b"}
    learner = dp.StructureLearner(method="exact").fit(FRAME.rename(columns=names))
    one = dp.to_dowhy(learner)
    read = nx.parse_gml(one.gml)
    assert "\n" not in one.gml and read.is_directed() and set(read.nodes) == set(learner.posterior_.names)
    assert set(read.edges) == set(one.graph.edges) == set(learner.causal_graph_.edges) != set()
    for cause, effect, given in read.edges(data=True):
        assert given["probability"] == pytest.approx(learner.edge_probabilities_.loc[cause, effect])


def test_drawn_graphs_for_dowhy_are_as_frequent_as_probable():
    post = dp.fit(FRAME, method="exact")
    drawn = dp.to_dowhy(post, draws=400, seed=1)
    assert all(nx.is_directed_acyclic_graph(one.graph) and set(one.graph) == set(post.names) for one in drawn)
    assert all(set(nx.parse_gml(one.gml).edges) == set(one.graph.edges) for one in drawn[:5])
    for cause, effect in itertools.permutations(post.names, 2):
        share = sum(one.graph.has_edge(cause, effect) for one in drawn) / 400
        assert abs(share - post.edge_probabilities.loc[cause, effect]) < 4 * 0.5 / np.sqrt(400)
    with pytest.raises(InputError, match="draws=0"):
        dp.to_dowhy(post, draws=0)


@pytest.mark.oracle
def test_dowhy_finds_the_same_effects_on_the_same_graph():
    """Backdoor adjustment by least squares, and our posterior mean given that graph, on 2,000 rows."""
    dowhy = pytest.importorskip("dowhy")
    rng = np.random.default_rng(0)
    a, *noise = rng.normal(size=(4, 2000))
    b = 0.8 * a + noise[0]
    c = 0.5 * a - 0.7 * b + noise[1]
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "d": 0.6 * c + noise[2]})
    graph = np.zeros((1, 4, 4), dtype=bool)
    graph[0, [0, 0, 1, 2], [1, 2, 2, 3]] = True
    post = dp.Posterior(graph, np.zeros(1), tuple("abcd"), dp.BGe(), dp.Uniform(), data=dp.Dataset(frame))
    one = dp.to_dowhy(post)
    checked = 0
    for cause, effect in itertools.permutations(post.names, 2):
        if nx.has_path(one.graph, cause, effect):
            expected = post.effect(cause, effect)
            for graph in one:
                model = dowhy.CausalModel(frame, treatment=cause, outcome=effect, graph=graph)
                found = model.identify_effect(proceed_when_unidentifiable=True)
                value = model.estimate_effect(found, method_name="backdoor.linear_regression").value
                assert abs(value - expected.mean) < 4 * expected.sd
            checked += 1
    assert checked == 6


DOWHY = pd.read_csv(dowhy_effects.FILE, comment="#")


def test_the_file_of_dowhy_holds_every_graph_both_ways():
    assert "dowhy 0." in dowhy_effects.FILE.read_text().splitlines()[0]
    assert set(DOWHY["graph"]) == set(dowhy_effects.GRAPHS)
    both = DOWHY.pivot(index="graph", columns="given", values="effect")
    np.testing.assert_allclose(both["gml"], both["networkx"])  # DoWhy reads the same graph from either


@pytest.mark.parametrize("name", dowhy_effects.GRAPHS)
def test_effects_are_those_of_dowhy(name):
    """DoWhy regresses on dose and what closes back doors, we add up paths: the same where there is one direct edge, and
    else as near as the noise that other regressors leave, 1/sqrt(rows) or 0.022 times weights of about 1."""
    theirs = DOWHY[DOWHY["graph"] == name]["effect"].iloc[0]
    ours = dowhy_effects.posterior(name).effect("dose", "outcome").mean
    assert ours == pytest.approx(theirs, abs=0.005 if name in ("confounded", "reversed") else 0.06)
    assert (theirs == 0) == (ours == 0)


def test_the_file_of_dowhy_is_what_dowhy_says():
    pytest.importorskip("dowhy")
    found = dowhy_effects.effects()
    np.testing.assert_allclose(found["effect"], DOWHY["effect"], atol=1e-9)
