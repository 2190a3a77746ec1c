"""The Gaussian-process model against direct evaluation: Student densities by scipy, and the process itself."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t

import dagpost as dp
from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.models import GaussianProcess, gp_evidence

pytestmark = pytest.mark.slow  # compiling the evidence takes as long as all of these tests

MODEL = GaussianProcess()


def nonlinear(rows, seed=0, d=5):
    """Columns with a nonlinear last one, in different units."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, d))
    values[:, -1] = np.sin(values[:, 0]) + np.tanh(values[:, 1]) * values[:, 2] + 0.3 * values[:, -1]
    return values * np.geomspace(0.1, 50, d) + np.arange(d)


def kernel(model, a, b, length, which="joint"):
    """Covariance of the function, in units of `v r`; a and b are standardised, of shape (rows, p)."""
    p, c = a.shape[1], model.linear_share
    squares = (a[:, None] - b[None]) ** 2
    if which == "joint":
        curved = np.exp(-squares.sum(axis=2) / (2 * length**2 * p)) / (1 - (1 + 2 / (length**2 * p)) ** (-p / 2))
    else:
        curved = np.exp(-squares / (2 * length**2)).mean(axis=2) / (1 - (1 + 2 / length**2) ** -0.5)
    return (1 - c) * curved + c * a @ b.T / p


