"""Curves of edges and of total effects against closed forms, known functions and hand-built networks."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import dagpost as dp
from dagpost.errors import InputError
from dagpost.posterior import Posterior
from dagpost.posterior.parameters import parameters_of

LINEAR = [
    dp.BGe(),
    pytest.param(dp.LinearGaussian(), marks=pytest.mark.slow),
    pytest.param(dp.LinearGaussian(noise_variance=None), marks=pytest.mark.slow),
]
CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
NAMES = ("a", "b", "c")
DATA = dp.Dataset(np.random.default_rng(0).normal(size=(50, 3)) @ np.array([[2, 1, 3], [0, 1, 0.5], [0, 0, 1.0]]))

pytestmark = pytest.mark.slow  # parameters of additive models, of networks and of Gaussian processes compile long


def one_graph(model, graph=CHAIN, data=DATA, theta=()) -> Posterior:
    return Posterior(graph[None], np.zeros(1), NAMES, model, dp.Uniform(), theta, data=data)


def networks(graphs, model) -> Posterior:
    """Random networks with the weights 1, 2, … for these graphs."""
    thetas = [model.sample_theta(key, 3) for key in jax.random.split(jax.random.key(7), len(graphs))]
    theta = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *thetas)
    return Posterior(np.array(graphs), np.log(np.arange(1.0, len(graphs) + 1)), NAMES, model, dp.Uniform(), theta)


# ---- the function of an edge


@pytest.mark.parametrize("model", LINEAR, ids=repr)
def test_a_linear_edge_is_a_line_with_its_weight(model):
    """Slope and width against `weight_moments`, with 2,000 draws: errors below five standard errors."""
    post, n = one_graph(model), 2000
    mean, covariance = model.weight_moments(2, np.array([1]), model.summarise(DATA))
    sd = np.sqrt(covariance[0, 0])
    curve = post.mechanism("b", "c", draws=n)
    assert curve.draws.shape == (n, 61) and curve.probability == 1 and curve.kind == "direct"
    around = curve.values - DATA.values[:, 1].mean()
    np.testing.assert_allclose(np.diff(curve.draws, 2, axis=1), 0, atol=1e-10)
    slope = (curve.mean[-1] - curve.mean[0]) / (curve.values[-1] - curve.values[0])
    assert abs(slope - mean[0]) < 5 * sd / np.sqrt(n)
    np.testing.assert_allclose(curve.mean, slope * around, atol=1e-10)  # 0 at the average over the data
    # the weights are normal, or Student's t with 50 degrees of freedom and more
    width = 2 * norm.ppf(0.95) * sd * np.abs(around)
    np.testing.assert_allclose(curve.upper - curve.lower, width, rtol=0.12)
    np.testing.assert_allclose(curve.values[[0, -1]], np.quantile(DATA.values[:, 1], [0.01, 0.99]))


def test_only_graphs_with_the_edge_take_part():
    """Two graphs, weights 2 with probability 0.25 and 4 with 0.5; no edge in the third."""
    theta = np.zeros((3, 3, 3))
    theta[:, 0, 1] = [2.0, 4.0, 9.0]
    graphs = np.array([CHAIN, CHAIN, 0 * CHAIN], dtype=bool)
    post = Posterior(graphs, np.log([0.25, 0.5, 0.25]), NAMES, dp.LinearGaussian(), dp.Uniform(), theta)
    curve = post.mechanism("a", "b", points=5)
    np.testing.assert_allclose(curve.values, [-2, -1, 0, 1, 2])
    np.testing.assert_allclose(curve.weights, [1 / 3, 2 / 3])
    np.testing.assert_allclose(curve.mean, (2 / 3 + 8 / 3) * curve.values)
    np.testing.assert_allclose(curve.upper, [-4, -2, 0, 4, 8])
    assert curve.probability == pytest.approx(0.75) and curve.observed.size == 0
    assert repr(curve) == "Curve(a -> b: 5 values from -2 to 2, 2 draws, probability 0.75)"


def test_the_bands_of_an_additive_model_cover_the_truth():
    """x1 = tanh(x0) + noise: nine bands of 90 % cover it at 80 % of the points or more. Errors of a curve are alike at
    neighbouring points, so that single bands may miss at more."""
    covered = []
    for seed in range(9):
        x = np.random.default_rng(seed).normal(size=(300, 2))
        x[:, 1] = np.tanh(x[:, 0]) + 0.3 * x[:, 1]
        curve = dp.exact(x, "additive").mechanism("x0", "x1")
        truth = np.tanh(curve.values) - np.tanh(x[:, 0]).mean()
        covered.append(np.mean((curve.lower <= truth) & (truth <= curve.upper)))
    assert 0.8 <= np.mean(covered) <= 0.99


def test_the_curve_of_an_additive_model_is_the_truth():
    x = np.random.default_rng(0).normal(size=(1000, 2))
    x[:, 1] = np.tanh(x[:, 0]) + 0.2 * x[:, 1]
    curve = dp.exact(x, "additive").mechanism("x0", "x1")
    assert np.abs(curve.mean - np.tanh(curve.values) + np.tanh(x[:, 0]).mean()).max() < 0.1


def test_a_gaussian_process_finds_a_parabola():
    x = np.random.default_rng(1).normal(size=(150, 2))
    x[:, 1] = x[:, 0] ** 2 + 0.2 * x[:, 1]
    curve = dp.exact(x, "gp").mechanism("x0", "x1", draws=50)
    truth = curve.values**2 - np.mean(x[:, 0] ** 2)
    assert np.abs(curve.mean - truth).max() < 0.25  # of a range of 5


def test_the_curve_of_a_network_is_the_network():
    both = CHAIN.copy()
    both[0, 2] = True  # c has the parents a and b
    model = dp.MlpGaussian(hidden=(4,))
    post = networks([both, CHAIN, both], model)
    curve = post.mechanism("a", "c", points=9)
    expected = []
    for m in (0, 2):
        theta_c = jax.tree.map(lambda leaf, m=m: leaf[m, 2], post.theta)
        with jax.enable_x64(True):
            values = np.asarray(model.network(jnp.zeros((9, 3)).at[:, 0].set(curve.values), theta_c))
        expected.append(values - values[4])
    np.testing.assert_allclose(curve.draws, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(curve.weights, [1 / 4, 3 / 4])
    np.testing.assert_allclose(curve.mean, np.array([1, 3]) @ expected / 4)


def test_other_parents_are_held_at_their_means():
    """A network of two inputs with data at hand: the other input is at the mean of its column."""
    both = CHAIN.copy()
    both[0, 2] = True
    post = dataclasses.replace(networks([both], dp.MlpGaussian(activation="tanh")), data=DATA)
    curve = post.mechanism("a", "c")
    theta_c = jax.tree.map(lambda leaf: leaf[0, 2], post.theta)

    def network(values):
        inputs = np.stack([values, np.full(len(values), DATA.values[:, 1].mean()), 0 * values], axis=1)
        with jax.enable_x64(True):
            return np.asarray(post.model.network(jnp.asarray(inputs), theta_c))

    expected = network(curve.values) - network(DATA.values[:, 0]).mean()
    np.testing.assert_allclose(curve.mean, expected, atol=1e-10)


@pytest.mark.parametrize(
    "model",
    [dp.BGe(), dp.Additive(), dp.GaussianProcess(features=16)],
    ids=lambda m: m.name,
)
def test_parameters_of_one_node_are_those_of_its_family(model):
    """Drawn alone, the parameters of a node have the distribution that they have with all others."""
    post, member = one_graph(model), np.zeros(300, dtype=int)
    key = jax.random.key(0)
    inputs = np.where(CHAIN[:, 2], DATA.values[:4], 0.0)
    found = []
    for node in (None, 2):
        _, theta = parameters_of(post, member, key, node)
        axes = jax.tree.broadcast(model.theta_axes, theta)
        theta_j = jax.tree.map(lambda leaf, axis: np.take(leaf, 2, axis=axis + 1), theta, axes)
        with jax.enable_x64(True):
            found.append(np.asarray(jax.vmap(lambda t: model.node_mean(jnp.asarray(inputs), t))(theta_j)))
    error = np.hypot(*(draws.std(axis=0) for draws in found)) / np.sqrt(300)
    assert (np.abs(found[0].mean(axis=0) - found[1].mean(axis=0)) < 5 * error).all()


# ---- total effects


@pytest.mark.parametrize("model", LINEAR, ids=repr)
def test_the_total_effect_of_a_chain_is_the_product_of_its_weights(model):
    post, n = one_graph(model), 300
    curve = post.effect_curve("a", "c", draws=n, seed=3)
    assert curve.kind == "total" and len(curve.values) == 21
    slopes = np.diff(curve.draws, axis=1) / np.diff(curve.values)
    np.testing.assert_allclose(slopes, slopes[:, :1] * np.ones(20), atol=1e-10)
    stats = model.summarise(DATA)
    first, second = (model.weight_moments(j, np.array([j - 1]), stats).mean[0] for j in (1, 2))
    assert abs(slopes.mean() - first * second) < 5 * slopes[:, 0].std() / np.sqrt(n)
    effect = post.effect("a", "c", draws=n, seed=3)
    np.testing.assert_allclose(slopes[:, 0], effect.draws, atol=1e-10)  # the same draws of the parameters


def test_graphs_without_a_path_are_constant():
    theta = np.zeros((2, 3, 3))
    theta[:, 0, 1], theta[:, 1, 2] = 2.0, -1.5
    cut = CHAIN.copy()
    cut[0, 1] = False
    post = Posterior(np.array([CHAIN, cut]), np.log([0.75, 0.25]), NAMES, dp.LinearGaussian(), dp.Uniform(), theta)
    curve = post.effect_curve("a", "c", [0.0, 1.0, 4.0])
    np.testing.assert_allclose(curve.draws, [[0, -3, -12], [0, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(curve.mean, [0, -2.25, -9], atol=1e-12)
    assert curve.probability == pytest.approx(0.75)
    assert (post.effect_curve("c", "a").draws == 0).all()


def test_total_effects_of_a_network_are_means_of_its_rows():
    """On the only child of the cause the noise has mean 0: the network, up to the error of 4,000 rows."""
    post = networks([CHAIN], dp.MlpGaussian(noise_variance=0.1))
    curve = post.effect_curve("a", "b", points=3, rows=4000)
    direct = post.mechanism("a", "b", points=3)
    theta_b = jax.tree.map(lambda leaf: leaf[0, 1], post.theta)
    expected = post.model.network(jnp.zeros((3, 3)).at[:, 0].set(curve.values), theta_b)
    assert np.abs(curve.mean - np.asarray(expected)).max() < 5 * np.sqrt(0.1 / 4000)
    # the noise is the same for all values, so that differences have no error
    np.testing.assert_allclose(curve.mean - curve.mean[1], direct.mean, atol=1e-6)


# ---- units, files, errors


def test_units_are_those_of_the_table():
    raw = dp.Dataset(DATA.values * [10.0, 0.1, 5.0] + [100.0, 0.0, -3.0], names=NAMES)
    post = dp.exact(raw.standardised(), "bge")
    mean, scale = raw.values.mean(axis=0), raw.values.std(axis=0)
    for ask in (post.mechanism, post.effect_curve):
        table, fitted = ask("a", "c"), ask("a", "c", units="fitted")
        np.testing.assert_allclose(table.values, mean[0] + scale[0] * fitted.values)
        shift = mean[2] if table.kind == "total" else 0.0
        np.testing.assert_allclose(table.mean, shift + scale[2] * fitted.mean, atol=1e-9)
        np.testing.assert_allclose(table.upper - table.lower, scale[2] * (fitted.upper - fitted.lower))
        np.testing.assert_allclose(table.observed, raw.values[:, 0])
    some = post.effect_curve("a", "c", [90.0, 110.0])
    np.testing.assert_allclose(some.values, [90, 110])
    effect = post.effect("a", "c")
    assert np.diff(some.mean)[0] / 20 == pytest.approx(effect.mean, abs=5 * effect.sd / np.sqrt(200))


def test_a_file_without_data(tmp_path):
    post = dp.exact(DATA.standardised(), "bge")
    post.save(tmp_path / "bge.nc")
    loaded = dp.load(tmp_path / "bge.nc")
    for ask in (loaded.mechanism, loaded.effect_curve):
        with pytest.raises(InputError, match="with_data"):
            ask("x0", "x2")
    again = loaded.with_data(DATA.standardised()).mechanism("x0", "x2")
    np.testing.assert_allclose(again.mean, post.mechanism("x0", "x2").mean)
    network = networks([CHAIN, CHAIN], dp.MlpGaussian())
    network.save(tmp_path / "mlp.nc")
    found = dp.load(tmp_path / "mlp.nc").mechanism("a", "b")
    np.testing.assert_array_equal(found.draws, network.mechanism("a", "b").draws)


def test_the_grid_of_a_column_that_hardly_varies():
    x = DATA.values.copy()
    x[:, 0] = 0.0
    x[3, 0] = 7.0
    many = np.concatenate([x, np.tile(x[:1], (200, 1))])
    curve = one_graph(dp.BGe(), data=dp.Dataset(many)).mechanism("a", "b")
    assert curve.values[0] == 0 and curve.values[-1] == 7


class WithoutMean(dp.LinearGaussian):
    name = "without-mean"
    node_mean = dp.Model.node_mean


@pytest.mark.parametrize(
    "ask, message",
    [
        (lambda p: p.mechanism("c", "a"), r"the edge c -> a is in none of the 1 graphs; its probability is 0"),
        (lambda p: p.mechanism("a", "a"), "both 'a'"),
        (lambda p: p.mechanism("a", "b", level=0), "level=0"),
        (lambda p: p.mechanism("a", "b", points=1), "points=1"),
        (lambda p: p.mechanism("a", "b", draws=0), "draws=0"),
        (lambda p: p.mechanism("a", "b", units="row"), "did you mean 'raw'"),
        (lambda p: p.effect_curve("a", "b", [0.0, np.inf]), "give finite numbers"),
        (lambda p: p.effect_curve("a", "b", []), "give finite numbers"),
        (lambda p: p.effect_curve("a", "b", units="row"), "did you mean 'raw'"),
        (lambda p: one_graph(WithoutMean()).mechanism("a", "b"), r"'without-mean' has no method node_mean\("),
    ],
)
def test_errors_name_the_cause(ask, message):
    with pytest.raises(InputError, match=message):
        ask(one_graph(dp.BGe()))
