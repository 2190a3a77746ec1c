"""Causal effects against sums over all DAGs and against plain simulation."""

from itertools import pairwise, permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import all_dags, descendants
from dagpost.posterior import Posterior
from dagpost.posterior.effects import weighted_quantile
from dagpost.posterior.interventions import effect_moments, families_of, simulate_under
from dagpost.posterior.parameters import systematic

SIM = dp.simulate(nodes=4, observations=30, seed=3, interventional_sets=0)
X = SIM.train.values
LINEAR = [dp.BGe(), dp.LinearGaussian(), dp.LinearGaussian(noise_variance=None)]
CHAIN = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)


def mean_effect_by_paths(weights, i, j):
    """Sum over all directed paths of the product of their weights."""
    others = [k for k in range(len(weights)) if k not in (i, j)]
    total = 0.0
    for size in range(len(others) + 1):
        for middle in permutations(others, size):
            path = (i, *middle, j)
            total += np.prod([weights[a, b] for a, b in pairwise(path)])
    return total


@pytest.mark.slow
def test_the_mean_is_the_sum_over_all_dags():
    """Evidence by the Gaussian density of the rows, `N(0, σ² I + s² X_P X_Pᵀ)`, weights by ridge regression."""
    noise = 0.1
    graphs = all_dags(4)
    density, coefficients = {}, {}

    def family(j, parents):
        if (j, parents) not in density:
            inputs = X[:, list(parents)]
            covariance = noise * np.eye(len(X)) + inputs @ inputs.T
            density[j, parents] = multivariate_normal(np.zeros(len(X)), covariance).logpdf(X[:, j])
            gram = inputs.T @ inputs / noise + np.eye(len(parents))
            coefficients[j, parents] = np.linalg.solve(gram, inputs.T @ X[:, j] / noise)
        return density[j, parents], coefficients[j, parents]

    score, effect = np.zeros(len(graphs)), np.zeros((len(graphs), 4, 4))
    for m, graph in enumerate(graphs):
        weights = np.zeros((4, 4))
        for j in range(4):
            parents = tuple(np.flatnonzero(graph[:, j]).tolist())
            value, weights[list(parents), j] = family(j, parents)
            score[m] += value
        effect[m] = [[mean_effect_by_paths(weights, i, j) if i != j else 0 for j in range(4)] for i in range(4)]
    probability = np.exp(score - score.max())
    probability /= probability.sum()
    expected = np.einsum("m,mij->ij", probability, effect)
    between = np.einsum("m,mij->ij", probability, (effect - expected) ** 2)
    post = dp.exact(X, "linear", "uniform")
    np.testing.assert_allclose(post.effects(), expected, atol=1e-10)
    for i, j in ((0, 1), (2, 3), (3, 0)):
        found = post.effect(i, j)
        assert found.exact_given_graphs and found.error == 0
        assert found.mean == pytest.approx(expected[i, j], abs=1e-10)
        assert found.between == pytest.approx(between[i, j], abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("model", LINEAR, ids=repr)
def test_moments_given_a_graph_against_draws(model):
    """Closed forms against 8,000 exact draws of the parameters, effects summed over paths; five standard errors."""
    graph = np.triu(np.ones((4, 4), dtype=bool), 1)
    stats = model.summarise(SIM.train)
    n = 8_000
    theta = model.draw_thetas(jax.random.split(jax.random.key(0), n), np.repeat(graph[None], n, axis=0), stats)
    w = np.moveaxis(model.linear_weights(theta), 0, -1)
    draws = w[0, 3] + w[0, 1] * w[1, 3] + w[0, 2] * w[2, 3] + w[0, 1] * w[1, 2] * w[2, 3]
    mean, variance = effect_moments(graph, 0, 3, families_of(model, stats))
    assert abs(draws.mean() - mean) < 5 * draws.std() / np.sqrt(n)
    squares = (draws - draws.mean()) ** 2
    assert abs(squares.mean() - variance) < 5 * squares.std() / np.sqrt(n)


@pytest.mark.parametrize("model", LINEAR, ids=repr)
def test_draws_agree_with_the_closed_form_and_variances_add_up(model):
    post = dp.exact(SIM.train, model)
    cause, effect = np.unravel_index(np.abs(post.effects().to_numpy()).argmax(), (4, 4))
    found = post.effect(int(cause), int(effect), draws=3000)
    assert found.variance == found.within + found.between
    assert found.within > 0 and found.between >= 0
    assert abs(found.draws.mean() - found.mean) < 5 * found.sd / np.sqrt(3000)
    squares = (found.draws - found.mean) ** 2
    assert abs(squares.mean() - found.variance) < 5 * squares.std() / np.sqrt(3000)
    assert found.positive + found.negative + found.zero == pytest.approx(1)
    ancestor = post.ancestor_probability(int(cause), int(effect))
    assert 1 - found.zero == pytest.approx(ancestor, abs=0.01)
    low, high = found.interval
    assert np.mean(found.draws < low) <= 0.05 <= np.mean(found.draws <= low)
    assert np.mean(found.draws > high) <= 0.05 <= np.mean(found.draws >= high) + 1e-12


def test_without_data_the_draws_are_those_of_the_posterior():
    post = dp.exact(SIM.train, "linear", parameters=True, draws=300)
    bare = Posterior(post.graphs, post.log_weights, post.names, post.model, post.prior, post.theta)
    found = bare.effect("x0", "x3")
    weights = post.theta * post.graphs
    expected = [mean_effect_by_paths(w, 0, 3) for w in weights]
    np.testing.assert_allclose(found.draws, expected, atol=1e-10)
    assert found.mean == pytest.approx(np.mean(expected)) and not found.exact_given_graphs
    np.testing.assert_allclose(bare.effects().loc["x0", "x3"], np.mean(expected))


def test_the_variance_of_draws_is_split_by_graph():
    """Two graphs; with one the effect is N(1, 0.2²), with the other there is none."""
    n = 4000
    rng = np.random.default_rng(0)
    graphs = np.repeat([CHAIN, np.zeros((3, 3), dtype=bool)], n, axis=0)
    theta = np.zeros((2 * n, 3, 3))
    theta[:n, 0, 1] = rng.normal(1.0, 0.2, n)
    weights = np.log(np.repeat([0.75, 0.25], n))
    post = Posterior(graphs, weights, ("a", "b", "c"), dp.LinearGaussian(), dp.Uniform(), theta)
    found = post.effect("a", "b")
    assert found.mean == pytest.approx(0.75, abs=0.01)
    assert found.within == pytest.approx(0.75 * 0.04, rel=0.1)
    assert found.between == pytest.approx(0.75 * 0.25, rel=0.05)
    assert found.zero == pytest.approx(0.25) and found.variance == pytest.approx(found.within + found.between)
    single = Posterior(graphs[:1], np.zeros(1), ("a", "b", "c"), dp.LinearGaussian(), dp.Uniform(), theta[:1])
    assert np.isnan(single.effect("a", "b").within) and np.isnan(single.effect("a", "b").between)
    assert single.effect("b", "a").within == 0


@pytest.mark.slow
def test_effects_are_in_the_units_of_the_table():
    scales = np.array([1.0, 10.0, 0.1, 1000.0])
    raw = dp.Dataset(X * scales)
    post = dp.exact(raw.standardised(), "bge")
    deviation = raw.values.std(axis=0)
    fitted, found = post.effect(0, 3, units="fitted", draws=50), post.effect(0, 3, draws=50)
    assert found.mean == pytest.approx(fitted.mean * deviation[3] / deviation[0])
    assert found.within == pytest.approx(fitted.within * (deviation[3] / deviation[0]) ** 2)
    np.testing.assert_allclose(post.effects().loc["x0", "x3"], found.mean)
    rows = post.predict({"x0": 2.5}, samples=300)
    assert (rows["x0"] == 2.5).all()
    np.testing.assert_allclose(post.predict(samples=2000).std(), deviation, rtol=0.3)


def test_table_of_all_effects():
    post = dp.exact(SIM.train, "bge")
    table = post.effect_table(draws=500)
    assert len(table) == 12 and (table.lower <= table.upper).all()
    first = table.iloc[0]
    assert first["mean"] == pytest.approx(
        post.effects().loc[first.cause, first.effect], abs=5 * first.sd / np.sqrt(500)
    )
    assert first.probability == pytest.approx(post.ancestor_probability(first.cause, first.effect))


# ---- models that are not linear


def mlp_posterior(particles=3) -> Posterior:
    model = dp.MlpGaussian(hidden=(4,))
    thetas = [model.sample_theta(key, 3) for key in jax.random.split(jax.random.key(7), particles)]
    theta = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *thetas)
    weights = np.log(np.arange(1.0, particles + 1))
    return Posterior(np.repeat(CHAIN[None], particles, axis=0), weights, ("a", "b", "c"), model, dp.Uniform(), theta)