def direct(model, x, inputs, kernels=("joint", "sum")):
    """Log evidence by densities of scipy on the grid: the definition, without factors or identities."""
    n, p = inputs.shape
    y, z = (x - x.mean()) / x.std(), (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    terms = []
    for which, length in product(kernels if p > 1 else ["joint"], model.lengths):
        for ratio in model.ratios if p else (0.0,) * len(model.ratios):
            scatter = np.eye(n) + model.intercept_scale**2
            if p:
                scatter = scatter + ratio * kernel(model, z, z, length, which)
            shape, rate = model.variance_shape, model.variance_rate / (1 + ratio)
            terms.append(multivariate_t(np.zeros(n), rate / shape * scatter, df=2 * shape).logpdf(y))
    return logsumexp(terms) - np.log(len(terms)) - n * np.log(x.std())


@pytest.mark.parametrize("rows", [3, 40, 120])
@pytest.mark.parametrize("p", range(5))
def test_evidence_is_the_students_density(rows, p):
    """Both ways, by a factor and directly, occur; what a factor leaves out is worth at most about 1e-4 nats."""
    values = nonlinear(rows)
    found = MODEL.log_evidence(4, range(p), MODEL.summarise(Dataset(values)))
    assert found == pytest.approx(direct(MODEL, values[:, 4], values[:, :p]), abs=1e-4)


@pytest.mark.parametrize("which", ["joint", "sum"])
@pytest.mark.parametrize("p", [2, 3])
def test_evidence_of_one_kernel(which, p):
    values, model = nonlinear(60), GaussianProcess(kernel=which)
    found = model.log_evidence(4, range(p), model.summarise(Dataset(values)))
    assert found == pytest.approx(direct(model, values[:, 4], values[:, :p], [which]), abs=1e-4)


def test_kernels_are_the_same_for_one_parent():
    stats = MODEL.summarise(Dataset(nonlinear(60)))
    for parents in ([], [0]):
        assert len({GaussianProcess(kernel=k).log_evidence(4, parents, stats) for k in ("both", "joint", "sum")}) == 1


def test_the_sum_kernel_is_for_sums_and_the_joint_one_for_products():
    """Two parents, 100 rows; what is in favour of the better kernel is worth several nats."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 4))
    x[:, 2] = np.sin(2 * x[:, 0]) + np.cos(2 * x[:, 1]) + 0.3 * x[:, 2]
    x[:, 3] = np.sin(2 * x[:, 0]) * np.cos(2 * x[:, 1]) + 0.3 * x[:, 3]
    stats = MODEL.summarise(Dataset(x))
    joint, both, single = (
        np.array([GaussianProcess(kernel=k).log_evidence(j, [0, 1], stats) for j in (2, 3)])
        for k in ("joint", "both", "sum")
    )
    assert single[0] > joint[0] + 3 and joint[1] > single[1] + 3
    np.testing.assert_allclose(both, np.logaddexp(joint, single) - np.log(2), rtol=1e-9)


@pytest.mark.parametrize("parents", [pytest.param([0], marks=pytest.mark.slow), [0, 1]])
def test_with_many_rows_only_the_factor_is_used(parents):
    values = nonlinear(gp_evidence.DIRECT_ROWS + 20)
    stats = MODEL.summarise(Dataset(values))
    expected = direct(MODEL, values[:, 4], values[:, parents])
    assert MODEL.log_evidence(4, parents, stats) == pytest.approx(expected, abs=1e-4)


def test_a_rank_that_is_too_small_gives_less_evidence():
    stats = MODEL.summarise(Dataset(nonlinear(gp_evidence.DIRECT_ROWS + 20)))
    # a rank that is too small changes the prior: bounded, not arbitrary
    small = GaussianProcess(rank=5).log_evidence(4, [0, 1], stats)
    assert np.isfinite(small) and small < MODEL.log_evidence(4, [0, 1], stats)


@pytest.mark.parametrize("related", [False, True])
def test_ratios_are_left_out_only_if_a_bound_says_so(related):
    """The bound from two ratios is above the densities of scipy at all larger ones, and low enough to be of use."""
    rng, n, grid = np.random.default_rng(5), 150, MODEL.grid
    x = rng.normal(size=(n, 2))
    y = rng.normal(size=n)
    if related:
        y = np.sin(3 * x[:, 0]) + 0.1 * y
    for length in MODEL.lengths:
        scatters = [np.eye(n) + grid.kappa2 + r * kernel(MODEL, x, x, length) for r in MODEL.ratios]
        rates = [grid.rate / (1 + r) for r in MODEL.ratios]
        densities = np.array(
            [
                multivariate_t(np.zeros(n), rate / grid.shape * scatter, df=2 * grid.shape).logpdf(y)
                for rate, scatter in zip(rates, scatters)
            ]
        )
        determinants = np.array([np.linalg.slogdet(s)[1] for s in scatters])
        quadratics = np.array([y @ np.linalg.solve(s, y) for s in scatters])
        bounds = [gp_evidence._remaining_bound(grid, n, k, determinants, quadratics) for k in range(5)]
        assert np.isinf(bounds[:2]).all()
        for k in range(2, 5):
            assert bounds[k] >= densities[k:].max() - 1e-9
        if length == 0.5 and not related:
            assert bounds[4] < densities.max() - gp_evidence.NEGLIGIBLE


def test_units_do_not_matter():
    """Another unit of the node changes its evidence by the Jacobian, another unit of a parent changes nothing."""
    values = nonlinear(60)
    factor, shift = np.array([3.0, 0.01, 7.0, 1.0, 200.0]), np.array([1.0, -5.0, 0.0, 2.0, 30.0])
    before, after = (MODEL.summarise(Dataset(v)) for v in (values, values * factor + shift))
    for parents in ([], [0], [0, 1, 2]):
        difference = MODEL.log_evidence(4, parents, after) - MODEL.log_evidence(4, parents, before)
        assert difference == pytest.approx(-60 * np.log(200.0), abs=1e-7)


def test_rows_with_interventions_leave_the_family():
    values, mask = nonlinear(60), np.zeros((60, 5), dtype=bool)
    mask[:20, 4], mask[10:30, 0] = True, True
    stats = MODEL.summarise(Dataset(values, intervened=mask))
    assert MODEL.log_evidence(4, [0, 2], stats) == pytest.approx(
        direct(MODEL, values[20:, 4], values[20:][:, [0, 2]]), abs=1e-4
    )
    rest = values[~mask[:, 0]]
    assert MODEL.log_evidence(0, [4], stats) == pytest.approx(direct(MODEL, rest[:, 0], rest[:, [4]]), abs=1e-4)


def test_threads_change_nothing(monkeypatch):
    stats = MODEL.summarise(Dataset(nonlinear(40)))
    nodes = np.repeat(np.arange(5), 8)
    parents = np.random.default_rng(1).random((40, 5)) < 0.5
    parents[np.arange(40), nodes] = False
    monkeypatch.setattr(gp_evidence, "available_cores", lambda: 4)
    threaded = MODEL.log_evidences(nodes, parents, stats)
    one_by_one = [MODEL.log_evidence(j, np.flatnonzero(row), stats) for j, row in zip(nodes, parents)]
    np.testing.assert_array_equal(threaded, one_by_one)
    with ThreadPoolExecutor(4) as pool:  # and it can itself be called from threads
        again = list(pool.map(lambda f: MODEL.log_evidence(nodes[f], np.flatnonzero(parents[f]), stats), range(40)))
    np.testing.assert_array_equal(again, one_by_one)


def test_no_families_have_no_evidence():
    stats = MODEL.summarise(Dataset(nonlinear(10)))
    assert MODEL.log_evidences(np.zeros(0, dtype=int), np.zeros((0, 5), dtype=bool), stats).shape == (0,)


# ---- draws


@pytest.mark.parametrize(("parents", "which"), [([0], "joint"), ([0, 1], "joint"), ([0, 1], "sum"), ([0, 1, 2], "sum")])
def test_draws_have_the_moments_of_the_process(parents, which):
    """One length and one ratio: mean and variance of f at new points against the closed form.

    2,000 draws leave a Monte Carlo error of 2.2 % of a standard deviation in a mean, 4.5 errors allowed. The features
    add an error: 128 frequencies approximate the kernel to about 1e-3 (one parent) and 1e-2 (two), which is allowed as
    15 % of a standard deviation in the mean and 25 % in the standard deviation.
    """
    model = GaussianProcess(which, lengths=(1.0,), ratios=(4.0,))
    values = nonlinear(80)[:, [*parents, 4]]
    d = values.shape[1]
    graph = np.zeros((d, d), dtype=bool)
    graph[:-1, -1] = True
    theta = model.draw_thetas(
        jax.random.split(jax.random.key(0), 2000),
        np.repeat(graph[None], 2000, axis=0),
        model.summarise(Dataset(values)),
    )
    points = values[:15].copy()
    points[:, :-1] += 0.1 * values[:, :-1].std(axis=0)
    of_node = jax.tree.map(lambda leaf, axis: np.take(leaf, d - 1, axis=axis + 1), theta, model.theta_axes)
    with jax.enable_x64(True):
        inputs = jnp.asarray(np.where(graph[:, -1], points, 0.0))
        drawn = np.asarray(jax.vmap(lambda t: model.node_mean(inputs, t))(of_node))
    mean, scale = values.mean(axis=0), values.std(axis=0)
    z, new = (values - mean) / scale, (points - mean) / scale
    y, kappa2 = z[:, -1], model.intercept_scale**2
    gram = np.eye(80) + kappa2 + 4.0 * kernel(model, z[:, :-1], z[:, :-1], 1.0, which)
    cross = kappa2 + 4.0 * kernel(model, new[:, :-1], z[:, :-1], 1.0, which)
    prior = kappa2 + 4.0 * np.diag(kernel(model, new[:, :-1], new[:, :-1], 1.0, which))
    solved = np.linalg.solve(gram, np.column_stack([y, cross.T]))
    shape, rate = model.variance_shape + 40, model.variance_rate / 5 + 0.5 * y @ solved[:, 0]
    noise = rate / (shape - 1)  # mean of the inverse gamma
    spread = np.sqrt(noise * (prior - np.einsum("ij,ji->i", cross, solved[:, 1:])))
    error = (drawn.mean(axis=0) - mean[-1]) / scale[-1] - cross @ solved[:, 0]
    assert (np.abs(error) < (4.5 / np.sqrt(2000) + 0.15) * spread).all()
    np.testing.assert_allclose(drawn.std(axis=0) / scale[-1], spread, rtol=0.25)
    # 2,000 draws of an inverse gamma with shape 42 (relative deviation 16 %): 4.5 errors are 1.6 %, features the rest
    assert of_node.variance.mean() / scale[-1] ** 2 == pytest.approx(noise, rel=0.04)


def test_kernels_are_drawn_by_their_weights():
    """Given data by their evidence, from the prior by half; 4.5 standard errors of 1,000 draws."""
    values, d = nonlinear(30, seed=1)[:, [0, 1, 3]], 3
    graph = np.zeros((d, d), dtype=bool)
    graph[:-1, -1] = True
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    joint, single = (direct(MODEL, z[:, -1], z[:, :-1], [which]) for which in ("joint", "sum"))
    share = 1 / (1 + np.exp(joint - single))
    assert 0.1 < share < 0.9
    keys = jax.random.split(jax.random.key(4), 1000)
    found = MODEL.draw_thetas(keys, np.repeat(graph[None], 1000, axis=0), MODEL.summarise(Dataset(values)))
    apart = found.owner[:, -1, 0] >= 0
    assert apart.mean() == pytest.approx(share, abs=4.5 * np.sqrt(share * (1 - share) / 1000))
    assert (found.owner[:, :-1] == -1).all()
    prior = [MODEL.sample_parameters(key, graph).owner[-1] for key in keys]
    assert np.mean([row[0] >= 0 for row in prior]) == pytest.approx(0.5, abs=4.5 * np.sqrt(0.25 / 1000))
    for row in prior[:20]:  # all waves are of the same kernel, and each parent of a sum has half of them
        assert set(np.bincount(row + 1, minlength=3)) in ({0, 128}, {0, 64})


@pytest.mark.parametrize(("which", "p"), [("joint", 1), ("joint", 3), ("sum", 3)])
def test_the_ratio_is_that_of_signal_and_noise(which, p):
    """Functions drawn from the prior have mean 0 and r times the variance of the noise over standard normal inputs,
    for every length. The variance over r v has a standard deviation of about 1: 4.5 errors of 400 draws are 0.25."""
    graph = np.zeros((p + 1, p + 1), dtype=bool)
    graph[:-1, -1] = True
    inputs = np.random.default_rng(0).normal(size=(2000, p + 1)) * graph[:, -1]
    for length in (0.5, 2.0):
        model = GaussianProcess(which, lengths=(length,), ratios=(4.0,))
        ratios, means = [], []
        for key in jax.random.split(jax.random.key(0), 400):
            theta = jax.tree.map(
                lambda leaf, axis: np.take(leaf, p, axis=axis), model.sample_parameters(key, graph), model.theta_axes
            )
            function = np.asarray(model.node_mean(inputs, theta))
            ratios.append(function.var() / theta.variance)
            means.append(function.mean() / np.sqrt(theta.variance))
        assert np.mean(ratios) == pytest.approx(4.0, rel=0.25)
        assert np.std(means) < 0.3 and abs(np.mean(means)) < 4.5 * np.std(means) / 20 + 0.02


def test_draws_of_the_sum_kernel_have_no_interactions():
    model = GaussianProcess(kernel="sum")
    graph = np.zeros((3, 3), dtype=bool)
    graph[:-1, -1] = True
    of_node = jax.tree.map(
        lambda leaf, axis: np.take(leaf, 2, axis=axis),
        model.sample_parameters(jax.random.key(0), graph),
        model.theta_axes,
    )
    corners = np.array([[0.0, 0.0, 0.0], [1.5, 0.0, 0.0], [0.0, -1.0, 0.0], [1.5, -1.0, 0.0]])
    with jax.enable_x64(True):
        mean = np.asarray(model.node_mean(jnp.asarray(corners), of_node))
    assert mean[3] - mean[2] - mean[1] + mean[0] == pytest.approx(0, abs=1e-9) and np.ptp(mean) > 1e-3


def test_a_draw_depends_on_its_key_and_graph_alone():
    stats = MODEL.summarise(Dataset(nonlinear(30)))
    graphs = np.triu(np.random.default_rng(2).random((6, 5, 5)) < 0.5, 1)
    keys = jax.random.split(jax.random.key(1), 6)
    batch = MODEL.draw_thetas(keys, graphs, stats)
    for m in (0, 5):
        one = MODEL.draw_theta(keys[m], graphs[m], stats)
        for a, b in zip(one, jax.tree.map(lambda leaf, m=m: leaf[m], batch)):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_likelihood_of_a_draw_is_that_of_its_residuals():
    values, graph = nonlinear(30), np.zeros((5, 5), dtype=bool)
    graph[:3, 4] = True
    data = Dataset(values)
    theta = MODEL.draw_theta(jax.random.key(0), graph, MODEL.summarise(data))
    held_out = nonlinear(20, seed=5)
    waves = ((held_out[:, :3] - theta.centre[:3, 4]) * theta.inverse[:3, 4]) @ np.asarray(
        dp.models.gaussian_process.frequencies(128, 5)
    )[:, :3].T
    mean = theta.intercept + held_out @ theta.weights
    mean[:, 4] += np.hstack([np.cos(waves), np.sin(waves)]) @ theta.coefficients[4]
    expected = -0.5 * ((held_out - mean) ** 2 / theta.variance + np.log(2 * np.pi * theta.variance)).sum()
    assert MODEL.log_likelihood(graph, theta, Dataset(held_out)) == pytest.approx(expected, rel=1e-9)
    with jax.enable_x64(True):
        of_node = jax.tree.map(lambda leaf, axis: np.take(leaf, 4, axis=axis), theta, MODEL.theta_axes)
        inputs = jnp.asarray(np.where(graph[:, 4], held_out, 0.0))  # absent inputs are 0, whatever their mean
        rows = [MODEL.sample_node(key, inputs, of_node) for key in jax.random.split(jax.random.key(3), 400)]
    # 400 rows at each of 20 points: 4.5 standard errors
    assert (np.abs(np.mean(rows, axis=0) - mean[:, 4]) < 4.5 * np.sqrt(theta.variance[4] / 400)).all()


# ---- posteriors


@pytest.fixture(scope="module")
def chain():
    """x0 -> x1 -> x2 <- x3 with relations that a line does not describe, 150 rows, and 40 held-out ones."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(190, 4))
    x[:, 1] = np.cos(1.5 * x[:, 0]) + 0.3 * x[:, 1]
    x[:, 2] = x[:, 1] ** 2 + np.sin(2 * x[:, 3]) + 0.3 * x[:, 2]
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, 1] = graph[1, 2] = graph[3, 2] = True
    return x * [1.0, 10.0, 0.1, 3.0], graph


