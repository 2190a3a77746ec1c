"""The DAG bootstrap, with PC of causal-learn and GES."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score

import dagpost as dp
from dagpost.bootstrap import LEARNERS, _adjacency, most_likely
from dagpost.errors import InputError
from dagpost.graphs import all_dags, essential_graph
from dagpost.greedy_search import greedy_search
from dagpost.posterior import Posterior, log_joint_of

PC = pytest.param(
    "bootstrap-pc",
    marks=pytest.mark.skipif(find_spec("causallearn") is None, reason="make setup-bench installs causal-learn"),
)
SIM = dp.simulate("linear", nodes=5, observations=400, seed=8, interventional_sets=0)


def test_marks_become_edges():
    # 0 -> 1, 1 - 2, 0 <-> 2 in causal-learn's notation: [i, j] is the mark at i
    marks = np.array([[0, -1, 1], [1, 0, -1], [1, -1, 0]])
    assert _adjacency(marks).astype(int).tolist() == [[0, 1, 1], [0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize("method", [PC, "bootstrap-ges"])
def test_with_much_data_the_true_class_is_found(method):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20_000, 4))
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, 2] = graph[1, 2] = graph[2, 3] = True
    for j in (2, 3):
        x[:, j] += x @ graph[:, j].astype(float)
    assert (LEARNERS[method.removeprefix("bootstrap-")](x) == essential_graph(graph)).all()


def test_ges_agrees_with_another_implementation():
    other = pytest.importorskip("ges")
    ours = greedy_search(SIM.train.values)
    theirs, _ = other.fit_bic(SIM.train.values)
    assert (ours == (theirs != 0)).mean() >= 0.9  # penalties differ by half an observation; classes nearly agree


@pytest.mark.parametrize("method", [PC, "bootstrap-ges"])
def test_graphs_are_unique_and_weighted_by_the_posterior(method):
    post = dp.fit(SIM.train, "bge", method=method, particles=6, seed=3)
    model = dp.BGe()
    joint = log_joint_of(post.graphs, (), model, dp.ErdosRenyi(), model.summarise(SIM.train))
    assert post.log_weights - post.log_weights[0] == pytest.approx(joint - joint[0])
    assert len(np.unique(post.graphs.reshape(len(post), -1), axis=0)) == len(post) <= 6
    assert post.info["resamples"] == 6


def test_linear_models_get_maximum_likelihood_parameters():
    post = dp.fit(SIM.train, "linear", method="bootstrap-ges", particles=4, seed=1)
    graph, theta = post.graphs[0], np.asarray(post.theta)[0]
    for j in range(5):
        parents = np.flatnonzero(graph[:, j])
        if len(parents):
            fit = LinearRegression(fit_intercept=False).fit(SIM.train.values[:, parents], SIM.train.values[:, j])
            assert theta[parents, j] == pytest.approx(fit.coef_)
    assert (theta[~graph] == 0).all()
    unknown = most_likely(dp.LinearGaussian(noise_variance=None), graph, SIM.train.values)
    assert unknown.log_variance.shape == (5,)


@pytest.mark.parametrize("method", [PC, "bootstrap-ges"])
def test_a_seed_fixes_the_result(method):
    one, two = (dp.fit(SIM.train, "bge", method=method, particles=4, seed=2) for _ in range(2))
    assert (one.graphs == two.graphs).all()


def test_what_it_is_not_defined_for():
    with pytest.raises(InputError, match="observational"):
        data = dp.Dataset(SIM.train.values, intervened=np.arange(400)[:, None] % 9 == np.arange(5))
        dp.fit(data, "bge", method="bootstrap-pc", particles=2)
    with pytest.raises(InputError, match="evidence"):
        dp.fit(SIM.train, "mlp", method="bootstrap-ges", particles=2)


def favoured_by_hand(graph, truth):
    """The paper's words, edge by edge."""
    essential = essential_graph(graph)
    out = np.zeros_like(truth)
    for i in range(len(truth)):
        for j in range(i + 1, len(truth)):
            if essential[i, j] and essential[j, i]:
                if truth[i, j] or truth[j, i]:
                    out[i, j], out[j, i] = truth[i, j], truth[j, i]
                else:
                    out[i, j] = True
            else:
                out[i, j], out[j, i] = essential[i, j], essential[j, i]
    return out


def test_auroc_in_favour_of_classes():
    truth = np.zeros((4, 4), dtype=bool)
    truth[0, 1] = truth[1, 2] = truth[3, 2] = True
    for graph in all_dags(4)[::40]:
        post = Posterior(graph[None], np.zeros(1), tuple("abcd"), dp.BGe(), dp.ErdosRenyi())
        expected = roc_auc_score(truth.reshape(-1), favoured_by_hand(graph, truth).reshape(-1))
        assert dp.metrics.auroc(post, truth, by_class=True) == pytest.approx(expected)
