"""The report in a browser: what a person sees, clicks, types and saves."""

import csv
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.posterior.exports import neutral
from dagpost.posterior.records import Provenance, RunRecord, TargetProbabilities
from dagpost.report.page import html_report
from tests.report.made_up import HOSTILE, made_up

CY = "document.getElementById('graph')._cyreg.cy"


@pytest.fixture(scope="module")
def small():
    """A chain of strong edges, so that nothing lies above anything else, and weaker ones."""
    rng = np.random.default_rng(0)
    graphs = np.zeros((200, 4, 4), dtype=bool)
    graphs[:, 0, 1] = rng.random(200) < 0.97
    graphs[:, 1, 2] = rng.random(200) < 0.8
    graphs[:, 2, 3] = rng.random(200) < 0.6
    turned = rng.random(200) < 0.3
    graphs[turned, 2, 3], graphs[turned, 3, 2] = False, graphs[turned, 2, 3]
    graphs[:, 0, 3] = (rng.random(200) < 0.15) & ~graphs[:, 3, 2]
    theta = rng.normal(1, 0.1, size=(200, 4, 4))
    record = RunRecord("exact", provenance=Provenance(rows=200))
    return dp.Posterior(
        graphs, np.zeros(200), ("a", "b", "c", "d"), dp.LinearGaussian(), dp.ErdosRenyi(), theta=theta, record=record
    )


def visible_edges(page) -> list[tuple[int, int]]:
    found = page.evaluate(f"{CY}.edges(':visible').map(e => [e.data('i'), e.data('j')])")
    return sorted(map(tuple, found))


def either_way(post) -> np.ndarray:
    """Adjacency in the units of the page."""
    p = np.rint(post.edge_probabilities.to_numpy() * 10_000)
    return np.minimum(p + p.T, 10_000)


def slide(page, value: float) -> None:
    page.evaluate(
        "v => new Promise(done => { const s = document.getElementById('threshold'); s.value = v;"
        " s.dispatchEvent(new Event('input')); requestAnimationFrame(() => requestAnimationFrame(done)); })",
        value,
    )


def rows_of(page, table="#edge-table") -> list[list[str]]:
    return page.evaluate(
        "t => [...document.querySelectorAll(t + ' tbody tr')].map(r => [...r.cells].map(c => c.textContent))", table
    )


def middle_of(page, edge: str) -> tuple[float, float]:
    """Of a drawn edge, in the window; nodes and edges are drawn after a frame."""
    page.locator("#graph").scroll_into_view_if_needed()
    page.wait_for_timeout(150)
    x, y = page.evaluate(
        f"e => {{ const m = {CY}.getElementById(e).renderedMidpoint(); "
        "const b = document.getElementById('graph').getBoundingClientRect(); return [m.x + b.x, m.y + b.y]; }",
        edge,
    )
    return x, y


@pytest.mark.slow
@pytest.mark.parametrize("d", [4, 20])
def test_the_slider_filters_edges_and_moves_no_node(d, opened):
    post = made_up(d)
    page = opened(post)
    shown = either_way(post)
    places = page.evaluate(f"{CY}.nodes().map(n => n.position())")
    for threshold in (0.01, 0.2, 0.5, 0.9, 1.0, 0.35):
        slide(page, threshold)
        expected = [tuple(pair) for pair in np.argwhere(np.triu(shown >= round(threshold * 10_000), 1))]
        assert sorted(tuple(sorted(pair)) for pair in visible_edges(page)) == expected
        assert page.locator("#shown").inner_text().startswith(f"{len(expected)} of {d * (d - 1) // 2} ")
        assert page.locator("#threshold-value").inner_text() == f"{threshold:.2f}"
    assert page.evaluate(f"{CY}.nodes().map(n => n.position())") == places


