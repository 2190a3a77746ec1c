"""Missing cells: posteriors against sums and integrals over all completions, and the ways in and out."""

from functools import cache
from itertools import product

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import dagpost as dp
from dagpost.data import Dataset
from dagpost.data.missing import completed
from dagpost.errors import InputError
from dagpost.graphs import all_dags
from dagpost.inference.checkpoints import Interrupted
from dagpost.inference.checkpoints.recorder import Recorder
from dagpost.posterior import log_prior_of
from dagpost.priors import GraphPrior
from tests.digests import digest

RNG = np.random.default_rng(3)
LEVELS = (("no", "yes"),) * 3


def categories() -> Dataset:
    a = RNG.integers(0, 2, 14)
    b = np.where(RNG.random(14) < 0.85, a, 1 - a)
    c = np.where(RNG.random(14) < 0.8, b, 1 - b)
    values = np.column_stack([a, b, c]).astype(float)
    values[0, 0] = values[0, 1] = values[5, 2] = np.nan
    mask = np.zeros((14, 3), dtype=bool)
    mask[[1, 2, 0], [1, 0, 2]] = True
    return Dataset(values, ("a", "b", "c"), mask, levels=LEVELS, missing="keep")


def numbers() -> Dataset:
    a = RNG.normal(size=9)
    b = a + 0.6 * RNG.normal(size=9)
    values = np.column_stack([a, b, RNG.normal(size=9) - 0.8 * b])
    values[0, 1] = values[3, 0] = np.nan
    mask = np.zeros((9, 3), dtype=bool)
    mask[[0, 4], [2, 1]] = True
    return Dataset(values, ("a", "b", "c"), mask, missing="keep")


CATEGORIES, NUMBERS = categories(), numbers()
MODELS = {
    "bdeu": dp.BDeu(2.0), "bge": dp.BGe(), "linear": dp.LinearGaussian(), "noise": dp.LinearGaussian(None),
}  # fmt: skip
QUICK = {"draws": 400, "precision": 0.02, "time_limit": None, "progress": False}


def completions(data: Dataset) -> list[np.ndarray]:
    """All completions of categories; a fine grid of those of numbers."""
    rows, columns = np.nonzero(data.is_missing)
    grid = (0.0, 1.0) if data.is_categorical.all() else np.linspace(-7, 7, 36)
    out = []
    for cells in product(grid, repeat=len(rows)):
        values = data.values.copy()
        values[rows, columns] = cells
        out.append(values)
    return out


@cache
def oracle(name: str):
    """Edge probabilities, and the probability of every completion, by enumeration of graphs and completions."""
    data = CATEGORIES if name == "bdeu" else NUMBERS
    model, graphs = MODELS[name], all_dags(3)
    log_prior = log_prior_of(graphs, dp.ErdosRenyi())
    table = np.array([
        log_prior + model.log_evidence_of(graphs, model.summarise(completed(data, values)))
        for values in completions(data)
    ])  # fmt: skip
    weights = np.exp(table - logsumexp(table))
    return np.einsum("cm,mij->ij", weights, graphs), weights.sum(axis=1)


@cache
def run(name: str, seed: int = 0) -> dp.Posterior:
    return dp.fit(CATEGORIES if name == "bdeu" else NUMBERS, MODELS[name], seed=seed, **QUICK)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("bge", "bdeu") else pytest.mark.slow) for name in MODELS]
)
def test_edges_and_cells_are_those_of_a_sum_over_completions(name):
    data, post = CATEGORIES if name == "bdeu" else NUMBERS, run(name)
    edges, weights = oracle(name)
    errors = np.array(post.info["edge_errors"])
    assert post.record.verdict is not None and post.record.verdict.trusted
    assert (np.abs(post.edge_marginals - edges) <= 4 * errors + 0.002).all()
    rows, columns = np.nonzero(data.is_missing)
    means = weights @ np.array([values[rows, columns] for values in completions(data)])
    drawn = post.cells.values
    assert drawn.shape[1] == len(rows) and len(drawn) >= 90
    # completed tables are a few sweeps apart: allow for twice the variance of independent draws
    assert (np.abs(drawn.mean(axis=0) - means) <= 4 * np.sqrt(2 / len(drawn)) * drawn.std(axis=0)).all()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["bdeu", "noise", "bge", "linear"])
