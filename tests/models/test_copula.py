"""The Gaussian copula: latent draws against integrals, rejection and the BGe evidence, ranks alone."""

from itertools import pairwise

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.graphs import all_dags
from dagpost.models import BGe, Copula
from dagpost.models.conjugate import all_families
from dagpost.models.copula import standard_scale
from dagpost.models.rank_draws import (
    BOUNDARY,
    MOST_BLOCKS,
    SCALE,
    SHIFT,
    Direction,
    _boundary,
    _log_density,
    draw_cells,
    ranks_of,
    truncated_normal,
)

CHAIN = np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]], dtype=bool)  # 1 -> 0 -> 2


@pytest.mark.parametrize(
    "low, high",
    [(-np.inf, np.inf), (-0.4, 0.7), (-3.0, 0.5), (0.3, np.inf), (1.0, 1.2), (4.0, np.inf), (-np.inf, -5.0), (8, 8.01)],
)
def test_truncated_normal_draws(low, high):
    rng = np.random.default_rng(0)
    drawn = np.array([truncated_normal(1.0, 2.0, 1 + 2 * low, 1 + 2 * high, rng) for _ in range(4000)])
    assert stats.kstest((drawn - 1) / 2, stats.truncnorm(low, high).cdf).pvalue > 1e-3


@pytest.mark.parametrize("missing", [False, True])
def test_a_cell_is_drawn_from_its_full_conditional(missing):
    """The first cell that is redrawn, against numerical integration of the density of its row between its bounds."""
    rng = np.random.default_rng(1)
    values = np.array([[np.nan if missing else 0.0, 0.2, 1.0], [1.0, 0.5, 0.1], [1.0, 0.1, 0.5]])
    ranks = ranks_of(values)
    z = np.ascontiguousarray(np.array([[-0.3, 0.4, 0.9], [0.4, 0.5, -1.0], [1.5, 0.1, 0.3]]).T)
    weights, intercept, variance = np.zeros((3, 3)), np.array([0.3, 0.0, -0.2]), np.array([0.5, 1.0, 0.8])
    weights[1, 0], weights[0, 2] = 0.9, -1.3
    high = np.inf if missing else 0.4

    def density(x):
        row = z[:, 0].copy()
        row[0] = x
        return np.prod(stats.norm.pdf(row, intercept + row @ weights, np.sqrt(variance)))

    bounds = (-20.0, min(high, 20.0))
    total, first, second = (quad(lambda x, k=k: x**k * density(x), *bounds, points=[0.0])[0] for k in range(3))
    drawn = np.empty(6000)
    for k in range(len(drawn)):
        out = z.copy()
        draw_cells(out, ranks, weights, intercept, variance, rng)
        drawn[k] = out[0, 0]
    mean, deviation = first / total, np.sqrt(second / total - (first / total) ** 2)
    assert drawn.max() < high
    assert drawn.mean() == pytest.approx(mean, abs=4 * deviation / np.sqrt(len(drawn)))
    assert drawn.std() == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize("kind", [SHIFT, SCALE, BOUNDARY])
