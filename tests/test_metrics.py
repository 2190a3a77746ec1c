import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import roc_auc_score

import dagpost as dp
from dagpost import metrics
from dagpost.errors import InputError
from dagpost.graphs import essential_hamming_distance, structural_hamming_distance
from dagpost.posterior import Posterior


@pytest.fixture(scope="module")
def sim():
    return dp.simulate(nodes=5, observations=60, seed=1)


@pytest.fixture(scope="module")
def exact(sim):
    return dp.exact(sim.train, "linear")


def sampled(exact, draws, seed=0):
    graphs = exact.sample(draws, seed)
    return Posterior(graphs, np.zeros(draws), exact.names, exact.model, exact.prior)


def test_expected_shd_is_the_weighted_mean(sim, exact):
    by_hand = sum(w * essential_hamming_distance(g, sim.graph) for w, g in zip(exact.weights[:500], exact.graphs[:500]))
    part = Posterior(exact.graphs[:500], exact.log_weights[:500], exact.names, exact.model, exact.prior)
    assert metrics.expected_shd(part, sim.graph) == pytest.approx(by_hand / exact.weights[:500].sum())
    dags = part.weights @ structural_hamming_distance(part.graphs, sim.graph)
    assert metrics.expected_shd(part, sim.graph, essential=False) == pytest.approx(dags)


def test_certain_truth_is_perfect(sim):
    post = Posterior(sim.graph[None], np.zeros(1), sim.train.names, sim.model, sim.prior, theta=sim.theta[None])
    assert metrics.expected_shd(post, sim.graph) == 0
    assert metrics.auroc(post, sim.graph) == metrics.auprc(post, sim.graph) == 1
    assert metrics.brier_score(post, sim.graph) == 0
    assert metrics.expected_edges(post) == sim.graph.sum()


def test_auroc_is_scikit_learns_over_all_entries(sim, exact):
    scores = exact.edge_marginals
    assert metrics.auroc(exact, sim.graph) == roc_auc_score(sim.graph.ravel(), scores.ravel())
    off = ~np.eye(5, dtype=bool)
    assert metrics.auroc(exact, sim.graph, diagonal=False) == roc_auc_score(sim.graph[off], scores[off])


def test_brier_by_hand(sim, exact):
    off = ~np.eye(5, dtype=bool)
    expected = ((exact.edge_marginals - sim.graph) ** 2)[off].mean()
    assert metrics.brier_score(exact, sim.graph) == pytest.approx(expected)


def test_labelled_truth_is_aligned_by_name(sim, exact):
    truth = pd.DataFrame(sim.graph, index=list(exact.names), columns=list(exact.names))
    shuffled = truth.sample(frac=1, random_state=0).sample(frac=1, axis=1, random_state=1)
    for metric in (metrics.auroc, metrics.expected_shd, metrics.brier_score):
        assert metric(exact, shuffled) == pytest.approx(metric(exact, sim.graph))
    with pytest.raises(InputError, match="does not know the node 'x0'"):
        metrics.auroc(exact, truth.rename(index={"x0": "y"}))


def test_held_out_likelihood_of_the_truth(sim):
    post = Posterior(sim.graph[None], np.zeros(1), sim.train.names, sim.model, sim.prior, theta=sim.theta[None])
    residual = sim.test.values - sim.test.values @ sim.theta
    expected = -multivariate_normal(np.zeros(5), 0.1 * np.eye(5)).logpdf(residual).sum()
    assert metrics.negative_log_likelihood(post, sim.test) == pytest.approx(expected, rel=1e-10)


def test_interventional_likelihood_leaves_out_the_clamped_node(sim):
    post = Posterior(sim.graph[None], np.zeros(1), sim.train.names, sim.model, sim.prior, theta=sim.theta[None])
    data = sim.interventional[0]
    residual = data.values - data.values @ sim.theta
    terms = -0.5 * (residual**2 / 0.1 + np.log(2 * np.pi * 0.1))
    expected = -terms[~data.intervened].sum()
    assert metrics.negative_log_likelihood(post, data) == pytest.approx(expected, rel=1e-10)
    mean = np.mean([metrics.negative_log_likelihood(post, one) for one in sim.interventional])
    assert metrics.negative_log_likelihood(post, sim.interventional) == pytest.approx(mean, rel=1e-12)


