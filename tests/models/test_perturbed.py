"""Targets of conditions: family scores against direct evaluation, sums over targets, and the unchanged mechanism."""

from dataclasses import replace
from itertools import product

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

import dagpost as dp
from dagpost.data import lagged
from dagpost.data.conditions import as_conditions, conditions_of_mask
from dagpost.errors import DataWarning, InputError
from dagpost.models import Perturbed, as_model

LABELS = ["none"] * 12 + ["a"] * 9 + ["b"] * 7


def rows(model="bge", d=3, seed=0):
    """Rows of three conditions, in units that differ; categories for "bdeu"."""
    rng = np.random.default_rng(seed)
    if model == "bdeu":
        codes = rng.integers(2, size=(len(LABELS), d)).astype(float)
        codes[:, 1] = np.where(rng.random(len(LABELS)) < 0.7, codes[:, 0], codes[:, 1])
        data = dp.Dataset(codes, levels=(("0", "1"),) * d)
    else:
        x = rng.normal(size=(len(LABELS), d)) * (1.0, 2.0, 0.7)[:d]
        x[:, 1] += 0.8 * x[:, 0]
        x[12:21, 1] += 1.0
        data = dp.Dataset(x)
    return dp.Dataset(data.values, levels=data.levels, conditions=as_conditions(LABELS, len(LABELS)))


def direct(model, data, j, parents, chosen):
    """Log evidence of a family in some rows, by the model itself on a table of these rows."""
    part = dp.Dataset(data.values[chosen], levels=data.levels)
    if model.name == "additive":  # in the units of all rows
        shift, scale = data.values.mean(axis=0), data.values.std(axis=0)
        return model.log_evidence(j, parents, model._summarise(part, shift[None], scale[None]))
    return model.log_evidence(j, parents, model.summarise(part))


@pytest.mark.parametrize("change", ["soft", "hard"])
@pytest.mark.parametrize("name", ["bge", "linear", "bdeu", "additive"])
def test_family_scores_are_sums_over_sets_of_conditions(name, change):
    data, model = rows(name), as_model(name)
    targets = dp.Targets(change, 0.1, {"a": {"x1": 0.7}, "b": {"x0": 1.0, "x2": 0.0}})
    prior = np.array([[0.1, 0.7, 0.1], [1.0, 0.1, 0.0]])
    place = data.conditions.of_row
    built = Perturbed(model, targets)
    stats = built.summarise(data)
    for j, parents in [(0, []), (1, [0]), (1, [0, 2]), (2, [1]), (0, [1, 2])]:
        terms = []
        for hit in product([False, True], repeat=2):
            p = np.prod([prior[k, j] if hit[k] else 1 - prior[k, j] for k in range(2)])
            if p == 0:
                continue
            inside = np.isin(place, np.flatnonzero(hit))
            own = sum(
                direct(model, data, j, [] if change == "hard" else parents, place == k) for k in np.flatnonzero(hit)
            )
            terms.append(np.log(p) + direct(model, data, j, parents, ~inside) + own)
        assert built.log_evidence(j, parents, stats) == pytest.approx(logsumexp(terms), abs=1e-8), (j, parents)


def test_prior_of_sets_is_a_product_and_can_be_bounded():
    data = rows()
    members, log_prior = dp.Targets(probability=0.3).sets(data)
    by_set = {tuple(m): np.exp(p) for m, p in zip(members.tolist(), log_prior[:, 0])}
    assert by_set == pytest.approx(
        {(False, False): 0.49, (True, False): 0.21, (False, True): 0.21, (True, True): 0.09}, abs=1e-12
    )
    members, log_prior = dp.Targets(probability=0.3, most=1).sets(data)
    assert members.sum(axis=1).max() == 1
    np.testing.assert_allclose(np.exp(log_prior[:, 0]), np.array([0.49, 0.21, 0.21]) / 0.91)


