"""`auto` on few nodes is the exact posterior; anything that asks for chains gets them."""

import numpy as np
import pytest

import dagpost as dp
from dagpost._util.clock import Clock
from dagpost.inference.auto import EXACT_NUMERICAL_UP_TO, EXACT_UP_TO, ORDERS_UP_TO
from dagpost.inference.exact import ExactPosterior
from dagpost.inference.method import Problem


def problem(nodes=6, model=None, limit=None, every=None):
    sim = dp.simulate("linear", nodes=nodes, observations=40, seed=0, interventional_sets=0)
    return Problem(sim.train, model or dp.BGe(), dp.ErdosRenyi(), 0, Clock(limit), every=every)


@pytest.mark.parametrize(
    ("model", "nodes"),
    [
        ("bge", 7),
        ("linear", 4),
        pytest.param("bge", 4, marks=pytest.mark.slow),
        pytest.param("linear", 7, marks=pytest.mark.slow),
    ],
)
def test_it_is_the_exact_posterior(nodes, model, tmp_path):
    data = problem(nodes).data
    post, exact = dp.fit(data, model, draws=300), dp.exact(data, model)
    assert isinstance(post, ExactPosterior) and post.record.method == "auto"
    np.testing.assert_array_equal(post.edge_marginals, exact.edge_marginals)
    assert post.record.verdict is not None and post.record.verdict.trusted
    assert len(post) == 300 and post.is_sample and (post.graphs.mean(axis=0) - exact.edge_marginals).max() < 0.1
    assert len(post.effect_table()) > 0
    again = dp.load(post.save(tmp_path / "posterior.nc"))
    assert again.record.verdict == post.record.verdict and again.is_sample
    np.testing.assert_array_equal(again.edge_marginals, exact.edge_marginals)


def test_a_seed_fixes_the_draws():
    one, two, other = (dp.fit(problem(6).data, "linear", draws=20, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.graphs, two.graphs)
    np.testing.assert_array_equal(one.theta, two.theta)
    assert (one.graphs != other.graphs).any()


def test_what_asks_for_chains_gets_them():
    assert dp.Auto().is_exact(problem())
    asks = ({"start": "empty"}, {"precision": 0.01}, {"max_moves": 1000}, {"ensembles": 2}, {"dibs": dp.Dibs(steps=5)})
    for options in asks:
        assert not dp.Auto(**options).is_exact(problem()), options
    assert not dp.Auto().is_exact(problem(every=5))
    assert dp.Auto().is_exact(problem(model=dp.MlpGaussian()))
    assert not dp.Auto().is_exact(problem(EXACT_NUMERICAL_UP_TO + 1, model=dp.MlpGaussian()))
    assert not dp.Auto().is_exact(problem(EXACT_UP_TO, limit=1.0)) and dp.Auto().is_exact(problem(limit=1.0))
    assert dp.Auto().is_exact(problem(EXACT_UP_TO)) and dp.Auto().is_exact(problem(ORDERS_UP_TO))
    assert not dp.Auto().is_exact(problem(ORDERS_UP_TO + 1))


def test_thousands_of_columns_are_for_chains():
    """The memory that orders would need has more digits than a float."""
    wide = dp.Dataset(np.random.default_rng(0).normal(size=(5, 1500)))
    assert not dp.Auto().is_exact(Problem(wide, dp.BGe(), dp.ErdosRenyi(), 0, Clock(None)))
