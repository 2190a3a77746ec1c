"""How the page is put together: nothing in it can run but what belongs to it, and it is the same every time."""

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import dagpost as dp
from dagpost import report
from dagpost.posterior.records import TargetProbabilities
from dagpost.report import gains
from dagpost.report.content import UNIT, content_of, first_threshold
from dagpost.report.page import as_script_json, html_report, resource
from tests.report.made_up import HOSTILE, made_up


class Elements(HTMLParser):
    """Tags with their attributes, and the text of each script and style."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.inside, self.open = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open = tag in ("script", "style")
        if self.open:
            self.inside.append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.inside[-1][2].append(data)


@pytest.fixture(scope="module")
def hostile():
    return made_up(len(HOSTILE), names=HOSTILE)


@pytest.fixture(scope="module")
def page(hostile):
    return html_report(hostile, {"table": HOSTILE[0], "assumed": {"rows": HOSTILE[1]}})


def test_names_stay_text(page, hostile):
    found = Elements(page)
    assert [a.get("type") for t, a in found.tags if t == "script"] == ["application/json", None, None]
    assert [a.get("id") for t, a in found.tags if t == "img"] == ["graph-print"]
    attributes = {name for _, a in found.tags for name in a}
    assert not {name for name in attributes if name.startswith("on")} and not attributes & {"style", "src", "srcset"}
    assert all(a["href"].startswith("#") for _, a in found.tags if "href" in a)
    data = json.loads("".join(found.inside[1][2]))
    assert data["names"] == list(HOSTILE)
    np.testing.assert_array_equal(
        np.array(data["edges"]).reshape(6, 6), np.rint(hostile.edge_probabilities.to_numpy() * UNIT)
    )


@pytest.mark.parametrize("text", [*HOSTILE, "\u2028\u2029", "<!--", "]]>", "\\u003c"])
def test_json_cannot_leave_its_element(text):
    written = as_script_json({text: text})
    assert not set(written) & set("<>&\u2028\u2029") and json.loads(written) == {text: text}


def test_the_policy_allows_what_is_there_and_nothing_else(page):
    found = Elements(page)
    policy = next(a["content"] for t, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "http" not in policy
    for tag in ("script", "style"):
        texts = ["".join(text) for kind, attributes, text in found.inside if kind == tag and "type" not in attributes]
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert re.search(rf"{tag}-src ([^;]*);", policy)[1].split() == [f"'sha256-{digest}'" for digest in digests]


def test_no_address_outside_the_library(page):
    library = resource("vendor/cytoscape.min.js")
    assert page.count(library) == 1
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", page.replace(library, ""))


def test_the_library_is_unchanged():
    folder = Path(report.__file__).parent / "vendor"
    digest = hashlib.sha256((folder / "cytoscape.min.js").read_bytes()).hexdigest()
    readme = (folder / "README.md").read_text()
    assert digest in readme and "3.34.4" in readme and "MIT" in readme
    assert "Permission is hereby granted" in (folder / "cytoscape.LICENSE").read_text()


@pytest.mark.parametrize(("d", "most"), [(5, 0.6e6), (20, 1.5e6), pytest.param(100, 1.5e6, marks=pytest.mark.slow)])
def test_size(d, most):
    assert len(html_report(made_up(d, draws=60)).encode()) < most


def test_the_same_posterior_gives_the_same_bytes(tmp_path):
    post = made_up(8)
    post.save(tmp_path / "post.nc")
    pages = {html_report(p) for p in (post, post, dp.load(tmp_path / "post.nc"))}
    assert len(pages) == 1


def test_write_report_writes_once(tmp_path):
    post = made_up(4)
    path = dp.write_report(post, tmp_path / "r.html", title="a & b")
    text = path.read_text(encoding="utf-8")
    assert "<h1>a &amp; b</h1>" in text and "{{" not in text.replace(resource("vendor/cytoscape.min.js"), "")
    with pytest.raises(dp.InputError, match="exists"):
        dp.write_report(post, path)
    dp.write_report(post, path, overwrite=True)
    assert path.read_text(encoding="utf-8") != text


def test_effects_are_those_of_the_posterior():
    data = dp.simulate(nodes=4, observations=100, seed=1, interventional_sets=0).train.standardised()
    post = dp.exact(data, model="bge")
    content = content_of(post)
    table = post.effect_table().set_index(["cause", "effect"])
    assert content["effects"]["rows"]
    columns = ["mean", "lower", "upper", "mean_given_path"]
    for i, j, *numbers in content["effects"]["rows"]:
        expected = table.loc[(post.names[i], post.names[j])]
        np.testing.assert_allclose(numbers, expected[columns].astype(float), rtol=6e-4)


@pytest.fixture(scope="module")
def bent():
    """x1 = tanh(x0) and names that try to leave their element."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    x[:, 1] = np.tanh(2 * x[:, 0]) + 0.2 * x[:, 1]
    return dp.exact(dp.Dataset(x, names=HOSTILE[:2]), model="additive")


