"""Many data sets at once give what each gives alone."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.dibs import paper_settings
from dagpost.dibs.many import infer_many
from dagpost.errors import InputError
from dagpost.studies import STUDIES, Scale
from dagpost.studies.perform import perform
from dagpost.studies.together import grouped, performed, together


def test_tasks_are_grouped_by_what_they_share():
    tasks = STUDIES["linear-20"].tasks(Scale(3))
    groups = grouped(tasks, 2)
    assert sorted(t.key for g in groups for t in g) == sorted(t.key for t in tasks)
    large = [g for g in groups if len(g) > 1]
    assert len(large) == 2 and all({t.run["method"] for t in g} == {"dibs-paper"} for g in large)
    assert all(len({t.data["graphs"] for t in g}) == 1 and len({t.data["set"] for t in g}) == 2 for g in large)


@pytest.mark.slow
def test_rows_are_those_of_single_tasks():
    """20 steps, so that rounding has no time to grow; graphs are equal, scores agree to float32."""
    tasks = [
        t
        for t in STUDIES["linear-20"].tasks(Scale(2, smoke=True))
        if t.run["method"] == "dibs-paper" and t.data["graphs"] == "erdos-renyi"
    ]
    results = dict(together(2)(tasks))
    for task in tasks:
        alone, at_once = perform(task)["rows"], results[task]["rows"]
        assert [(r["method"], r["steps"], r["final"]) for r in at_once] == [
            (r["method"], r["steps"], r["final"]) for r in alone
        ]
        for one, other in zip(alone, at_once):
            assert one["edges"] == pytest.approx(other["edges"], rel=1e-4)
            assert one["nll"] == pytest.approx(other["nll"], rel=1e-3)
    assert results[tasks[0]]["rows"] != results[tasks[1]]["rows"]


@pytest.mark.parametrize(
    "model",
    [
        dp.LinearGaussian(),
        pytest.param(dp.BGe(), marks=pytest.mark.slow),
        pytest.param(dp.MlpGaussian(), marks=pytest.mark.slow),
    ],
    ids=lambda model: model.name,
)
def test_graphs_are_those_of_single_runs(model):
    settings = paper_settings(model, 5, 30, steps=5, cyclic="repair")
    sets = [dp.simulate(model, nodes=5, observations=30, seed=s, interventional_sets=0).train for s in (1, 2)]
    found = infer_many(sets, model, dp.ErdosRenyi(), settings, seeds=[3, 4], particles=3)
    for data, seed, one in zip(sets, (3, 4), found):
        options = {"particles": 3, "steps": 5, "cyclic": "repair", "progress": False}
        alone = dp.fit(data, model, method="dibs-paper", seed=seed, **options)
        assert one.posterior is not None
        np.testing.assert_array_equal(one.posterior.graphs, alone.graphs)


def test_data_of_different_shapes_are_refused():
    sets = [dp.simulate(nodes=3, observations=n, interventional_sets=0).train for n in (10, 11)]
    settings = paper_settings(dp.LinearGaussian(), 3, 10, steps=1)
    with pytest.raises(InputError, match="one shape"):
        infer_many(sets, dp.LinearGaussian(), dp.ErdosRenyi(), settings, seeds=[0, 1])


def test_a_failure_is_told_for_every_task_of_the_group(monkeypatch):
    tasks = [t for t in STUDIES["linear-20"].tasks(Scale(1, smoke=True)) if t.run["method"] == "dibs-paper"]

    def refuse(*arguments, **options):
        raise InputError("no such luck")

    monkeypatch.setattr("dagpost.studies.together.infer_many", refuse)
    assert [r["failed"] for r in performed(tasks)] == ["InputError: no such luck"] * 2
