"""SGLD and HMC leave the latent posterior invariant, computed by summing over graphs and integrating on a grid.

With two nodes and the scalar embedding the target has two dimensions, z_01 and z_10 (the diagonal keeps its prior), or
four with the weights of the linear model. Everything about it is written out here once more, in NumPy.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import all_columns
from dagpost.inference.dibs import Constant, Estimator, Hmc, ScalarEmbedding, Sgld, default_settings
from dagpost.inference.dibs.inference import prepare
from dagpost.inference.dibs.svgd import ParticleState, initial_state, run
from dagpost.inference.dibs.target import gradients, log_density
from dagpost.priors import informed

ALPHA, BETA = 2.5, 3.0
Q = 0.3
PRIOR = dp.ErdosRenyi(probability=Q)
DATA = dp.simulate("linear", nodes=2, observations=15, seed=2, interventional_sets=0).train
CHAINS = 1500
STRONG = 2.0
GRAPHS = [np.array([[0, a], [b, 0]]) for a in (0, 1) for b in (0, 1)]


def settings_for(model, sampler, steps, estimator=None, **changes):
    return default_settings(
        model, 2, 15, sampler=sampler, steps=steps, estimator=estimator or Estimator("exact"), alpha=Constant(ALPHA),
        beta=Constant(BETA), embedding=ScalarEmbedding(), collapsed=isinstance(model, dp.BGe), moves=0, **changes,
    )  # fmt: skip


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_prior(z01, z10):
    """Gaussian prior, independent edges with probability Q, and `h(P) = tr[(I + P/2)²] - 2 = p_01 p_10 / 2`."""
    p01, p10 = sigmoid(ALPHA * z01), sigmoid(ALPHA * z10)
    return -0.5 * (z01**2 + z10**2) + (p01 + p10) * np.log(Q / (1 - Q)) - BETA * p01 * p10 / 2


def log_likelihood(z01, z10, family):
    """`log sum_G p(G | z) f(G)` by its four graphs; `family[a, b]` is log f of the graph with these edges."""
    p01, p10 = sigmoid(ALPHA * z01), sigmoid(ALPHA * z10)
    total = 0.0
    for g in GRAPHS:
        a, b = g[0, 1], g[1, 0]
        total = total + (p01 if a else 1 - p01) * (p10 if b else 1 - p10) * np.exp(family[a, b])
    return np.log(total)


def grid_moments(log_p, *axes):
    """Means and second moments of each axis, and the mean product of the first two."""
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = lambda f: float((p * f).sum())  # noqa: E731
    return np.array([mean(x) for x in axes] + [mean(x**2) for x in axes] + [mean(axes[0] * axes[1])])


def marginal_target(model=dp.BGe(), data=DATA):  # noqa: B008
    stats = model.summarise(data)
    family = {(g[0, 1], g[1, 0]): sum(model.log_evidence(j, np.flatnonzero(g[:, j]), stats) for j in (0, 1))
              for g in GRAPHS}  # fmt: skip
    axis = np.linspace(-6, 6, 241)
    z01, z10 = np.meshgrid(axis, axis, indexing="ij")
    return grid_moments(log_prior(z01, z10) + log_likelihood(z01, z10, family), z01, z10)


def joint_target():
    """With weights t_01 and t_10: `x_1 ~ N(g t_01 x_0, 1)`, `t ~ N(0, 1)` whether or not the edge is there."""
    axis = np.linspace(-4.5, 4.5, 46)
    z01, z10, t01, t10 = np.meshgrid(axis, axis, axis, axis, indexing="ij", sparse=True)
    x, y = DATA.values.T
    score = lambda target, source, t: -0.5 * ((target**2).sum() - 2 * t * (source @ target) + t**2 * (source**2).sum())  # noqa: E731
    family = {(g[0, 1], g[1, 0]): score(y, x, g[0, 1] * t01) + score(x, y, g[1, 0] * t10) for g in GRAPHS}
    log_p = log_prior(z01, z10) + log_likelihood(z01, z10, family) - 0.5 * (t01**2 + t10**2)
    return grid_moments(log_p, z01, z10, t01, t10)


def moments_of(state: ParticleState):
    """The same of the particles, and their standard errors: chains are independent."""
    z = np.asarray(state.z, dtype=float)
    parts = [z[:, 0, 1], z[:, 1, 0]]
    if jax.tree.leaves(state.theta):
        theta = np.asarray(jax.tree.leaves(state.theta)[0], dtype=float)
        parts += [theta[:, 0, 1], theta[:, 1, 0]]
    values = np.stack([*parts, *(x**2 for x in parts), parts[0] * parts[1]])
    return values.mean(axis=1), values.std(axis=1) / np.sqrt(values.shape[1])


def sample(model, sampler, steps, estimator=None, data=DATA):
    settings = settings_for(model, sampler, steps, estimator)
    target, stats, _ = prepare(model, PRIOR, settings, data, CHAINS)
    return run(target, initial_state(target, jax.random.key(1), CHAINS, 2), stats, steps)


LINEAR = dp.LinearGaussian(noise_variance=1.0)
EXACT = {"bge": marginal_target, "linear": joint_target}
# leaps so long that a chain without its accept step has second moments a quarter too large
SAMPLERS = {"sgld": (Sgld(step=Constant(0.03)), 130), "hmc": (Hmc(leaps=3, step=Constant(0.9)), 20)}


def assert_moments(state, exact):
    """Within 4.5 standard errors: one in 150,000 for each of nine moments. SGLD has an error of its own, 1 % of a
    second moment, a third of a standard error; without the 2 under the root of its noise they would be halved."""
    mean, error = moments_of(state)
    assert (np.abs(mean - exact) < 4.5 * error).all(), (mean - exact) / error


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("model", [dp.BGe(), pytest.param(LINEAR, marks=pytest.mark.slow)], ids=lambda m: m.name)
def test_chains_have_the_moments_of_the_latent_posterior(model, name):
    sampler, steps = SAMPLERS[name]
    assert_moments(sample(model, sampler, steps), EXACT[model.name]())


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [Sgld(rate=0.05), Hmc(leaps=3)], ids=["sgld", "hmc"])
def test_adapted_steps_change_nothing(sampler):
    state = sample(dp.BGe(), sampler, 100)
    assert_moments(state, marginal_target())
    if isinstance(sampler, Hmc):
        assert float(state.optimiser.acceptance) == pytest.approx(0.8, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["score", "straight-through"])
def test_noise_that_is_part_of_the_chain_leaves_it_exact(kind):
    """Two hard graphs for each density, and the marginal is that of the sum over all graphs. The weights integrate to
    the evidence, so that moments of z are those of the marginal target; the data are strong enough to move them."""
    strong = dp.Dataset(STRONG * DATA.values)
    state = sample(LINEAR, Hmc(leaps=2, step=Constant(0.4)), 150, Estimator(kind, samples=2), strong)
    mean, error = moments_of(state._replace(theta=()))
    exact = marginal_target(LINEAR, strong)
    assert (np.abs(mean - exact) < 4.5 * error).all(), (mean - exact) / error


KNOWN = {"required": [("x0", "x2")], "forbidden": [("x1", "x0")]}


@pytest.mark.slow
@pytest.mark.parametrize("collapsed", [True, False])
@pytest.mark.parametrize("knowledge", [None, dp.Knowledge(**KNOWN)], ids=["free", "known"])
def test_the_exact_estimator_sums_over_graphs(collapsed, knowledge):
    """All 64 digraphs of three nodes, or those that knowledge allows, written out; the gradient is that of the sum."""
    data = dp.simulate("linear", nodes=3, observations=8, seed=3, interventional_sets=0).train
    prior = informed(dp.Uniform(), knowledge, data.names)
    model = dp.LinearGaussian(noise_variance=1.0)
    settings = default_settings(
        model, 3, 8, sampler="hmc", estimator=Estimator("exact"), collapsed=collapsed, moves=0, steps=1
    )
    with jax.enable_x64(True):
        target, gradient_stats, stats = prepare(model, prior, settings, data, 1)
        state = initial_state(target, jax.random.key(0), 1, 3)
        alpha, beta = 1.5, 0.0
        x = (state.z[0], jax.tree.map(lambda leaf: leaf[0], state.theta))
        density = lambda *x: log_density(target, *x, alpha, beta, gradient_stats, None)  # noqa: E731
        value, by_z = jax.value_and_grad(density)(*x)
        z, theta = np.asarray(x[0]), np.asarray(x[1])
        p = sigmoid(alpha * z[..., 0] @ z[..., 1].T)
        terms = []
        for code in range(64):
            graph = np.zeros((3, 3), dtype=bool)
            graph[~np.eye(3, dtype=bool)] = np.array([code >> bit & 1 for bit in range(6)], dtype=bool)
            log_p = np.where(graph, np.log(p), np.log(1 - p))
            if knowledge is not None:
                if not graph[0, 2] or graph[1, 0] or graph[2, 0]:  # the last would close a cycle
                    continue
                log_p[0, 2] = log_p[1, 0] = log_p[2, 0] = 0.0
            if collapsed:
                log_f = sum(model.log_evidence(j, np.flatnonzero(graph[:, j]), stats) for j in range(3))
            else:  # absent weights, and those of self-loops, have their prior
                log_f = model.log_likelihood(graph, theta, data) - 0.5 * (theta**2 + np.log(2 * np.pi)).sum()
            terms.append(log_p[~np.eye(3, dtype=bool)].sum() + log_f)
        if knowledge is not None:
            p[0, 2], p[1, 0], p[2, 0] = 1.0, 0.0, 0.0
        expected = np.logaddexp.reduce(terms) - 0.5 * 3 * (z**2).sum()
        expected += float(prior.log_soft_density(jnp.asarray(p * (1 - np.eye(3)))))
        assert float(value) == pytest.approx(expected, rel=1e-6)
        found = gradients(target, jax.random.key(1), state.z, state.theta, alpha, beta, gradient_stats)
        np.testing.assert_allclose(found[0][0], by_z, rtol=1e-6, atol=1e-9)


def test_columns_are_all_sets_of_other_nodes():
    columns = all_columns(4)
    assert columns.shape == (8, 4, 4) and not columns.diagonal(axis1=1, axis2=2).any()
    assert all(len(np.unique(columns[:, :, j], axis=0)) == 8 for j in range(4))
    with pytest.raises(InputError, match="at most 12"):
        all_columns(13)


SIM = dp.simulate("linear", nodes=5, observations=40, seed=1, interventional_sets=0)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["sgld", "hmc"])
@pytest.mark.parametrize("model, options", [("bge", {}), ("linear", {"collapsed": False}), ("mlp", {})])
def test_marginal_and_joint_inference(model, options, sampler):
    post = dp.fit(
        SIM.train, model, method="dibs", sampler=sampler, particles=4, steps=10, moves=0, seed=2, progress=False,
        **options,
    )  # fmt: skip
    assert len(post) == 4 and post.info["options"]["sampler"] == sampler
    assert (len(jax.tree.leaves(post.theta)) > 0) == (model != "bge")
    assert post.weighted("posterior").weights.sum() == pytest.approx(1)
    again = dp.fit(
        SIM.train, model, method="dibs", sampler=sampler, particles=4, steps=10, moves=0, seed=2, progress=False,
        **options,
    )  # fmt: skip
    np.testing.assert_array_equal(post.graphs, again.graphs)


@pytest.mark.slow
def test_many_nodes_have_sampled_densities():
    data = dp.simulate("linear", nodes=10, observations=40, seed=1, interventional_sets=0).train
    for model, kind in ((dp.BGe(), "gumbel"), (dp.LinearGaussian(), "gumbel")):
        assert default_settings(model, 10, 40, sampler="hmc").estimator.kind == kind
        post = dp.fit(data, model, method="dibs", sampler="hmc", particles=2, steps=3, moves=0, progress=False)
        assert len(post) == 2


def test_a_step_of_hmc_counts_its_gradients():
    plain, hmc = (default_settings(dp.BGe(), 5, 40, sampler=name).steps for name in ("svgd", "hmc"))
    assert hmc == round(plain / 11)
    assert default_settings(dp.BGe(), 5, 40, sampler="hmc", steps=7).steps == 7


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"sampler": "nuts"}, "sampler='nuts': choose 'svgd', 'sgld' or 'hmc'"),
        ({"sampler": "hmc", "estimator": Estimator("flip")}, "use 'exact'"),
        ({"sampler": "hmc", "estimator": Estimator("exact"), "acyclicity": "sampled"}, "acyclicity='mean-field'"),
        ({"sampler": "hmc", "estimator": Estimator("gumbel"), "collapsed": False, "moves": 0, "batch": 5}, "sgld"),
    ],
)
def test_bad_samplers_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        dataclasses.replace(default_settings(dp.LinearGaussian(), 5, 40), **changes)


def test_bad_names_and_options_of_samplers():
    with pytest.raises(InputError, match="choose 'svgd', 'sgld' or 'hmc'"):
        dp.fit(SIM.train, "bge", method="dibs", sampler="nuts")
    for kind, option, message in (
        (Sgld, {"rate": 0}, "rate=0"),
        (Sgld, {"step": 0.1}, r"Constant\(0.1\)"),
        (Hmc, {"leaps": 0}, "leaps=0"),
        (Hmc, {"acceptance": 1.0}, "acceptance=1.0"),
    ):
        with pytest.raises(InputError, match=message):
            kind(**option)
