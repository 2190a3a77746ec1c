"""Closed forms of the linear Gaussian model against the Gaussian (or Student-t) evaluated directly."""

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.linear_model import Ridge

from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.models import LinearGaussian, LinearTheta

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(25, 4)) @ RNG.normal(size=(4, 4))
FAMILIES = [(0, []), (1, [0]), (3, [0, 1, 2]), (2, [3, 1])]


@pytest.mark.parametrize("j, parents", FAMILIES)
@pytest.mark.parametrize("variance, scale", [(0.1, 1.0), (2.5, 0.3)])
def test_evidence_with_known_noise(j, parents, variance, scale):
    model = LinearGaussian(noise_variance=variance, weight_scale=scale)
    x = VALUES[:, parents]
    covariance = variance * np.eye(len(VALUES)) + scale**2 * x @ x.T
    expected = multivariate_normal(np.zeros(len(VALUES)), covariance).logpdf(VALUES[:, j])
    assert model.log_evidence(j, parents, model.summarise(Dataset(VALUES))) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("j, parents", FAMILIES)
@pytest.mark.parametrize("shape, rate, scale", [(1.5, 0.25, 1.0), (4.0, 3.0, 0.5)])
def test_evidence_with_unknown_noise(j, parents, shape, rate, scale):
    model = LinearGaussian(None, weight_scale=scale, noise_shape=shape, noise_rate=rate)
    x = VALUES[:, parents]
    covariance = rate / shape * (np.eye(len(VALUES)) + scale**2 * x @ x.T)
    expected = multivariate_t(np.zeros(len(VALUES)), covariance, df=2 * shape).logpdf(VALUES[:, j])
    assert model.log_evidence(j, parents, model.summarise(Dataset(VALUES))) == pytest.approx(expected, rel=1e-10)


def test_theta_given_graph_is_ridge_regression():
    model = LinearGaussian(noise_variance=0.3, weight_scale=0.7)
    stats = model.summarise(Dataset(VALUES))
    graph = np.zeros((4, 4), dtype=bool)
    graph[[0, 1], 3] = True
    draws = np.array([model.draw_theta(k, graph, stats)[:, 3] for k in jax.random.split(jax.random.key(1), 4000)])
    assert (draws[:, [2, 3]] == 0).all()
    # prior precision 1/s² on unit noise is a ridge penalty of σ²/s²
    mean = Ridge(alpha=0.3 / 0.49, fit_intercept=False).fit(VALUES[:, :2], VALUES[:, 3]).coef_
    covariance = np.linalg.inv(VALUES[:, :2].T @ VALUES[:, :2] / 0.3 + np.eye(2) / 0.49)
    error = 5 * np.sqrt(np.diag(covariance) / 4000)
    assert (np.abs(draws[:, :2].mean(axis=0) - mean) < error).all()
    np.testing.assert_allclose(np.cov(draws[:, :2].T), covariance, rtol=0.15, atol=0.05 * covariance.max())


@pytest.mark.slow
def test_theta_and_noise_given_graph():
    model = LinearGaussian(None)
    stats = model.summarise(Dataset(VALUES))
    graph = np.zeros((4, 4), dtype=bool)
    graph[[0, 1], 3] = True
    draws = [model.draw_theta(k, graph, stats) for k in jax.random.split(jax.random.key(2), 4000)]
    weights = np.array([t.weights[:2, 3] for t in draws])
    variance = np.exp([t.log_variance[3] for t in draws])
    precision = VALUES[:, :2].T @ VALUES[:, :2] + np.eye(2)
    mean = np.linalg.solve(precision, VALUES[:, :2].T @ VALUES[:, 3])
    rate = 0.25 + 0.5 * (VALUES[:, 3] @ VALUES[:, 3] - mean @ precision @ mean)
    expected = rate / (1.5 + 25 / 2 - 1)
    assert variance.mean() == pytest.approx(expected, abs=5 * variance.std() / np.sqrt(4000))
    covariance = expected * np.linalg.inv(precision)
    assert (np.abs(weights.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(covariance) / 4000)).all()
    np.testing.assert_allclose(np.cov(weights.T), covariance, rtol=0.2, atol=0.05 * covariance.max())