@pytest.fixture(scope="module")
def post(chain):
    return dp.exact(Dataset(chain[0][:150]), "gp", "erdos-renyi")


def test_exact_posterior_finds_what_a_linear_model_does_not(chain, post):
    values, graph = chain
    linear = dp.exact(Dataset(values[:150]).standardised(), "bge", "erdos-renyi")
    assert dp.metrics.auroc(post, graph) == 1.0 > dp.metrics.auroc(linear, graph)
    assert dp.metrics.expected_shd(post, graph) + 1 < dp.metrics.expected_shd(linear, graph)
    assert post.edge_marginals[graph].min() > 0.9


def test_predictions_and_effects(post):
    """do(x0) acts on x1 by `10 cos(1.5 x0)`: 4.5 errors of 500 draws (deviation 3), and 1.5 for 150 rows."""
    tolerance = 4.5 * 3 / np.sqrt(500) + 1.5
    for x0 in (0.0, 1.0):
        table = post.predict({"x0": x0}, samples=500, seed=0)
        assert table["x1"].mean() == pytest.approx(10 * np.cos(1.5 * x0), abs=tolerance)
    found = post.effect("x0", "x1", contrast=(0.0, 1.0), draws=200, rows=50)
    assert found.mean == pytest.approx(10 * (np.cos(1.5) - 1), abs=2 * tolerance)