@pytest.mark.slow
def test_hover_shows_the_right_numbers(small, opened):
    page = opened(small)
    p = small.edge_probabilities.to_numpy()
    slide(page, 0.5)
    for i, j in visible_edges(page):
        settled = p[i, j] >= 0.75 * (p[i, j] + p[j, i])
        page.mouse.move(2, 2)
        page.mouse.move(*middle_of(page, f"{i}-{j}" if settled else f"{i}~{j}"), steps=3)
        text = page.locator("#tooltip").inner_text()
        assert text.startswith(f"{small.names[i]} {'→' if settled else '—'} {small.names[j]}")
        for a, b in [(i, j), (j, i)]:
            assert f"{small.names[a]} → {small.names[b]}: {p[a, b]:.3f}" in text
        assert f"adjacent {p[i, j] + p[j, i]:.3f}" in text and "effect of " in text and "+ positive" in text
    place = page.evaluate(
        f"() => {{ const m = {CY}.getElementById('n1').renderedPosition(); "
        "const b = document.getElementById('graph').getBoundingClientRect(); return [m.x + b.x, m.y + b.y]; }"
    )
    page.mouse.move(*place, steps=3)
    assert f"causes: a {p[0, 1]:.3f}" in page.locator("#tooltip").inner_text()
    page.mouse.move(2, 2)
    assert page.locator("#tooltip").is_hidden()


@pytest.mark.slow
def test_a_click_gives_all_details(small, opened):
    page = opened(small)
    slide(page, 0.5)
    page.mouse.click(*middle_of(page, "1-2"))
    details = page.locator("#details")
    p, paths = small.edge_probabilities, small.ancestor_probabilities
    text = details.inner_text()
    assert text.startswith("b → c") and f"{p.loc['b', 'c']:.3f}" in text and "not adjacent" in text
    assert f"{paths.loc['b', 'c']:.3f}" in text and "b on c" in text
    page.locator("#node").select_option(label="c")
    text = details.inner_text()
    assert text.startswith("c") and "Direct causes (parents)" in text
    best = small.parents_of("c", top=1).sets[0]
    assert f"{best.probability:.3f}" in text
    assert page.evaluate(f"{CY}.getElementById('n2').hasClass('chosen')")


@pytest.mark.slow
def test_the_table_sorts_and_searches(opened):
    post = made_up(20)
    page = opened(post)
    assert len(rows_of(page)) == 190 and "190 of 190 rows" in page.locator("#edge-table").inner_text()
    expected = sorted(either_way(post)[np.triu_indices(20, 1)] / 10_000, reverse=True)
    np.testing.assert_allclose([float(r[2]) for r in rows_of(page)], expected, atol=6e-4)
    p = post.edge_probabilities
    for cause, effect, _, direction, share, *_ in rows_of(page)[:20]:
        expected = p.loc[cause, effect] / (p.loc[cause, effect] + p.loc[effect, cause])
        assert float(share) == pytest.approx(expected, abs=0.006) and (direction == "→") == (expected >= 0.75)
    head = page.locator("#edge-table th", has_text="adjacent")
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending" and float(rows_of(page)[0][2]) == 0.0
    page.locator("#edge-table th").nth(1).get_by_role("button").click()
    effects = [r[1] for r in rows_of(page)]
    assert effects == sorted(effects) and head.get_attribute("aria-sort") is None
    page.get_by_label("Search pairs").fill("X19")
    found = rows_of(page)
    assert len(found) == 19 and all("x19" in (r[0], r[1]) for r in found)
    page.get_by_label("Search pairs").fill("nothing like it")
    assert rows_of(page) == [] and "0 of 0 rows" in page.locator("#edge-table").inner_text()
    page.get_by_label("Search pairs").fill("open")
    assert {r[3] for r in rows_of(page)} == {"open"}


