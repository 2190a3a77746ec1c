"""Expectations over latent particles at finite alpha, against enumeration of all digraphs and a grid over z."""

import jax
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.inference.dibs import Constant, Estimator, Hmc, ScalarEmbedding, posterior
from tests.inference.dibs import test_chains as chains

SIM = dp.simulate("linear", nodes=3, observations=10, seed=4, interventional_sets=0)
OFF = ~np.eye(3, dtype=bool)
DIGRAPHS = np.zeros((64, 3, 3), dtype=bool)
DIGRAPHS[:, OFF] = np.arange(64)[:, None] >> np.arange(6) & 1
KNOWLEDGE = dp.Knowledge(required=[("x0", "x2")])


def fit(model="bge", **options):
    settings = {
        "alpha": Constant(1.5),
        "beta": Constant(1.0),
        "steps": 5,
        "particles": 4,
        "moves": 0,
        "estimator": Estimator("exact"),
        **options,
    }
    return dp.fit(SIM.train, model, method="dibs", parameter_steps=0, progress=False, **settings)


def ratios(post, feature):
    """The ratio of proposition 1 for every particle, term by term over the 64 digraphs."""
    model, latent = post.model, post.latent
    stats = model.summarise(SIM.train)
    out = []
    for m, odds in enumerate(latent.log_odds):
        theta = jax.tree.map(lambda leaf, m=m: leaf[m], latent.theta)
        p = 1 / (1 + np.exp(-odds))
        weights, values = [], []
        for graph in DIGRAPHS:
            prior = np.where(graph, p, 1 - p)[OFF].prod()
            if jax.tree.leaves(theta):
                log_f = model.log_likelihood(graph, theta, SIM.train)
                if not latent.whole_prior:
                    log_f += (graph * (-0.5 * theta**2 - 0.5 * np.log(2 * np.pi))).sum()
            else:
                log_f = sum(model.log_evidence(j, np.flatnonzero(graph[:, j]), stats) for j in range(3))
            weights.append(prior * np.exp(log_f + 40))
            values.append(feature(graph, theta))
        out.append(np.tensordot(weights, np.array(values, float), axes=1) / np.sum(weights))
    return np.array(out)


def collider(graph, theta=None):
    """No product over families: an edge of node 0 and one of node 2."""
    return float(graph[1, 0] and graph[1, 2])


CASES = {
    "bge": {},
    "bge, known": {"knowledge": KNOWLEDGE},
    "linear, svgd": {"model": dp.LinearGaussian(1.0), "collapsed": False},
    "linear, sgld": {"model": dp.LinearGaussian(1.0), "collapsed": False, "sampler": "sgld"},
}


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "sampled"])
@pytest.mark.parametrize("name", ["bge", *(pytest.param(n, marks=pytest.mark.slow) for n in CASES if n != "bge")])
def test_ratios_are_those_of_the_enumeration(name, listed, monkeypatch):
    if not listed:
        monkeypatch.setattr(posterior, "MOST_COLUMNS", 0)
    post = fit(**CASES[name])
    for feature in (collider, lambda graph, theta=None: graph):
        exact = ratios(post, feature).mean(axis=0)
        found = post.latent_expectation(feature, samples=20_000, seed=1)
        # 80,000 graphs in all: standard errors are below 0.002
        np.testing.assert_allclose(found.mean, exact, atol=0.008)
    assert found.mean.shape == found.error.shape == (3, 3)
    assert (np.diag(found.mean) == 0).all()


@pytest.mark.slow
def test_functions_of_graph_and_parameters():
    post = fit(dp.LinearGaussian(1.0), collapsed=False)
    weight = lambda graph, theta: graph * theta  # noqa: E731
    found = post.latent_expectation(weight, parameters=True, samples=20_000)
    np.testing.assert_allclose(found.mean, ratios(post, weight).mean(axis=0), atol=0.02)


@pytest.mark.slow
def test_error_is_that_of_the_particles():
    """Repeated with other particles, the mean varies as much as the error says; here those of one run, in parts."""
    post = fit(particles=100, sampler="hmc")
    found = post.latent_expectation(collider, samples=100)
    each = ratios(post, collider)
    # particles and 100 draws of each: the spread of the ratios, and a binomial error within
    expected = np.sqrt((each.var() + (each * (1 - each)).mean() / 100) / 100)
    assert found.error == pytest.approx(expected, rel=0.25)
    one = fit(particles=1).latent_expectation(collider, samples=100)
    assert 0 <= one.error < 0.06


@pytest.mark.slow
def test_chains_and_ratio_give_the_posterior_over_graphs():
    """End to end at two nodes: HMC on z, then the ratio, is `p(G | D)` of the latent model, integrated on a grid."""
    model, stats = dp.BGe(), dp.BGe().summarise(chains.DATA)
    axis = np.linspace(-6, 6, 241)
    z01, z10 = np.meshgrid(axis, axis, indexing="ij")
    p01, p10 = (chains.sigmoid(chains.ALPHA * z) for z in (z01, z10))
    mass = {}
    for g in chains.GRAPHS:
        a, b = g[0, 1], g[1, 0]
        given_z = (p01 if a else 1 - p01) * (p10 if b else 1 - p10)
        evidence = sum(model.log_evidence(j, np.flatnonzero(g[:, j]), stats) for j in (0, 1))
        mass[a, b] = (np.exp(chains.log_prior(z01, z10)) * given_z).sum() * np.exp(evidence)
    exact = (mass[1, 0] + mass[1, 1]) / sum(mass.values())
    post = dp.fit(
        chains.DATA, model, chains.PRIOR, "dibs", sampler=Hmc(leaps=3, step=Constant(0.7)), steps=25, particles=3000,
        estimator=Estimator("exact"), embedding=ScalarEmbedding(), alpha=Constant(chains.ALPHA),
        beta=Constant(chains.BETA), moves=0, progress=False,
    )  # fmt: skip
    found = post.latent_expectation(lambda g: g[0, 1], samples=50)
    assert found.mean == pytest.approx(exact, abs=4.5 * found.error)
    assert found.error < 0.01


def test_what_is_missing_is_named(tmp_path):
    post = fit()
    with pytest.raises(InputError, match="integrated out"):
        post.latent_expectation(lambda g, t: 0.0, parameters=True)
    for other in (dp.exact(SIM.train, "bge"), dp.load(post.save(tmp_path / "saved.nc"))):
        with pytest.raises(InputError, match=r"only dp.fit\(..., method='dibs'\) returns"):
            other.latent_expectation(lambda g: g)
    assert isinstance(post.weighted("posterior"), dp.dibs.DibsPosterior)
    with pytest.raises(InputError, match="weighted by their posterior"):
        post.weighted("posterior").latent_expectation(lambda g: g)
    one, two = (p.latent_expectation(lambda g: g, samples=10).mean for p in (post, post.weighted("uniform")))
    np.testing.assert_array_equal(one, two)
    loaded = dp.load(post.save(tmp_path / "post.nc"))
    assert not hasattr(loaded, "latent")
    np.testing.assert_array_equal(loaded.graphs, post.graphs)
