"""The identity of a task fixes its seeds and its file; data seeds depend on the data alone."""

import json
import subprocess
import sys

import pytest

from dagpost.studies import STUDIES, Scale, Task

DATA, RUN = {"nodes": 5, "set": 0}, {"method": "mc3", "options": {"thin": 10}}


def test_order_of_words_does_not_matter_and_every_word_does():
    one = Task("synthetic", DATA, RUN)
    assert one == Task("synthetic", dict(reversed(DATA.items())), dict(reversed(RUN.items())))
    others = [
        Task("sachs", DATA, RUN),
        Task("synthetic", {**DATA, "set": 1}, RUN),
        Task("synthetic", DATA, {**RUN, "options": {"thin": 11}}),
    ]
    assert len({t.key for t in (one, *others)}) == 4 and len({t.seed for t in (one, *others)}) == 4
    assert one.data_seed == others[2].data_seed != others[1].data_seed


@pytest.mark.slow
def test_seeds_are_the_same_in_every_process():
    task = Task("synthetic", DATA, RUN)
    code = (
        "from dagpost.studies.task import Task\n"
        f"t = Task('synthetic', {DATA!r}, {RUN!r})\n"
        "print(t.key, t.seed, t.data_seed)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert out == [task.key, str(task.seed), str(task.data_seed)]
    assert all(0 <= seed < 2**31 for seed in (task.seed, task.data_seed))
    # written down: results on disk belong to these names
    assert (task.key, task.seed, task.data_seed) == ("a94ce2c47c4b2f780fd05b51", 1420194146, 1031951877)


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("smoke", [False, True])
def test_tasks_are_plain_and_distinct_and_more_seeds_add_at_the_end(name, smoke):
    study = STUDIES[name]
    few, many = (study.tasks(Scale(seeds, smoke)) for seeds in (1, 2))
    assert len({t.key for t in many}) == len(many)
    assert many[: len(few)] == few and len(many) > len(few)
    for task in many:
        assert Task(**json.loads(json.dumps(task.as_dict()))) == task


def test_all_methods_see_the_same_data_and_data_sets_differ():
    tasks = STUDIES["bge-20"].tasks(Scale(3)) + STUDIES["linear-20"].tasks(Scale(3))
    seeds = {(t.data["graphs"], t.data["set"]): set() for t in tasks}
    for t in tasks:
        seeds[t.data["graphs"], t.data["set"]].add(t.data_seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len({seed for found in seeds.values() for seed in found}) == 6


def test_the_papers_size():
    sets = {"bge-20": 30 * 2 * 6, "linear-20": 30 * 2 * 7, "mlp-50": 30 * 2 * 5, "four-node": 30 * 4 + 1}
    for name, count in sets.items():
        study = STUDIES[name]
        assert study.seeds == 30 and len(study.tasks(Scale(study.seeds))) == count
    mlp = STUDIES["mlp-50"].tasks(Scale(1))
    assert {t.run["particles"] for t in mlp if "dibs" in t.run["method"]} == {10}  # as published
    assert {t.run["particles"] for t in mlp if "mc3" in t.run["method"]} == {30}


def test_the_published_run_of_the_ablations_is_that_of_the_main_study():
    main = set(STUDIES["linear-20"].tasks(Scale(2)))
    for name in ("ablation-embedding", "ablation-latent-size", "ablation-steps"):
        shared = [t for t in STUDIES[name].tasks(Scale(2)) if t in main]
        assert len(shared) == 2 and all(t.run["method"] == "dibs-paper" for t in shared)
