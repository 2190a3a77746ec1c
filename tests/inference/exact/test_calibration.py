"""The exact posterior is calibrated. Error rate of each test: 1e-4, seeds fixed."""

import pytest
from scipy.stats import kstest

import dagpost as dp
from dagpost._util.clock import Clock
from tests.calibration import ranks

CASES = [
    (dp.BGe(), dp.Uniform()),
    (dp.LinearGaussian(), dp.ErdosRenyi(probability=0.3)),
    (dp.LinearGaussian(None), dp.ScaleFree()),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, prior",
    [CASES[0], *(pytest.param(*case, marks=pytest.mark.long) for case in CASES[1:])],
    ids=["bge-uniform", "linear-er", "linear-noise-sf"],
)
def test_exact_posterior_is_calibrated(model, prior):
    found = ranks(lambda data: dp.exact(data, model, prior), model, prior, simulations=1000)
    for name, values in found.items():
        assert kstest(values, "uniform").pvalue > 1e-4, name


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("model", [dp.BDeu(4.0, simulated_levels=3), dp.BDeu(variant="k2")], ids=["bdeu", "k2"])
def test_posteriors_of_categories_are_calibrated(model):
    """`fit` would refuse simulated columns that happen to be constant, and so choose among data sets."""
    prior = dp.ErdosRenyi(probability=0.3)
    found = ranks(
        lambda data: dp.Exact().run(dp.Problem(data, model, prior, 0, Clock())), model, prior, simulations=500
    )
    for name, values in found.items():
        assert kstest(values, "uniform").pvalue > 1e-4, name


@pytest.mark.slow
def test_a_wrong_prior_is_noticed():
    """The test can fail: the same data analysed under another prior are not calibrated."""
    model = dp.BGe()
    found = ranks(
        lambda data: dp.exact(data, model, dp.Uniform()), model, dp.ScaleFree(), simulations=300, observations=5
    )
    assert kstest(found["edges"], "uniform").pvalue < 1e-6
