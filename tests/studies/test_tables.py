"""Tidy rows, summaries and Markdown, against numbers worked out by hand; the paper's numbers beside them."""

import csv
import io
from dataclasses import replace

import pytest

from dagpost.studies import STUDIES, Layout, Scale, Task, tables
from dagpost.studies.experiments.synthetic import FEATURES
from dagpost.studies.tables import published

STUDY = replace(
    STUDIES["sachs-alpha-mu"],
    layout=Layout(rows=("truth", "method"), metrics={"shd": "E-SHD", "auroc": "AUROC"}, digits={"auroc": 3}),
)
TRUTH = "cdt, file order (as published)"


def result(method, restart, rows):
    task = {"kind": "sachs", "data": {}, "run": {"method": method, "restart": restart, "options": {"thin": 1}}}
    return {"task": task, "rows": rows}


RESULTS = [
    result("auto", 0, [{"method": "auto", "truth": TRUTH, "shd": 30.0, "auroc": 0.5}]),
    result("mc3", 0, [{"method": "mc3", "truth": TRUTH, "shd": 33.0, "auroc": 0.6}]),
    result("mc3", 1, [{"method": "mc3", "truth": TRUTH, "shd": 36.0, "auroc": None}]),
]


def test_one_row_for_each_posterior_with_what_it_was():
    rows = tables.tidy(RESULTS)
    key = Task(**RESULTS[1]["task"]).key
    assert rows[1] == {"task": key, "method": "mc3", "restart": 0, "truth": TRUTH, "shd": 33.0, "auroc": 0.6}
    read = list(csv.DictReader(io.StringIO(tables.as_csv(rows))))
    assert [r["auroc"] for r in read] == ["0.5", "0.6", ""] and float(read[2]["shd"]) == 36.0


def test_markdown_has_means_deviations_and_the_paper_beside_them():
    lines = tables.markdown(STUDY, tables.tidy(RESULTS)).splitlines()
    assert lines[0] == "| scored against | method | E-SHD | E-SHD, paper | AUROC | AUROC, paper | runs |"
    # sd of 33 and 36 is 3/√2; the AUROC that is not known leaves one run
    assert lines[2] == f"| {TRUTH} | MC³ | 34.5 ± 2.1 | 34.3 ± 0.4 | 0.600 | 0.622 ± 0.020 | 1 to 2 |"
    assert lines[3] == f"| {TRUTH} | auto | 30.0 | – | 0.500 | – | 1 |"


CYCLIC = [
    result("dibs-paper", k, [{"method": "dibs-paper", "truth": TRUTH, "all_cyclic": True, "nodes": 11}]) for k in (0, 1)
] + [result("dibs-paper", 2, [{"method": "dibs-paper", "truth": TRUTH, "shd": 40.0, "auroc": 0.8}])]


def test_scores_of_all_cyclic_runs_are_the_published_ones():
    assert tables.score_all_cyclic(11) == {"shd": 55.0, "auroc": 0.5}
    assert tables.score_all_cyclic(2) == {"shd": 1.0, "auroc": 0.5}


def test_all_cyclic_runs_are_left_out_and_scored_in_a_row_of_their_own():
    study = replace(STUDY, layout=replace(STUDY.layout, metrics={**STUDY.layout.metrics, "edges": "edges"}))
    lines = tables.markdown(study, tables.tidy(RESULTS + CYCLIC)).splitlines()
    assert [line.split(" | ")[1] for line in lines[2:]] == [
        "MC³",
        "DiBS (dibs-paper)",
        "DiBS (dibs-paper), cyclic runs scored as published",
        "auto",
    ]
    # 40, 55 and 55: mean 50, sd 15/√3; 0.8, 0.5 and 0.5: mean 0.6, sd 0.3/√3; the paper beside both
    theirs = "37.9 ± 0.5", "0.637 ± 0.046", "39.6"
    assert lines[3].split(" | ")[2:] == ["40.0", theirs[0], "0.800", theirs[1], "–", theirs[2], "0 to 1 |"]
    assert lines[4].split(" | ")[2:] == [
        "50.0 ± 8.7", theirs[0], "0.600 ± 0.173", theirs[1], "–", theirs[2], "3, 2 all cyclic |",
    ]  # fmt: skip