@pytest.mark.slow
@pytest.mark.parametrize("names", [None, HOSTILE], ids=["plain", "hostile"])
def test_the_downloaded_table_is_the_posterior(names, opened, tmp_path):
    post = made_up(6, names=names)
    page = opened(post)
    with page.expect_download() as saving:
        page.locator("#edge-table").get_by_role("button", name="Download CSV").click()
    assert saving.value.suggested_filename == "pairs.csv"
    saving.value.save_as(tmp_path / "pairs.csv")
    with open(tmp_path / "pairs.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(r["cause"], r["effect"]): float(r["probability"]) for r in rows}
    found |= {(r["effect"], r["cause"]): float(r["reverse"]) for r in rows}
    table = post.edge_table()
    expected = {(neutral(c), neutral(e)): p for c, e, p in zip(table.cause, table.effect, table.probability.tolist())}
    assert found.keys() == expected.keys() and len(rows) == 15
    assert {r["sign"] for r in rows} <= {"positive", "negative", "undecided", ""}
    for key, p in expected.items():
        assert found[key] == pytest.approx(p, abs=0.5001e-4)
    ordered = pd.Series([float(r["adjacency"]) for r in rows])
    assert ordered.is_monotonic_decreasing


@pytest.mark.slow
def test_hostile_names_are_shown_and_do_nothing(opened, screenshots):
    post = made_up(len(HOSTILE), names=HOSTILE)
    page = opened(post, {"table": HOSTILE[1], "model": HOSTILE[0], "assumed": {"units": HOSTILE[3]}})
    for j in range(len(HOSTILE)):
        page.locator("#node").select_option(str(j))
        assert page.locator("#details h3").inner_text() == HOSTILE[j]
    for k in range(page.locator("#view option").count()):
        page.locator("#view").select_option(index=k)
    page.locator("#edge-table button.link").first.click()
    for summary in page.locator("summary").all():
        summary.click()
    assert set(HOSTILE) <= {name for row in rows_of(page) for name in row}
    assert page.locator("h1").inner_text() == HOSTILE[1]
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 1 and page.locator("b:has-text('bold')").count() == 0
    page.screenshot(path=screenshots / "hostile.png", full_page=True)


@pytest.mark.slow
def test_consensus_and_classes_can_be_shown(opened):
    post = made_up(5, draws=20)
    page = opened(post)
    page.locator("#view").select_option("0")
    expected = [tuple(edge) for edge in np.argwhere(post.consensus_graph())]
    for _ in range(100):  # a busy machine takes its time to redraw
        if visible_edges(page) == expected:
            break
        page.wait_for_timeout(100)
    assert visible_edges(page) == expected
    top = post.essential_graphs(1)[0].graph
    page.locator("#graph-list article").nth(1).get_by_role("button").click()
    assert page.locator("#view").input_value() == "1"
    drawn = page.evaluate(f"{CY}.edges(':visible').map(e => [e.data('i'), e.data('j'), e.hasClass('open')])")
    assert sorted((i, j) for i, j, is_open in drawn if not is_open) == sorted(map(tuple, np.argwhere(top & ~top.T)))
    assert sorted((i, j) for i, j, is_open in drawn if is_open) == sorted(map(tuple, np.argwhere(np.triu(top & top.T))))


@pytest.mark.slow
def test_the_heat_map_answers_too(small, opened):
    page = opened(small)
    heat = page.locator("#heat-map")
    heat.scroll_into_view_if_needed()
    page.locator("#heat-order").select_option("table")
    frame = heat.bounding_box()
    cell = 46  # the largest; with four nodes it is reached
    margin = frame["width"] - 2 - 4 * cell
    page.mouse.move(frame["x"] + margin + 1.5 * cell, frame["y"] + margin + 0.5 * cell, steps=3)
    text = page.locator("#tooltip").inner_text()
    assert text.startswith("a → b") and f"a → b: {small.edge_probabilities.loc['a', 'b']:.3f}" in text
    page.mouse.down()
    page.mouse.up()
    assert page.locator("#details h3").inner_text() == "a → b"


@pytest.mark.slow
def test_everything_works_from_the_keyboard(small, opened):
    page = opened(small)
    reached = []
    for _ in range(70):
        page.keyboard.press("Tab")
        focus = page.evaluate("document.activeElement.id || document.activeElement.textContent")
        reached.append(focus)
        if focus == "a" and "graph" in reached:  # the first edge of the table
            break
    order = [reached.index(name) for name in ("view", "threshold", "node", "fit", "graph", "heat-order")]
    assert order == sorted(order)
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    assert page.locator("#details h3").inner_text() == "a → b"
    page.locator("#threshold").focus()
    before, edges = page.locator("#threshold-value").inner_text(), len(visible_edges(page))
    page.keyboard.press("End")
    page.wait_for_timeout(100)
    assert page.locator("#threshold-value").inner_text() == "1.00" != before and len(visible_edges(page)) < edges
    page.locator("#graph").focus()
    zoom = page.evaluate(f"{CY}.zoom()")
    page.keyboard.press("+")
    assert page.evaluate(f"{CY}.zoom()") > zoom
    pan = page.evaluate(f"{CY}.pan().x")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(f"{CY}.pan().x") > pan
    page.keyboard.press("Escape")
    assert page.locator("#details h3").inner_text() == "Details"


def luminance(colour: str) -> float:
    parts = np.array([float(v) for v in re.findall(r"[\d.]+", colour)[:3]]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, two: str) -> float:
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_light_and_dark(scheme, opened, screenshots):
    page = opened(made_up(5, draws=30), color_scheme=scheme)
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(back) > 0.5) == (scheme == "light")
    pairs = page.evaluate(
        """() => {
          const behind = (e) => { for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; } };
          return [...document.querySelectorAll("p, li, dt, dd, th, td, a, button, label, h1, h2, h3, .sign, .small")]
            .filter((e) => e.offsetParent && e.textContent.trim())
            .map((e) => [getComputedStyle(e).color, behind(e), e.textContent.slice(0, 40)]);
        }"""
    )
    assert len(pairs) > 50
    worst = min(pairs, key=lambda pair: contrast(*pair[:2]))
    assert contrast(*worst[:2]) >= 4.5, worst  # WCAG 2.1, level AA
    page.screenshot(path=screenshots / f"small-{scheme}.png", full_page=True)


