"""Finished tasks stay finished: stopped anywhere, started again, run elsewhere, a study gives the same table."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from dagpost.errors import InputError
from dagpost.studies import (
    STUDIES,
    Scale,
    Store,
    cluster,
    collect,
    processes,
    run,
    select_tasks,
    serial,
    tasks_by_index,
)
from dagpost.studies.experiments import MEASURES
from dagpost.studies.runner import Failure

STUDY, SMOKE = STUDIES["bge-20"], Scale(seeds=2, smoke=True)
CHEAP = ["method=mc3"]
FILES = ("table.csv", "table.md", "figure.png")


def tasks():
    return select_tasks(STUDY.tasks(SMOKE), CHEAP)


def table(store):
    found = collect(STUDY, SMOKE, store)
    return {name: (found.folder / name).read_bytes() for name in FILES if name in found.files}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Run once, in this process."""
    store = Store.at(tmp_path_factory.mktemp("undisturbed"))
    assert run(tasks(), store) == []
    return table(store)


@pytest.mark.slow
def test_stopped_after_any_task_and_started_again_gives_the_same_table(undisturbed, tmp_path):
    for stop in range(len(tasks())):
        store, performed = Store.at(tmp_path / str(stop)), []

        def stopping(todo, stop=stop, performed=performed):
            for task, result in serial(todo):
                performed.append(task)
                if len(performed) == stop + 1:
                    raise KeyboardInterrupt  # before the result is on disk
                yield task, result

        with pytest.raises(KeyboardInterrupt):
            run(tasks(), store, stopping)
        assert len(store.finished(tasks())) == stop
        counted = []
        run(tasks(), store, lambda todo, counted=counted: serial(counted.extend(todo) or todo))
        assert len(counted) == len(tasks()) - stop  # finished ones are not run again
        assert table(store) == undisturbed


@pytest.mark.slow
def test_killed_and_started_again_gives_the_same_table(undisturbed, tmp_path):
    arguments = [
        "study",
        STUDY.name,
        "--smoke",
        "--seeds",
        "2",
        "--only",
        CHEAP[0],
        "--workers",
        "1",
        "--out",
        tmp_path,
    ]
    command = [sys.executable, "-m", "dagpost", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list((tmp_path / "tasks").glob("*.json")):
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    store = Store.at(tmp_path)
    assert store.finished(tasks())
    run(tasks(), store)
    assert table(store) == undisturbed


@pytest.mark.slow
def test_two_processes_give_the_same_table(undisturbed, tmp_path):
    pytest.importorskip("joblib")
    store = Store.at(tmp_path)
    assert run(tasks(), store, processes(2)) == []
    assert table(store) == undisturbed


@pytest.mark.slow
def test_a_dask_cluster_of_two_workers_gives_the_same_table(undisturbed, tmp_path):
    pytest.importorskip("joblib")
    distributed = pytest.importorskip("distributed")
    store = Store.at(tmp_path)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        assert run(tasks(), store, cluster(local.scheduler_address)) == []
    workers = {json.loads(path.read_bytes())["seconds"] for path in (tmp_path / "tasks").iterdir()}
    assert workers and table(store) == undisturbed


def test_where_no_scheduler_answers_one_line_says_so():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        list(cluster("tcp://127.0.0.1:9", patience=0.5)(tasks()))


@pytest.mark.slow
def test_damaged_and_foreign_files_are_run_again(undisturbed, tmp_path):
    store = Store.at(tmp_path)
    run(tasks(), store)
    first, second, third, _ = (store.path(task) for task in tasks())
    first.write_text(first.read_text()[:-20])
    second.write_text(third.read_text())  # the result of another task under this name
    assert len(store.finished(tasks())) == 2
    run(tasks(), store)
    assert table(store) == undisturbed


def test_a_task_that_fails_leaves_the_others_alone(monkeypatch, tmp_path):
    usual = MEASURES["synthetic"]

    def sometimes(task):
        if task.data["set"] == 1:
            raise InputError("no such luck")
        return usual(task)

    monkeypatch.setitem(MEASURES, "synthetic", sometimes)
    store = Store.at(tmp_path)
    failures = run(tasks(), store)
    assert [f.task.data["set"] for f in failures] == [1, 1] and isinstance(failures[0], Failure)
    assert "no such luck" in failures[0].why and len(store.finished(tasks())) == 2
    monkeypatch.setitem(MEASURES, "synthetic", usual)
    assert run(tasks(), store) == [] and len(store.finished(tasks())) == 4


def test_tasks_are_chosen_by_value_and_by_number():
    all_tasks = STUDY.tasks(Scale(3))
    some = select_tasks(all_tasks, ["method=auto,mc3", "graphs=scale-free"])
    assert {(t.run["method"], t.data["graphs"]) for t in some} == {("auto", "scale-free"), ("mc3", "scale-free")}
    assert len(some) == 6 and select_tasks(all_tasks, []) == all_tasks
    assert tasks_by_index(all_tasks, "2,4-5") == [all_tasks[k] for k in (2, 4, 5)]
    for only, words in [("method", "NAME=VALUE"), ("methud=auto", "method"), ("method=atuo", "auto")]:
        with pytest.raises(InputError, match=words):
            select_tasks(all_tasks, [only])
    for places in ("99999", "x", "3-1", "-1", ""):
        with pytest.raises(InputError, match="--task"):
            tasks_by_index(all_tasks, places)


@pytest.mark.slow
def test_provenance_tells_how_and_with_what(undisturbed, tmp_path):
    store = Store.at(tmp_path)
    run(tasks(), store)
    folder = collect(STUDY, SMOKE, store).folder
    record = json.loads((folder / "provenance.json").read_text())
    assert record["command"] == "dagpost study bge-20 --seeds 2 --smoke"
    assert (record["finished"], record["tasks"]) == (4, 24) and record["mean_seconds_of_a_task"].keys() == {"mc3"}
    (versions,), (hardware,) = record["versions"], record["hardware"]
    assert versions["dagpost"] and versions["jax"] and hardware["cores"] >= 1 and hardware["processor"]
    assert os.uname().nodename not in json.dumps(record)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in STUDIES if name != "wall-times-gpu"])
