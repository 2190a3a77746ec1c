"""The soft form of the closed-form score, which no hard graph can check."""

import jax
import numpy as np
import pytest

from dagpost.data import Dataset
from dagpost.models import BGe, LinearGaussian
from dagpost.models.conjugate import soft_evidence


def by_determinants(matrix, column, node):
    """Log determinant of the soft parents' block and the soft Schur complement, as a ratio of determinants."""
    root = np.sqrt(np.diag(matrix))
    unit = matrix / np.outer(root, root)
    with_node = column.copy()
    with_node[node] = 1.0

    def log_determinant(m):
        block = np.outer(m, m) * unit + np.diag(1 - m**2)
        return np.linalg.slogdet(block)[1] + m @ np.log(np.diag(matrix))

    parents = log_determinant(column)
    return parents, np.exp(log_determinant(with_node) - parents)


@pytest.mark.parametrize("model", [BGe(), LinearGaussian(), LinearGaussian(None)], ids=["bge", "linear", "noise"])
def test_soft_score_by_determinants(model):
    rng = np.random.default_rng(0)
    d = 5
    values = rng.normal(size=(30, d)) @ rng.normal(size=(d, d))
    table = model.evidence_table(model.summarise(Dataset(values)))
    for node in range(d):
        column = rng.random(d)
        column[node] = 0.0
        p = column.sum()
        log_determinant, schur = by_determinants(table.matrix[0], column, node)
        prior_determinant, prior_schur = by_determinants(table.prior_matrix, column, node)
        expected = (
            np.interp(p, np.arange(d), table.constant[0])
            - 0.5 * log_determinant
            + 0.5 * prior_determinant
            - np.interp(p, np.arange(d), table.power[0]) * np.log(table.offset + table.scale * schur)
            + np.interp(p, np.arange(d), table.prior_power) * np.log(prior_schur)
            - table.linear * schur
        )
        with jax.enable_x64(True):
            assert float(soft_evidence(table, column, node, 0)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow
def test_soft_score_survives_collinear_columns():
    """The soft block is positive definite for every soft column, however dependent the data."""
    rng = np.random.default_rng(1)
    base = rng.normal(size=(200, 2))
    values = np.column_stack([base, base.sum(axis=1), base @ [1, -1], base @ [2, 3]]) + 1e-4 * rng.normal(size=(200, 5))
    model = BGe()
    table = model.evidence_table(model.summarise(Dataset(values)))
    for _ in range(50):
        column = rng.random(5) ** 0.1
        assert np.isfinite(float(soft_evidence(table, column.astype(np.float32), 2, 0)))


@pytest.mark.slow
def test_single_precision_survives_collinear_parents_at_scale():
    rng = np.random.default_rng(2)
    values = 300 * rng.normal(size=(2000, 3))
    values[:, 2] = values[:, 0] + values[:, 1] + 0.05 * rng.normal(size=2000)
    model = BGe()
    stats = model.summarise(Dataset(values))
    graph = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    assert np.isfinite(float(model.log_joint(graph.astype(np.float32), (), stats)))
