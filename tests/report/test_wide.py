"""The page of a wide table holds the most probable pairs, and says so; nothing takes memory for all graphs at once."""

import json
import shutil
import subprocess

import numpy as np
import pytest

import dagpost as dp
from dagpost.interfaces.cli.output import summarise
from dagpost.posterior import sample
from dagpost.posterior.pairs import adjacency, ranked_pairs
from dagpost.report import content, wide
from dagpost.report.page import html_report, resource, text_report

D, DRAWS = 210, 24


@pytest.fixture(scope="module")
def post():
    """Three clusters of 70 variables each, with likely edges inside and none between them."""
    rng = np.random.default_rng(3)
    graphs = np.zeros((DRAWS, D, D), np.bool_)
    likely = rng.random((D, D)) < 0.06
    for begin in range(0, D, 70):
        block = slice(begin, begin + 70)
        graphs[:, block, block] = np.triu(likely[block, block], 1) & (rng.random((DRAWS, 70, 70)) < 0.8)
    return dp.Posterior(
        graphs, np.zeros(DRAWS), tuple(f"gene <{j}>" for j in range(D)), dp.BGe(), dp.ErdosRenyi()
    )  # fmt: skip


def test_the_page_holds_the_listed_pairs(post):
    page = content.content_of(post)
    p, paths = post.edge_marginals, post.ancestor_probabilities.to_numpy()
    listed = np.zeros(D * D, np.bool_)
    listed[page["edges"]["at"]] = True
    np.testing.assert_array_equal(listed.reshape(D, D), adjacency(p) >= wide.LEAST)
    for name, values in (("edges", p), ("paths", paths)):
        expected = np.rint(values.reshape(-1)[page[name]["at"]] * content.UNIT)
        np.testing.assert_array_equal(page[name]["value"], expected)
    assert page["wide"] == wide.DRAWN and page["classes"] == [] and page["bestClass"] is None
    assert sorted(page["order"]) == list(range(D))
    place = np.argsort(page["order"])
    for i, j in page["consensus"]:
        assert place[i] < place[j]
    assert set(page["arrows"]) <= set(page["edges"]["at"])


def test_no_more_pairs_than_a_page_can_hold(post, monkeypatch):
    monkeypatch.setattr(wide, "LISTED", 10)
    listed = wide.listed_pairs(post.edge_marginals)
    best = {frozenset((k.cause, k.effect)) for k in ranked_pairs(post.edge_marginals)[:10]}
    assert {frozenset((int(i), int(j))) for i, j in zip(*np.nonzero(listed))} == best


def test_parent_sets_of_all_nodes_are_those_of_each(post):
    found = wide.parent_sets_of_all(post, 3, 0.0)
    for j in (0, 33, D - 1):
        expected = [
            [[post.names.index(name) for name in one.parents], round(one.probability, 4)]
            for one in post.parents_of(j, top=3).sets
        ]
        assert found[j] == expected


