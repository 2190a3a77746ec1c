"""The copula through `fit`: what its answers depend on, which columns it takes, and which defaults lead to it."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, ndtri
from scipy.stats import rankdata
from scipy.stats import t as student

import dagpost as dp
from dagpost.errors import DataWarning, InputError
from dagpost.graphs import all_dags
from dagpost.inference.defaults import assume
from dagpost.metrics import log_predictive_density, negative_log_likelihood

RNG = np.random.default_rng(0)
LATENT = RNG.normal(size=(120, 4)) @ np.array([[1, 0.9, 0, 0], [0, 0.6, 0, 0], [0, 0, 1, 0.7], [0, 0, 0, 0.7]])
FRAME = pd.DataFrame(
    {
        "smoker": np.where(LATENT[:, 0] > 0.3, "yes", "no"),
        "stage": pd.Categorical.from_codes(
            np.digitize(LATENT[:, 1], [-0.8, 0.4]), ["low", "mid", "high"], ordered=True
        ),
        "visits": np.floor(np.exp(LATENT[:, 2])),
        "weight": LATENT[:, 3],
    }
)
SHORT = {"max_moves": 1000, "ensembles": 2, "draws": 50}


@pytest.fixture(scope="module")
def post():
    return dp.fit(FRAME, **SHORT)


def test_a_mixed_table_gets_the_copula_and_says_so(post):
    assert post.model == dp.Copula() and post.info["method"] == "auto"
    said = post.info["assumed"]
    assert "1 binary, 1 ordinal, 1 count and 1 continuous column" in said["model"] and "order" in said["units"]
    assert post.data.kinds == ("categorical", "ordinal", "count", "continuous")
    assert post.edge_marginals[0, 1] + post.edge_marginals[1, 0] > 0.9 > post.edge_marginals[0, 2] + 0.3


def test_answers_depend_on_ranks_alone(post):
    """Any increasing transform of any column gives the same bits."""
    other = FRAME.assign(visits=FRAME.visits**3 + 5, weight=np.exp(9 * FRAME.weight))
    other["stage"] = other.stage.cat.rename_categories(["a", "b", "c"])
    same = dp.fit(other, model="copula", prior="unknown-density", **SHORT)
    np.testing.assert_array_equal(same.edge_marginals, post.edge_marginals)
    np.testing.assert_array_equal(same.graphs, post.graphs)
    np.testing.assert_array_equal(same.theta.weights, post.theta.weights)
    numbers = FRAME.assign(smoker=(FRAME.smoker == "yes") * 7.0, stage=FRAME.stage.cat.codes)
    coded = dp.fit(numbers, model="copula", prior="unknown-density", **SHORT)
    np.testing.assert_array_equal(coded.edge_marginals, post.edge_marginals)


def test_effects_and_predictions(post, tmp_path):
    effect = post.effect("smoker", "stage")
    assert effect.meaning == "smoker on stage, in standard deviations of latent columns"
    assert len(effect.draws) == 50 and -1.5 < effect.mean < 1.5
    assert post.effects().shape == (4, 4)
    rows = post.predict({"smoker": "yes", "visits": 2.0}, samples=200)
    assert (rows.smoker == "yes").all() and (rows.visits == 2).all()
    assert set(rows.stage) <= {"low", "mid", "high"} and set(rows.weight) <= set(FRAME.weight)
    again = dp.load(post.save(tmp_path / "p.nc"))
    assert again.model == dp.Copula()
    np.testing.assert_array_equal(again.effects(), post.effects())
    with pytest.raises(InputError, match="values of latent columns need the data"):
        again.predict(samples=5)
    assert again.with_data(FRAME).predict(samples=5).shape == (5, 4)


def test_what_has_no_meaning_is_refused(post):
    for ask in (lambda: log_predictive_density(post, FRAME), lambda: negative_log_likelihood(post, FRAME)):
        with pytest.raises(InputError, match="the model 'copula' sees ranks alone, so that rows have no density"):
            ask()
    for ask in (post.mechanism, post.effect_curve):
        with pytest.raises(InputError, match="the model 'copula' is linear between latent columns"):
            ask("smoker", "stage")
    with pytest.raises(InputError, match="'copula', which sees ranks alone and has no evidence to compare"):
        dp.compare(FRAME)
    with pytest.raises(InputError, match="models: 'copula' sees ranks alone, so that its evidence"):
        dp.compare(FRAME[["visits", "weight"]], ["bge", "copula"])


def test_missing_cells_are_drawn_and_mapped_back():
    holes = FRAME.copy()
    holes.loc[[3, 50], "stage"] = np.nan
    holes.loc[7, "visits"] = np.nan
    post = dp.fit(holes, **SHORT)
    assert post.model == dp.Copula() and post.info["missing"] == {"stage": 2, "visits": 1}
    for table in post.imputed(3):
        assert table.stage.isin(["low", "mid", "high"]).all() and table.visits[7] in set(FRAME.visits)
        pd.testing.assert_series_equal(table.weight, holes.weight)


def edges_with_scale_integrated_out(values, draws=1500):
    """Edge probabilities of BGe (uniform prior) given normal scores of columns whose location and scale are unknown, by
    importance sampling: `sum_G p(G) int p(s (z + m) | G) s^n dm dlog(s)`."""
    n, d = values.shape
    z = ndtri((rankdata(values, axis=0) - 0.5) / n)
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    rng, graphs, model = np.random.default_rng(0), all_dags(d), dp.BGe()
    log_scale, shift = np.log(0.5) + 0.7 * rng.standard_t(5, (draws, d)), rng.standard_t(4, (draws, d))
    log_proposal = (student.logpdf((log_scale - np.log(0.5)) / 0.7, 5) + student.logpdf(shift, 4)).sum(axis=1)
    logs = np.array([
        model.log_evidence_of(graphs, model.summarise(dp.Dataset(np.exp(scale) * (z + move)))) + n * scale.sum()
        for scale, move in zip(log_scale, shift)
    ])  # fmt: skip
    weights = logsumexp(logs - log_proposal[:, None], axis=0)
    return np.einsum("g,gij->ij", np.exp(weights - logsumexp(weights)), graphs)


@pytest.mark.slow
def test_gaussian_columns_have_the_edges_of_bge_with_unknown_scale():
    """On complete continuous Gaussian data; BGe of standardised columns takes their scale as known, which is not the
    same."""
    data = dp.simulate("linear", nodes=4, observations=150, seed=0).train
    post = dp.fit(data, model="copula", prior="uniform", precision=0.01, time_limit=None, progress=False)
    assert np.abs(post.edge_marginals - edges_with_scale_integrated_out(data.values)).max() < 0.05
    exact = dp.exact(data.standardised(), model="bge", prior="uniform")
    assert np.abs(post.edge_marginals - exact.edge_marginals).max() < 0.2


@pytest.mark.parametrize(
    "frame, options, message",
    [
        (FRAME.assign(stage=FRAME.stage.astype(str)), {}, "column 'stage' holds categories without an order and col"),
        (
            FRAME.assign(stage=FRAME.stage.astype(str)), {"model": "copula"},
            r"column 'stage' holds more than two categories without an order, .* needs one: declare it \(--kinds",
        ),
        (FRAME, {"interventions": ["smoker"] + [""] * 119}, r"column 'smoker' was intervened on, .* rows alone"),
        (FRAME, {"model": "copula", "lags": 1}, "lags: the model 'copula' takes rows without an order in time"),
        (FRAME, {"method": "exact"}, r"columns 'smoker', 'stage' hold categories and .* no model .* method 'exact'"),
        (FRAME, {"model": "copula", "method": "mc3"}, "the method 'mc3' cannot draw the latent columns"),
        (FRAME, {"start": "ges"}, "start='ges' cannot draw latent columns: give 'random' or 'empty'"),
        (FRAME, {"n_samples": 3}, "unknown option 'n_samples'"),
        (FRAME.assign(visits=3), {}, "column 'visits' is constant"),
        (FRAME.assign(copy=FRAME.weight**3), {}, "columns 'weight' and 'copy' have the same ranks, up or down: dr"),
        (FRAME, {"workers": 2}, "chains that draw latent columns run in one process"),
    ],
)  # fmt: skip
def test_bad_input_is_named(frame, options, message):
    with pytest.raises(InputError, match=message):
        dp.fit(frame, **options)


def test_columns_with_the_same_levels_are_a_warning():
    with pytest.warns(DataWarning, match="'again'"):
        dp.fit(FRAME.assign(again=FRAME.smoker), **SHORT)


def test_defaults_by_kind():
    zeros = pd.DataFrame({"x": FRAME.weight, "y": (FRAME.smoker == "yes") * 1.0})
    models = {
        "copula": [FRAME, FRAME[["smoker", "stage"]], FRAME[["visits", "weight"]], zeros],
        "bdeu": [FRAME[["smoker"]].assign(b=RNG.choice(list("abc"), 120)),
                 FRAME[["stage"]].assign(b=RNG.choice(list("abc"), 120))],
        "bge": [pd.DataFrame(LATENT)],
    }  # fmt: skip
    for name, tables in models.items():
        for table in tables:
            assert assume(dp.Dataset(table)).model.name == name
    # numbers keep their model where the copula cannot go
    assert assume(dp.Dataset(zeros), method="exact").model.name == "bge"
    assert assume(dp.Dataset(zeros, intervened=[["y"]] * 3 + [[]] * 117)).model.name == "bge"
    assert assume(dp.Dataset(zeros), noise=0.5).model.name == "linear"