@pytest.mark.slow
def test_functions_of_edges_are_drawn(bent):
    page = html_report(bent)
    found = Elements(page)
    drawings = [a for t, a in found.tags if t == "svg" and "role" in a]
    assert len(drawings) == 1 and 'id="functions"' in page and 'href="#functions"' in page
    assert drawings[0]["aria-label"].startswith(f"Contribution of {HOSTILE[0]} to {HOSTILE[1]}: ")
    line = next(a["points"] for t, a in found.tags if t == "polyline")
    x, y = np.array([point.split(",") for point in line.split()], dtype=float).T
    curve = bent.mechanism(0, 1, draws=100)
    assert len(x) == 61 and np.allclose(np.diff(x), np.diff(x)[0], atol=0.11)
    # the drawing is the curve in other units: y grows downwards, and a pixel is rounded to a tenth
    slope, level = np.polyfit(curve.mean, y, 1)
    assert slope < 0 and np.abs(slope * curve.mean + level - y).max() < 0.06
    assert "style" not in {name for _, a in found.tags for name in a}
    assert [a.get("type") for t, a in found.tags if t == "script"] == ["application/json", None, None]
    assert len(page) < len(html_report(made_up(2))) + 10_000


@pytest.mark.slow
def test_functions_are_left_out_where_there_are_none(bent, tmp_path):
    linear = dp.exact(bent.data, model="bge")
    unfinished = dataclasses.replace(made_up(3), model=dp.MlpGaussian(), theta=())
    bent.save(tmp_path / "post.nc")
    for post in (linear, unfinished, dp.load(tmp_path / "post.nc")):  # a file has no data to draw parameters from
        assert 'id="functions"' not in html_report(post) and "#functions" not in html_report(post)


def test_signs_are_those_of_the_edge_weights():
    post = made_up(4)
    weights = np.full((200, 4, 4), 0.5)
    weights[:, 0, 1] = weights[:, 1, 0] = -2.0
    weights[::2, 2, 3] = weights[::2, 3, 2] = -0.1
    graphs = np.zeros((200, 4, 4), dtype=bool)
    graphs[:100, 0, 1] = graphs[100:, 1, 0] = graphs[:, 2, 3] = graphs[:50, 1, 2] = True
    content = content_of(dataclasses.replace(post, graphs=graphs, theta=weights))
    assert content["signs"] == {"plus": [1 * 4 + 2], "minus": [0 * 4 + 1], "undecided": [2 * 4 + 3]}
    assert content["arrows"] == [1 * 4 + 2, 2 * 4 + 3]  # 0 - 1 may point either way
    row = next(row for row in content["effects"]["rows"] if row[:2] == [1, 2])
    assert row[2] == pytest.approx(0.125, abs=0.05) and row[5] == pytest.approx(
        0.5
    )  # a path in a quarter of the graphs


