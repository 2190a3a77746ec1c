"""What each command writes, prints and returns."""

import csv
import json
import os

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.data import as_dataset
from dagpost.inference.fit import METHODS
from dagpost.inference.memory import needed_memory
from dagpost.interfaces.cli import options
from dagpost.models import MODELS
from dagpost.priors import PRIORS

FILES = {"edges.csv", "summary.json", "summary.txt"} | ({"posterior.nc"} if hasattr(dp.Posterior, "save") else set())
SMALL = ["--draws", 50, "--precision", 0.05]


def written(folder):
    return {p.name for p in folder.iterdir()}


def test_fit_says_what_it_assumes_and_writes_the_answer(dagpost, table, tmp_path):
    ended = dagpost("fit", table, *SMALL)
    assert ended.code == 0 and ended.out == ""
    for text in ("standardised", "--raw-units", "integrated out", "--noise", "--prior", "--method", "--interventions"):
        assert text in ended.err
    assert written(tmp_path / "run") == FILES
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["method"] == "auto" and summary["model"].startswith("BGe") and summary["standardised"]
    assert {"acceptance", "verdict"} <= summary["info"].keys()  # the chains ran
    rows = list(csv.DictReader((tmp_path / "run" / "edges.csv").open()))
    assert len(rows) == 6 and {rows[0]["cause"], rows[0]["effect"]} <= set("abc")
    assert [float(r["probability"]) for r in rows] == [e["probability"] for e in summary["edges"]]


def test_fit_draws_missing_cells_and_says_so(dagpost, table, tmp_path):
    frame = pd.read_csv(table)
    frame.assign(b=frame.b.where(frame.index % 5 != 0)).to_csv("t.csv", index=False)
    ended = dagpost("fit", "t.csv", *SMALL, "--report")
    assert ended.code == 0, ended.err
    assert "40 of 600 cells (6.7 %) in 40 of 200 rows and 1 of 3 columns" in ended.err
    assert "missing at random" in ended.err
    page = (tmp_path / "run" / "report.html").read_text()
    assert "40 cells (6.7 %) of 1 of 3 columns were missing" in page and "<td>40 (20.0 %)</td>" in page
    post = dp.load(tmp_path / "run" / "posterior.nc").with_data("t.csv")
    assert post.imputed(1)[0].shape == (200, 3)
    assert dagpost("report", "run", "--overwrite").code == 0
    dropped = dagpost("fit", "t.csv", "--missing", "drop", "--method", "exact", "--out", "dropped")
    assert dropped.code == 0 and "missing at random" not in dropped.err


@pytest.mark.slow
def test_the_same_edges_whatever_the_units(dagpost, table, tmp_path):
    frame = pd.read_csv(table)
    frame.assign(b=1000 * frame.b + 37.5, c=frame.c / 2.54 - 3).to_csv("other.csv", index=False)
    for method in ("auto", "exact"):
        for name in ("table", "other"):
            out = f"{method}-{name}"
            more = SMALL if method == "auto" else []
            assert dagpost("fit", f"{name}.csv", "--method", method, *more, "--out", out).code == 0
        one, two = ((tmp_path / f"{method}-{name}" / "edges.csv").read_bytes() for name in ("table", "other"))
        assert one == two


def test_the_papers_model_on_request(dagpost, table):
    arguments = ["exact", table, "--model", "linear", "--noise", 0.1, "--raw-units", "--prior", "erdos-renyi"]
    ended = dagpost(*arguments, "--json", "--quiet")
    summary = json.loads(ended.out)
    expected = dp.exact(str(table), model="linear").edge_table()
    np.testing.assert_allclose([e["probability"] for e in summary["edges"]], expected.probability)
    assert ended.err == "" and "noise_variance=0.1" in summary["model"] and not summary["standardised"]


