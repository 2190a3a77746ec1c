"""The catalogue of bad input, by command and by function: one line with the culprit, exit code 2, nothing written."""

import gzip
import json
import os
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import dagpost as dp
from dagpost.data import as_dataset
from dagpost.inference.dibs.latent import InnerProduct

RNG = np.random.default_rng(0)
GOOD = pd.DataFrame(RNG.normal(size=(50, 3)), columns=list("abc"))


def changed(**columns):
    return GOOD.assign(**columns)


def spoilt(value, row=10, column="b"):
    out = GOOD.astype(object)
    out.loc[row, column] = value
    return out


def assert_refused(ended, message, *untouched):
    """Exit code 2, one line that says so, nothing on standard output, no folder."""
    assert ended.code == 2, ended
    lines = ended.err.strip().split("\n")
    assert lines[-1].startswith("dagpost: error: ") and re.search(message, lines[-1]), ended.err
    assert sum(line.startswith("dagpost: error") for line in lines) == 1 and "Traceback" not in ended.err
    assert ended.out == ""
    for path in untouched:
        assert not path.exists()


TABLES = {
    "missing value": (spoilt(np.nan), "column 'b' has 1 missing value, the first in row 11"),
    "infinite value": (spoilt(np.inf), r"column 'b' has 1 infinite value\(s\), the first in row 11"),
    "minus infinity": (spoilt(-np.inf), "column 'b' has 1 infinite"),
    "constant column": (changed(b=7.0), r"column 'b' is constant \(value 7\)"),
    "nearly constant column": (changed(b=1e9 + 1e-6 * GOOD.a), "column 'b' is nearly constant"),
    "duplicate columns": (changed(d=GOOD.a), "columns 'a' and 'd' are identical"),
    "same up to scale": (changed(d=3 * GOOD.a - 1), "columns 'a' and 'd' are the same up to scale"),
    "dependent columns": (changed(d=GOOD.a + GOOD.b), "is a linear combination of"),
    "one row": (GOOD[:1], r"1 row\(s\)"),
    "one column": (GOOD[["a"]], r"1 column \('a'\)"),
    "one text": (
        changed(b="x"),
        r"2 problems: column 'b' holds categories.*--drop NAME.*; column 'b' is constant \(value 'x'\)",
    ),
    "strings": (
        changed(b=[f"s{i}" for i in range(50)]),
        "column 'b', row 1 holds 's0', not a number but a text of its own, as names of rows are: recode, leave out",
    ),
    "many texts": (
        changed(b=[f"s{i % 40}" for i in range(50)]),
        r"column 'b' holds 40 different texts \(the first: 's0'\), too many for categories: .*--kinds NAME=categorical",
    ),
    "categories without an order": (
        changed(b=["low", "mid", "high", "mid", "low"] * 10),
        "column 'b' holds categories without an order and columns 'a', 'c' numbers.*--kinds 'NAME=low<mid<high'",
    ),
    "categories beside numbers": (changed(b=["low", "high"] * 25), "column 'b' holds categories.*--drop NAME"),
    "mixed types": (spoilt("three"), "column 'b', row 11 holds 'three'"),
    "dates": (
        changed(b=pd.date_range("2020-01-01", periods=50).astype(str)),
        r"column 'b' holds dates \(the first: row 1, '2020-01-01'\): turn into numbers",
    ),
    "decimal comma": (spoilt("1,5"), "decimal comma"),
    "overflow": (changed(b=1e200 * GOOD.b), "column 'b' reaches .*overflows"),
    "underflow": (changed(b=1e-200 * GOOD.b), "column 'b' has values too small"),
    "duplicate names": (GOOD.set_axis(["a", "a", "b"], axis=1), "'a' stands for two columns"),
    "empty name": (GOOD.set_axis(["a", "", "b"], axis=1), "column 2 has an empty name"),
    "names that look alike": (GOOD.set_axis(["é", "e\u0301", "c"], axis=1), "look the same"),
    "control character": (GOOD.set_axis(["a", "b\x1b[31m", "c"], axis=1), r"control character U\+001B"),
    "invisible character": (GOOD.set_axis(["a", "b\u200b", "c"], axis=1), r"invisible character U\+200B"),
}


