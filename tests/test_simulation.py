import jax
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import is_acyclic
from dagpost.models import MODELS, as_model
from dagpost.priors import PRIORS


@pytest.mark.parametrize(
    ("prior", "model"),
    [
        # every prior once; the other pairs add little
        pytest.param(
            prior,
            model,
            marks=() if (prior == "erdos-renyi" and model == "bge") or model == "linear" else pytest.mark.slow,
        )
        for prior in PRIORS
        for model in MODELS
    ],
)
def test_protocol_of_the_paper(model, prior):
    sim = dp.simulate(model=model, prior=prior, nodes=20, observations=30, seed=4)
    assert is_acyclic(sim.graph)
    assert sim.train.values.shape == (30, 20) and sim.test.values.shape == (100, 20)
    assert len(sim.interventional) == 10
    for data in sim.interventional:
        targets = data.intervened.any(axis=0)
        assert data.values.shape == (100, 20) and targets.sum() == 2
        assert (data.values[:, targets] == 0).all() and data.intervened[:, targets].all()
    assert len({tuple(d.intervened.any(axis=0)) for d in sim.interventional}) > 1
    same = sim.train.values[:10] == sim.test.values[:10]
    assert not (same.all() if as_model(model).categorical else same.any())


def test_seed_fixes_everything():
    one, two, other = (dp.simulate(nodes=6, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.graph, two.graph)
    for a, b in zip(jax.tree.leaves(one.theta), jax.tree.leaves(two.theta)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.train.values, two.train.values)
    assert (one.train.values != other.train.values).any()


def test_residuals_have_the_papers_noise():
    sim = dp.simulate(nodes=10, observations=5000, seed=0)
    residual = sim.train.values - sim.train.values @ sim.theta
    # 50,000 residuals: relative standard error of a variance 0.6 %
    assert residual.var() == pytest.approx(0.1, rel=0.04)
    assert ((sim.theta != 0) == sim.graph).all()
    correlation = np.corrcoef(residual.T) - np.eye(10)
    assert np.abs(correlation).max() < 5 / np.sqrt(5000)


def test_weight_shift_is_the_reference_implementations():
    plain, shifted = dp.simulate(nodes=8, seed=1), dp.simulate(nodes=8, seed=1, weight_shift=0.5)
    np.testing.assert_array_equal(plain.graph, shifted.graph)
    np.testing.assert_allclose(shifted.theta, plain.theta + 0.5 * np.sign(plain.theta))
    with pytest.raises(InputError, match="weight_shift is for linear data"):
        dp.simulate(model="mlp", weight_shift=0.5)


def test_bge_source():
    """The paper tries BGe on linear Gaussian data; calibration needs its own Normal-Wishart prior."""
    assert isinstance(dp.simulate("bge", nodes=4).theta, np.ndarray)
    assert dp.simulate("bge", nodes=4, source="density").theta.intercept.shape == (4,)


def test_nothing_asked_for():
    sim = dp.simulate(nodes=3, interventional_sets=0, test_observations=0)
    assert sim.interventional == () and sim.test.observations == 0


@pytest.mark.parametrize(
    "options, message",
    [
        ({"nodes": 0}, "nodes=0"),
        ({"observations": -1}, "observations=-1"),
        ({"intervened_share": 0.0}, "intervened_share"),
        ({"source": "papers"}, "did you mean 'paper'"),
        ({"model": "linaer"}, "did you mean 'linear'"),
        ({"seed": 1.5}, "seed=1.5"),
    ],
)
def test_errors_name_the_cause(options, message):
    with pytest.raises(InputError, match=message):
        dp.simulate(**options)