@pytest.mark.slow
@pytest.mark.parametrize("model, prior", [(dp.BGe(), 0.99), (dp.LinearGaussian(noise_variance=None), 0.8)])
def test_moments_are_those_of_draws(model, prior):
    built = Perturbed(model, dp.Targets(probability=prior))
    data = rows()
    stats = built.summarise(data)
    graph = np.zeros((3, 3), dtype=bool)
    graph[[0, 2], 1] = True
    count = 1000
    drawn = built.draw_thetas(jax.random.split(jax.random.key(0), count), np.repeat(graph[None], count, 0), stats)
    weights = built.linear_weights(drawn)[:, [0, 2], 1]
    mean, covariance = built.weight_moments(1, np.array([0, 2]), stats)
    shares = built.target_probabilities(np.array([1]), graph[None, :, 1], stats)[0]
    assert ((shares > 0.02) & (shares < 0.98)).all()  # the mixture is one
    assert np.abs(weights.mean(axis=0) - mean).max() < 5 * np.sqrt(np.diag(covariance).max() / count)
    np.testing.assert_allclose(np.cov(weights.T), covariance, rtol=0.2, atol=0.15 * np.diag(covariance).max())


def test_tables_are_means_of_draws():
    built, data = Perturbed(dp.BDeu(), dp.Targets(probability=0.5)), rows("bdeu")
    stats, parents = built.summarise(data), np.array([0])
    cells = built.cells(1, parents, stats)
    drawn = built.draw_tables(np.random.default_rng(0), 1, parents, stats, 4000)
    np.testing.assert_allclose(drawn.mean(axis=0), cells / cells.sum(axis=1, keepdims=True), atol=0.02)


def test_effects_of_categories_are_those_without_a_condition():
    """Under a condition, y is a coin; else it copies x."""
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=400)
    y = np.where(np.arange(400) < 200, np.where(rng.random(400) < 0.9, x, 1 - x), rng.integers(2, size=400))
    data = dp.Dataset(np.c_[x, y].astype(float), ("x", "y"), levels=(("0", "1"),) * 2)
    post = dp.exact(data, "bdeu", conditions=["none"] * 200 + ["coin"] * 200, knowledge={"required": ["x -> y"]})
    assert post.targets().iloc[0].tolist()[:2] == ["coin", "y"]
    assert post.effect("x", "y", draws=200).mean == pytest.approx(0.8, abs=0.1)
    assert dp.exact(data, "bdeu", knowledge={"required": ["x -> y"]}).effect("x", "y", draws=200).mean < 0.55


def test_rows_without_conditions_are_unchanged_ones():
    data = rows()
    plain = dp.Dataset(data.values)
    graphs = dp.graphs.all_dags(3)
    built = Perturbed(dp.BGe(), dp.Targets())
    np.testing.assert_allclose(
        built.log_evidence_of(graphs, built.summarise(plain)),
        dp.BGe().log_evidence_of(graphs, dp.BGe().summarise(plain)),
    )
    more = data.followed_by(plain)
    assert more.conditions.of_row.tolist() == [*data.conditions.of_row, *[-1] * data.observations]
    first = plain.followed_by(data)
    assert first.conditions.of_row.tolist() == [*[-1] * data.observations, *data.conditions.of_row]