@pytest.mark.slow
def test_print_is_light_and_holds_the_graph(opened, screenshots):
    page = opened(made_up(8), color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) > 0.9
    picture = page.locator("#graph-print")
    assert picture.is_visible() and page.locator("#graph").is_hidden() and page.locator("nav").is_hidden()
    assert page.evaluate("document.getElementById('graph-print').naturalWidth") > 200
    page.screenshot(path=screenshots / "print.png", full_page=True)
    page.pdf(path=screenshots / "print.pdf", format="A4")
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.1


@pytest.mark.slow
def test_a_hundred_nodes(opened, screenshots):
    post = made_up(100, draws=60)
    page = opened(post)
    assert len(rows_of(page)) == 200 and "200 of 4950 rows" in page.locator("#edge-table").inner_text()
    start = float(page.locator("#threshold").input_value())
    assert 0 < len(visible_edges(page)) <= 200 and start >= 0.5
    page.screenshot(path=screenshots / "hundred.png")
    page.get_by_label("Search pairs").fill("x99")
    assert len(rows_of(page)) == 99
    page.get_by_label("Search pairs").fill("")
    page.locator("#edge-table").get_by_role("button", name="Show more").click()
    assert len(rows_of(page)) == 400
    slide(page, 0.01)
    assert len(visible_edges(page)) == np.triu(either_way(post) >= 100, 1).sum()