def test_held_out_density_integrates_to_one(chain):
    """`p(x1 | x0, known rows)` of a new row, by the trapezoidal rule; the tails beyond the points are below 1e-3."""
    known = chain[0][:60, :2]
    points = np.linspace(-40, 40, 401)
    edge = np.array([[[False, True], [False, False]]])
    both = [MODEL.log_predictive_of(edge, Dataset(known), Dataset([[0.5, x]]))[0] for x in points]
    alone = MODEL.log_predictive_of(np.zeros((1, 1, 1), dtype=bool), Dataset(known[:, :1]), Dataset([[0.5]]))[0]
    assert np.trapezoid(np.exp(np.array(both) - alone), points) == pytest.approx(1, abs=2e-3)


def test_held_out_metrics(chain, post):
    values, _ = chain
    linear = dp.exact(Dataset(values[:150]), "bge", "erdos-renyi")
    held_out = Dataset(values[150:])
    assert dp.metrics.log_predictive_density(post, held_out) > dp.metrics.log_predictive_density(linear, held_out) + 10
    assert np.isfinite(dp.metrics.negative_log_likelihood(post, held_out))


@pytest.mark.parametrize("method", ["dibs", "dibs-paper"])
def test_dibs_refuses(chain, method):
    with pytest.raises(InputError, match=r"'gp'.*'auto'.*'additive'"):
        dp.fit(Dataset(chain[0][:30]), "gp", method=method, particles=2, steps=2, progress=False)


@pytest.mark.slow
def test_chains_and_auto(chain):
    data = Dataset(chain[0][:60])
    post = dp.fit(data, "gp", "erdos-renyi", method="mc3", particles=5, burn_in=50, thin=2, progress=False)
    assert len(post) == 5
    assert dp.fit(data, "gp", "erdos-renyi", draws=20, progress=False).record.verdict.trusted


def test_simulation_from_the_prior():
    """Nodes have variances of the order of 1, however long the paths to them."""
    spreads = [
        dp.simulate("gp", nodes=8, observations=100, seed=s, source="density", interventional_sets=0).train.values.std(
            axis=0
        )
        for s in range(5)
    ]
    assert 0.5 < np.median(spreads) < 2 and np.max(spreads) < 20


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "product"},
        {"lengths": ()},
        {"ratios": (0.0,)},
        {"linear_share": 1.0},
        {"features": 100},
        {"rank": 0},
        {"variance_rate": -1.0},
    ],
)
def test_settings_are_checked(options):
    with pytest.raises(InputError, match=next(iter(options))):
        GaussianProcess(**options)