def test_a_column_names_the_interventions(dagpost, table, tmp_path):
    frame = pd.read_csv(table)
    target = ["b" if i < 50 else "b;c" if i < 60 else "" for i in range(200)]
    frame.assign(what=target).to_csv("t.csv", index=False)
    ended = dagpost("exact", "t.csv", "--interventions", "what", "--json")
    assert "60 rows with interventions" in ended.err and "none from an intervention" not in ended.err
    mask = np.zeros((200, 3), dtype=bool)
    mask[:60, 1] = mask[50:60, 2] = True
    pd.DataFrame(mask.astype(int), columns=list("abc")).to_csv("mask.csv", index=False)
    same = dagpost("exact", table, "--interventions", "mask.csv", "--json", "--out", "second")
    assert json.loads(ended.out)["edges"] == json.loads(same.out)["edges"]
    named = as_dataset(frame.assign(what=target), interventions="what")
    np.testing.assert_array_equal(named.intervened, mask)


def test_show(dagpost, table, tmp_path):
    dagpost("exact", table)
    ended = dagpost("show", "run", "--top", 2, "--min-probability", 0)
    assert ended.code == 0 and ended.err == "" and "2 of 3 pairs shown" in ended.out
    pairs = json.loads(dagpost("show", "run", "--json", "--min-probability", 0.3).out)
    assert pairs and all(pair["adjacent"] >= 0.3 and pair["direction"] >= 0.5 for pair in pairs)
    path = tmp_path / "run" / "summary.json"
    old = {name: value for name, value in json.loads(path.read_text()).items() if name != "pairs"}
    whole = path.read_text()
    path.write_text(json.dumps(old))  # as the first version wrote it
    signs = [pair.pop("sign") for pair in pairs]
    assert set(signs) == {"+"}  # b = 2 a + noise, c = b - noise
    assert json.loads(dagpost("show", "run", "--json", "--min-probability", 0.3).out) == pairs
    path.write_text(whole)
    for arguments, message in [
        (["nowhere"], "no such folder"),
        ([tmp_path], "no finished run"),
        (["run", "--top", 0], "--top=0"),
        (["run", "--min-probability", 2], "--min-probability 2"),
    ]:
        ended = dagpost("show", *arguments)
        assert ended.code == 2 and message in ended.err and ended.out == ""
    for damaged in (whole[: len(whole) // 2], "[]", whole.replace('"cause": "a"', '"cause": "x"'), "\x00"):
        path.write_text(damaged)
        assert "summary.json is damaged" in dagpost("show", "run").err


def test_names_cannot_take_over_the_terminal(dagpost, table):
    frame = pd.read_csv(table).set_axis(["[bold red]", "$x_1", "=1+1"], axis=1)
    frame.to_csv("t.csv", index=False)
    dagpost("exact", "t.csv")
    out = dagpost("show", "run", "--min-probability", 0).out
    assert "[bold red]" in out and "=1+1" in out


@pytest.mark.slow
def test_reports_accept_any_names(dagpost, table, tmp_path):
    frame = pd.read_csv(table).set_axis(["[bold red]", "$x_1", "=1+1"], axis=1)
    frame.to_csv("t.csv", index=False)
    dagpost("exact", "t.csv")
    assert dagpost("report", "run").code == 0
    assert written(tmp_path / "run") == FILES | {"report.html", "report.txt", "report.png"}


@pytest.mark.slow
def test_report(dagpost, table, tmp_path, monkeypatch):
    pd.read_csv(table)[["a", "b"]].to_csv(table, index=False)
    dagpost("exact", table)
    assert dagpost("report", "run").code == 0
    assert "adjacent  share" in (tmp_path / "run" / "report.txt").read_text()
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<h1>table.csv</h1>" in page and "assumed: units" in page
    ended = dagpost("report", "run")
    assert ended.code == 2 and "exists already" in ended.err
    monkeypatch.setattr("dagpost.report.has_matplotlib", lambda: False)
    (tmp_path / "run" / "report.png").unlink(missing_ok=True)
    ended = dagpost("report", "run", "--overwrite")
    assert ended.code == 0 and "dagpost[report]" in ended.err and not (tmp_path / "run" / "report.png").exists()


@pytest.mark.slow
def test_the_page_with_the_fit(dagpost, table, tmp_path):
    assert dagpost("fit", table, *SMALL, "--report").code == 0
    assert written(tmp_path / "run") == FILES | {"report.html"}
    ended = dagpost("exact", table, "--report", "--overwrite", "--quiet")
    assert ended.code == 0 and ended.err == ""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "report.html").write_text("mine")
    ended = dagpost("exact", table, "--report", "--out", "other")
    assert ended.code == 2 and "report.html exists already" in ended.err
    assert (tmp_path / "other" / "report.html").read_text() == "mine"


@pytest.mark.slow
def test_the_page_gets_effects_from_the_table(dagpost, table, tmp_path):
    dagpost("exact", table, "--model", "bge")
    moved = pd.read_csv(table)
    (tmp_path / table).unlink()
    moved.to_csv("moved.csv", index=False)
    dagpost("report", "run")
    page = tmp_path / "run" / "report.html"
    assert '"effects":null' in page.read_text(encoding="utf-8")  # the table is not where it was
    assert dagpost("report", "run", "--data", "moved.csv", "--overwrite").code == 0
    assert '"effects":{"level":0.9,"linear":true,"categorical":false,"rows":[[' in page.read_text(encoding="utf-8")
    moved.iloc[1:].to_csv("fewer.csv", index=False)
    ended = dagpost("report", "run", "--data", "fewer.csv", "--overwrite")
    assert ended.code == 2 and "not the data" in ended.err
    assert "--interventions" in dagpost("report", "run", "--interventions", "t", "--overwrite").err


@pytest.mark.slow
def test_a_report_of_a_damaged_run(dagpost, table, tmp_path):
    dagpost("exact", table)
    path = tmp_path / "run" / "posterior.nc"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    ended = dagpost("report", "run")
    assert ended.code == 2 and "posterior.nc" in ended.err
    assert written(tmp_path / "run") == FILES
    path.unlink()
    ended = dagpost("report", "run")
    assert ended.code == 0 and "no report.html: posterior.nc is missing" in ended.err
    summary = tmp_path / "run" / "summary.json"
    path.write_bytes(whole)
    changed = json.loads(summary.read_text())
    summary.write_text(json.dumps(changed | {"names": changed["names"][::-1]}))
    ended = dagpost("report", "run", "--overwrite")
    assert ended.code == 2 and "belong to different runs" in ended.err


def test_simulate_feeds_fit(dagpost, tmp_path):
    ended = dagpost("simulate", "--nodes", 4, "--observations", 60, "--interventional-sets", 2, "--json")
    simulation = json.loads(ended.out)
    files = {"train.csv", "test.csv", "graph.csv", "interventional.csv", "simulation.json"}
    assert ended.code == 0 and written(tmp_path / "simulation") == files
    sim = dp.simulate(nodes=4, observations=60)
    assert len(simulation["edges"]) == sim.graph.sum()
    np.testing.assert_array_equal(dp.read_table("simulation/train.csv").values, sim.train.values)
    pd.concat([pd.read_csv(f"simulation/{n}.csv") for n in ("train", "interventional")]).to_csv("all.csv", index=False)
    ended = dagpost("exact", "all.csv", "--interventions", "target")
    assert ended.code == 0 and "200 rows with interventions" in ended.err
    assert "exists already" in dagpost("simulate", "--nodes", 4).err
    assert "nodes=0" in dagpost("simulate", "--nodes", 0, "--out", "other").err


def test_bench(dagpost):
    ended = dagpost("bench", "--nodes", "3,4", "--method", "exact", "--json")
    assert [r["nodes"] for r in json.loads(ended.out)] == [3, 4]
    assert "first run" in dagpost("bench", "--nodes", 3, "--method", "exact").out
    assert dagpost("bench", "--nodes", "many").code == 2


def test_help_and_version(dagpost):
    for command in ("fit", "exact", "show", "report", "simulate", "bench"):
        ended = dagpost(command, "--help")
        assert ended.code == 0 and "Examples:" in ended.out and f"dagpost {command}" in ended.out
    assert "fit" in dagpost().out
    assert dagpost("--version").out == f"dagpost {dp.__version__}\n"
    assert "did you mean" in dagpost("fot").err.lower()


def test_the_words_of_the_options_are_those_of_the_library():
    assert set(options.MODELS) == set(MODELS)
    assert set(options.PRIORS) == set(PRIORS)
    assert set(options.METHODS) == set(METHODS)


# ---- the folder


def test_results_are_never_overwritten_unasked(dagpost, table, tmp_path):
    assert dagpost("exact", table).code == 0
    before = {p: (tmp_path / "run" / p).read_bytes() for p in FILES}
    ended = dagpost("exact", table, "--model", "bge")
    assert ended.code == 2 and "exists already" in ended.err and "--overwrite" in ended.err
    assert before == {p: (tmp_path / "run" / p).read_bytes() for p in FILES}
    (tmp_path / "run" / "notes.txt").write_text("mine")
    assert dagpost("exact", table, "--model", "linear", "--overwrite").code == 0
    assert before["edges.csv"] != (tmp_path / "run" / "edges.csv").read_bytes()
    assert written(tmp_path / "run") == FILES | {"notes.txt"}


@pytest.mark.parametrize("what", ["a file", "under a file", "read-only", "no lock"])
def test_an_unusable_folder_is_found_out_before_the_work(what, dagpost, table, tmp_path, monkeypatch):
    monkeypatch.setattr("dagpost.inference.fit.fit", lambda *a, **k: pytest.fail("the work began"))
    (tmp_path / "file").write_text("")
    out, message = {"a file": ("file", "is a file"), "under a file": ("file/run", "cannot be created")}.get(
        what, ("closed", "cannot be written to")
    )
    if what == "read-only":
        if os.geteuid() == 0:
            pytest.skip("nothing is read-only to the superuser")
        (tmp_path / "closed").mkdir(mode=0o500)
    if what == "no lock":

        def refuse(*arguments, **options):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("dagpost.interfaces.cli.output.os.open", refuse)
    ended = dagpost("exact", table, "--out", out)
    assert ended.code == 2 and message in ended.err and out in ended.err
    assert what == "read-only" or not (tmp_path / "closed").exists()


def test_a_full_disk_leaves_the_old_results(dagpost, table, tmp_path, monkeypatch):
    dagpost("exact", table)
    before = {p: (tmp_path / "run" / p).read_bytes() for p in FILES}

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ended = dagpost("exact", table, "--model", "bge", "--overwrite")
    assert ended.code == 2 and "could not be written (No space left on device)" in ended.err
    assert written(tmp_path / "run") == FILES
    assert before == {p: (tmp_path / "run" / p).read_bytes() for p in FILES}


def test_one_writer_at_a_time(dagpost, table, tmp_path):
    from dagpost.interfaces.cli.output import LOCK, output_folder

    with output_folder(tmp_path / "run", [], overwrite=False):
        ended = dagpost("exact", table)
        assert ended.code == 2 and f"another dagpost (process {os.getpid()})" in ended.err
    assert not (tmp_path / "run").exists()  # made for the run, and nothing came of it
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).write_text("4194304")  # left by a process that was killed
    assert dagpost("exact", table).code == 0
    assert written(tmp_path / "run") == FILES