def test_the_same_to_three_digits(name):
    data = CATEGORIES if name == "bdeu" else NUMBERS
    post = dp.fit(data, MODELS[name], seed=1, **{**QUICK, "precision": 0.003})
    errors = np.array(post.info["edge_errors"])
    assert (np.abs(post.edge_marginals - oracle(name)[0]) <= 4 * errors + 0.001).all() and errors.max() <= 0.003


class Sparse(GraphPrior):
    """A prior whose families compiled code cannot score."""

    name = "sparse"

    def log_column(self, column, node):
        return -0.4 * jnp.sum(column)

    def sample(self, key, d):
        return np.zeros((d, d), dtype=np.bool_)


@pytest.mark.long
def test_families_that_python_scores():
    model, graphs = MODELS["linear"], all_dags(3)
    post = dp.fit(NUMBERS, model, Sparse(), **{**QUICK, "max_moves": 1})  # one block
    table = np.array([
        model.log_evidence_of(graphs, model.summarise(completed(NUMBERS, values))) for values in completions(NUMBERS)
    ]) - 0.4 * graphs.sum(axis=(1, 2))  # fmt: skip
    expected = np.einsum("cm,mij->ij", np.exp(table - logsumexp(table)), graphs)
    assert (np.abs(post.edge_marginals - expected) <= 4 * np.array(post.info["edge_errors"]) + 0.002).all()


def test_effects_of_categories_are_those_of_a_sum_over_completions():
    expected, log_evidence = [], []
    for values in completions(CATEGORIES):
        exact = dp.exact(completed(CATEGORIES, values), MODELS["bdeu"], "erdos-renyi")
        expected.append(exact.effects().to_numpy())
        log_evidence.append(exact.record.diagnostics.log_evidence)
    weights = np.exp(np.array(log_evidence) - logsumexp(log_evidence))
    assert np.allclose(weights, oracle("bdeu")[1])
    mean = np.einsum("c,cij->ij", weights, expected)
    post = run("bdeu")
    np.testing.assert_allclose(post.effects().to_numpy(), mean, atol=0.08)
    found = post.effect("a", "c")
    assert abs(found.mean - mean[0, 2]) <= 5 * found.error + 0.01


def test_a_complete_table_goes_the_usual_way():
    whole = NUMBERS.rows([k for k in range(9) if k not in (0, 3)])
    post = dp.fit(whole, "bge")
    assert post.cells is None and post.record.verdict.text.startswith("exact")
    assert digest(post) == digest(dp.fit(Dataset(whole.values, whole.names, whole.intervened), "bge"))
    with pytest.raises(InputError, match="no cell of the table was missing"):
        post.imputed()


def test_seeds_fix_the_result_and_the_clock_ends_it():
    options = {**QUICK, "draws": 20, "max_moves": 1000}
    one, two, other = (dp.fit(NUMBERS, "linear", seed=seed, **options) for seed in (1, 1, 2))
    assert digest(one) == digest(two) != digest(other) and (one.cells.values == two.cells.values).all()
    assert sum(one.record.sampling.chain_lengths) == len(one) == 20
    short = dp.fit(NUMBERS, "linear", **{**QUICK, "precision": 1e-6, "time_limit": 0.3})
    assert len(short) == QUICK["draws"] and short.info["ended_by"] == "limit"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bdeu", "linear"])
def test_an_interrupted_run_goes_on_where_it_was(name, tmp_path, monkeypatch):
    data = CATEGORIES if name == "bdeu" else NUMBERS
    options = {**QUICK, "draws": 30, "max_moves": 150_000, "precision": 1e-4, "seed": 5}
    whole = dp.fit(data, MODELS[name], **options)
    seen, real = [], Recorder.reached

    def reached(self, section, snapshot):
        seen.append(section)
        if len(seen) == 55:  # in the second block
            self.caught.number = 2
        real(self, section, snapshot)

    monkeypatch.setattr(Recorder, "reached", reached)
    with pytest.raises(Interrupted):
        dp.fit(data, MODELS[name], checkpoint=tmp_path / "c", **options)
    again = dp.fit(data, MODELS[name], checkpoint=tmp_path / "c", resume=True, **options)
    assert len(seen) > 60
    assert digest(again) == digest(whole) and (again.cells.values == whole.cells.values).all()


