"""`dagpost study`: what it prints, writes and refuses."""

import json

import pytest

from dagpost.interfaces.cli import study as command
from dagpost.studies import STUDIES, runner
from dagpost.studies import runner as executors

SMALL = ["study", "bge-20", "--smoke", "--seeds", 1, "--only", "method=mc3", "--workers", 1]


@pytest.fixture(autouse=True)
def same_threads(monkeypatch):
    """The process of the tests has its threads already."""
    monkeypatch.setattr("dagpost.studies.use_one_thread", lambda: None)


def test_without_a_name_it_lists_what_there_is(dagpost):
    ended = dagpost("study")
    assert ended.code == 0 and all(name in ended.out for name in STUDIES)
    listed = json.loads(dagpost("study", "--json").out)
    assert [s["study"] for s in listed] == list(STUDIES) and listed[0]["paper"] == "figure 2"


@pytest.mark.slow
def test_run_collect_and_run_again(dagpost, tmp_path, monkeypatch):
    ended = dagpost(*SMALL, "--json")
    (told,) = json.loads(ended.out)
    assert ended.code == 0 and (told["finished"], told["tasks"]) == (2, 12)
    folder = tmp_path / "results" / "bge-20-smoke"
    assert {p.name for p in folder.iterdir()} >= {"table.csv", "table.md", "provenance.json"}
    before = (folder / "table.csv").read_bytes()
    (folder / "table.csv").unlink()

    def nothing(tasks):
        raise AssertionError("finished tasks are not run again")

    monkeypatch.setattr(runner, "perform", nothing, raising=False)
    monkeypatch.setattr(executors, "perform", nothing)
    assert dagpost(*SMALL, "--quiet").err == "" and (folder / "table.csv").read_bytes() == before
    assert dagpost(*SMALL, "--collect").code == 0


def test_a_list_writes_nothing(dagpost, tmp_path):
    listed = json.loads(dagpost("study", "bge-20", "--smoke", "--seeds", 1, "--list", "--json").out)
    assert [t["index"] for t in listed] == list(range(12)) and not any(t["finished"] for t in listed)
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_one_task_by_index_then_the_table(dagpost, tmp_path):
    listed = json.loads(dagpost("study", "bge-20", "--smoke", "--seeds", 1, "--list", "--json").out)
    assert [t["index"] for t in listed] == list(range(12)) and not any(t["finished"] for t in listed)
    assert dagpost("study", "bge-20", "--smoke", "--seeds", 1, "--task", 0).code == 0
    assert len(list((tmp_path / "results" / "tasks").iterdir())) == 1
    assert not (tmp_path / "results" / "bge-20-smoke").exists()
    lines = dagpost("study", "bge-20", "--smoke", "--seeds", 1, "--list", "--only", "method=mc3").out.splitlines()
    assert len(lines) == 2 and "done" in lines[0] and "done" not in lines[1] and lines[1].split()[0] == "6"
    ended = dagpost("study", "bge-20", "--smoke", "--seeds", 1, "--collect")
    assert ended.code == 0 and "covers 1 of 12 tasks" in ended.err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["bge-21"], "did you mean 'bge-20'"),
        (["bge-20", "--seeds", 0], "--seeds"),
        (["bge-20", "--workers", 0], "--workers"),
        (["bge-20", "--only", "method=atuo"], "did you mean 'auto'"),
        (["bge-20", "--task", 100000], "--list shows them"),
        (["bge-20", "--include", "dibs-libs"], "dibs-lib"),
        (["bge-20", "linear-20", "--list"], "one study"),
        (["--page", "nowhere.md"], "no such page"),
        (["bge-20", "--out", "file"], "is a file"),
    ],
)
def test_bad_input_is_one_line(dagpost, tmp_path, arguments, words):
    (tmp_path / "file").write_text("")
    ended = dagpost("study", *arguments)
    assert ended.code == 2 and words in ended.err and ended.err.count("\n") == 1


def test_failed_tasks_are_told_and_the_code_says_so(dagpost, monkeypatch):
    monkeypatch.setattr(executors, "perform", lambda task: {"failed": "InputError: no such luck"})
    ended = dagpost(*SMALL)
    assert ended.code == 2 and "2 tasks failed" in ended.err and "no such luck" in ended.err


def test_a_stop_keeps_what_is_finished(dagpost, tmp_path, monkeypatch):
    import os
    import signal

    perform, seen = executors.perform, []

    def stopping(task):
        seen.append(task)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return perform(task)

    monkeypatch.setattr(executors, "perform", stopping)
    ended = dagpost(*SMALL)
    assert ended.code == 130 and "stopped" in ended.err
    assert len(list((tmp_path / "results" / "tasks").iterdir())) == 1


def test_every_study_has_words(dagpost):
    assert command._overview().count("\n") == len(STUDIES) + 1