MANY = changed(b="x", c=7.0, d=GOOD.a, e=GOOD.a.where(GOOD.index != 3), f=-2 * GOOD.a)
TABLES["many problems"] = (
    MANY,
    "4 problems: column 'e' has 1 missing value, .*--missing drop.*"
    r"; columns 'b', 'c' are constant \(values 'x', 7\).*--drop constant.*; columns 'a' and 'd' are identical: .*"
    "--drop duplicate"
    "; columns 'a' and 'f' are the same up to scale",
)


# what `dagpost fit`, which takes missing cells and columns of several kinds, says instead; None for nothing
OF_FIT = {
    "missing value": None,
    "one text": r"column 'b' is constant \(value 'x'\)",
    "categories beside numbers": None,
    "many problems": r"3 problems: columns 'b', 'c' are constant.*'a' and 'd' have the same ranks.*'a' and 'f'",
}


@pytest.mark.parametrize("case", TABLES)
def test_tables(case, dagpost, tmp_path):
    frame, message = TABLES[case]
    frame.to_csv("t.csv", index=False)
    of_fit = OF_FIT.get(case, message)
    if of_fit is not None:
        assert_refused(dagpost("fit", "t.csv", "--out", "run"), of_fit, tmp_path / "run")
    assert_refused(dagpost("exact", "t.csv", "--out", "run"), message, tmp_path / "run")
    for data in (frame, "t.csv"):
        with pytest.raises(dp.InputError, match=message):
            dp.fit(data, method="exact")


ARRAYS = {
    "no rows": (np.zeros((0, 3)), r"0 row\(s\)"),
    "no columns": (np.zeros((5, 0)), "no columns"),
    "complex": (GOOD.to_numpy() + 1j, "complex"),
    "dates": (GOOD.to_numpy().astype("datetime64[s]"), "dates"),
    "sparse": (scipy.sparse.csr_matrix(GOOD.to_numpy()), "sparse"),
    "one dimension": (GOOD.a.to_numpy(), "1 dimension"),
    "three dimensions": (GOOD.to_numpy()[None], "3 dimension"),
    "ragged": ([[1.0, 2.0], [3.0]], "different lengths"),
    "nothing": (None, "not a table"),
    "number": (3.0, "not a table"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays(case):
    data, message = ARRAYS[case]
    with pytest.raises(dp.InputError, match=message):
        dp.fit(data)


FILES = {
    "empty": (b"", "is empty"),
    "header only": (b"a,b\n", "a header but no rows"),
    "truncated row": (b"a,b\n1,2\n3\n", "line 3 has 1 values instead of 2"),
    "truncated quote": (b'a,b\n1,"2\n', "quotation mark is never closed"),
    "no header": (b"1,2\n3,4\n", "first row holds numbers.*--no-header"),
    "commas and points": (b'a,b\n"1,5",2\n2.5,3\n', "a decimal comma: use --decimal ,"),
    "truncated UTF-16": ("a,b\n1,2\n".encode("utf-16")[:-1], "line 2 is not UTF-16"),
    "NUL": (b"a,b\n1,2\n\x00,3\n", "NUL byte in line 3"),
    "binary": (bytes(range(1, 256)) * 20, "bytes.csv"),
}


@pytest.mark.parametrize("case", FILES)
def test_files(case, dagpost, tmp_path):
    content, message = FILES[case]
    (tmp_path / "bytes.csv").write_bytes(content)
    assert_refused(dagpost("fit", "bytes.csv", "--out", "run"), "bytes.csv.*" if message == "bytes.csv" else message)
    assert not (tmp_path / "run").exists()
    with pytest.raises(dp.InputError, match=message):
        dp.fit("bytes.csv")


def test_paths(dagpost, tmp_path, monkeypatch):
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000))
    monkeypatch.setattr("dagpost.data.reading.read_frame.__defaults__", (None, 10_000, ()))
    for path, message in [
        ("nowhere.csv", r"nowhere\.csv: no such file"),
        ("folder.csv", "is a folder"),
        ("pipe.csv", "not a plain file"),
        ("t.xls", "no such file"),
        ("", "not the path of a table"),
    ]:
        assert_refused(dagpost("fit", path), message, tmp_path / "run")
        with pytest.raises(dp.InputError, match=message):
            dp.fit(path)
    assert_refused(dagpost("fit", "bomb.csv.gz"), "too large", tmp_path / "run")


