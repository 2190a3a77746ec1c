"""BGe against an independent derivation: the product of sequential multivariate Student-t predictives."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.special import gammaln

from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.graphs import all_dags, essential_graph
from dagpost.models import BGe


def sequential_predictive(values, mean, alpha_mu, alpha_w, scale):
    """`log p(D)` of all columns, one row at a time: `x_n | x_1..n-1` is multivariate Student-t.

    With n rows seen: dof ν = alpha_w + n - l + 1 and scale (alpha_mu + n + 1) / (ν (alpha_mu + n)) R_n.
    """
    size = values.shape[1]
    total, matrix, centre, weight, degrees = 0.0, scale.copy(), mean.copy(), alpha_mu, alpha_w
    for row in values:
        nu = degrees - size + 1
        shape = matrix * (weight + 1) / (weight * nu)
        deviation = row - centre
        _, logdet = np.linalg.slogdet(shape)
        quadratic = deviation @ np.linalg.solve(shape, deviation)
        total += (
            gammaln((nu + size) / 2) - gammaln(nu / 2) - size / 2 * np.log(nu * np.pi) - logdet / 2
            - (nu + size) / 2 * np.log1p(quadratic / nu)
        )  # fmt: skip
        matrix = matrix + weight / (weight + 1) * np.outer(deviation, deviation)
        centre = (weight * centre + row) / (weight + 1)
        weight, degrees = weight + 1, degrees + 1
    return total


def set_evidence(model, stats, members):
    """`log p(D^Y)` telescoped along one order of Y."""
    return sum(model.log_evidence(y, list(members[:n]), stats) for n, y in enumerate(members))


def random_matrix(rng, d):
    root = rng.normal(size=(d, d + 2))
    return root @ root.T / d


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 4)) @ rng.normal(size=(4, 4)) + rng.normal(size=4)


HYPERPARAMETERS = [
    {},
    {"alpha_mu": 0.3, "alpha_w": 9.5},
    {"alpha_mu": 7.0, "alpha_w": 6.2, "mean": [1.0, -2.0, 0.5, 3.0], "scale_matrix": [0.5, 2.0, 1.0, 0.1]},
    {
        "alpha_mu": 2.0,
        "alpha_w": 5.0,
        "mean": 0.7,
        "scale_matrix": random_matrix(np.random.default_rng(7), 4),
    },
]


@pytest.mark.parametrize("options", HYPERPARAMETERS, ids=["default", "weights", "diagonal", "full"])
def test_every_subset_is_the_product_of_predictives(values, options):
    model, d = BGe(**options), 4
    stats = model.summarise(Dataset(values))
    prior_matrix, mean = model.prior_matrix(d), model.prior_mean(d)
    for size in range(1, d + 1):
        for members in combinations(range(d), size):
            # the marginal of a Normal-Wishart over Y loses d - l degrees of freedom
            degrees = model.degrees(d) - d + size
            block = prior_matrix[np.ix_(members, members)]
            expected = sequential_predictive(values[:, members], mean[list(members)], model.alpha_mu, degrees, block)
            assert set_evidence(model, stats, members) == pytest.approx(expected, rel=1e-12)


def test_default_scale_matrix_is_the_papers():
    model = BGe(alpha_mu=3.0, alpha_w=9.0)
    np.testing.assert_allclose(model.prior_matrix(5), 3 * (9 - 5 - 1) / 4 * np.eye(5))
    assert BGe().degrees(5) == 7


@pytest.mark.parametrize("options", [HYPERPARAMETERS[0], HYPERPARAMETERS[3]], ids=["default", "full"])
def test_score_equivalence_over_all_classes(options):
    d = 4 if "scale_matrix" in options else 5
    rng = np.random.default_rng(1)
    graphs = all_dags(d)
    essential = essential_graph(graphs).reshape(len(graphs), -1)
    classes, member = np.unique(essential, axis=0, return_inverse=True)
    assert len(classes) == {4: 185, 5: 8782}[d]
    data = Dataset(rng.normal(size=(50, d)) @ rng.normal(size=(d, d)))
    model = BGe(**options)
    scores = model.log_evidence_of(graphs, model.summarise(data))
    high, low = np.full(len(classes), -np.inf), np.full(len(classes), np.inf)
    np.maximum.at(high, member.reshape(-1), scores)
    np.minimum.at(low, member.reshape(-1), scores)
    assert (high - low).max() < 1e-8
    assert np.ptp(high) > 1  # and the classes do differ


def test_complete_dags_score_alike(values):
    model = BGe()
    stats = model.summarise(Dataset(values))
    scores = [set_evidence(model, stats, order) for order in permutations(range(4))]
    assert np.ptp(scores) < 1e-9


def test_no_data_scores_zero():
    model = BGe(scale_matrix=random_matrix(np.random.default_rng(3), 3), alpha_w=4.5)
    stats = model.summarise(Dataset(np.zeros((0, 3))))
    np.testing.assert_allclose(model.log_evidence_of(all_dags(3), stats), 0, atol=1e-12)


def test_rows_commute_and_columns_are_equivariant(values):
    model, graphs = BGe(), all_dags(4)
    scores = model.log_evidence_of(graphs, model.summarise(Dataset(values)))
    shuffled = model.log_evidence_of(graphs, model.summarise(Dataset(values[::-1])))
    np.testing.assert_allclose(scores, shuffled, rtol=1e-12)
    order = np.array([2, 0, 3, 1])
    moved = model.log_evidence_of(graphs[:, order][:, :, order], model.summarise(Dataset(values[:, order])))
    np.testing.assert_allclose(scores, moved, rtol=1e-12)


@pytest.mark.slow
def test_draws_have_the_moments_of_the_normal_inverse_gamma(values):
    import jax

    model = BGe()
    stats = model.summarise(Dataset(values))
    graph = np.zeros((4, 4), dtype=bool)
    graph[[0, 2], 3] = True
    draws = [model.draw_theta(key, graph, stats) for key in jax.random.split(jax.random.key(0), 4000)]
    weights = np.array([t.weights[[0, 2], 3] for t in draws])
    variance = np.array([t.variance[3] for t in draws])
    intercept = np.array([t.intercept[3] for t in draws])
    table = stats.shared.table
    matrix = table.matrix[0]
    mean = np.linalg.solve(matrix[np.ix_([0, 2], [0, 2])], matrix[[0, 2], 3])
    schur = matrix[3, 3] - matrix[[0, 2], 3] @ mean
    expected_variance = schur / 2 / (table.power[0, 2] - 1)
    # five standard errors of 4,000 draws
    error = 5 / np.sqrt(4000)
    np.testing.assert_allclose(weights.mean(axis=0), mean, atol=error * weights.std(axis=0).max())
    assert variance.mean() == pytest.approx(expected_variance, abs=error * variance.std())
    covariance = expected_variance * np.linalg.inv(matrix[np.ix_([0, 2], [0, 2])])
    np.testing.assert_allclose(np.cov(weights.T), covariance, rtol=0.15, atol=0.02 * covariance.max())
    # the mean of the node means after N = 30 rows, with a prior mean of 0 that counts as alpha_mu = 1 row
    centre = values.sum(axis=0) / 31
    assert intercept.mean() == pytest.approx(centre[3] - mean @ centre[[0, 2]], abs=error * intercept.std())


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: BGe(alpha_mu=0.0), "alpha_mu"),
        (lambda: BGe(alpha_mu=float("nan")), "alpha_mu"),
        (lambda: BGe(alpha_w=4.0).degrees(3), "alpha_w=4 is too small for 3 columns: give more than 4"),
        (lambda: BGe(alpha_w=2.0, scale_matrix=1.0).degrees(3), "give more than 2"),
        (lambda: BGe(scale_matrix=[1.0, 2.0]).prior_matrix(3), "scale_matrix has shape"),
        (lambda: BGe(scale_matrix=-np.eye(3)).prior_matrix(3), "positive definite"),
        (lambda: BGe(mean=[1.0]).prior_mean(3), "mean has shape"),
    ],
)
def test_bad_hyperparameters_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()