def test_a_stopped_run_goes_on(dagpost, table, tmp_path, monkeypatch):
    """With a stand-in for the method that saves its state when it is stopped."""

    class Stopped(KeyboardInterrupt):
        exit_code = 143

    real = dp.fit

    def stand_in(data, model, prior, method, *, checkpoint=None, checkpoint_every=60.0, resume=False, **options):
        if resume:
            assert (checkpoint / "state-0").read_text() == "half" and checkpoint_every == 5
            return real(data, model, prior, dp.Exact())
        checkpoint.mkdir()
        (checkpoint / "state-0").write_text("half")
        raise Stopped

    monkeypatch.setattr("dagpost.inference.fit.fit", stand_in)
    monkeypatch.setattr("sys.argv", ["dagpost", "fit", "my table.csv"])
    ended = dagpost("fit", table)
    assert ended.code == 143 and "resume with: dagpost fit 'my table.csv' --resume" in ended.err
    assert written(tmp_path / "run") == {"checkpoint"}
    ended = dagpost("fit", table)
    assert ended.code == 2 and "holds a stopped run" in ended.err
    assert dagpost("fit", table, "--resume", "--checkpoint-every", 5).code == 0
    assert written(tmp_path / "run") == FILES
    assert "keeps no checkpoints" in dagpost("fit", table, "--method", "exact", "--resume", "--out", "other").err


