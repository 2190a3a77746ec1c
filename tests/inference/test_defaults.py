"""What is assumed of a table that nobody described."""

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.data import lagged
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


def categories(**columns):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.choice(["x", "y"], 60), "b": rng.choice(["u", "v", "w"], 60)} | columns)


def test_a_table_of_categories_gets_the_model_for_categories():
    found = assume(dp.Dataset(categories()))
    assert found.model == dp.BDeu() and found.data.scaling is None
    assert "every column is categorical" in found.messages["model"] and "units" not in found.messages
    post = dp.fit(categories(), progress=False)
    assert post.model == dp.BDeu() and post.record.assumptions["model"] == found.messages["model"]
    assert post.info["assumed"]["model"] == found.messages["model"]


def test_zeros_and_ones_are_categories_among_categories():
    frame = categories(c=np.arange(60) % 2)
    found = assume(dp.Dataset(frame))
    assert found.model == dp.BDeu() and found.data.levels[2] == ("0", "1")
    assert found.messages["columns"] == "0 and 1 taken as categories: 'c'"
    only = assume(dp.Dataset((np.random.default_rng(0).random((60, 3)) < 0.5).astype(float)))
    assert only.model == dp.BDeu() and only.data.is_categorical.all()
    assert assume(dp.Dataset(only.data.values), "bge").model == dp.BGe()  # a named model is taken as it is


def test_numbers_beside_categories_without_an_order_are_refused_by_name():
    frame = categories(c=np.linspace(0, 1, 60), d=np.arange(60) % 2)
    for run in (lambda: assume(dp.Dataset(frame)), lambda: dp.fit(frame), lambda: dp.StructureLearner().fit(frame)):
        with pytest.raises(
            InputError, match=r"column 'b' holds categories without an order and column 'c' numbers, and no model"
        ) as e:
            run()
        assert "--kinds NAME=categorical" in str(e.value) and "'d'" not in str(e.value)
    with pytest.raises(InputError, match="the model 'bdeu' takes categories alone"):
        assume(dp.Dataset(frame), "bdeu")
    assert assume(dp.Dataset(frame, kinds={"c": "categorical"})).model == dp.BDeu()


def in_blocks(**columns):
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=60), "ward": ["n"] * 30 + ["s"] * 30})
    return frame.assign(**columns)


def test_mixed_tables_in_time_are_refused_with_what_helps():
    message = "column 'ward' holds categories and column 'x' numbers, and no model takes both with lags: 'ward' changes"
    with pytest.raises(InputError, match=message) as error:
        dp.fit(in_blocks(), lags=1)
    assert "--series ward" in str(error.value) and "name another model" not in str(error.value)
    with pytest.raises(InputError, match="columns 'ward', 'smoker' hold categories") as error:
        dp.fit(in_blocks(smoker=["yes", "no"] * 30), lags=1)
    assert "'smoker' changes" not in str(error.value) and "x[t-1]" not in str(error.value)
    with pytest.raises(InputError, match="column 'smoker' holds categories and column 'x' numbers") as error:
        dp.fit(in_blocks(smoker=["yes", "no"] * 30), lags=1, series="ward")
    assert "--series" not in str(error.value)


def test_why_ranks_are_not_used_is_said():
    counts = dp.Dataset(in_blocks(n=np.random.default_rng(1).poisson(2.0, 60)).drop(columns="ward"))
    assert counts.kinds[1] == "count" and assume(counts).model.latent
    for data, method in ((lagged(counts), None), (counts, "exact")):
        found = assume(data, None, None, method)
        what = "lags" if method is None else "the method 'exact'"
        assert found.messages["columns"] == f"counts taken as continuous, since 'copula' does not go with {what}: 'n'"
    scores = pd.DataFrame({name: list("abc") * 20 for name in "pq"}).sample(frac=1, random_state=1)
    scores = dp.Dataset(scores.assign(q=list("abc") * 20), kinds={"p": "a<b<c", "q": "a<b<c"})
    assert assume(scores).model.latent
    found = assume(lagged(scores))
    assert found.model == dp.BDeu() and found.messages["columns"].startswith("order of levels not used, since 'copula'")


def test_lines_of_columns_are_those_of_the_model():
    flags = pd.DataFrame(np.random.default_rng(0).random((60, 2)) < 0.5, columns=["f", "g"])
    assert dp.Dataset(flags).column_lines()[0] == "'f': two values, 0 and 1"
    assert assume(dp.Dataset(flags)).data.column_lines()[0] == "'f': categorical, 2 levels ('0', '1')"


def test_one_observed_cell_is_named():
    for frame in (categories(z=[None] * 59 + ["x"]), in_blocks(ward=[None] * 59 + [3.5])):
        with pytest.raises(InputError, match=r"column '(z|ward)' has one observed cell, .*: leave it out"):
            dp.fit(frame)


def test_lines_of_standardised_columns_are_in_their_units():
    frame = pd.DataFrame({"n": [0, 1, 2, 3, 7] * 12, "id": np.random.default_rng(0).permutation(60) + 100})
    data = dp.Dataset(frame.assign(x=0.1 * frame["id"] % 7))
    assert assume(data, "bge").data.column_lines() == data.column_lines()
    assert data.column_lines()[0] == "'n': count, 0 to 7" and "names of rows" in data.column_lines()[1]
