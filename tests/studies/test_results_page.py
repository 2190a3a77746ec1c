"""Every number on the pages of results comes from a committed table, and every comparison in the text holds there."""

import csv
import re
import shutil
import sys
import tomllib

import pytest

from dagpost.errors import InputError
from dagpost.studies.comparisons import accuracy, comparison, dibs_lib_times, everywhere, missing_runs, start_ratios
from dagpost.studies.experiments.synthetic import particles_of
from dagpost.studies.numbers import Tables
from dagpost.studies.page import render, update_text
from tests.documentation import ROOT

RESULTS, BENCHMARKS = ROOT / "results", ROOT / "benchmarks" / "results"
TEMPLATE = RESULTS / "page.md"
PAGES = ["docs/results.md", "docs/accuracy.md", "README.md"]

NO_TEXT = [
    r"\{%.*?%\}", r"\{\{.*?\}\}", r"\{#.*?#\}",  # expressions
    r"<!--.*?-->",
    r"^```.*?^```$", r"^ {4}.*?$", r"`[^`]*`",  # code
    r"\]\([^)]*\)",  # targets of links
]  # fmt: skip
ALLOWED = {
    r"\b(?:10|20|50) nodes": "size of a network",
    r"\b(?:bge|linear|mlp)-(?:20|50)\b": "name of a study",
    r"\bsachs20\b": "name of a reference graph",
    r"\bnoise (?:0\.01|0\.1|1)\b": "setting of the protein studies",
    r"\bk = (?:5|20)\b": "setting of an ablation",
    r"\b30 particles": "setting of all studies",
    r"\bNeurIPS 2021\b": "year",
    r"\bversion 1\.3\.3\b": "version of dibs-lib",
    r"\bH200\b": "name of a machine",
}


def typed_numbers(template: str) -> list[str]:
    """Numbers in the text of a template that no expression computes, with the words around them."""
    text = template
    for pattern in NO_TEXT:
        text = re.sub(pattern, " ", text, flags=re.DOTALL | re.MULTILINE)
    for pattern in ALLOWED:
        text = re.sub(pattern, " ", text)
    return [" ".join(found.split()) for found in re.findall(r".{0,30}\d.{0,30}", text)]


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_those_of_the_committed_tables(page):
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    assert update_text(text, RESULTS, path.parent)[0] == text, "run `make page`"


def test_nobody_typed_a_number():
    text = TEMPLATE.read_text(encoding="utf-8")
    assert typed_numbers(text) == []
    assert [pattern for pattern in ALLOWED if not re.search(pattern, text)] == [], "allowed for nothing"


def test_a_typed_number_is_seen():
    assert typed_numbers("DiBS has `5` {{ mean('a') }} and 31.0, with 20 nodes\n") == ["DiBS has and 31.0, with"]
    assert typed_numbers("AUROC of 20 and 7 nodes") and typed_numbers("noise 0.15") and typed_numbers("1,000 networks")


def test_the_settings_in_the_text_are_those_of_the_studies():
    assert {particles_of(model, 20, "dibs") for model in ("bge", "linear", "mlp")} == {30}
    assert "dibs-lib==1.3.3" in (ROOT / "constraints.txt").read_text().split()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert all("jinja2" in extras[extra] for extra in ("dev", "docs", "bench"))


@pytest.fixture
def copy(tmp_path):
    """The committed tables in another folder, to be tampered with."""
    for table in RESULTS.glob("*/table.csv"):
        (tmp_path / "results" / table.parent.name).mkdir(parents=True)
        shutil.copy(table, tmp_path / "results" / table.parent.name)
    shutil.copytree(BENCHMARKS, tmp_path / "benchmarks" / "results")
    return tmp_path / "results"


