"""Unknown targets: against sums over graphs and targets, chains against exact, known targets, files and pages."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import dagpost as dp
from dagpost.data import as_dataset, lagged
from dagpost.errors import InputError
from dagpost.graphs import all_dags
from dagpost.interfaces.cli import main
from dagpost.report import html_report


def table(rows=60, d=4, seed=0, shift=0.8):
    """A chain v0 -> v1 -> …; drug A shifts v1, drug B turns the sign of v1 -> v2."""
    rng = np.random.default_rng(seed)
    parts = []
    for drug in ("none", "A", "B"):
        x = rng.normal(size=(rows, d))
        for j in range(1, d):
            x[:, j] += (-0.5 if drug == "B" and j == 2 else 0.6) * x[:, j - 1] + (
                shift if drug == "A" and j == 1 else 0
            )
        parts.append(pd.DataFrame(x, columns=[f"v{j}" for j in range(d)]).assign(drug=drug))
    return pd.concat(parts, ignore_index=True)


def score(x, j, parents):
    """Known noise 0.1, weights N(0, 1): the column is Gaussian."""
    if not len(x):
        return 0.0
    covariance = 0.1 * np.eye(len(x)) + x[:, parents] @ x[:, parents].T
    return multivariate_normal(np.zeros(len(x)), covariance).logpdf(x[:, j])


@pytest.mark.parametrize("change", ["soft", "hard"])
@pytest.mark.parametrize("d, conditions", [(2, 1), (3, 2)])
def test_exact_is_the_sum_over_graphs_and_targets(d, conditions, change):
    rng = np.random.default_rng(1)
    place = np.repeat(np.arange(-1, conditions), 6)
    x = 0.35 * rng.normal(size=(len(place), d))
    x[:, 1] += 0.2 * x[:, 0]
    x[place == 0, 1] -= 0.3 * x[place == 0, 0]
    q = 0.3
    edges, targets = np.zeros((d, d)), np.zeros((conditions, d))
    weights, seen = [], []
    for graph in all_dags(d):
        parents = [np.flatnonzero(graph[:, j]) for j in range(d)]
        families = np.zeros((d, 2**conditions))
        sets = list(product([False, True], repeat=conditions))
        for j in range(d):
            for s, hit in enumerate(sets):
                inside = np.isin(place, np.flatnonzero(hit))
                families[j, s] = score(x[~inside], j, parents[j]) + sum(
                    score(x[place == k], j, [] if change == "hard" else parents[j]) for k in np.flatnonzero(hit)
                )
        for choice in product(range(len(sets)), repeat=d):  # every assignment of targets to nodes
            hits = np.array([sets[s] for s in choice]).T
            log_prior = np.where(hits, np.log(q), np.log(1 - q)).sum()
            weights.append(sum(families[j, s] for j, s in enumerate(choice)) + log_prior)
            seen.append((graph, hits))
    weights = np.exp(np.array(weights) - max(weights))
    for w, (graph, hits) in zip(weights / weights.sum(), seen):
        edges += w * graph
        targets += w * hits
    labels = [f"c{k}" if k >= 0 else None for k in place]
    post = dp.exact(x, "linear", "uniform", conditions=labels, targets=dp.Targets(change, q))
    np.testing.assert_allclose(post.edge_marginals, edges, atol=1e-8)
    np.testing.assert_allclose(post.record.targets.probability, targets, atol=1e-8)
    assert 0.01 < edges[0, 1] < 0.99 and 0.01 < targets[0, 1] < 0.99  # numbers that could differ


@pytest.mark.parametrize("model", ["bge", "linear", "bdeu"])
def test_hard_known_targets_are_perfect_interventions(model):
    frame = table()
    if model == "bdeu":
        frame = frame.set_index("drug").gt(0).replace({True: "yes", False: "no"}).reset_index()
    frame["target"] = frame.drug.map({"none": "", "A": "v1", "B": "v2;v3"})
    perfect = dp.exact(frame.drop(columns="drug"), model, interventions="target")
    values = frame.drop(columns="target")
    hard = dp.exact(
        frame, model, interventions="target", conditions="drug", targets=dp.Targets("hard", probability=0.0)
    )
    np.testing.assert_allclose(hard.edge_marginals, perfect.edge_marginals, atol=1e-8)
    known = {"A": {"v1": 1.0}, "B": {"v2": 1.0, "v3": 1.0}}
    stated = dp.exact(values, model, conditions="drug", targets=dp.Targets("hard", 0.0, known))
    np.testing.assert_allclose(stated.edge_marginals, perfect.edge_marginals, atol=1e-8)
    assert hard.targets().query("probability == 1").node.tolist() == ["v1", "v2", "v3"]
    assert np.ptp(perfect.edge_marginals - dp.exact(values.drop(columns="drug"), model).edge_marginals) > 0.01


def test_soft_known_targets_need_no_conditions():
    """Each set of targets is then a condition: the same as naming them."""
    frame = table().assign(target=lambda f: f.drug.map({"none": None, "A": "v1", "B": "v2"}))
    named = dp.exact(frame, interventions="target", conditions="drug", targets="known")
    unnamed = dp.exact(frame.drop(columns="drug"), interventions="target", targets="known")
    np.testing.assert_allclose(named.edge_marginals, unnamed.edge_marginals, atol=1e-12)
    assert unnamed.record.targets.conditions == ["v1", "v2"]
    perfect = dp.exact(frame.drop(columns="drug"), interventions="target")
    assert np.abs(unnamed.edge_marginals - perfect.edge_marginals).max() > 1e-3


def test_targets_are_found_and_effects_are_those_without_drugs():
    found = dp.fit(table(200), conditions="drug")
    assert found.targets().query("probability > 0.5")[["condition", "node"]].to_numpy().tolist() in (
        [["B", "v2"], ["A", "v1"]],
        [["A", "v1"], ["B", "v2"]],
    )
    assert found.names == ("v0", "v1", "v2", "v3")
    assert found.effect("v1", "v2").mean == pytest.approx(0.6, abs=0.12)


def test_extra_targets_beside_known_ones():
    frame = table(200).assign(target=lambda f: f.drug.map({"none": None, "A": "v1", "B": None}))
    found = dp.exact(frame, interventions="target", conditions="drug", targets="unknown").targets()
    assert found.iloc[:2][["condition", "node"]].to_numpy().tolist() == [["A", "v1"], ["B", "v2"]]
    assert found.prior.tolist().count(1.0) == 1


@pytest.mark.slow
@pytest.mark.parametrize("change", ["soft", "hard"])
def test_chains_are_exact_within_their_error(change):
    frame = table(25, shift=0.4)
    options = {"conditions": "drug", "targets": dp.Targets(change)}
    exact = dp.exact(frame, **options)
    chains = dp.fit(frame, precision=0.005, draws=4000, time_limit=200, **options)
    assert ((exact.edge_marginals > 0.05) & (exact.edge_marginals < 0.95)).sum() >= 4
    assert chains.record.verdict.trusted
    assert dp.metrics.edge_marginal_maximum(chains, exact) < 0.02
    of_exact, of_chains = (np.array(post.record.targets.probability) for post in (exact, chains))
    assert ((of_exact > 0.05) & (of_exact < 0.95)).sum() >= 2
    np.testing.assert_allclose(of_chains, of_exact, atol=0.02)


@pytest.mark.slow
def test_mc3_and_workers_take_conditions():
    frame = table(25, d=3, shift=0.4)
    exact = dp.exact(frame, conditions="drug")
    chain = dp.fit(frame, None, None, "mc3", conditions="drug", particles=400, burn_in=2000, thin=20)
    np.testing.assert_allclose(chain.record.targets.probability, exact.record.targets.probability, atol=0.1)
    spread = dp.fit(frame, conditions="drug", precision=0.02, workers=1, time_limit=60)
    np.testing.assert_allclose(spread.record.targets.probability, exact.record.targets.probability, atol=0.05)


def test_files_hold_targets_and_take_data_again(tmp_path):
    frame = table()
    post = dp.exact(frame, conditions="drug")
    loaded = dp.load(post.save(tmp_path / "posterior.nc"))
    pd.testing.assert_frame_equal(loaded.targets(), post.targets())
    assert loaded.model == post.model
    again = loaded.with_data(frame)
    assert again.effect("v0", "v3", draws=50).mean == pytest.approx(post.effect("v0", "v3", draws=50).mean)
    with pytest.raises(InputError, match="not the data"):
        loaded.with_data(frame.assign(drug=frame.drug.to_numpy()[::-1]))


def test_command_line_and_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = table(100)
    frame.drug = frame.drug.replace("none", "control")
    frame.to_csv("cells.csv", index=False)
    arguments = ["--conditions", "drug", "--observational", "control", "--target-probability", "0.2", "--report"]
    assert main(["exact", "cells.csv", *arguments]) == 0
    assert "condition A changes: v1 (" in capsys.readouterr().err
    assert main(["show", "run"]) == 0
    shown = capsys.readouterr().out
    assert "condition A changes: v1 (" in shown and "condition control changes: nothing" in shown
    page = (tmp_path / "run" / "report.html").read_text()
    assert 'id="targets"' in page and "keeps its parents" in page and '<a href="#targets">' in page
    assert main(["exact", "cells.csv", "--targets", "unknown", "--drop", "drug", "--out", "other"]) == 2
    assert "the table has no conditions" in capsys.readouterr().err
    post = dp.exact(frame.drop(columns="drug"))
    dp.write_report(post, "plain.html")
    assert 'id="targets"' not in (tmp_path / "plain.html").read_text()


def test_names_are_escaped_in_the_report():
    frame = table(30).rename(columns={"v1": "<b>v1"})
    frame.drug = frame.drug.replace("A", "<script>alert(1)</script>")
    page = html_report(dp.exact(frame, conditions="drug"))
    assert "<script>alert" not in page and "<b>v1" not in page


def test_rows_and_conditions_stay_together():
    frame = table(5, d=2).astype({"v0": float})
    frame.loc[[1, 6], "v0"] = np.nan
    data = as_dataset(frame, conditions="drug", missing="drop")
    assert np.bincount(data.conditions.of_row + 1).tolist() == [4, 4, 5]
    assert data.names == ("v0", "v1")
    assert data.rows(slice(4, 9)).conditions.of_row.tolist() == [0, 0, 0, 0, 1]
    assert data.fingerprint != as_dataset(frame.drop(columns="drug"), missing="drop").fingerprint
    given = as_dataset(frame.drop(columns="drug").dropna().to_numpy(), conditions=frame.drug[frame.v0.notna()])
    assert given.conditions.of_row.tolist() == data.conditions.of_row.tolist()


def test_time_series_have_targets_in_the_present_alone():
    frame = table(40, d=2)
    data = as_dataset(frame, conditions="drug", lags=1)
    assert data.conditions.of_row.tolist() == lagged(as_dataset(frame, conditions="drug")).conditions.of_row.tolist()
    found = dp.exact(frame, conditions="drug", lags=1).targets()
    assert (found[found.node.str.endswith("[t-1]")].probability == 0).all()
    assert (found[~found.node.str.endswith("[t-1]")].probability > 0).all()


GOOD = table(6, d=2)


@pytest.mark.parametrize(
    "frame, options, message",
    [
        (GOOD, {"conditions": "drugs"}, "the column that names the conditions, 'drugs', is unknown"),
        (GOOD[["drug"]], {"conditions": "drug"}, "the table has no column but 'drug'"),
        (GOOD, {"conditions": ["A", "B"]}, "2 entries of conditions for 18 rows"),
        (GOOD[GOOD.drug == "A"], {"conditions": "drug"}, "all rows are of condition 'A'"),
        (GOOD[GOOD.drug == "none"], {"conditions": "drug"}, "no row has one"),
        (GOOD.iloc[:7], {"conditions": "drug"}, "condition 'A' has a single row, row 7"),
        (GOOD.drop(columns="drug"), {"targets": "unknown"}, "the table has no conditions"),
        (GOOD, {"conditions": "drug", "method": "dibs"}, "method 'dibs' takes no conditions"),
        (GOOD, {"conditions": "drug", "method": "bootstrap-ges"}, "method 'bootstrap-ges' takes no conditions"),
        (
            GOOD,
            {"conditions": "drug", "interventions": ["v0"] * 3 + [""] * 15},
            "condition 'none' has rows with different known targets, row 4",
        ),
        (
            GOOD,
            {"conditions": "drug", "interventions": ["v0"] * 6 + [""] * 12},
            "row 1 has a known target, 'v0', but a",
        ),
    ],
)
def test_bad_input_is_named(frame, options, message):
    with pytest.raises(InputError, match=message):
        dp.fit(frame, **options)


def test_a_posterior_without_conditions_has_no_targets():
    with pytest.raises(InputError, match="no conditions"):
        dp.exact(GOOD.drop(columns="drug")).targets()
