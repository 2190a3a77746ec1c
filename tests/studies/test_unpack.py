"""What is committed of a study is enough to go on with it: tables to tasks and back."""

import shutil

import pytest

from dagpost.studies import STUDIES, Scale, Store, collect, finished_keys, unpack
from dagpost.studies.collect import read_finished
from dagpost.studies.study import EXTRAS

MADE = {"versions": {"dagpost": "1"}, "hardware": {"cores": 2}}


def filled(store, study, scale):
    """Results that nobody computed, for every other task of the study."""
    for place, task in enumerate(study.tasks(scale)[::2]):
        own = {**MADE, "hardware": {"cores": 2 + place % 2}}
        row = {"shd": 0.1 + place, "auroc": None if place % 3 else 1 / 3, "edges": 7.0, "trusted": place % 2 == 0}
        if task.run["method"] == "dibs-paper" and place % 5 == 0:
            row = {"shd": None, "auroc": None, "edges": None, "all_cyclic": True, "nodes": 11}
        again = {**row, "method": task.run["method"] + "+", "model": "other"}
        store.put(task, {"rows": [row, again], "seconds": 1.5 * place, **own})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear-20", "sachs", "sachs-noise"])
def test_tables_become_tasks_and_the_same_tables(name, tmp_path):
    study, scale = STUDIES[name], Scale(seeds=3)
    first, clone = Store.at(tmp_path / "first"), tmp_path / "second"
    filled(first, study, scale)
    collect(study, scale, first)
    shutil.copytree(first.folder / name, clone / name)
    assert unpack(clone) == len(study.tasks(scale)[::2])
    assert unpack(clone) == 0 and {path.name for path in clone.iterdir()} == {name, "tasks"}
    second = Store.at(clone)
    assert second.finished(study.tasks(scale)) == first.finished(study.tasks(scale))
    (second.folder / name / "table.csv").unlink()
    collect(study, scale, second)
    for file in ("table.csv", "table.md", "figure.png", "provenance.json", "tasks.csv"):
        assert (second.folder / name / file).read_bytes() == (first.folder / name / file).read_bytes(), file


def test_finished_tasks_are_listed_without_writing(tmp_path):
    study, scale = STUDIES["bge-20"], Scale(seeds=2)
    store, clone = Store.at(tmp_path / "first"), tmp_path / "clone"
    filled(store, study, scale)
    collect(study, scale, store)
    shutil.copytree(store.folder / study.name, clone / study.name)
    before = sorted(clone.rglob("*"))
    tasks = study.tasks(scale)
    assert finished_keys(clone, tasks) == finished_keys(store.folder, tasks) == {task.key for task in tasks[::2]}
    assert sorted(clone.rglob("*")) == before
    assert finished_keys(tmp_path / "nowhere", tasks) == set() and not (tmp_path / "nowhere").exists()


def test_a_task_whose_key_looks_like_a_number_is_found_again(tmp_path, monkeypatch):
    study, scale = STUDIES["bge-20"], Scale(seeds=2)
    monkeypatch.setattr("dagpost.studies.task.Task.key", property(lambda task: f"{task.seed:012d}e1"))
    store = Store.at(tmp_path)
    filled(store, study, scale)
    collect(study, scale, store)
    found = dict(read_finished(tmp_path / study.name, study))
    assert len(found) == len(study.tasks(scale)[::2])
    assert all(result["rows"] for result in found.values())


def test_nothing_committed_is_nothing_unpacked(tmp_path):
    assert unpack(tmp_path) == unpack(tmp_path / "nowhere") == 0


def test_whoever_is_interrupted_begins_anew(tmp_path, monkeypatch):
    study, scale, put = STUDIES["bge-20"], Scale(seeds=2), Store.put
    filled(Store.at(tmp_path), study, scale)
    collect(study, scale, Store.at(tmp_path))
    shutil.rmtree(tmp_path / "tasks")
    done = []

    def stopping(self, task, result):
        put(self, task, result)
        done.append(task)
        if len(done) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "put", stopping)
    with pytest.raises(KeyboardInterrupt):
        unpack(tmp_path)
    monkeypatch.setattr(Store, "put", put)
    assert unpack(tmp_path) == len(study.tasks(scale)[::2])


def test_the_committed_tables_name_tasks_that_there_are(request):
    """A study whose declaration changed would leave its table behind: its tasks could not be taken over."""
    folder = request.config.rootpath / "results"
    for name, study in STUDIES.items():
        rows = (folder / name / "tasks.csv").read_text().splitlines()[1:]
        known = {task.key for task in study.tasks(Scale(study.seeds, include=EXTRAS))}
        assert rows and {row.split(",")[0] for row in rows} <= known, name
        assert len(list(read_finished(folder / name, study))) == len(rows), name
