"""The DAG bootstrap, with PC and GES."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import all_dags, essential_graph
from dagpost.inference.bootstrap.ges import Found, greedy_search, limited_search
from dagpost.inference.bootstrap.pc import pc_search
from dagpost.inference.bootstrap.resampling import LEAST_SIGNIFICANCE, maximum_likelihood
from dagpost.posterior import Posterior, log_joint_of
from tests.digests import digest

SIM = dp.simulate("linear", nodes=5, observations=400, seed=8, interventional_sets=0)


@pytest.mark.slow
@pytest.mark.parametrize("learn", [lambda values: pc_search(values, 0.01), greedy_search], ids=["pc", "ges"])
def test_with_much_data_the_true_class_is_found(learn):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20_000, 4))
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, 2] = graph[1, 2] = graph[2, 3] = True
    for j in (2, 3):
        x[:, j] += x @ graph[:, j].astype(float)
    assert (learn(x) == essential_graph(graph)).all()


@pytest.mark.slow
def test_ges_agrees_with_another_implementation():
    other = pytest.importorskip("ges")
    ours = greedy_search(SIM.train.values)
    theirs, _ = other.fit_bic(SIM.train.values)
    assert (ours == (theirs != 0)).mean() >= 0.9  # penalties differ by half an observation; classes nearly agree


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bootstrap-pc", "bootstrap-ges"])
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
    unknown = maximum_likelihood(dp.LinearGaussian(noise_variance=None), graph, SIM.train.values)
    assert unknown.log_variance.shape == (5,)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bootstrap-pc", "bootstrap-ges"])
def test_a_seed_fixes_the_result(method):
    one, two = (dp.fit(SIM.train, "bge", method=method, particles=4, seed=2) for _ in range(2))
    assert (one.graphs == two.graphs).all()


class Learner:
    """In place of PC: at a level above `limit` a graph without a DAG, an undirected square without a chord."""

    def __init__(self, limit, stop_at=None):
        self.limit, self.stop_at = limit, stop_at
        self.levels, self.seen = [], []

    def __call__(self, values, significance):
        self.levels.append(significance)
        self.seen.append(values)
        if len(self.levels) == self.stop_at:
            raise ZeroDivisionError
        limit = self.limit(len(self.levels)) if callable(self.limit) else self.limit
        if significance <= limit:
            return pc_search(values, significance)
        graph = np.zeros((5, 5), dtype=bool)
        for a in range(4):
            graph[a, (a + 1) % 4] = graph[(a + 1) % 4, a] = True
        return graph


@pytest.fixture
def learner(monkeypatch):
    def put(limit, stop_at=None):
        made = Learner(limit, stop_at)
        monkeypatch.setattr("dagpost.inference.bootstrap.resampling.pc_search", made)
        return made

    return put


def by_pc(**options):
    return dp.fit(SIM.train, "bge", method="bootstrap-pc", particles=4, seed=2, **options)


def test_the_level_is_the_published_one_unless_told(learner):
    made = learner(1.0)
    assert by_pc().info["significance"] == 0.05 and made.levels == [0.05] * 4
    made = learner(1.0)
    post = by_pc(significance=0.01)
    assert made.levels == [0.01] * 4
    assert [post.info[name] for name in ("significance", "halvings", "dropped")] == [0.01, 0, 0]


def test_a_graph_without_a_dag_halves_the_level_for_good(learner):
    made = learner(0.02)
    post = by_pc()
    assert made.levels == [0.05, 0.025, 0.0125, 0.0125, 0.0125, 0.0125]
    assert made.seen[0] is made.seen[1] is made.seen[2] and made.seen[3] is not made.seen[2]  # the same resample again
    assert [post.info[name] for name in ("significance", "halvings", "dropped")] == [0.0125, 2, 0]


def test_a_graph_without_a_dag_can_be_dropped(learner):
    made = learner(lambda call: 0.0 if call in (2, 3) else 1.0)
    post = by_pc(without_dag="drop")
    assert made.levels == [0.05] * 4
    assert [post.info[name] for name in ("significance", "halvings", "dropped")] == [0.05, 0, 2]


def test_a_resample_that_no_level_helps_is_dropped_and_leaves_the_level(learner):
    halvings = int(np.log2(0.05 / LEAST_SIGNIFICANCE))
    made = learner(lambda call: 0.0 if call <= 1 + halvings else 1.0)
    post = by_pc()
    assert min(made.levels) >= LEAST_SIGNIFICANCE > min(made.levels) / 2
    assert made.levels[1 + halvings :] == [0.05] * 3
    assert [post.info[name] for name in ("significance", "halvings", "dropped")] == [0.05, 0, 1]
    learner(0.0)
    with pytest.raises(InputError, match="none of 4 graphs learned by PC contains a DAG"):
        by_pc()


def test_a_resumed_run_goes_on_at_the_halved_level(learner, tmp_path):
    learner(0.02)
    whole = digest(by_pc())
    learner(0.02, stop_at=5)  # in the third resample
    with pytest.raises(ZeroDivisionError):
        by_pc(checkpoint=tmp_path / "state", checkpoint_every=1e-9)
    made = learner(0.02)
    assert digest(by_pc(checkpoint=tmp_path / "state", resume=True)) == whole
    assert made.levels == [0.0125, 0.0125]


def test_data_on_which_pc_contradicts_itself():
    sim = dp.simulate("linear", nodes=8, observations=1000, seed=8, interventional_sets=0)
    halved, dropped = (
        dp.fit(sim.train, "bge", method="bootstrap-pc", particles=12, seed=3, without_dag=way)
        for way in ("halve", "drop")
    )
    assert halved.info["halvings"] > 0 and halved.info["dropped"] == 0
    assert halved.info["significance"] == 0.05 / 2 ** halved.info["halvings"]
    assert dropped.info["halvings"] == 0 and dropped.info["dropped"] > 0


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


@pytest.mark.slow
def test_a_larger_penalty_keeps_false_edges_out_where_columns_are_many():
    sim = dp.simulate("bge", nodes=40, observations=50, seed=2, interventional_sets=0)
    usual, strict = (
        dp.fit(sim.train, "bge", method="bootstrap-ges", particles=4, penalty=penalty) for penalty in (1.0, 3.0)
    )
    assert dp.metrics.brier_score(strict, sim.graph) < 0.5 * dp.metrics.brier_score(usual, sim.graph)
    assert strict.info["options"]["penalty"] == 3.0


def test_a_penalty_is_refused_where_there_is_none():
    table = pd.DataFrame({"a": list("xyxy") * 5, "b": list("xxyy") * 5})
    with pytest.raises(InputError, match=r"penalty=2 is for BIC: .* leave it out"):
        dp.fit(table, "bdeu", method="bootstrap-ges", penalty=2)
    with pytest.raises(InputError, match="penalty"):
        dp.fit(SIM.train, "bge", method="bootstrap-pc", penalty=2)


def test_a_search_that_the_time_limit_cuts_short_counts_only_alone():
    sim = dp.simulate("linear", nodes=25, observations=60, seed=0, interventional_sets=0)
    alone = dp.fit(sim.train, "bge", method="bootstrap-ges", particles=3, seed=1, time_limit=1e-6)
    assert len(alone) == alone.info["resamples"] == 1
    assert alone.info["trusted"] is False and "before it was complete" in alone.info["verdict"]


def test_later_searches_that_are_cut_short_are_left_out(monkeypatch):
    cut_short = iter([False, False, True])

    def search(values, *rest):
        return Found(np.zeros((5, 5), np.bool_), False) if next(cut_short) else limited_search(values, *rest)

    monkeypatch.setattr("dagpost.inference.bootstrap.resampling.limited_search", search)
    post = dp.fit(SIM.train, "bge", method="bootstrap-ges", particles=5, seed=1)
    assert post.info["resamples"] == 2 and post.info["ended_by"] == "limit" and "verdict" not in post.info
    assert post.graphs.any(axis=(1, 2)).all()
