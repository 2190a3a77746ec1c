"""What can be saved from the page, and what the text says: pictures of the graph, pairs before directions, settings."""

import xml.etree.ElementTree as ElementTree

import pytest

import dagpost as dp
from dagpost.posterior.records import ExactDiagnostics
from dagpost.report import png_report, text_report
from dagpost.report.words import described, method_sentence, option_phrases
from tests.report.made_up import HOSTILE, made_up

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
def test_pictures_can_be_saved_and_names_stay_text(opened, tmp_path):
    page = opened(made_up(len(HOSTILE), names=HOSTILE), color_scheme="dark")
    saved = {}
    for button in ("graph-svg", "graph-png", "heat-svg", "heat-png"):
        with page.expect_download() as saving:
            page.locator(f"#{button}").click()
        saving.value.save_as(tmp_path / saving.value.suggested_filename)
        saved[saving.value.suggested_filename] = (tmp_path / saving.value.suggested_filename).read_bytes()
    assert saved["graph.png"].startswith(b"\x89PNG") and saved["heat-map.png"].startswith(b"\x89PNG")
    shown = page.evaluate("document.getElementById('graph')._cyreg.cy.edges(':visible').length")
    for name in ("graph.svg", "heat-map.svg"):
        root = ElementTree.fromstring(saved[name])
        assert root.tag == f"{SVG}svg" and not root.findall(f".//{SVG}script")
        texts = [element.text for element in root.iter(f"{SVG}text")]
        assert any(text and text.startswith("<script>") for text in texts)
        assert root.find(f"{SVG}rect").get("fill") == "#ffffff"  # light colours, whatever the screen has
    assert len(ElementTree.fromstring(saved["graph.svg"]).findall(f".//{SVG}path")) == shown > 0
    assert page.evaluate("document.documentElement.dataset.print") is None


def summary(post, **more):
    table = post.edge_table()
    edges = [
        {"cause": c, "effect": e, "probability": p}
        for c, e, p in zip(table.cause, table.effect, table.probability.tolist())
    ]
    fixed = {"table": "t.csv", "rows": 9, "method": "exact", "seed": 1, "seconds": 2.0, "standardised": True,
             "graphs": 5, "expected_edges": 1.0, "info": {"method": "exact"}, "assumed": {}}  # fmt: skip
    return (
        {"names": list(post.names), "edges": edges, "model": repr(post.model), "prior": repr(post.prior)} | fixed | more
    )


def test_the_text_lists_pairs_once_with_their_direction():
    post = made_up(6)
    lines = text_report(summary(post)).splitlines()
    rows = [line.split() for line in lines if " -> " in line]
    p = post.edge_probabilities
    assert len({frozenset((row[-3], row[-1])) for row in rows}) == len(rows) <= 15
    for row in rows:
        there, back = p.loc[row[-3], row[-1]], p.loc[row[-1], row[-3]]
        assert there >= back and float(row[0]) == pytest.approx(there + back, abs=6e-4)
        assert float(row[1]) == pytest.approx(there / (there + back), abs=6e-3)
        assert ("open" in row) == (there < 0.75 * (there + back))
    assert any("open" in row for row in rows) and "LinearGaussian(" not in "\n".join(lines)


@pytest.mark.slow
def test_the_figure_has_the_graph_of_many_nodes():
    pytest.importorskip("matplotlib")
    post = made_up(46, draws=20)
    from dagpost.report.page import _panels

    assert len(_panels(summary(post), None)) == 2  # graph and heat map
    assert png_report(summary(post)).startswith(b"\x89PNG")


class OwnModel(dp.LinearGaussian):
    """A model of a user."""


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        (dp.LinearGaussian(noise_variance=None), "noise variance of each node learnt"),
        (dp.LinearGaussian(), "noise variance of every node known, 0.1"),
        (dp.BGe(), "BGe"),
        (dp.MlpGaussian(hidden=(5, 3)), "5 and 3 hidden units"),
        (dp.GaussianProcess(), "length scales of 0.5, 1, 2 standard deviations"),
        (dp.ErdosRenyi(edges_per_node=1), "About 1 edge per node"),
        (dp.ErdosRenyi(probability=0.1), "probability 0.1"),
        (dp.ScaleFree(), "exponent 3"),
        (dp.Uniform(), "equally probable"),
    ],
)
def test_settings_are_sentences_from_objects_and_from_their_reprs(setting, part):
    words = described(setting)
    assert part in words and "=" not in words
    assert described(repr(setting)) == words


def test_objects_of_users_and_strange_texts_stay_as_they_are():
    assert described(OwnModel()) == repr(OwnModel())
    for text in ("Own(x=1)", "__import__('os')", "Uniform(", "LinearGaussian(noise_variance=f())", "Uniform(x=1)", ""):
        assert described(text) == text
    assert method_sentence("my-method", None) == "my-method"


def test_options_that_meant_nothing_are_left_out():
    options = {"method": "auto", "draws": 1000, "precision": 0.004, "ensembles": 4, "particles": 30, "seed": 0}
    assert option_phrases(options, ExactDiagnostics("layers")) == "1,000 graphs kept; seed 0"
    assert "standard error of at most 0.004" in option_phrases(options, None)
    assert option_phrases({"own_option": "Thing()"}, None) == "own option: Thing()"
    assert method_sentence("auto", ExactDiagnostics("layers")).startswith("Exact")
