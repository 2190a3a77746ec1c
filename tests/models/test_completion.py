"""Draws of missing cells against conditional distributions written from their definitions."""

from itertools import product

import numpy as np
import pytest

import dagpost as dp
from dagpost.data import Dataset
from dagpost.data.missing import missing_table, missing_text
from dagpost.models.cells import draw_category_cells, draw_gaussian_cells

RNG = np.random.default_rng(0)
D = 4
GRAPH = np.triu(np.ones((D, D), dtype=bool), 1)
WEIGHTS = GRAPH * RNG.normal(size=(D, D))
INTERCEPT, VARIANCE = RNG.normal(size=D), RNG.gamma(2.0, size=D)


def conditional(row, missing, intervened):
    """Mean and covariance of missing cells: covariance of the row by forward substitution, then the usual formula."""
    weights, variance, intercept = WEIGHTS.copy(), VARIANCE.copy(), INTERCEPT.copy()
    weights[:, intervened], variance[intervened], intercept[intervened] = 0.0, 1e-12, row[intervened]
    to_row = np.linalg.inv(np.eye(D) - weights)  # x = noise' (I - W)^-1
    mean, covariance = intercept @ to_row, to_row.T @ np.diag(variance) @ to_row
    known = [k for k in range(D) if k not in missing]
    gain = covariance[np.ix_(missing, known)] @ np.linalg.pinv(covariance[np.ix_(known, known)])
    return mean[missing] + gain @ (row[known] - mean[known]), covariance[np.ix_(missing, missing)] - gain @ covariance[
        np.ix_(known, missing)
    ]


@pytest.mark.parametrize("missing", [[0], [3], [0, 2], [0, 1, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("intervened", [[], [1], [2]])
def test_gaussian_cells_have_the_conditional_distribution(missing, intervened):
    if set(missing) & set(intervened):
        return
    row = np.array([0.3, -1.0, 0.7, 2.0])
    own, free = np.eye(D) - WEIGHTS, np.ones(D)
    free[intervened] = 0.0
    scaled = free * own / VARIANCE

    def drawn(normals):
        values = row[None].copy()
        draw_gaussian_cells(
            values, np.array([0]), np.array([0, len(missing)]), np.array(missing), np.array([0]),
            (scaled @ own.T)[None], (scaled @ INTERCEPT)[None], np.asarray(normals, dtype=float),
        )  # fmt: skip
        assert (np.delete(values[0], missing) == np.delete(row, missing)).all()
        return values[0, missing]

    mean, covariance = conditional(row, missing, intervened)
    centre = drawn(np.zeros(len(missing)))
    factor = np.stack([drawn(e) - centre for e in np.eye(len(missing))], axis=1)
    np.testing.assert_allclose(centre, mean, atol=1e-5)
    np.testing.assert_allclose(factor @ factor.T, covariance, atol=1e-5)


@pytest.mark.parametrize("intervened", [None, 1, 2])
@pytest.mark.parametrize("cell", [0, 1, 2])
def test_categorical_cells_have_their_full_conditional(cell, intervened):
    if cell == intervened:
        return
    levels = np.array([3, 2, 2])
    graph = np.triu(np.ones((3, 3), dtype=bool), 1)
    table = np.zeros((3, 6, 3))
    table[0, 0] = RNG.dirichlet(np.ones(3))
    table[1, :3, :2] = RNG.dirichlet(np.ones(2), 3)
    table[2, :6, :2] = RNG.dirichlet(np.ones(2), 6)
    strides = np.array([[0, 1, 2], [0, 0, 1], [0, 0, 0]])
    row = np.array([1, 0, 1])

    def joint(x):
        terms = (table[0, 0, x[0]], table[1, x[0], x[1]], table[2, 2 * x[0] + x[1], x[2]])
        return np.prod([term for j, term in enumerate(terms) if j != intervened])

    weights = np.array([joint([v if j == cell else row[j] for j in range(3)]) for v in range(levels[cell])])
    mask = np.zeros((1, 3), dtype=bool)
    if intervened is not None:
        mask[0, intervened] = True
    children = np.array([[1, 2, 0], [2, 0, 0], [0, 0, 0]])
    found = np.zeros(levels[cell])
    for u in (np.arange(2000) + 0.5) / 2000:
        codes = row[None].copy()
        draw_category_cells(
            codes, np.array([0]), np.array([cell]), mask, table, strides, levels, children, graph.sum(axis=1),
            np.array([u]),
        )  # fmt: skip
        found[codes[0, cell]] += 1 / 2000
    np.testing.assert_allclose(found, weights / weights.sum(), atol=2e-3)


def test_starting_tables_hold_observed_values_and_differ():
    values = RNG.normal(size=(20, 3))
    values[:8, 1] = np.nan
    completion = dp.BGe().completion(Dataset(values, missing="keep"))
    one, two = (completion.start(np.random.default_rng(seed)) for seed in (1, 2))
    observed = ~np.isnan(values)
    assert (one[observed] == values[observed]).all() and np.isin(one[:8, 1], values[8:, 1]).all()
    assert (one != two).any()
    assert completion.cells(one).tolist() == one[:8, 1].tolist()


def test_rows_that_are_not_merged_have_the_same_evidence():
    rows = RNG.integers(0, 2, (60, 3)).astype(float)
    data, model = Dataset(rows, levels=(("0", "1"),) * 3), dp.BDeu()
    for parents in product((False, True), repeat=2):
        chosen = np.flatnonzero((*parents, False))
        merged, plain = (model.log_evidence(2, chosen, model.statistics_of(data, merge)) for merge in (True, False))
        assert merged == pytest.approx(plain, rel=1e-12)


def test_what_is_missing_is_counted():
    values = RNG.normal(size=(10, 3))
    values[:4, 1] = values[2, 0] = np.nan
    data = Dataset(values, names=["a", "b", "c"], missing="keep")
    assert missing_table(data).to_dict("list") == {"column": ["b", "a"], "missing": [4, 1], "share": [0.4, 0.1]}
    assert missing_text(data) == "5 of 30 cells (16.7 %) in 4 of 10 rows and 2 of 3 columns, most in 'b' (4)"
    scaled = data.standardised()
    np.testing.assert_allclose(np.nanmean(scaled.values, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(scaled.values, axis=0), 1)
