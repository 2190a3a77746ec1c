"""The additive model against directly evaluated Student densities, and its draws against their moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t

import dagpost as dp
from dagpost import metrics
from dagpost.models import Additive, Statistics
from dagpost.models.additive import INTERCEPT_RATIO

GRAPH = np.array([[0, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]], dtype=bool)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)) * [1, 5, 0.1, 2] + [0, 3, 1, -1]
    x[:, 2] = 0.1 * np.sin(x[:, 0]) + 0.02 * rng.normal(size=60)
    return x


def direct(model, x, j, parents, rows=None):
    """Log evidence by the multivariate Student density of the standardised column."""
    rows = np.ones(len(x), dtype=bool) if rows is None else rows
    x = x[rows]
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    n, a, b = len(z), model.noise_shape, model.noise_rate
    functions = [model.basis(z[:, i]) for i in parents]
    block = np.concatenate([np.zeros((n, 0)), *functions], axis=1)
    out = []
    for ratio in model.signal_ratios:
        shape = np.eye(n) + INTERCEPT_RATIO + ratio * block @ block.T
        out.append(multivariate_t(np.zeros(n), shape * b / a, df=2 * a).logpdf(z[:, j]))
    return logsumexp(out) - np.log(len(out)) - n * np.log(x.std(axis=0)[j])


@pytest.mark.parametrize(
    "model",
    [Additive(), pytest.param(Additive(functions=2, signal_ratios=3.0, noise_shape=2.5), marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(("j", "parents"), [(0, []), (2, [0]), (1, [0, 2, 3])])
def test_evidence_is_the_student_density(model, table, j, parents):
    data = dp.Dataset(table)
    expected = direct(model, table, j, parents)
    stats = model.summarise(data)
    assert model.log_evidence(j, parents, stats) == pytest.approx(expected, abs=1e-10 * len(table))
    with jax.enable_x64(True):
        column = jnp.zeros(4).at[jnp.array(parents, dtype=int)].set(1.0)
        soft = model.log_conditional(
            column, (), Statistics(stats.shared, jax.tree.map(lambda leaf: leaf[j], stats.node))
        )
    assert float(soft) == pytest.approx(expected, abs=1e-7)


def test_rows_with_an_intervention_do_not_enter_the_family(table):
    targets = np.zeros(table.shape, dtype=bool)
    targets[:20, 2] = True
    model, data = Additive(), dp.Dataset(table, intervened=targets)
    stats = model.summarise(data)
    assert model.log_evidence(2, [0], stats) == pytest.approx(direct(model, table, 2, [0], ~targets[:, 2]), abs=1e-8)
    assert model.log_evidence(0, [2], stats) == pytest.approx(direct(model, table, 0, [2]), abs=1e-8)


def test_units_do_not_matter(table):
    scaled = table * [10.0, 1, 20, -7] + [5, -80, 0, 3]
    one, other = dp.exact(table, "additive"), dp.exact(scaled, "additive")
    assert other.edge_marginals == pytest.approx(one.edge_marginals, abs=1e-4)  # a reflection moves the knots


@pytest.mark.slow
def test_draws_have_the_moments_of_the_posterior(table):
    """The mean function of many draws is the mean of the Gaussian posterior given the data, mixed over the ratios."""
    model, data = Additive(), dp.Dataset(table)
    stats = model.summarise(data)
    theta = model.draw_thetas(jax.random.split(jax.random.key(0), 400), np.repeat(GRAPH[None], 400, axis=0), stats)
    with jax.enable_x64(True):
        of_node = jax.tree.map(lambda leaf: jnp.asarray(leaf[:, 2]), theta)
        drawn = np.asarray(jax.vmap(lambda t: model.node_mean(jnp.asarray(table), t))(of_node))
    z = (table - table.mean(axis=0)) / table.std(axis=0)
    block, n = model.basis(z[:, 0]), len(z)
    means, logs = [], []
    for ratio in model.signal_ratios:
        signal = INTERCEPT_RATIO + ratio * block @ block.T
        shape = np.eye(n) + signal
        means.append(signal @ np.linalg.solve(shape, z[:, 2]))
        logs.append(multivariate_t(np.zeros(n), shape / 6, df=3).logpdf(z[:, 2]))
    shares = np.exp(logs - logsumexp(logs))
    expected = table[:, 2].mean() + table[:, 2].std() * (shares @ np.array(means))
    error = drawn.std(axis=0) / np.sqrt(400)
    assert np.abs(drawn.mean(axis=0) - expected).max() < 4.5 * error.max()
    # the noise: inverse-gamma with the residual squares of the best ratio
    residual = np.sqrt(theta.variance[:, 2]).mean()
    assert residual == pytest.approx(np.std(table[:, 2] - expected), rel=0.15)


def test_finds_a_function_that_a_line_cannot(table):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(150, 3))
    x[:, 1] = np.cos(2 * x[:, 0]) + 0.3 * x[:, 1]
    x[:, 2] = x[:, 1] ** 2 + 0.3 * x[:, 2]
    true = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert metrics.expected_shd(dp.exact(x, "additive"), true) < 0.2
    assert metrics.expected_shd(dp.exact(x, "bge"), true) > 1


@pytest.mark.slow
def test_effects_predictions_and_held_out_density():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 2))
    x[:, 1] = 3 + 2 * np.tanh(x[:, 0]) + 0.2 * x[:, 1]
    post = dp.fit(x[:200], "additive", seed=0, progress=False)
    low, high = (post.predict({"x0": v}, samples=400, seed=1)["x1"] for v in (-1.5, 1.5))
    assert low.mean() == pytest.approx(3 + 2 * np.tanh(-1.5), abs=0.1)
    assert high.mean() == pytest.approx(3 + 2 * np.tanh(1.5), abs=0.1)
    assert post.effect("x0", "x1", contrast=(-1.5, 1.5), draws=500).mean == pytest.approx(4 * np.tanh(1.5) / 3, abs=0.1)
    linear = dp.fit(x[:200], "bge", seed=0, progress=False)
    held_out = dp.Dataset(x[200:])
    assert metrics.log_predictive_density(post, held_out) > metrics.log_predictive_density(linear, held_out) + 20


@pytest.mark.parametrize(
    "settings", [{"functions": 0}, {"signal_ratios": ()}, {"signal_ratios": (1.0, -1.0)}, {"length_scale": 0}]
)
def test_settings_are_checked(settings):
    with pytest.raises(dp.InputError):
        Additive(**settings)


@pytest.mark.slow
def test_the_predictive_density_is_that_of_the_parameters_drawn(table):
    """`p(new | known)` by closed form against the mean likelihood of the new rows under draws given the known ones."""
    model, known, new = Additive(), dp.Dataset(table[:56]), dp.Dataset(table[56:])
    closed = model.log_predictive_of(GRAPH[None], known, new)[0]
    keys = jax.random.split(jax.random.key(3), 1000)
    graphs = np.repeat(GRAPH[None], 1000, axis=0)
    logs = model.log_likelihoods(graphs, model.draw_thetas(keys, graphs, model.summarise(known)), new)
    assert closed == pytest.approx(logsumexp(logs) - np.log(1000), abs=0.15)