def test_where_all_runs_are_all_cyclic_only_the_scored_row_has_numbers():
    lines = tables.markdown(STUDY, tables.tidy(CYCLIC[:2])).splitlines()
    assert lines[2].endswith("| 0 |") and "| – | 37.9 ± 0.5 | – |" in lines[2]
    assert "| 55.0 ± 0.0 |" in lines[3] and lines[3].endswith("| 2, 2 all cyclic |")


def test_values_can_be_headings():
    study = STUDIES["four-node"]
    rows = [
        {"method": m, "feature": f, "probability": p} for f in FEATURES for m, p in (("exact", 0.25), ("dibs+", 0.5))
    ]
    lines = tables.markdown(study, rows).splitlines()
    assert lines[0] == "| edges | dibs+ | exact | exact, paper | runs |"
    assert lines[2] == "| x1 → x0 → x2 | 0.500 | 0.250 | 0.298 | 1 |" and len(lines) == 2 + 8


def test_rows_on_the_way_are_not_final_and_defaults_are_filled_in():
    study = STUDIES["ablation-latent-size"]
    common = {"method": "dibs-paper", "auroc": 1.0, "nll": 1.0, "inll": 1.0, "edges": 1.0}
    rows = [
        {**common, "steps": 100, "final": False, "shd": 99.0},
        {**common, "steps": 3000, "final": True, "shd": 10.0},
        {**common, "latent": 5, "shd": 20.0},
    ]
    found = {(line.names["latent"]): line.values for line in tables.summary(study, rows) if line.metric == "shd"}
    assert found == {5: [20.0], 20: [10.0]}


@pytest.mark.parametrize("name", [name for name in STUDIES if STUDIES[name].published])
def test_every_published_number_meets_a_row_of_the_study(name):
    """Rows are named by tasks and measures; a misspelt name would leave the paper's number out without a word."""
    study = STUDIES[name]
    numbers = published(name)
    assert numbers
    labels = [t.labels for t in study.tasks(Scale(1))]
    for number in numbers:
        where = dict(number.where)
        where["method"] = where["method"].removesuffix("+")
        assert number.metric in study.layout.metrics and set(where) <= {*study.layout.rows, study.layout.spread}
        own = {k: v for k, v in where.items() if k not in ("truth", "feature")}
        assert any(all(str(label.get(k)) == v for k, v in own.items()) for label in labels), own
        assert where.get("truth", TRUTH) == TRUTH and where.get("feature", "x1 → x0 → x2") in FEATURES


def test_published_numbers_are_those_of_the_paper():
    """Some of each table, looked up again; and how many there are."""
    counts = {"sachs": 26 + 6, "sachs-alpha-mu": 12, "sachs-noise": 32 + 8, "four-node": 24}
    assert {name: len(published(name)) for name in counts} == counts
    assert len(published("wall-times-cpu")) == 18 and len(published("wall-times-gpu")) == 16  # two exceeded memory

    def number(study, metric, **where):
        (found,) = [p for p in published(study) if p.metric == metric and p.matches({**where, "truth": TRUTH})]
        return found.mean, found.sd

    assert number("sachs", "shd", model="mlp", method="dibs-paper") == (22.6, 0.5)
    assert number("sachs", "auroc", model="linear", method="g-mc3") == (0.527, 0.067)
    assert number("sachs-noise", "shd", model="mlp", noise=1.0, method="m-mc3") == (18.4, 0.1)
    assert number("wall-times-cpu", "minutes", model="bge", method="dibs-paper", particles=30, nodes=50)[0] == 659.106
    assert not published("bge-20")  # a plot, without numbers