def test_density_of_a_map_is_the_evidence_of_the_mapped_table(kind):
    """Differences along a map against BGe evidence of whole tables, and the Jacobian by finite differences."""
    rng = np.random.default_rng(2)
    model, (n, d) = Copula(), (30, 3)
    z = np.ascontiguousarray((rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 0.5).T)
    levels = np.digitize(z[0], np.quantile(z[0], [0.2, 0.5, 0.7]))
    ranks = ranks_of(np.column_stack([levels, z[1], z[2]]))
    j, weight, products, sums = 0, n + model.alpha_mu, z @ z.T, z.sum(axis=1)
    h = np.zeros(n)
    if kind == BOUNDARY:
        way = _boundary(z, j, 1, ranks, h)
        places = np.array([0.5 * way.room_above, -0.7 * way.room_below])
    else:
        h = np.ones(n) if kind == SHIFT else z[j].copy()
        way = Direction(kind, h.sum(), z @ h, float(h @ h), 0.0, 0.0, 0.0, 0.0)
        places = np.array([0.8, -1.1])
    parents, counts = np.zeros((d, d), int), CHAIN.sum(axis=0)
    for c in range(d):
        parents[c, : counts[c]] = np.flatnonzero(CHAIN[:, c])
    power = (model.degrees(d) - d + np.arange(d) + 1 + n) / 2
    prior = model.prior_matrix(d)
    matrix = prior + products - np.outer(sums, sums) / weight

    def log_density(x):
        common = (j, matrix.copy(), products, sums, prior, weight, parents, counts, power, 1e-9, np.empty((d, d)), n)
        return _log_density(way, x, *common)

    for x in places:
        delta = np.expm1(x) if kind == SCALE else x
        moved = z.copy()
        moved[j] += delta * h
        evidences = [model.log_evidence_of(CHAIN[None], model.summarise(Dataset(t.T)))[0] for t in (z, moved)]
        jacobian = n * x if kind == SCALE else 0.0
        if kind == BOUNDARY:  # slopes of the map at the cells, without the three order statistics that define it
            low, middle, high = (z[0][levels == k] for k in (0, 1, 2))
            slope = [1 + x / (middle.max() - low.max()), 1 - x / (z[0][levels == 3].min() - middle.max())]
            jacobian = (len(middle) - 1) * np.log(slope[0]) + len(high) * np.log(slope[1])
            order = [moved[0][levels == k] for k in range(4)]
            assert all(a.max() < b.min() for a, b in pairwise(order))
        assert log_density(x) - log_density(0.0) == pytest.approx(np.diff(evidences)[0] + jacobian, abs=1e-8)


def test_ranks_of_a_column():
    ranks = ranks_of(np.array([[2.0, np.nan, 0.3], [1.0, 5.0, 0.1], [2.0, 4.0, 0.2]]))
    assert ranks.rows[0].tolist() == [1, 0, 2] and ranks.rows[1].tolist() == [2, 1, 0]
    assert ranks.known.tolist() == [3, 2, 3] and ranks.levels.tolist() == [2, 2, 3]
    assert ranks.level_start[0, :3].tolist() == [0, 1, 3]
    many = ranks_of(np.arange(1000.0)[:, None])
    assert many.levels[0] == 1000 and many.blocks[0] == MOST_BLOCKS and many.block_start[0, MOST_BLOCKS] == 1000


def prior_share(levels, linked, draws, rng):
    """Share of tables drawn from the BGe prior of two columns, linked by an edge or not, that have these levels; and
    of them the mean correlation of the latent columns."""
    n, degrees, scale = len(levels), 4.0, 0.5  # alpha_w = d + 2, T = I / 2
    # precision = A A' / scale with A lower triangular (Bartlett); without a link each variance is inverse gamma
    first, second = np.sqrt(rng.chisquare(degrees, draws)), np.sqrt(rng.chisquare(degrees - 1, draws))
    cross = rng.normal(size=draws)
    a, b, c = first**2 / scale, first * cross / scale, (cross**2 + second**2) / scale
    determinant = a * c - b * b
    covariance = np.stack([np.stack([c, -b], -1), np.stack([-b, a], -1)], -1) / determinant[:, None, None]
    if not linked:
        covariance = np.zeros((draws, 2, 2))
        covariance[:, [0, 1], [0, 1]] = scale / rng.chisquare(degrees - 1, (draws, 2))
    root = np.linalg.cholesky(covariance)
    mean = np.einsum("mij,mj->mi", root, rng.normal(size=(draws, 2)))
    z = mean[:, None] + np.einsum("mij,mnj->mni", root, rng.normal(size=(draws, n, 2)))
    hit = np.ones(draws, dtype=bool)
    for j in range(2):
        for level in range(levels[:, j].max()):
            below, above = (z[:, levels[:, j] == k, j] for k in (level, level + 1))
            hit &= below.max(axis=1) < above.min(axis=1)
    return hit.mean(), hit.sum(), z[hit]


