"""Residual checks: quiet where the model holds, and naming what is wrong where it does not."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.posterior.model_check import LEVEL, Misfit, _p_values, _residual, check_model, model_fit_text


def checked(values, **options):
    return check_model(dp.fit(values, "bge", draws=20, progress=False, **options))


@pytest.mark.slow
def test_false_alarms_are_rare():
    """Sixty data sets of the model, three kinds of alarm each at LEVEL: more than three have probability below 1e-5."""
    alarms = 0
    for seed in range(60):
        rows = (50, 200, 800)[seed % 3]
        sim = dp.simulate("linear", nodes=5, observations=rows, seed=seed, interventional_sets=0)
        alarms += bool(checked(sim.train))
    assert LEVEL <= 0.001 and alarms <= 3


def test_a_curve_is_seen():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 3))
    x[:, 2] = x[:, 0] + 0.6 * x[:, 0] ** 2 + 0.3 * x[:, 2]
    found = checked(x, knowledge={"required": [["x0", "x2"]]})
    assert any(m.kind == "nonlinear" and (m.node, m.cause) == ("x2", "x0") for m in found)
    assert "x2 on x0" in model_fit_text(found) and "model='additive'" in model_fit_text(found)


def test_heavy_tails_are_seen():
    x = np.random.default_rng(2).standard_t(3, size=(400, 3))
    x[:, 1] += x[:, 0]
    assert {m.kind for m in checked(x)} >= {"heavy tails"}


def test_unequal_variance_is_seen():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 2))
    x[:, 1] = 2 * x[:, 0] + np.exp(0.5 * x[:, 0]) * x[:, 1]
    found = checked(x, knowledge={"required": [["x0", "x1"]]})
    assert any(m.kind == "unequal variance" and m.node == "x1" for m in found)


def test_intervened_rows_are_left_out():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(200, 2))
    mask = np.zeros(x.shape, dtype=bool)
    mask[:60, 1] = True
    x[:60, 1] = 30  # set by hand: no residual of the model
    assert checked(dp.Dataset(x, intervened=mask)) == []


def test_words():
    assert model_fit_text(None) is None
    assert "fit the model" in model_fit_text([])
    many = [Misfit("heavy tails", f"n{k}", None, 1e-6) for k in range(5)]
    assert "n0, n1, n2 and 2 more" in model_fit_text(many)
    few = dp.fit(np.random.default_rng(0).normal(size=(20, 2)), "bge", draws=5, progress=False)
    assert few.record.verdict.model_fit is None  # too few rows to say


def test_it_is_stored(tmp_path):
    post = dp.fit(np.random.default_rng(0).normal(size=(50, 3)), progress=False)
    assert "fit the model" in post.record.verdict.model_fit
    post.save(tmp_path / "post.nc")
    assert dp.load(tmp_path / "post.nc").record.verdict == post.record.verdict


def test_columns_of_the_past_are_not_tested():
    """Past columns have no parents in the model, however much they depend on each other."""
    rng = np.random.default_rng(3)
    factor = np.linalg.cholesky([[1, 0.8, 0.6], [0.8, 1, 0.75], [0.6, 0.75, 1]])
    assert checked(rng.normal(size=(300, 3)) @ factor.T, lags=1) == []
    x = rng.normal(size=(300, 2))
    x[1:, 1] += 1.5 * x[:-1, 0] ** 2
    found = checked(x, lags=1)
    assert ("nonlinear", "x1", "x0[t-1]") in {misfit[:3] for misfit in found}
    assert {misfit.node for misfit in found} == {"x1"}


def test_columns_that_are_known_say_nothing():
    """The square of a column with two values is a linear function of the column: only rounding errors are left."""
    rng = np.random.default_rng(5)
    known = np.column_stack([np.ones(200), rng.integers(2, size=200), rng.normal(size=(200, 3))])
    new = rng.normal(size=(200, 4))
    p = _p_values(rng.normal(size=200), np.concatenate([known @ rng.normal(size=(5, 50)), new], axis=1), known)
    np.testing.assert_array_equal(p[:50], 1.0)
    assert (p[50:] < 1).all()


def test_p_values_are_those_of_regressions():
    from scipy import stats

    rng = np.random.default_rng(6)
    target, known, new = rng.normal(size=60), rng.normal(size=(60, 2)), rng.normal(size=(60, 3)) + 5
    for k, p in enumerate(_p_values(target, new, known)):
        design = np.column_stack([known, new[:, k]])
        weights, residuals, *_ = np.linalg.lstsq(design, target, rcond=None)
        error = np.sqrt(residuals[0] / 57 * np.linalg.inv(design.T @ design)[2, 2])
        assert p == pytest.approx(2 * stats.t.sf(abs(weights[2]) / error, 57), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_one_size_is_no_sign(seed):
    """Residuals of -1 and 1, as of a designed experiment: nothing is left of their sizes but rounding errors."""
    x = np.repeat(np.random.default_rng(seed).normal(size=100), 2)[:, None]
    residual = _residual(0.7 * x[:, 0] + np.tile([-1.0, 1.0], 100), np.hstack([np.ones((200, 1)), x]))
    p = _p_values(np.abs(residual), np.concatenate([x, np.abs(x)], axis=1), np.ones((200, 1)))
    np.testing.assert_array_equal(p, 1.0)


def test_heavy_tails_are_those_of_their_node():
    """Rows of interventions leave nodes with different numbers of rows, which are tested apart."""
    rng = np.random.default_rng(8)
    values = rng.normal(size=(300, 4))
    values[:, 2] = rng.standard_t(2, size=300)
    done = np.zeros((300, 4), dtype=bool)
    done[:40, 1] = done[:40, 3] = True
    found = checked(values, interventions=done)
    assert [m.node for m in found if m.kind == "heavy tails"] == ["x2"]