def test_clusters_are_found_and_closed(post):
    groups = wide.clusters_of(post.edge_marginals)
    for group in groups:
        assert len({j // 70 for j in group}) == 1  # none spans two of the planted ones
    assert sum(map(len, groups)) > 150
    html = wide.clusters_section(post)
    assert html.count("<details>") == min(len(groups), wide.MOST_CLUSTERS)
    assert "gene &lt;" in html and "gene <" not in html and "<details open" not in html


def test_the_page_is_small_and_says_what_is_left_out(post):
    html = html_report(post)
    assert '<section id="clusters"' in html and '<a href="#clusters">' in html
    assert len(html) < 1_500_000
    few = dp.Posterior(post.graphs[:, :5, :5], np.zeros(DRAWS), tuple("abcde"), dp.BGe(), dp.ErdosRenyi())
    assert 'id="clusters"' not in html_report(few)


def test_the_summary_lists_the_most_probable(post, monkeypatch):
    class Assumed:
        data = dp.simulate(nodes=3, observations=5, seed=0).train
        model, prior, method = dp.BGe(), dp.ErdosRenyi(), "auto"

    monkeypatch.setattr(wide, "LISTED", 50)
    summary = summarise(post, "genes.csv", Assumed, 0, 1.0)
    assert len(summary["pairs"]) == len(summary["edges"]) == 50
    table = post.edge_table()
    assert [e["probability"] for e in summary["edges"]] == table["probability"][:50].tolist()
    assert f"({D * (D - 1) // 2 - 50} pairs" in text_report(summary)


def test_effects_of_all_pairs_need_a_table_that_is_not_too_wide(post, monkeypatch):
    monkeypatch.setattr(content, "ENTRIES", D * D * (content.FEWEST_DRAWS - 1))
    drawn, reason = content.effect_draws(post)
    assert drawn is None and "In Python: post.effect(cause, effect)" in reason


@pytest.mark.parametrize("weights", [np.zeros(DRAWS), np.linspace(-1, 0, DRAWS)], ids=["equal", "unequal"])
def test_averages_in_parts_are_the_averages(post, weights, monkeypatch):
    whole = dp.Posterior(post.graphs, weights, post.names, post.model, post.prior)
    edges, paths = whole.edge_marginals, whole.ancestor_probabilities.to_numpy()
    classes = whole.essential_graphs(5)
    np.testing.assert_allclose(edges, np.tensordot(whole.weights, whole.graphs, 1), atol=1e-12)
    monkeypatch.setattr(sample, "CHUNK", 5 * D * D)
    assert len(list(sample.chunks_of(whole.graphs))) == 5
    np.testing.assert_allclose(whole.edge_marginals, edges, atol=1e-12)
    np.testing.assert_allclose(whole.ancestor_probabilities.to_numpy(), paths, atol=1e-12)
    again = whole.essential_graphs(5)
    assert [c.probability for c in again] == [c.probability for c in classes]
    assert all((a.graph == b.graph).all() for a, b in zip(again, classes))


def test_copies_of_a_posterior_share_its_graphs(post):
    other = post.with_record(method="other")
    assert other.graphs is post.graphs
    cyclic = np.ones((1, 2, 2), np.bool_)
    cyclic.setflags(write=False)
    with pytest.raises(dp.InputError, match="has a cycle"):
        dp.Posterior(cyclic, np.zeros(1), ("a", "b"), dp.BGe(), dp.ErdosRenyi())
    own = np.zeros((1, 2, 2), np.bool_)
    made = dp.Posterior(own, np.zeros(1), ("a", "b"), dp.BGe(), dp.ErdosRenyi())
    own[0] = True  # the caller's array is not the posterior's
    assert not made.graphs.any()


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_script_reads_the_listed_pairs(post, tmp_path):
    page = content.content_of(post)
    (tmp_path / "content.json").write_text(json.dumps(page))
    script = (
        resource("html/tools.js").replace("document.getElementById(id)", "({ textContent: text })")
        + resource("html/lookup.js")
        + "console.log(JSON.stringify({ pairs: allPairs().slice(0, 50), edge: edge(0, 1), all: allPairs().length,"
        + " missing: fixed3(path(0, 200)), listed: allPairs().every(([i, j]) => path(i, j) >= 0) }));"
    )
    (tmp_path / "run.js").write_text('const text = require("fs").readFileSync("content.json", "utf8");\n' + script)
    out = subprocess.run(["node", "run.js"], cwd=tmp_path, capture_output=True, text=True, check=True)
    found = json.loads(out.stdout)
    p = np.rint(post.edge_marginals * content.UNIT) / content.UNIT
    expected = [k.adjacency for k in ranked_pairs(p, wide.LEAST)]
    assert found["all"] == len(expected) and found["listed"] and found["missing"] == "not on this page"
    np.testing.assert_allclose([adjacency(p)[i, j] for i, j in found["pairs"]], expected[:50])
    assert found["edge"] == pytest.approx(p[0, 1])