def test_byte_order_mark_is_no_fault(dagpost, tmp_path):
    text = GOOD.to_csv(index=False)
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert dagpost("exact", "bom.csv").code == 0


def test_every_problem_has_the_cure_that_it_names(dagpost, tmp_path):
    MANY.to_csv("t.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    drop = ["--drop", "b", "--drop", "constant", "--drop", "duplicate"]
    ended = dagpost("exact", "t.csv", "--missing", "drop", *drop, "--out", "run")
    assert_refused(ended, r"1 column \('a'\)", tmp_path / "run")
    MANY.assign(g=GOOD.b).to_csv("t.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    ended = dagpost("exact", "t.csv", "--missing", "drop", *drop, "--out", "run", "--json")
    notes = [
        "text in the encoding utf-16, not UTF-8",
        "columns separated by semicolons",
        "numbers with a decimal comma",
        "dropped column 'b', as asked",
        "dropped column 'c': constant or empty",
        "dropped 1 of 50 rows, which lack values",
        "dropped column 'd': repeats 'a'",
        "dropped column 'e': repeats 'a'",
        "dropped column 'f': repeats 'a' up to scale and offset",
    ]
    assert ended.code == 0 and ended.err.split("\n")[: len(notes)] == [f"t.csv: {note}" for note in notes]
    assert json.loads(ended.out)["assumed"]["table"] == "; ".join(notes)
    assert dp.load(tmp_path / "run" / "posterior.nc").record.assumptions["table"] == "; ".join(notes)
    quiet = dagpost("exact", "t.csv", "--missing", "drop", *drop, "--out", "other", "--quiet")
    assert quiet.code == 0 and quiet.err == ""


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--sep", "::"], "sep='::': give one character"),
        (["--decimal", ";"], "decimal=';': give '.' or ','"),
        (["--encoding", "latin-99"], "encoding='latin-99': unknown"),
        (["--drop", "constnat"], "drop='constnat': not a column: did you mean 'constant'"),
        (["--drop", "a", "--drop", "b", "--drop", "c"], "no column is left"),
        (["--missing", "impute"], 'missing=\'impute\': give "drop" or "keep"'),
        (["--no-header"], "columns 'x0', 'x1', 'x2' hold text"),
    ],
)
def test_reading_options(arguments, message, dagpost, table, tmp_path):
    assert_refused(dagpost("fit", table, *arguments), message, tmp_path / "run")