@pytest.mark.slow
def test_the_policy_holds_even_if_markup_got_in(browser, small, tmp_path):
    """A second wall: what is not part of the page neither runs nor loads."""
    smuggled = "<script>window.hacked=1</script><img src='https://example.invalid/x.png' onerror='window.hacked=2'>"
    file = tmp_path / "smuggled.html"
    file.write_text(html_report(small).replace("</main>", smuggled + "</main>"), encoding="utf-8")
    page = browser.new_page()
    complaints, sent = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("requestfinished", lambda request: sent.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None and sent == [file.as_uri()]
    assert len(complaints) >= 2 and all("Content Security Policy" in text for text in complaints)
    assert visible_edges(page)
    page.close()


@pytest.mark.slow
def test_prior_knowledge_is_marked(opened):
    data = dp.simulate(nodes=4, observations=60, seed=2, interventional_sets=0).train
    post = dp.exact(data, model="bge", knowledge={"required": ["x0 -> x1"], "forbidden": ["x3 -> x2"]})
    page = opened(post)
    page.mouse.move(*middle_of(page, "0-1"), steps=3)
    assert "required by prior knowledge" in page.locator("#tooltip").inner_text()
    page.locator("#edge-table tr", has_text="x3").filter(has_text="x2").get_by_role("button").last.click()
    assert "x3 → x2: ruled out by prior knowledge" in page.locator("#details").inner_text()
    assert "Honoured" in page.locator("#knowledge").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_functions_of_edges_are_seen(scheme, opened, screenshots):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    x[:, 1] = np.tanh(2 * x[:, 0]) + 0.2 * x[:, 1]
    page = opened(dp.exact(dp.Dataset(x, names=("dose", "response")), model="additive"), color_scheme=scheme)
    page.click("a[href='#functions']")
    drawing = page.locator("#functions svg").first
    page.wait_for_function(  # the link leads there
        """() => { const box = document.querySelector("#functions svg").getBoundingClientRect();
                   return box.top >= 0 && box.bottom <= innerHeight; }"""
    )
    box = drawing.bounding_box()
    assert 150 < box["width"] <= 1280 and box["height"] > 80
    line, back = page.evaluate(
        """() => {
          const line = document.querySelector("#functions polyline");
          let e = line.closest("svg");
          for (; e; e = e.parentElement) if (!/, 0\\)$/.test(getComputedStyle(e).backgroundColor)) break;
          return [getComputedStyle(line).stroke, getComputedStyle(e).backgroundColor];
        }"""
    )
    assert contrast(line, back) >= 3  # WCAG 2.1 for graphics
    assert "dose" in page.locator("#functions").inner_text() and "response" in page.locator("#functions").inner_text()
    drawing.screenshot(path=screenshots / f"functions-{scheme}.png")


@pytest.mark.slow
def test_a_wide_table_shows_its_most_probable_pairs(opened, screenshots):
    page = opened(made_up(260, draws=40))
    slide(page, 0.3)
    page.wait_for_function("document.getElementById('shown').textContent.startsWith('200 of ')")
    assert "not computed for so many variables" in page.inner_text("#graphs-note")
    assert page.locator("#clusters details").count() > 0
    assert page.locator("#clusters details[open]").count() == 0
    page.fill("#edge-table input[type=search]", "x17")
    assert "found" in page.inner_text("#edge-table [role=status]")
    page.screenshot(path=screenshots / "wide.png", full_page=True)


@pytest.mark.slow
def test_conditions_and_their_targets_are_drawn(small, opened, tmp_path, screenshots):
    """A condition called like a column is a node of its own."""
    p = [[0.1, 0.3, 0.7, 0.0], [0.02, 0.99, 0.4, 0.0]]
    found = TargetProbabilities(["b", "<b>drug"], p, [[0.1] * 4] * 2)
    page = opened(replace(small, record=replace(small.record, targets=found)))
    slide(page, 0.35)
    targets = page.evaluate(f"{CY}.edges('.target:visible').map(e => [e.data('i'), e.data('j'), e.data('label')])")
    assert sorted(targets) == [[4, 2, "0.70"], [5, 1, "0.99"], [5, 2, "0.40"]]
    assert page.evaluate(f"{CY}.nodes('.condition:visible').map(n => n.data('label'))") == ["b", "<b>drug"]
    assert "3 targets of conditions" in page.locator("#shown").text_content()
    page.screenshot(path=screenshots / "conditions.png")
    page.evaluate(f"() => {{ {CY}.getElementById('n5').emit('tap'); }}")
    details = page.locator("#details").text_content()
    assert details.startswith("<b>drug") and "b0.990" in details and "a0.020" in details
    page.evaluate(f"() => {{ {CY}.getElementById('n1').emit('tap'); }}")
    assert "Conditions that change it<b>drug0.990b0.300" in page.locator("#details").text_content()
    with page.expect_download() as saving:
        page.locator("#graph-svg").click()
    saving.value.save_as(tmp_path / "graph.svg")
    picture = (tmp_path / "graph.svg").read_text()
    assert picture.count("<ellipse") == 2 and "ellipses: conditions" in picture
    page.locator("#view").select_option("0")
    shown = f"{CY}.elements('.target, .condition').not('.away').map(e => e.id())"
    assert page.evaluate(shown) == ["n4", "n5", "4-2", "5-1"]
    page.locator("#show-conditions").uncheck()
    assert page.evaluate(shown) == []
    plain = opened(small)
    assert plain.locator("#conditions-label").is_hidden() and plain.locator("#condition-legend").is_hidden()
