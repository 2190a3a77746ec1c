"""Tasks run as one give what each gives alone."""

import pytest

from dagpost.errors import InputError
from dagpost.studies import STUDIES, Scale, Task, select_tasks
from dagpost.studies.batched import batched, batches
from dagpost.studies.runner import perform


def test_tasks_are_grouped_by_what_they_share():
    tasks = STUDIES["linear-20"].tasks(Scale(3))
    found = list(batches(tasks, 2))
    assert sorted(t.key for g in found for t in g) == sorted(t.key for t in tasks)
    large = [g for g in found if len(g) > 1]
    assert {t.run["method"] for g in large for t in g} == {"dibs-paper", "dibs", "m-mc3", "g-mc3"}
    for group in large:
        assert len({(t.data["graphs"], t.run["method"]) for t in group}) == 1
        assert len({t.data["set"] for t in group}) == len(group) <= 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "method"), [("linear-20", "dibs-paper"), ("four-node", "dibs-paper"), ("linear-20", "g-mc3")]
)
def test_rows_are_those_of_single_tasks(name, method):
    """Few steps, so that rounding has no time to grow; graphs are equal, scores agree to float32."""
    alike = [f"method={method}"] + ["graphs=erdos-renyi"] * (name == "linear-20")
    tasks = select_tasks(STUDIES[name].tasks(Scale(2, smoke=True)), alike)
    results = dict(batched(2)(tasks))
    for task in tasks:
        alone, at_once = perform(task)["rows"], results[task]["rows"]
        assert len(alone) == len(at_once) > 0
        for one, other in zip(alone, at_once):
            numbers = {key for key, value in one.items() if isinstance(value, float)}
            assert {k: v for k, v in one.items() if k not in numbers} == {
                k: v for k, v in other.items() if k not in numbers
            }
            assert all(one[key] == pytest.approx(other[key], rel=1e-3) for key in numbers)
    assert results[tasks[0]]["rows"] != results[tasks[1]]["rows"]


@pytest.mark.slow
def test_runs_whose_particles_are_all_cyclic_are_those_of_single_tasks():
    """Two runs of two steps with 12 nodes, looked at after the first: no particle is a DAG yet."""
    data = {"generator": "linear", "graphs": "erdos-renyi", "nodes": 12, "observations": 30}
    run = {"model": "linear", "method": "dibs-paper", "particles": 3, "options": {"steps": 2}, "record": [1, 2]}
    tasks = [Task("synthetic", {**data, "set": number, "interventional_sets": 1}, run) for number in range(2)]
    for task, result in batched(2)(tasks):
        assert result["rows"] == perform(task)["rows"]
        assert len(result["rows"]) == 4 and all(row["all_cyclic"] for row in result["rows"])


def test_a_failure_is_told_for_the_task_that_failed(monkeypatch):
    tasks = select_tasks(STUDIES["four-node"].tasks(Scale(2, smoke=True)), ["method=dibs-paper"])

    def refuse(data, *arguments, **options):
        return [InputError("no such luck") for _ in data]

    monkeypatch.setattr("dagpost.studies.batched.infer_batched", refuse)
    assert [r["failed"] for _, r in batched(5)(tasks)] == ["InputError: no such luck"] * 2