def chain_over(levels, sweeps, seed):
    """Edge probability and latent tables of a chain over the three DAGs of two nodes and the latent tables."""
    rng, model, dags = np.random.default_rng(seed), Copula(), all_dags(2)
    completion = model.completion(Dataset(levels.astype(float)))
    values, edge, tables = completion.start(rng), 0.0, []
    for _ in range(sweeps):
        stats_ = completion.statistics(values)
        scores = all_families(model.evidence_table(stats_), dags).sum(axis=1)
        share = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        edge += share[dags.any(axis=(1, 2))].sum() / sweeps
        graph = dags[rng.choice(3, p=share)]
        values, _ = completion.redraw(values, stats_, graph, rng)
        tables.append((graph.any(), values))
    return edge, tables


LEVELS = np.array([[0, 0], [0, 0], [1, 1], [1, 2], [0, 1]])


@pytest.mark.slow
def test_two_columns_against_rejection():
    """A binary and an ordinal column: probability of an edge, and moments of latent tables, against independent draws
    of the prior that happen to have these ranks."""
    rng = np.random.default_rng(3)
    linked, hits, tables = prior_share(LEVELS, True, 120_000, rng)
    apart, others, _ = prior_share(LEVELS, False, 120_000, rng)
    expected = 2 * linked / (2 * linked + apart)
    error = expected * (1 - expected) * np.sqrt(1 / hits + 1 / others)
    found, drawn = chain_over(LEVELS, 1000, 4)
    assert hits > 300 and others > 300
    assert found == pytest.approx(expected, abs=4 * error + 0.01)
    mine = np.array([table for edge, table in drawn if edge])
    for statistic in (lambda z: z[:, 0, 0] < z[:, 1, 0], lambda z: z[:, :, 0].mean(1) > 0.5, lambda z: z[:, 3, 1] > 1):
        assert statistic(mine).mean() == pytest.approx(statistic(tables).mean(), abs=0.06)


@pytest.mark.slow
def test_latent_tables_keep_the_ranks_and_parameters_are_on_the_standard_scale():
    rng = np.random.default_rng(5)
    values = np.column_stack([rng.integers(0, 2, 60), rng.poisson(2, 60), rng.normal(size=60)]).astype(float)
    values[3, 0] = values[7, 1] = np.nan
    model = Copula()
    completion = model.completion(Dataset(values, missing="keep"))
    z, theta = completion.redraw(start := completion.start(rng), completion.statistics(start), CHAIN, rng)
    for _ in range(20):
        z, theta = completion.redraw(z, completion.statistics(z), CHAIN, rng)
    for column, latent in zip(values.T, z.T):
        levels = [latent[column == level] for level in np.unique(column[~np.isnan(column)])]
        assert all(a.max() <= b.min() for a, b in pairwise(levels))
    # x2 = w x0 + noise, both of variance 1
    assert theta.weights[0, 2] ** 2 + theta.variance[2] == pytest.approx(1, abs=0.5)
    assert np.abs(theta.intercept).max() < 1 and (theta.weights != 0).sum() == 2
    filled = completion.cells(z)
    assert filled[0] in (0, 1) and filled[1] in values[:, 1]


def test_standard_scale_keeps_the_residuals():
    """Residuals of standardised columns under the new parameters are the old ones in units of their column."""
    rng = np.random.default_rng(6)
    z, model = rng.normal(size=(40, 3)) * [1, 5, 0.2] + [3, -1, 0.5], Copula()
    stats_ = model.summarise(Dataset(z))
    for mine, expected in zip(jax.tree.leaves(model.completion(Dataset(z)).statistics(z)), jax.tree.leaves(stats_)):
        np.testing.assert_allclose(mine, expected, rtol=1e-9)
    theta = model.theta_from(rng, CHAIN, stats_)
    new, standard = standard_scale(theta, stats_), (z - z.mean(axis=0)) / z.std(axis=0)
    residual = z - theta.intercept - z @ theta.weights
    np.testing.assert_allclose(standard - new.intercept - standard @ new.weights, residual / z.std(axis=0), atol=1e-9)
    np.testing.assert_allclose(new.variance, theta.variance / z.var(axis=0))


def test_copula_is_not_bge_and_has_no_mean():
    assert Copula() == Copula() != BGe() and hash(Copula()) != hash(BGe())
    with pytest.raises(InputError, match=r"mean=1\.0: the mean of a latent column has no meaning"):
        Copula(mean=1.0)