OPTIONS = {
    "particles": (["--particles", 0], {"particles": 0}, "particles=0"),
    "no steps": (["--steps", 0], {"steps": 0}, "steps=0"),
    "negative steps": (["--steps", -3], {"steps": -3}, "steps=-3"),
    "draws": (["--draws", 0], {"draws": 0}, "draws=0"),
    "seed": (["--seed", -1], {"seed": -1}, "seed=-1"),
    "bandwidth": (["--set", "bandwidth_z=0"], {"bandwidth_z": 0}, "bandwidth_z=0"),
    "bandwidth NaN": (["--set", "bandwidth_z=NaN"], {"bandwidth_z": float("nan")}, "bandwidth_z=nan"),
    "misspelt setting": (["--set", "bandwith_z=1"], {"bandwith_z": 1}, "did you mean 'bandwidth_z'"),
    "precision": (["--precision", 0], {"precision": 0.0}, r"precision=0\.0"),
    "time limit": (["--time-limit", -1], {"time_limit": -1.0}, r"time_limit=-1\.0"),
    "time limit NaN": (["--time-limit", "nan"], {"time_limit": float("nan")}, "time_limit=nan"),
    "moves": (["--max-moves", 0], {"max_moves": 0}, "max_moves=0"),
    "model": (["--model", "liner"], {"model": "liner"}, "did you mean 'linear'"),
    "prior": (["--prior", "scalefree"], {"prior": "scalefree"}, "did you mean 'scale-free'"),
    "sampler": (
        ["--method", "dibs", "--sampler", "nuts"],
        {"method": "dibs", "sampler": "nuts"},
        "sampler='nuts': choose 'svgd', 'sgld' or 'hmc'",
    ),
    "sampler of auto": (["--sampler", "sgld"], {"sampler": "sgld"}, r"method='dibs' \(--method dibs\)"),
    "moves of auto": (["--set", "moves=5"], {"moves": 5}, r"method='dibs' \(--method dibs\)"),
    "method": (["--method", "exat"], {"method": "exat"}, "did you mean 'exact'"),
    "alpha_w": (
        ["--model", "bge", "--set", "model.alpha_w=4"],
        {"model": dp.BGe(alpha_w=4.0)},
        "alpha_w=4 is too small for 3 columns: give more than 4",
    ),
    "kind": (["--kinds", "b=ordinals"], {"kinds": {"b": "ordinals"}}, "did you mean 'ordinal'"),
    "count": (["--kinds", "b=count"], {"kinds": {"b": "count"}}, r"column 'b', row \d+ holds .*, no count"),
    "binary": (["--kinds", "b=binary"], {"kinds": {"b": "binary"}}, r"is called binary and holds .* different values"),
    "order": (["--kinds", "b=low<low"], {"kinds": {"b": "low<low"}}, "kinds of column 'b': .* different levels"),
    "latent columns": (
        ["--model", "copula", "--method", "mc3"],
        {"model": "copula", "method": "mc3"},
        "the method 'mc3' cannot draw the latent columns of the model 'copula'",
    ),
    "not for this method": (["--method", "mc3", "--precision", 0.1], {"method": "mc3", "precision": 0.1}, "precision"),
}


def test_a_wrong_sampler_is_told_before_the_table_is_read(dagpost, tmp_path):
    (tmp_path / "bad.csv").write_text("a,a\n1,x\n")
    ended = dagpost("fit", tmp_path / "bad.csv", "--method", "dibs", "--sampler", "nuts")
    assert ended.code == 2 and "choose 'svgd', 'sgld' or 'hmc'" in ended.err


@pytest.mark.parametrize("case", OPTIONS)
def test_options(case, dagpost, table, tmp_path):
    arguments, options, message = OPTIONS[case]
    assert_refused(dagpost("fit", table, *arguments), message, tmp_path / "run")
    with pytest.raises(dp.InputError, match=message):
        dp.fit(GOOD, **options)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--modle", "bge"], "No such option: --modle.*--model"),
        (["--particles", "many"], "'--particles'"),
        (["--model"], "--model"),
        (["--noise", -1], "noise=-1"),
        (["--noise", "nan"], "noise=nan"),
        (["--noise", 0.1, "--model", "bge"], "noise=0.1: the model 'bge' integrates"),
        (["--set", "model.alpha=1"], "the model 'bge' has no setting 'alpha'"),
        (["--set", "prior.edges_per_nod=1"], "did you mean 'edges_per_node'"),
        (["--set", "prior.edges_per_node=-1"], "edges_per_node=-1"),
        (["--set", "thin"], "--set thin: write NAME=VALUE"),
        (["--set", "modle.alpha=1"], "begin with 'model.'"),
        (["--accelerator", "tpu"], "--accelerator tpu"),
        (["--interventions", "d"], "interventions 'd': neither a column of the table nor a file"),
        (["--method", "exact", "--set", "algorithm=magic"], "unknown algorithm 'magic'"),
        (["--method", "dibs", "--set", "embedding=big"], "embedding"),
    ],
)
def test_command_line_options(arguments, message, dagpost, table, tmp_path):
    assert_refused(dagpost("fit", table, *arguments), message, tmp_path / "run")


