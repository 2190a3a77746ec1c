"""`dagpost next`: the ranking that the library gives, in files and in the report."""

import json

import pytest

import dagpost as dp
from dagpost.interfaces.cli.output import saved_ranking

QUICK = ["--outcomes", 16, "--rows", 2]


@pytest.fixture
def run(dagpost, table):
    assert dagpost("exact", table).code == 0
    return dagpost


def test_it_prints_what_the_library_ranks(run, table):
    ended = run("next", "run", *QUICK, "--json", "--quiet")
    assert ended.code == 0 and ended.err == ""
    found = json.loads(ended.out)
    post = dp.load("run/posterior.nc").with_data(str(table))
    expected = dp.next_experiment(post, outcomes=16, rows=2)
    assert [row["experiment"] for row in found["experiments"]] == expected.table["experiment"].tolist()
    assert [row["gain"] for row in found["experiments"]] == pytest.approx(expected.table["gain"].tolist())
    assert found["choices"] == [list(expected.best)] and found["about"] is None
    ended = run("next", "run", *QUICK)
    assert expected.sentence in ended.out and "nats" in ended.out


@pytest.mark.slow
def test_candidates_values_effects_and_batches(run):
    arguments = ["next", "run", *QUICK, "--candidate", "a;b", "--candidate", "c", "--value", "c=3.5", "--json"]
    found = json.loads(run(*arguments, "--budget", 2).out)
    assert {row["experiment"] for row in found["experiments"]} == {"a + b", "c"} and len(found["batch"]) == 2
    assert "c = 3.5" in [row["sets"] for row in found["experiments"]]
    about = json.loads(run("next", "run", *QUICK, "--about", "a", "c", "--draws", 50, "--json").out)
    assert about["about"] == ["a", "c"] and "lower bound" in about["bound"]
    assert len(json.loads(run("next", "run", *QUICK, "--pairs", "--json").out)["experiments"]) == 3


@pytest.mark.slow
def test_a_saved_ranking_is_a_section_of_the_report(run, tmp_path):
    assert run("report", "run", "--overwrite").code == 0
    assert 'id="next"' not in (tmp_path / "run" / "report.html").read_text()
    ended = run("next", "run", *QUICK, "--save")
    assert ended.code == 0 and "next.json" in ended.err and (tmp_path / "run" / "next.json").is_file()
    assert run("next", "run", *QUICK, "--save").code == 2  # nothing is overwritten in silence
    assert run("next", "run", *QUICK, "--save", "--overwrite").code == 0
    assert run("report", "run", "--overwrite").code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    sentence = json.loads((tmp_path / "run" / "next.json").read_text())["sentence"]
    assert 'id="next"' in page and 'href="#next"' in page and sentence in page


@pytest.mark.slow
def test_a_ranking_is_told_and_goes_with_its_run(run, table, tmp_path):
    folder = tmp_path / "run"
    assert "next experiment" not in run("show", "run").out
    assert run("next", "run", *QUICK, "--save").code == 0 and run("report", "run").code == 0
    line = f"next experiment (next.json): {json.loads((folder / 'next.json').read_text())['sentence']}"
    assert line in run("show", "run").out and line in (folder / "report.txt").read_text()
    ended = run("exact", table, "--overwrite")
    assert ended.code == 0 and "made of the run before: report.html" in ended.err
    left = {path.name for path in folder.iterdir()}
    assert left == {"posterior.nc", "edges.csv", "summary.json", "summary.txt"}


@pytest.mark.parametrize("text", ["{", "[]", '{"data_hash": "other", "experiments": [{}]}', '{"experiments": 3}'])
def test_a_damaged_ranking_is_left_out_of_the_report(tmp_path, capsys, text):
    assert saved_ranking(tmp_path, "own") is None and capsys.readouterr().err == ""
    (tmp_path / "next.json").write_text(text)
    assert saved_ranking(tmp_path, "own") is None
    assert "next.json is damaged or of another run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--candidate", "q"], "unknown node 'q'"),
        (["--candidate", "a", "--pairs"], "exclude each other"),
        (["--value", "a"], "write NAME=VALUE"),
        (["--value", "a=high"], "give a number"),
        (["--candidate", "a", "--value", "b=5"], "no candidate sets 'b'"),
        (["--about", "a", "a"], "give two nodes"),
        (["--rows", "0"], "rows=0"),
        (["--interventions", "x.csv"], "--data"),
    ],
)
def test_bad_input_ends_with_2(run, arguments, message):
    ended = run("next", "run", *arguments)
    assert ended.code == 2 and message in ended.err and ended.out == ""


def test_a_table_that_has_gone(run, table):
    table.unlink()
    ended = run("next", "run", *QUICK)
    assert ended.code == 2 and "--data TABLE" in ended.err
    assert run("next", "nowhere").code == 2