@pytest.mark.parametrize("model", ["gp", "mlp", "copula"])
def test_other_models_are_refused(model):
    with pytest.raises(InputError, match=f"the model '{model}' takes no conditions: use 'bge', 'linear'"):
        dp.fit(rows(), model)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"change": "softly"}, "change='softly'"),
        ({"probability": 1.5}, "probability=1.5: give a number from 0 to 1"),
        ({"probability": "high"}, "probability='high'"),
        ({"probabilities": {"a": 0.5}}, "probabilities of condition 'a' are 0.5: give them by node"),
        ({"probabilities": {"a": {"x0": -1}}}, "probability of 'a' for 'x0'=-1"),
        ({"most": 0}, "most"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        dp.Targets(**settings)


@pytest.mark.parametrize(
    "targets, message",
    [
        ({"probabilities": {"c": {"x0": 0.5}}}, "there is no condition 'c'"),
        ({"probabilities": {"a": {"x9": 0.5}}}, "condition 'a' has a probability for an unknown node"),
        ({"observational": "control"}, "there is no condition 'control'"),
        ({"chance": 0.5}, "targets have no setting 'chance'"),
        ("some", "targets='some'"),
        (3, "targets=3"),
    ],
)
def test_names_are_checked_against_the_table(targets, message):
    with pytest.raises(InputError, match=message):
        dp.exact(rows(), "bge", targets=targets)


def test_many_conditions_need_a_bound():
    rng = np.random.default_rng(0)
    labels = np.repeat(["none", *(f"c{k}" for k in range(15))], 3)
    data = rng.normal(size=(48, 2))
    with pytest.raises(InputError, match=r"15 conditions with uncertain targets are 32,768 sets.*most=2"):
        dp.exact(data, "bge", conditions=labels)
    assert dp.exact(data, "bge", conditions=labels, targets={"most": 2}).targets().shape == (30, 4)


def test_a_table_without_unperturbed_rows_is_said():
    data = rows()
    data = data.rows(data.conditions.of_row >= 0)
    with pytest.warns(DataWarning, match="every row has a condition"):
        dp.exact(data, "bge")
    dp.exact(data, "bge", targets={"observational": "a"})


@pytest.mark.parametrize("name", ["bge", "linear", "bdeu", "additive"])
def test_conditions_that_change_nothing_leave_the_density_of_new_rows(name):
    """Also where the past is given: past columns are marked as set, and count neither here nor there."""
    base, data = as_model(name), rows(name)
    graphs = np.zeros((2, 3, 3), dtype=bool)
    graphs[1, 0, 1] = graphs[1, 0, 2] = graphs[1, 1, 2] = True
    known, new = data.rows(slice(0, None, 2)), data.rows(slice(1, None, 2))
    built = Perturbed(base, dp.Targets(probability=0.0))
    expected = base.log_predictive_of(graphs, known, new)
    np.testing.assert_allclose(built.log_predictive_of(graphs, known, new), expected, rtol=1e-9)
    assert np.ptp(expected) > 1e-3
    slices = lagged(data.columns(["x0", "x1"]))
    graphs = np.zeros((2, 4, 4), dtype=bool)
    graphs[1, 0, 1] = graphs[1, 2, 0] = graphs[1, 3, 1] = True
    known, new = slices.rows(slice(0, 14)), slices.rows(slice(14, None))
    marked = new.with_interventions(np.tile([False, False, True, True], (new.observations, 1)))
    expected = base.log_predictive_of(graphs, known, marked)
    np.testing.assert_allclose(built.log_predictive_of(graphs, known, marked), expected, rtol=1e-9)
    assert np.abs(expected - base.log_predictive_of(graphs, known, new)).min() > 1


def test_new_rows_of_known_targets_are_those_of_the_condition():
    """Interventions without conditions are conditions of their own, named after their nodes."""
    data, built = rows("bge"), Perturbed(as_model("bge"), dp.Targets(probability=0.0))
    mask = np.zeros(data.values.shape, dtype=bool)
    mask[12:21, 1] = mask[21:, 2] = True
    named = dp.Dataset(data.values, intervened=mask, conditions=conditions_of_mask(mask, data.names))
    graphs = np.zeros((1, 3, 3), dtype=bool)
    known, new = named.rows(slice(0, None, 2)), named.rows(slice(1, None, 2))
    unnamed = replace(new, conditions=None)
    expected = built.log_evidence_of(graphs, built.summarise(known.followed_by(new)))
    expected -= built.log_evidence_of(graphs, built.summarise(known))
    np.testing.assert_allclose(built.log_predictive_of(graphs, known, unnamed), expected, rtol=1e-12)
    assert built.counted(new).all() and not as_model("bge").counted(new).all()