@pytest.mark.parametrize("model", [LinearGaussian(), LinearGaussian(None)], ids=["known", "unknown"])
def test_evidence_is_the_integral_of_the_joint(model):
    """`log_family - log p(theta | G, D)` is the evidence at every theta (Bayes); checked at exact draws."""
    data = Dataset(VALUES[:, :2])
    stats = model.summarise(data)
    graph = np.array([[0, 1], [0, 0]], dtype=bool)
    evidence = model.log_evidence_of(graph[None], stats)[0]
    gram = VALUES[:, :2].T @ VALUES[:, :2]
    for key in jax.random.split(jax.random.key(3), 5):
        theta = model.draw_theta(key, graph, stats)
        with jax.enable_x64(True):
            joint = float(model.log_joint(graph, theta, stats))
        if isinstance(theta, LinearTheta):
            posterior = 0.0
            for j, parents in ((0, []), (1, [0])):
                a = gram[np.ix_(parents, parents)] + np.eye(len(parents))
                mean = np.linalg.solve(a, gram[parents, j]) if parents else np.zeros(0)
                shape, rate = 1.5 + 12.5, 0.25 + 0.5 * (gram[j, j] - gram[parents, j] @ mean)
                v = theta.log_variance[j]
                posterior += _log_inverse_gamma_of_log(v, shape, rate)
                if parents:
                    normal = multivariate_normal(mean, np.exp(v) * np.linalg.inv(a))
                    posterior += normal.logpdf(theta.weights[parents, j])
        else:
            precision = gram[0, 0] / 0.1 + 1
            posterior = multivariate_normal(gram[0, 1] / 0.1 / precision, 1 / precision).logpdf(theta[0, 1])
        assert joint - posterior == pytest.approx(evidence, rel=1e-10)


def _log_inverse_gamma_of_log(v, shape, rate):
    from scipy.stats import invgamma

    return invgamma(shape, scale=rate).logpdf(np.exp(v)) + v


@pytest.mark.slow
def test_joint_is_the_sum_over_rows():
    model = LinearGaussian()
    theta = RNG.normal(size=(4, 4))
    graph = np.triu(np.ones((4, 4), dtype=bool), 1)
    mean = VALUES @ (graph * theta)
    expected = multivariate_normal(np.zeros(4), 0.1 * np.eye(4)).logpdf(VALUES - mean).sum()
    assert model.log_likelihood(graph, theta, Dataset(VALUES)) == pytest.approx(expected, rel=1e-12)
    prior = multivariate_normal(np.zeros(6), np.eye(6)).logpdf(theta[graph])
    with jax.enable_x64(True):
        joint = float(model.log_joint(graph, theta, model.summarise(Dataset(VALUES))))
    assert joint == pytest.approx(expected + prior, rel=1e-12)


def test_nearly_collinear_columns_do_not_break_the_factor():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(1000, 3)) * 1e4
    values[:, 2] = values[:, 0] + values[:, 1] + 1e-6 * rng.normal(size=1000)
    for model in (LinearGaussian(), LinearGaussian(None)):
        stats = model.summarise(Dataset(values))
        assert np.isfinite(model.log_evidence(2, [0, 1], stats))
        assert np.isfinite(model.log_evidence(0, [1, 2], stats))


@pytest.mark.parametrize(
    "options",
    [
        {"noise_variance": 0.0},
        {"noise_variance": float("nan")},
        {"weight_scale": -1.0},
        {"noise_variance": None, "noise_rate": 0.0},
    ],
)
def test_bad_settings_are_named(options):
    with pytest.raises(InputError, match=next(k for k, v in options.items() if v is not None)):
        LinearGaussian(**options)