def test_without_data_the_page_says_how_to_get_effects(tmp_path):
    post = dp.exact(dp.simulate(nodes=3, observations=50, seed=0, interventional_sets=0).train, model="bge")
    post.save(tmp_path / "p.nc")
    content = content_of(dp.load(tmp_path / "p.nc"))
    assert content["effects"] is None and "--data" in content["noEffects"]


def test_the_first_threshold_leaves_a_readable_number_of_edges():
    assert first_threshold(np.full((4, 4), 0.25)) == 0.5  # adjacent with probability 1/2
    assert first_threshold(np.full((4, 4), 0.12)) == 0.2
    assert first_threshold(np.zeros((4, 4))) == 0.1
    crowded = np.random.default_rng(0).random((40, 40)) / 2
    assert first_threshold(crowded) == 0.7
    assert first_threshold(np.ones((40, 40))) == 0.99


def test_consensus_and_classes():
    post = made_up(5, draws=3)
    content = content_of(post)
    assert content["consensus"] == [[int(i), int(j)] for i, j in np.argwhere(post.consensus_graph())]
    top = post.essential_graphs(1)[0]
    first = content["classes"][0]
    assert content["bestClass"] == first["probability"] == round(top.probability, 4)
    assert len(first["directed"]) + 2 * len(first["open"]) == top.graph.sum()


def test_improbable_classes_are_not_listed():
    content = content_of(made_up(8, draws=200))
    assert content["classes"] == [] and 0 < content["bestClass"] < 0.03


def test_the_next_experiment_has_a_section(tmp_path):
    names = (HOSTILE[0], "b", "c")
    data = dataclasses.replace(dp.simulate(nodes=3, observations=30, seed=1).train, names=names)
    post = dp.exact(data, model="bge")
    found = dp.next_experiment(post, rows=2, outcomes=16)
    text = dp.write_report(post, tmp_path / "report.html", experiment=found).read_text()
    assert 'id="next"' in text and 'href="#next"' in text and f"{found.table['gain'][0]:.3f} ±" in text
    assert [a.get("type") for t, a in Elements(text).tags if t == "script"] == ["application/json", None, None]
    assert 'id="next"' not in html_report(post)
    assert text.count('<svg class="bar') == 3 and text.count('<svg class="bar chosen"') == 1
    ends = found.table["gain"] + 2 * found.table["error"]
    low = found.table["gain"][0] - 2 * found.table["error"][0]
    assert f"M{100 * max(low, 0) / ends.max():.1f} 5H{100 * ends[0] / ends.max():.1f}" in text
    assert "chosen, in order" not in text


def test_a_batch_of_experiments_is_listed_in_its_order():
    post = dp.exact(dp.simulate(nodes=3, observations=30, seed=1).train, model="bge")
    found = dp.next_experiment(post, rows=2, outcomes=16, budget=2)
    text = gains.section(found.plain())
    first, last = found.batch.iloc[0], found.batch.iloc[-1]
    assert "chosen, in order" in text
    assert text.index(f"<td>{first['added']:.3f}</td>") < text.index(f"<td>{last['added']:.3f}</td>")


def test_conditions_have_places_and_probabilities_and_no_row_of_the_heat_map():
    post = made_up(6, names=HOSTILE)
    p = np.random.default_rng(0).random((2, 6))
    conditions = [HOSTILE[0], "none of them"]
    record = dataclasses.replace(post.record, targets=TargetProbabilities(conditions, p.tolist(), p.tolist()))
    perturbed = dataclasses.replace(post, record=record)
    plain, content = content_of(post), content_of(perturbed)
    found = content.pop("conditions")
    assert content == plain  # nothing else changes: edges, heat map and places of the variables
    assert found["names"] == conditions and len(found["targets"]) == 12
    np.testing.assert_allclose(np.array(found["targets"]).reshape(2, 6) / UNIT, p, atol=1 / UNIT)
    assert max(found["y"]) < min(content["y"]) and len(found["x"]) == len(found["widths"]) == 2
    assert "<script>window" not in html_report(perturbed)
