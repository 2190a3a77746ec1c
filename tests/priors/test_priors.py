"""One contract for every prior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from dagpost.errors import InputError
from dagpost.graphs import all_dags, is_acyclic
from dagpost.posterior import log_prior_of
from dagpost.priors import PRIORS, ErdosRenyi, ScaleFree, UnknownDensity, as_prior

EVERY = [*(kind() for kind in PRIORS.values()), ErdosRenyi(probability=0.2), ScaleFree(exponent=1.5)]


@pytest.mark.parametrize("prior", EVERY, ids=str)
def test_density_is_the_sum_of_columns_of_its_components(prior):
    with jax.enable_x64(True):
        graph = jnp.asarray(np.random.default_rng(0).random((6, 6)))
        parts = prior.components(6)
        assert (len(parts) == 1) == prior.decomposes
        columns = [w + sum(float(part.log_column(graph[:, j], j)) for j in range(6)) for w, part in parts]
        assert float(prior.log_density(graph)) == pytest.approx(np.logaddexp.reduce(columns), rel=1e-12)


@pytest.mark.parametrize("prior", EVERY, ids=str)
def test_normaliser_is_the_sum_over_all_dags(prior):
    for d in (1, 2, 3, 4, 5):
        total = np.log(np.exp(log_prior_of(all_dags(d), prior)).sum())
        assert prior.log_normaliser(d) == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize("prior", EVERY, ids=str)
def test_soft_density_has_a_gradient(prior):
    gradient = jax.grad(prior.log_density)(jnp.full((5, 5), 0.3))
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("prior", EVERY, ids=str)
def test_samples_are_dags_and_fixed_by_the_key(prior):
    keys = jax.random.split(jax.random.key(1), 20)
    graphs = np.stack([prior.sample(key, 12) for key in keys])
    assert is_acyclic(graphs).all()
    again = np.stack([prior.sample(key, 12) for key in keys])
    np.testing.assert_array_equal(graphs, again)
    assert len(np.unique(graphs.reshape(20, -1), axis=0)) > 15


@pytest.mark.slow
@pytest.mark.parametrize("prior", EVERY, ids=str)
def test_density_draws_follow_the_density(prior):
    graphs = all_dags(3)
    log_density = log_prior_of(graphs, prior)
    expected = np.exp(log_density - prior.log_normaliser(3))
    known = {g.tobytes(): m for m, g in enumerate(graphs)}
    keys = jax.random.split(jax.random.key(2), 4000)
    counts = np.bincount([known[prior.sample_density(k, 3).tobytes()] for k in keys], minlength=25)
    # rare graphs are pooled so that every expected count is above 5; error rate 1e-4
    rare = expected * 4000 < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum()) * 4000
    kept = wanted > 0
    assert observed[~kept].sum() == 0
    assert chisquare(observed[kept], wanted[kept]).pvalue > 1e-4


def test_erdos_renyi_is_the_papers_formula():
    graph = np.zeros((20, 20))
    graph[0, 1] = graph[3, 2] = graph[0, 5] = 1
    q = 4 / 19
    expected = 3 * np.log(q) + (190 - 3) * np.log(1 - q)
    with jax.enable_x64(True):
        assert float(ErdosRenyi().log_density(graph)) == pytest.approx(expected, rel=1e-12)


def test_scale_free_counts_parents():
    graph = np.zeros((4, 4))
    graph[:3, 3] = 1
    assert float(ScaleFree().log_density(graph)) == pytest.approx(-3 * np.log(4), rel=1e-6)
    assert float(ScaleFree().log_density(graph.T)) == pytest.approx(-9 * np.log(2), rel=1e-6)


def test_unknown_density_is_a_mean_of_normalised_priors():
    prior, graphs = UnknownDensity((0.25, 0.5)), all_dags(4)
    parts = [np.exp(log_prior_of(graphs, ErdosRenyi(e))) for e in (0.25, 0.5)]
    expected = np.mean([part / part.sum() for part in parts], axis=0)
    np.testing.assert_allclose(np.exp(log_prior_of(graphs, prior)), expected, rtol=1e-12)
    assert UnknownDensity().edge_probabilities(4) == pytest.approx((1 / 12, 1 / 6, 1 / 3, 1 / 2))
    for wrong in ((), (0.5, -1)):
        with pytest.raises(InputError, match="edges_per_node"):
            UnknownDensity(wrong)


def test_edge_probability():
    assert ErdosRenyi().edge_probability(20) == pytest.approx(4 / 19)
    assert ErdosRenyi().edge_probability(3) == 0.5
    assert ErdosRenyi(probability=0.7).edge_probability(3) == 0.7


def test_names_and_errors():
    for name in PRIORS:
        assert as_prior(name).name == name
    with pytest.raises(InputError, match="did you mean 'erdos-renyi'"):
        as_prior("erdos_renyi")
    with pytest.raises(InputError, match="a name or a GraphPrior"):
        as_prior(3)
    for bad in (
        lambda: ErdosRenyi(probability=1.0),
        lambda: ErdosRenyi(edges_per_node=-1),
        lambda: ScaleFree(0),
    ):
        with pytest.raises(InputError):
            bad()