def test_latent_size():
    with pytest.raises(dp.InputError, match="latent size 0"):
        InnerProduct(0)


def test_an_accelerator_that_is_not_there(dagpost, table, tmp_path, monkeypatch):
    import jax

    def devices(kind=None):
        raise RuntimeError(f"Unknown backend {kind}")

    monkeypatch.setattr(jax, "devices", devices)
    assert_refused(dagpost("fit", table, "--accelerator", "gpu"), "sees no GPU here", tmp_path / "run")


MASKS = {
    "wrong shape": (pd.DataFrame(np.zeros((49, 3)), columns=list("abc")), "mask has shape"),
    "wrong values": (pd.DataFrame(np.full((50, 3), 2), columns=list("abc")), "other than True/False or 0/1"),
    "unknown column": (pd.DataFrame(np.zeros((50, 1)), columns=["bb"]), "unknown column"),
    "unknown target": (pd.DataFrame({"target": ["a"] * 49 + ["B"]}), "row 50 was intervened on at 'B'"),
    "everywhere": (pd.DataFrame({"target": ["c"] * 50}), "node 'c' was intervened on in every row"),
}


@pytest.mark.parametrize("case", MASKS)
def test_intervention_masks(case, dagpost, tmp_path):
    mask, message = MASKS[case]
    GOOD.to_csv("t.csv", index=False)
    mask.to_csv("mask.csv", index=False)
    assert_refused(dagpost("fit", "t.csv", "--interventions", "mask.csv"), message, tmp_path / "run")
    with pytest.raises(dp.InputError, match=message):
        dp.fit(as_dataset(GOOD, interventions="mask.csv"), method="exact")


ACCEPTED = {
    "few rows": (GOOD[:3].assign(d=[3.0, 1.0, 0.5]), "3 rows for 4 columns"),
    "an index column": (GOOD.reset_index(), "left out the first column 'index', which only counts the rows"),
    "a counting column": (GOOD.assign(index=range(1, 51)), "left out column 'index', which only counts the rows"),
    "integers": ((10 * GOOD).astype(int), ""),
    "booleans": (changed(b=(GOOD.b > 0).astype(int)), "two values only"),
    "formulas": (GOOD.set_axis(["=cmd()", "<script>", "../x"], axis=1), ""),
    "unicode": (GOOD.set_axis(["β-catenin", "Δ", "p44/42"], axis=1), ""),
}


@pytest.mark.filterwarnings("ignore::dagpost.errors.DataWarning")
@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(case, dagpost, tmp_path):
    frame, message = ACCEPTED[case]
    frame.to_csv("t.csv", index=False)
    ended = dagpost("exact", "t.csv", "--out", "run")
    assert ended.code == 0 and message in ended.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "t.csv"]  # no file is named after a column
    names = list(frame.columns.drop("index", errors="ignore"))
    assert list(dp.fit("t.csv", method="exact").names) == names
    first = (tmp_path / "run" / "edges.csv").read_text().split("\n")[1:]
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in first for cell in line.split(","))


def test_two_rows_cannot_be_standardised(dagpost, tmp_path):
    GOOD[:2].to_csv("t.csv", index=False)
    assert_refused(dagpost("exact", "t.csv"), "2 rows", tmp_path / "run")


def test_scales_apart_warn_where_they_matter(dagpost, tmp_path):
    wide = changed(b=1e8 * GOOD.b)
    wide.to_csv("t.csv", index=False)
    with pytest.warns(dp.errors.DataWarning, match="differ in scale"):
        dp.fit(wide, "linear", method="exact")
    assert "differ in scale" in dagpost("exact", "t.csv", "--raw-units", "--out", "one").err
    assert "differ in scale" not in dagpost("exact", "t.csv", "--out", "two").err
