"""What is assumed of a table that nobody described."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.inference.defaults import assume

DATA = dp.simulate(nodes=4, observations=50, seed=1, interventional_sets=0).train


def test_everything_is_said_that_was_not_asked_for():
    assert set(assume(DATA).messages) == {"units", "model", "prior", "method", "rows"}
    asked = assume(DATA, "linear", "uniform", "exact", noise=0.1, standardise=False)
    assert set(asked.messages) == {"rows"}
    assert asked.data is DATA and asked.model == dp.LinearGaussian() and asked.prior == dp.Uniform()
    assert "noise" in assume(DATA, "mlp").messages and assume(DATA, "mlp").model.noise_variance is None
    assert "noise" not in assume(DATA, "bge").messages


def test_units_leave_no_trace():
    rng = np.random.default_rng(0)
    other = dp.Dataset(DATA.values * rng.uniform(0.001, 1000, 4) + rng.normal(size=4))
    one, two = assume(DATA).data.values, assume(other).data.values
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, DATA.standardised().values, atol=2.0**-24)


def test_standardised_data_stay_as_they_are():
    scaled = DATA.standardised()
    assert assume(scaled).data is scaled and "units" not in assume(scaled).messages


def test_two_valued_columns_are_mentioned():
    values = DATA.values.copy()
    values[:, 2] = values[:, 2] > 0
    assert "'x2'" in assume(dp.Dataset(values)).messages["columns"]


def test_settings():
    found = assume(DATA, "mlp", model_settings={"hidden": [3, 2]}, prior_settings={"edges_per_node": 1.0})
    assert found.model == dp.MlpGaussian(hidden=(3, 2), noise_variance=None)
    assert found.prior == dp.UnknownDensity(edges_per_node=(1.0,))
    with pytest.raises(InputError, match="go into the model object"):
        assume(DATA, dp.BGe(), noise=0.1)