def change(path, column, change, **where):
    """Rewrite a column of the rows that have these values."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if all(row[name] == value for name, value in where.items()):
            row[column] = change(row[column])
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.slow
def test_another_number_is_another_page(copy):
    before = render(TEMPLATE, Tables(copy))
    change(copy / "four-node" / "table.csv", "probability", lambda p: str(float(p) / 2), method="exact")
    after = render(TEMPLATE, Tables(copy))
    assert len(set(before.splitlines()) ^ set(after.splitlines())) == 2


def test_a_sentence_that_no_longer_holds_fails_and_names_its_line(copy):
    change(copy / "linear-20" / "table.csv", "shd", lambda shd: str(3 * float(shd)), method="dibs-paper+")
    with pytest.raises(
        InputError, match=r"page\.md, line \d+: linear-20, .*dibs-paper\+ \(9\d\.\d\) is not lower"
    ) as e:
        render(TEMPLATE, Tables(copy))
    line = int(re.search(r"line (\d+)", str(e.value))[1])
    assert "everywhere" in TEMPLATE.read_text(encoding="utf-8").splitlines()[line - 1]


@pytest.mark.parametrize(
    "text, error",
    [
        ('a\n{{ mean("linear-20", "shd", method="nobody") }}', r"line 2: linear-20 \(method='nobody'\): no such rows"),
        ('{{ mean("linear-20", "nobody", method="dibs") }}', "no row has 'nobody'"),
        ('{{ mean("linear", "shd") }}', "unknown study"),
        ('{{ paper("linear-20", "shd", method="dibs-paper") }}', "the paper has no numbers"),
        ('{{ paired("bge-20", "shd", ("dibs", "nobody")) }}', "no network has 'shd' for dibs, nobody"),
        ('{{ paired("linear-20", "shd", ("dibs", "auto")) }}', "has no format"),
        ('{{ 2 * mean("linear-20", "shd", method="dibs") }}', "has no format"),
        ("{% do check(1 > 2) %}", "line 1: a comparison does not hold"),
        ("{% do everywhere('lowest', 'bge-20', 'shd', 'dibs', 'auto') %}", "did you mean 'lower'"),
        ("a\n\n{{ nobody }}", "line 3: 'nobody' is undefined"),
        ("{{ check.__globals__ }}", "unsafe"),
        ("{{", "line 1: unexpected"),
    ],
)
def test_what_a_template_gets_wrong_is_named(text, error, tmp_path):
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(InputError, match=error):
        render(tmp_path / "page.md", Tables(RESULTS))


def test_without_jinja(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"templates need jinja2: pip install 'dagpost\[dev\]'"):
        render(TEMPLATE, Tables(RESULTS))


@pytest.fixture
def small(tmp_path):
    """A table with three networks, on one of which dibs-lib did not run."""
    folder = tmp_path / "results" / "bge-20"
    folder.mkdir(parents=True)
    rows = ["task,graphs,set,model,method,shd,trusted"]
    for network, (ours, theirs, trusted) in enumerate([(1, 3, True), (2, 6, False), (9, None, True)]):
        rows.append(f"a{network},erdos-renyi,{network},bge,dibs,{ours},")
        rows.append(f"b{network},erdos-renyi,{network},bge,auto,{ours + 1},{trusted}")
        if theirs is not None:
            rows.append(f"c{network},erdos-renyi,{network},bge,dibs-lib,{theirs},")
    rows += ["d0,scale-free,0,bge,dibs,5,", "e0,scale-free,0,bge,auto,5,False"]
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    return Tables(tmp_path / "results")


def test_paired_numbers_are_of_the_same_networks(small):
    found = small.paired("bge-20", "shd", ("dibs", "dibs-lib"))
    assert (found.networks, str(found["dibs"]), str(found[1]), str(found.difference)) == (2, "1.5", "4.5", "-3.0")
    assert str(found.errors) == "-3.0"  # differences -2 and -4: mean -3, standard error 1
    assert found.lower and found.below and not found.level and not found.higher
    assert str(small.mean("bge-20", "shd", method="dibs", graphs="erdos-renyi")) == "4.0"
    assert str(small.median("bge-20", "shd", method="dibs", graphs="erdos-renyi")) == "2.0"
    assert str(small.share("bge-20", "trusted", method="auto")) == "2 of 4"
    assert small.paired("bge-20", "shd", ("dibs", "auto"), trusted=True).networks == 2
    shown = comparison(small, ["bge-20"], ["dibs", "dibs-lib"], ["shd", "median shd"], trusted=True)
    assert shown.splitlines()[2:] == [
        "| bge-20 | Erdős–Rényi | 2 of 3 | 1 | 1.0 / 1.0 | 3.0 / 3.0 |",
        "| bge-20 | scale-free | 0 of 1 | 0 | – | – |",
    ]
    everywhere(small, "lower", "bge-20", "shd", "dibs", "dibs-lib", graphs="erdos-renyi")
    with pytest.raises(InputError, match=r"dibs-lib \(4\.5\) is not lower"):
        everywhere(small, "lower", "bge-20", "shd", "dibs-lib", "dibs", graphs="erdos-renyi")
    assert "| bge-20 | Erdős–Rényi | 30 | MC³ none, BPC none, BGES none, DiBS (dibs-lib) 2," in missing_runs(
        small, ["bge-20"]
    )


def test_tables_of_benchmarks(tmp_path):
    folder = tmp_path / "benchmarks" / "results"
    folder.mkdir(parents=True)
    (folder / "dibs_lib.csv").write_text(
        "setting,library,time,steps\nmlp-20,dibs-lib,2,20\nmlp-20,dagpost,10,500\nbge-50,dagpost,1,10\n"
    )
    (folder / "accuracy.csv").write_text(
        "d,method,error,seconds\n5,auto,0.1,1\n5,dibs,0.2,2\n5,dibs,0.4,3\n5,dibs,0.3,2\n5,m-mc3,1,\n"
    )
    tables = Tables(tmp_path / "results")
    assert dibs_lib_times(tables).splitlines()[2:] == ["| MLP, d = 20 | 300 s | 10.0 s | 500 | 30 |"]
    assert accuracy(tables).splitlines()[2:] == [
        "| `auto` | 0.100, 0.100 | 1.0 to 1.0 | 1 |",
        "| `dibs` | 0.400, 0.300 | 2.0 to 3.0 | 3 |",
        "| `m-mc3` | 1.000, 1.000 | – | 1 |",
    ]


def test_starts_are_compared_on_the_same_data_sets(tmp_path):
    folder = tmp_path / "benchmarks" / "results"
    folder.mkdir(parents=True)
    times = {"dibs": (10, 20), "ges": (20, 40), "empty": (5, 20), "random": (10, 20)}
    lines = [f"12,bge,uniform,{k},{start},{t[k]},0.01" for start, t in times.items() for k in (0, 1)]
    lines.append("12,bge,uniform,2,dibs,1,0.01")  # of one start alone: not compared
    (folder / "starts.csv").write_text("\n".join(["d,model,prior,set,start,seconds,error", *lines]) + "\n")
    text = start_ratios(Tables(tmp_path / "results"))
    assert "on 2 data sets" in text and "2.00 (2.00 to 2.00) from 'ges'" in text
    assert "0.71 (0.50 to 1.00) from 'empty'" in text and "1.00 (1.00 to 1.00) from 'random'" in text