def test_marginal_likelihood_where_there_are_no_parameters(sim):
    post = dp.exact(sim.train, "bge")
    stats = post.model.summarise(sim.test)
    expected = -post.weights @ post.model.log_evidence_of(post.graphs, stats)
    assert metrics.negative_log_likelihood(post, sim.test) == pytest.approx(expected, rel=1e-12)


def test_distances_vanish_at_the_exact_posterior(exact):
    assert metrics.total_variation(exact, exact) == pytest.approx(0, abs=1e-12)
    assert metrics.kl_divergence(exact, exact) == pytest.approx(0, abs=1e-12)
    assert metrics.edge_marginal_rmse(exact, exact) == metrics.edge_marginal_maximum(exact, exact) == 0


def test_distances_by_hand(exact):
    """A point mass on one graph with probability q: TV = 1 - q, KL = -log q."""
    m = int(exact.weights.argmax())
    point = Posterior(exact.graphs[[m, m]], np.zeros(2), exact.names, exact.model, exact.prior)
    assert metrics.total_variation(point, exact) == pytest.approx(1 - exact.weights[m])
    assert metrics.kl_divergence(point, exact) == pytest.approx(-exact.log_weights[m])
    difference = exact.graphs[m] - exact.edge_marginals
    assert metrics.edge_marginal_maximum(point, exact) == pytest.approx(np.abs(difference).max())
    assert metrics.edge_marginal_rmse(point, exact) == pytest.approx(np.sqrt((difference**2).sum() / 20))


@pytest.mark.slow
def test_distances_do_not_need_a_list_of_all_graphs(sim, exact):
    layered = dp.exact(sim.train, "linear", algorithm="layers", draws=1)
    post = sampled(exact, 500)
    for metric in (metrics.total_variation, metrics.kl_divergence, metrics.edge_marginal_rmse):
        assert metric(post, layered) == pytest.approx(metric(post, exact), abs=1e-9)


def test_more_draws_come_closer(exact):
    few, many = sampled(exact, 100), sampled(exact, 20_000)
    assert metrics.total_variation(many, exact) < metrics.total_variation(few, exact)
    assert metrics.edge_marginal_maximum(many, exact) < 0.02


def test_errors_name_the_cause(exact, sim):
    with pytest.raises(InputError, match="no edge"):
        metrics.auroc(exact, np.zeros((5, 5)))
    with pytest.raises(InputError, match=r"shape \(4, 4\)"):
        metrics.expected_shd(exact, np.zeros((4, 4)))
    with pytest.raises(InputError, match="4 columns"):
        metrics.negative_log_likelihood(exact, dp.Dataset(np.zeros((3, 4))))
    with pytest.raises(InputError, match="no data set"):
        metrics.negative_log_likelihood(exact, [])


def test_columns_are_aligned_by_name(sim):
    frame = sim.train.frame().rename(columns=dict(zip(sim.train.names, "abcde")))
    post = dp.exact(frame, "bge")
    held_out = sim.test.frame().rename(columns=dict(zip(sim.test.names, "abcde")))
    expected = metrics.negative_log_likelihood(post, held_out)
    assert metrics.negative_log_likelihood(post, held_out[list("ecabd")]) == pytest.approx(expected, rel=1e-12)
    assert metrics.negative_log_likelihood(post, sim.test.values) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(InputError, match="no column 'a'"):
        metrics.negative_log_likelihood(post, held_out.rename(columns={"a": "q"}))
    shuffled = dp.exact(frame[list("ecabd")], "bge")
    assert metrics.total_variation(shuffled, post) == pytest.approx(0, abs=1e-9)
    assert metrics.edge_marginal_maximum(shuffled, post) == pytest.approx(0, abs=1e-9)
    with pytest.raises(InputError, match="not about the same nodes"):
        metrics.total_variation(dp.exact(sim.train, "bge"), post)
