"""`auto` is calibrated. Error rate of each test: 1e-4 for each of three statistics, seeds fixed."""

import pytest
from scipy.stats import kstest

import dagpost as dp
from tests.calibration import ranks

QUICK = {"steps": 10, "particles": 8, "draws": 500, "precision": 0.02, "progress": False}


def check(model, prior, simulations, nodes):
    found = ranks(
        lambda data: dp.fit(data, model, prior, seed=1, **QUICK), model, prior, simulations=simulations, nodes=nodes
    )
    for name, values in found.items():
        assert kstest(values, "uniform").pvalue > 1e-4, name


CASES = {"bge": (dp.BGe(), dp.Uniform()), "linear": (dp.LinearGaussian(), dp.ErdosRenyi(probability=0.3))}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["bge", pytest.param("linear", marks=pytest.mark.long)])
def test_auto_is_calibrated(case):
    check(*CASES[case], simulations=25, nodes=5)


@pytest.mark.long
@pytest.mark.parametrize("nodes", [5, 8])
@pytest.mark.parametrize("case", CASES)
def test_auto_is_calibrated_over_many_data_sets(case, nodes):
    check(*CASES[case], simulations=400, nodes=nodes)