def test_every_study_runs_to_its_end_in_small(name, tmp_path):
    store, scale = Store.at(tmp_path), Scale(seeds=1, smoke=True)
    assert run(STUDIES[name].tasks(scale), store) == []
    found = collect(STUDIES[name], scale, store)
    assert found.finished == found.tasks and len(found.files) >= 3


def test_rows_of_an_extra_method_stay_when_the_study_is_run_again_without_it(tmp_path):
    store = Store.at(tmp_path)
    run(tasks()[:1], store)
    asked = Scale(seeds=2, smoke=True, include=("dibs-lib",))
    extra = select_tasks(STUDY.tasks(asked), ["method=dibs-lib"])
    like = {name: value for name, value in store.get(tasks()[0]).items() if name != "task"}
    store.put(extra[0], {**like, "rows": [{**row, "method": "dibs-lib"} for row in like["rows"]]})
    collect(STUDY, SMOKE, store)
    assert "DiBS (dibs-lib)" in (tmp_path / "bge-20-smoke" / "table.md").read_text()
    record = json.loads((tmp_path / "bge-20-smoke" / "provenance.json").read_text())
    assert record["command"].endswith("--include dibs-lib")
    assert record["tasks"] == len(STUDY.tasks(asked))


@pytest.mark.parametrize("name", ["bge-20", "mlp-50", "sachs", "sachs-alpha-mu", "sachs-noise"])
def test_dibs_lib_takes_part_when_asked_for_and_only_then(name):
    study = STUDIES[name]
    asked = [task for task in study.tasks(Scale(1, include=("dibs-lib",))) if task.run["method"] == "dibs-lib"]
    assert asked
    assert all("batch" not in task.run.get("options", {}) for task in asked)  # it has no minibatches
    assert all(task.run["method"] != "dibs-lib" for task in study.tasks(Scale(1)))