# ---- sizes


@pytest.mark.filterwarnings("ignore::dagpost.errors.DataWarning")
def test_a_thousand_columns_say_the_memory_first(dagpost, monkeypatch, tmp_path):
    needed = needed_memory(1000, dp.LinearGaussian(), dp.Auto())
    assert 15 < needed["draws"] < 20  # a thousand matrices of a million numbers are 7.5 GiB, and are held twice
    assert 5 < needed["ensembles"] < 12 and needed["particles"] == 0
    assert needed_memory(1000, dp.BGe(), dp.Auto(draws=100))["draws"] < 0.2
    rows = np.random.default_rng(0).normal(size=(20, 1000))
    pd.DataFrame(rows).add_prefix("x").to_csv("wide.csv", index=False)
    monkeypatch.setattr("dagpost.inference.memory.available_memory", lambda: 2.0)
    ended = dagpost("fit", "wide.csv")
    assert ended.code == 2 and "on 1000 columns needs about" in ended.err and "2.0 GiB at hand" in ended.err
    assert not (tmp_path / "run").exists()
    with pytest.raises(dp.InputError, match=r"on 1000 columns needs about .* for its ensembles: use fewer ensembles"):
        dp.fit(rows)
    with pytest.raises(dp.InputError, match=r"for its draws: keep fewer graphs \(draws=…\), or use fewer columns"):
        dp.fit(rows, "linear")
    with pytest.raises(dp.InputError, match=r"for its particles: use fewer particles"):
        dp.fit(rows, "bge", method="dibs", particles=1000)