def test_imputed_tables_keep_names_units_levels_and_observed_cells(tmp_path):
    frame = pd.DataFrame({"dose": RNG.normal(50, 10, 40), "weight": RNG.normal(3, 1, 40), "age": RNG.normal(size=40)})
    frame.loc[3:8, "dose"] = np.nan
    post = dp.fit(frame, **{**QUICK, "max_moves": 2000})
    (first, second) = post.imputed(2)
    assert list(first) == list(frame) and not first.isna().any().any()
    np.testing.assert_allclose(first.where(frame.notna()), frame, rtol=1e-5)
    assert (first.loc[3:8, "dose"] != second.loc[3:8, "dose"]).all() and 20 < first.loc[3:8, "dose"].mean() < 80
    assert post.record.provenance.missing == {"dose": 6}
    assert "6 of 120 cells (5.0 %)" in post.info["assumed"]["missing"]
    post.save(tmp_path / "p.nc")
    loaded = dp.load(tmp_path / "p.nc")
    with pytest.raises(InputError, match="with_data"):
        loaded.imputed()
    assert loaded.with_data(frame).imputed(2)[1].equals(second)
    assert loaded.effect("dose", "weight").mean == post.effect("dose", "weight").mean
    new = pd.DataFrame({"dose": [40.0, 55.0], "weight": [3.0, 2.0], "age": [0.0, 1.0]})
    assert np.isfinite(dp.metrics.log_predictive_density(post, new))
    with pytest.raises(InputError, match="the density of held-out rows needs all of them"):
        dp.metrics.log_predictive_density(post, Dataset(frame, missing="keep"))
    words = run("bdeu").imputed(1)[0]
    assert words.loc[0, "a"] in ("no", "yes") and words.shape == (14, 3)
    table = run("bdeu").probability_table("c")
    np.testing.assert_allclose(table.sum(axis=1), 1)


FRAME = pd.DataFrame(RNG.normal(size=(30, 3)), columns=list("abc"))
HOLES = FRAME.mask(RNG.random(FRAME.shape) < 0.1)
TARGETS = ["a" if row == 2 else None for row in range(30)]
REFUSED = {
    "exact": (HOLES, {"method": "exact"}, r"columns 'a', .* have missing values .*method \"auto\""),
    "mc3": (Dataset(HOLES, missing="keep"), {"method": "mc3"}, "the method 'mc3' needs all of them: drop such rows"),
    "dibs": (Dataset(HOLES, missing="keep"), {"method": "dibs"}, "the method 'dibs' needs all of them"),
    "ges": (Dataset(HOLES, missing="keep"), {"method": "bootstrap-ges"}, "the method 'bootstrap-ges' needs all of"),
    "gp": (HOLES, {"model": "gp"}, "have missing values .* the model 'gp' needs all of them: .*\"bge\", \"linear\""),
    "mlp": (HOLES, {"model": "mlp"}, "the model 'mlp' needs all of them"),
    "additive": (HOLES, {"model": "additive"}, "the model 'additive' needs all of them"),
    "lags": (HOLES, {"lags": 1}, "cells are missing in a table with lags"),
    "empty column": (HOLES.assign(b=np.nan), {}, "column 'b' is empty"),
    "constant where observed": (HOLES.assign(b=HOLES.b * 0 + 2), {}, r"column 'b' is constant \(value 2\)"),
    "copy": (HOLES.assign(d=HOLES.a), {}, "columns 'a' and 'd' are identical"),
    "target": (
        FRAME.assign(a=FRAME.a.where(FRAME.index != 2)), {"interventions": TARGETS},
        r"column 'a' was intervened on in rows where the cell is missing \(the first: row 3\)",
    ),
    "start": (HOLES, {"start": "ges"}, "start='ges' cannot draw 7 missing cells"),
    "options of DiBS": (HOLES, {"steps": 10}, "steps is an option of DiBS, which cannot draw 7 missing cells"),
    "workers": (HOLES, {"workers": 2}, "leave `workers` and `cluster` out"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_said_by_name(case):
    data, options, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        dp.fit(data, **{"progress": False, **options})


def test_comparisons_need_complete_rows():
    with pytest.raises(InputError, match="a comparison of models needs all of them"):
        dp.compare(Dataset(HOLES, missing="keep"), ["bge", "linear"])