@pytest.mark.slow
def test_rows_are_those_of_the_model():
    """The compiled simulation of many graphs against the model's own, key by key."""
    post = mlp_posterior()
    keys = jax.random.split(jax.random.key(1), 3)
    found = simulate_under(post.model, keys, post.graphs, post.theta, 5, {1: 0.5})
    for m in range(3):
        theta = jax.tree.map(lambda leaf, m=m: leaf[m], post.theta)
        expected = post.model.sample_rows(keys[m], post.graphs[m], theta, 5, {1: 0.5}).values
        np.testing.assert_allclose(found[m], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_effects_of_a_neural_network():
    """On its child alone the noise cancels: the effect is the difference of two values of the network."""
    post = mlp_posterior()
    found = post.effect("a", "b", contrast=(-0.5, 1.5), rows=20)
    expected = []
    for m in range(3):
        theta_b = jax.tree.map(lambda leaf, m=m: leaf[m, 1], post.theta)
        low, high = post.model.network(jnp.array([[-0.5, 0, 0], [1.5, 0, 0]]), theta_b)
        expected.append(float(high - low) / 2)
    np.testing.assert_allclose(found.draws, expected, atol=1e-5)
    np.testing.assert_allclose(found.weights, [1 / 6, 2 / 6, 3 / 6])
    assert found.mean == pytest.approx(np.dot(found.weights, expected), abs=1e-5)
    assert found.between == pytest.approx(0, abs=1e-6) and found.within > 0  # one graph only
    assert post.effects(rows=20).shape == (3, 3)


# ---- prediction


@pytest.mark.slow
def test_prediction_respects_weights_and_interventions():
    """With weight 0.8 b follows a with weight 2; with weight 0.2 it does not."""
    edge = np.zeros((2, 2), dtype=bool)
    edge[0, 1] = True
    theta = np.array([[[0.0, 2.0], [0, 0]], [[0, 0], [0, 0]]])
    post = Posterior(
        [edge, 0 * edge], np.log([0.8, 0.2]), ("a", "b"), dp.LinearGaussian(noise_variance=1e-4), dp.Uniform(), theta
    )
    rows = post.predict({"a": 3.0}, samples=1000, seed=1)
    assert list(rows.columns) == ["a", "b"] and (rows.a == 3.0).all()
    assert (rows.b > 3).mean() == pytest.approx(0.8, abs=0.002)
    assert rows.b[rows.b > 3].mean() == pytest.approx(6, abs=0.01)
    assert post.predict({"a": 3.0}, samples=10, seed=1).equals(post.predict({"a": 3.0}, samples=10, seed=1))
    assert abs(post.predict({"b": 3.0}, samples=100).a.mean()) < 0.1


# ---- helpers and errors


def test_systematic_resampling_and_quantiles():
    counts = np.bincount(systematic(np.array([0.5, 0.25, 0.25]), 8, jax.random.key(0)))
    np.testing.assert_array_equal(counts, [4, 2, 2])
    draws = np.array([[3.0], [1.0], [2.0]])
    for share, expected in ((0.1, 1), (0.2, 1), (0.21, 2), (0.5, 2), (0.51, 3), (1.0, 3)):
        assert weighted_quantile(draws, np.array([0.5, 0.2, 0.3]), share)[0] == expected


@pytest.mark.parametrize(
    "ask, message",
    [
        (lambda p: p.effect("x0", "x0"), "both 'x0'"),
        (lambda p: p.effect("x0", "y"), "unknown node 'y'"),
        (lambda p: p.effect("x0", "x1", level=1.0), "level=1.0"),
        (lambda p: p.effect("x0", "x1", draws=0), "draws=0"),
        (lambda p: p.effect("x0", "x1", units="row"), "did you mean 'raw'"),
        (lambda p: p.effect("x0", "x3", contrast=(1, 1)), "contrast"),
        (lambda p: p.predict({"x0": float("nan")}), "give a finite number"),
        (lambda p: p.predict({"x9": 1.0}), "unknown node 'x9'"),
        (lambda p: p.predict(samples=0), "samples=0"),
        (lambda p: Posterior(p.graphs, p.log_weights, p.names, p.model, p.prior).effect(0, 1), "with_data"),
    ],
)
def test_errors_name_the_cause(ask, message):
    post = dp.exact(SIM.train, "bge")
    with pytest.raises(InputError, match=message):
        ask(post)


@pytest.mark.long
def test_intervals_cover():
    """120 truths from the prior, for each the pair with the largest mean effect (a choice made by the data keeps
    Bayesian intervals honest). The standard error of the share is 0.027; three of them on each side."""
    covered = []
    for seed in range(120):
        sim = dp.simulate("linear", nodes=5, observations=30, seed=seed, source="density", interventional_sets=0)
        post = dp.fit(sim.train, "linear", draws=500, precision=0.02, seed=seed)
        means = post.effects().abs().to_numpy()
        i, j = np.unravel_index(means.argmax(), means.shape)
        truth = np.linalg.inv(np.eye(5) - sim.theta * sim.graph)[i, j] * descendants(sim.graph)[i, j]
        low, high = post.effect(int(i), int(j), draws=2000, seed=seed).interval
        covered.append(low <= truth <= high)
    assert 0.82 <= np.mean(covered) <= 0.98


def test_the_effect_in_a_wide_table_is_that_of_a_narrow_one(monkeypatch):
    """Weights drawn in parts and on paths only: the same mean and spread, whatever lies off the paths."""
    from dagpost.posterior import effects, parameters
    from dagpost.posterior.interventions import effects_along_paths, nodes_on_paths, total_effects

    sim = dp.simulate(nodes=8, observations=200, seed=3, interventional_sets=0)
    post = dp.fit(sim.train, "bge", draws=400)
    i, j = np.argwhere((post.ancestor_probabilities.to_numpy() > 0.4) & (post.edge_marginals < 0.9))[0].tolist()
    usual = post.effect(i, j, draws=400)
    monkeypatch.setattr(effects, "WIDE", 2)
    monkeypatch.setattr(parameters, "CHUNK", 4 * 64 * 30)
    wide = post.effect(i, j, draws=400)
    assert wide.mean == usual.mean and wide.variance == usual.variance  # closed forms
    assert wide.zero == pytest.approx(usual.zero)
    error = usual.sd / np.sqrt(400)
    assert abs(np.average(wide.draws, weights=wide.weights) - wide.mean) < 5 * error
    assert wide.draws.std() == pytest.approx(usual.draws.std(), rel=0.2)
    rng, graphs = np.random.default_rng(0), post.graphs[:50]
    weights = rng.normal(size=graphs.shape) * graphs
    found = effects_along_paths(weights, nodes_on_paths(dp.graphs.descendants(graphs), i, j), i, j)
    np.testing.assert_allclose(found, total_effects(weights, i)[:, j], atol=1e-9)
