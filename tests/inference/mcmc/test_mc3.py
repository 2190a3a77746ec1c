"""MC³ as published."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError

SIM = dp.simulate("bge", nodes=4, observations=30, seed=2, interventional_sets=0)


@pytest.mark.slow
def test_with_exact_neighbourhoods_it_samples_the_posterior():
    exact = dp.exact(SIM.train, "bge")
    post = dp.fit(SIM.train, "bge", method="mc3", particles=4000, burn_in=2000, thin=50, neighbourhood="exact")
    assert post.edge_marginals == pytest.approx(exact.edge_marginals, abs=0.06)
    assert 0 < post.info["acceptance"] < 1


def test_published_defaults():
    post = dp.fit(SIM.train, "bge", method="mc3", particles=3)
    assert len(post) == 3
    assert (post.info["burn_in"], post.info["thin"], post.info["neighbourhood"]) == (100_000, 10_000, "approximate")


def test_linear_models_get_parameters():
    sim = dp.simulate("linear", nodes=4, observations=30, seed=2, interventional_sets=0)
    post = dp.fit(sim.train, "linear", method="mc3", particles=5, burn_in=100, thin=10)
    assert np.asarray(post.theta).shape == (5, 4, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"burn_in": -1}, "burn_in=-1"),
        ({"neighbourhood": "exct"}, "did you mean 'exact'"),
        ({"bandwidth_z": 2}, "unknown option 'bandwidth_z'"),
        ({"model": "mlp"}, "no closed-form evidence"),
    ],
)
def test_errors(options, message):
    with pytest.raises(InputError, match=message):
        dp.fit(SIM.train, **{"model": "bge", "method": "mc3", **options})