@pytest.mark.slow
def test_time_series_from_table_to_report(dagpost, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 2))
    for t in range(1, 160):
        x[t, 1] += 0.9 * x[t - 1, 0]
    frame = pd.DataFrame(x, columns=["rain", "river"])
    frame.insert(0, "ward", ["p", "q"] * 40 + ["r"] * 80)
    frame.to_csv(tmp_path / "table.csv", index=False)
    ended = dagpost("exact", "table.csv", "--lags", 1, "--series", "ward", "--out", "run")
    assert ended.code == 0 and "157 of 160 rows joined with the row before them" in ended.err, ended.err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["names"] == ["rain", "river", "rain[t-1]", "river[t-1]"]
    shown = dagpost("show", "run")
    assert "rain[t-1]" in shown.out and "->" in shown.out
    again = dagpost("report", "run", "--data", "table.csv")  # joins the rows by itself
    assert again.code == 0, again.err
    assert "rain[t-1]" in (tmp_path / "run" / "report.html").read_text()
    refused = dagpost("fit", "table.csv", "--lags", 2, "--out", "other")
    assert refused.code == 2 and "lags=2: give 1" in refused.err and not (tmp_path / "other").exists()


def test_missing_cells_are_refused_before_anything_is_said_of_drawing_them(dagpost, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame.where(rng.random(frame.shape) > 0.1, -999).to_csv("t.csv", index=False)
    marked = ("t.csv", "--missing-values", "-999,?")
    refused = {
        ("exact", *marked): "--missing drop",
        ("exact", *marked, "--missing", "keep", "--out", "no"): "dagpost fit --method auto",
        ("fit", *marked, "--lags", "1", "--out", "no"): "cells are missing in a table with lags",
        ("compare", *marked, "--missing", "keep"): "a comparison of models needs all of them: drop such rows",
        ("compare", *marked): "--missing drop",
    }
    for command, message in refused.items():
        ended = dagpost(*command)
        assert ended.code == 2 and message in ended.err and "--missing keep" not in ended.err, ended
        assert "drawn together" not in ended.err
    assert not (tmp_path / "no").exists()
    ended = dagpost("exact", *marked, "--missing", "drop", "--out", "run")
    assert ended.code == 0 and "which lack values" in ended.err and "lies far outside" not in ended.err
    assert "--missing-values -999" in dagpost("exact", "t.csv", "--out", "coded").err
