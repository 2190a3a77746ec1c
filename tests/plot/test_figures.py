"""What the figures show, read back from what was drawn."""

import io

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.plot.canvas import circular, layered, with_conditions
from dagpost.posterior.records import ChainDiagnostics, RunRecord, TargetProbabilities

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

NAMES = ("$x^2$", "a_b", "<b>", "very long name of a column")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def table(*edges, names=NAMES):
    out = pd.DataFrame(0.0, index=names, columns=names)
    for i, j, p in edges:
        out.iloc[i, j] = p
    return out


def arrows(ax):
    return {
        tuple(map(int, patch.get_gid().split("-")[1:])): patch
        for patch in ax.patches
        if str(patch.get_gid()).startswith("edge-")
    }


def texts(ax):
    return [t.get_text() for t in ax.texts]


def rendered(ax):
    for kind in ("png", "svg", "pdf"):
        out = io.BytesIO()
        ax.figure.savefig(out, format=kind)
        assert out.tell() > 1000
    return ax


def posterior(graphs, **more):
    graphs = np.asarray(graphs, dtype=bool)
    names = tuple(f"n{j}" for j in range(graphs.shape[1]))
    return dp.Posterior(graphs, np.zeros(len(graphs)), names, dp.BGe(), dp.Uniform(), **more)


@pytest.mark.parametrize("layout", ["rows", "circle"])
def test_graph_draws_probable_edges_and_open_directions(layout):
    ax = dp.plot.graph(table((0, 1, 0.999), (1, 2, 0.7), (2, 3, 0.45), (3, 2, 0.4), (0, 3, 0.3)), layout=layout)
    drawn = arrows(rendered(ax))
    assert set(drawn) == {(0, 1), (1, 2), (2, 3)}  # 0 -> 3 is improbable; 2 - 3 is probable in either direction
    styles = {edge: type(patch.get_arrowstyle()).__name__ for edge, patch in drawn.items()}
    assert styles[0, 1] == styles[1, 2] != styles[2, 3]
    assert drawn[0, 1].get_linewidth() > drawn[1, 2].get_linewidth()
    assert {"0.70", "0.85"} <= set(texts(ax)) and "1.00" not in texts(ax)  # sure edges bear no number
    assert "dashed: direction open" in ax.get_title()


@pytest.mark.parametrize("layout", ["rows", "circle"])
def test_graph_draws_conditions_and_their_probable_targets(layout):
    """Also those called like a column."""
    graphs = np.zeros((4, 3, 3), dtype=bool)
    graphs[:, 0, 1] = True
    found = TargetProbabilities(["n1", "$y$"], [[0.2, 0.4, 0.7], [0.1, 0.999, 0.5]], [])
    post = posterior(graphs, record=RunRecord(targets=found))
    ax = dp.plot.graph(post, layout=layout)
    drawn = {p.get_gid(): p for p in rendered(ax).patches if str(p.get_gid()).startswith("target")}
    assert set(drawn) == {"target-3-2", "target-4-1", "target-4-2"} and set(arrows(ax)) == {(0, 1)}
    assert drawn["target-4-1"].get_linewidth() > drawn["target-4-2"].get_linewidth()
    assert texts(ax).count("n1") == 2 and {"0.70", "0.50"} <= set(texts(ax)) and "1.00" not in texts(ax)
    assert "ellipses" in ax.get_title()
    if layout == "rows":
        shapes = [type(t.get_bbox_patch().get_boxstyle()).__name__ for t in ax.texts[:5]]
        assert shapes == ["Round"] * 3 + ["Ellipse"] * 2
        assert min(t.get_position()[1] for t in ax.texts[3:5]) > max(t.get_position()[1] for t in ax.texts[:3])
    for plain in (dp.plot.graph(post, conditions=False, layout=layout), dp.plot.graph(post.edge_probabilities)):
        assert len(plain.patches) == 1 and "ellipses" not in plain.get_title() and "$y$" not in texts(plain)
    assert len([p for p in dp.plot.graph(post, threshold=0.6).patches]) == 3
    assert dp.plot.heat_map(post).images[0].get_array().shape == (3, 3)


def test_conditions_stand_above_the_nodes_and_apart():
    rng = np.random.default_rng(0)
    graph = np.triu(rng.random((8, 8)) < 0.3, 1)
    plain = layered(graph, [f"x{j}" for j in range(8)])
    found = with_conditions(
        plain, [f"condition {k}" for k in range(13)], rng.random((13, 8)) * (rng.random((13, 8)) < 0.2)
    )
    np.testing.assert_array_equal(found.x[:8], plain.x)
    assert found.y[8:].max() < plain.y.min() and sorted(found.order) == list(range(21))
    for a in range(8, 21):
        for b in range(8, a):
            assert found.y[a] != found.y[b] or abs(found.x[a] - found.x[b]) > (found.width[a] + found.width[b]) / 2
    assert with_conditions(plain, [], np.zeros((0, 8))) is plain


def test_certain_pairs_stay_at_every_threshold():
    """0.52 and 0.47 one way or the other: adjacent with 0.99, and the threshold acts on that."""
    for threshold in (0.3, 0.5, 0.6, 0.95):
        drawn = arrows(dp.plot.graph(table((0, 1, 0.52), (1, 0, 0.47)), threshold=threshold))
        assert set(drawn) == {(0, 1)} and drawn[0, 1].get_linestyle() != "-"
    shares = table((0, 1, 0.7), (1, 0, 0.2), (2, 3, 0.6), (3, 2, 0.3))  # 0.78 and 0.67 of the adjacency
    drawn = arrows(ax := dp.plot.graph(shares, threshold=0.85))
    assert [drawn[0, 1].get_linestyle() == "-", drawn[2, 3].get_linestyle() == "-"] == [True, False]
    assert "0.90\nback 0.20" in texts(ax)


def test_names_are_no_formulas_and_are_cut():
    for ax in (dp.plot.graph(table((0, 1, 1.0))), dp.plot.graph(table((0, 1, 1.0)), layout="circle")):
        assert {"$x^2$", "a_b", "<b>"} <= set(texts(rendered(ax)))
        assert all(not t.get_parse_math() for t in ax.texts if t.get_text() == "$x^2$")
        assert "very long name of…" in texts(ax)
    ticks = rendered(dp.plot.heat_map(table((0, 1, 1.0)))).get_xticklabels()
    assert ticks[0].get_text() == "$x^2$" and not ticks[0].get_parse_math()


def test_a_threshold_and_cycles():
    edges = table((0, 1, 0.9), (1, 2, 0.8), (2, 0, 0.6), (0, 3, 0.5))
    assert set(arrows(dp.plot.graph(edges))) == {(0, 1), (1, 2), (2, 0), (0, 3)}  # each pair is judged by itself
    assert set(arrows(dp.plot.graph(edges, threshold=0.85))) == {(0, 1)}
    for wrong in (0, 1.2, True):
        with pytest.raises(dp.InputError, match="threshold"):
            dp.plot.graph(edges, threshold=wrong)
    with pytest.raises(dp.InputError, match="did you mean 'rows'"):
        dp.plot.graph(edges, layout="row")
    with pytest.raises(dp.InputError, match="between 0 and 1"):
        dp.plot.graph(edges + 1)
    with pytest.raises(dp.InputError, match="same names"):
        dp.plot.graph(edges.iloc[:2])


def test_layouts_put_causes_above_effects_and_nodes_apart():
    rng = np.random.default_rng(0)
    for d in (5, 20, 50):
        graph = np.triu(rng.random((d, d)) < 2 / d, 1)
        rows, circle = layered(graph, [f"x{j}" for j in range(d)]), circular(graph.astype(float))
        assert all(rows.y[i] < rows.y[j] for i, j in zip(*np.nonzero(graph)))
        for places in (np.stack([rows.x, rows.y], axis=1), circle):
            assert len(np.unique(places.round(6), axis=0)) == d
        np.testing.assert_allclose(np.linalg.norm(circle, axis=1), 1)


@pytest.mark.parametrize("d", [5, 50])
def test_heat_map_shows_the_probabilities(d):
    values = np.random.default_rng(1).random((d, d)) * (1 - np.eye(d))
    names = [f"n{j}" for j in range(d)]
    ax = dp.plot.heat_map(pd.DataFrame(values, index=names, columns=names))
    np.testing.assert_array_equal(ax.images[0].get_array(), values)
    assert ax.images[0].get_clim() == (0, 1)
    assert [t.get_text() for t in ax.get_yticklabels()] == names
    assert len(ax.texts) == (int((values >= 0.005).sum()) if d == 5 else 0)
    assert ax.get_xlabel() == "effect" and ax.get_ylabel() == "cause"


def test_edge_intervals_say_where_they_come_from():
    graphs = np.zeros((40, 3, 3), dtype=bool)
    graphs[:30, 0, 1] = True
    post = posterior(graphs)
    ax = rendered(dp.plot.edge_intervals(post, top=4))
    bars = ax.containers[0]
    segments = bars.lines[2][0].get_segments()
    assert len(segments) == 4 and ax.get_yticklabels()[0].get_text() == "n0 → n1"
    low, high = segments[0][:, 0]
    assert low < 0.75 < high and "40 effective draws" in ax.get_title()
    found = post.edge_intervals()
    assert (found.lower[0], found.upper[0]) == (pytest.approx(low), pytest.approx(high))
    assert found.upper[1] > 0  # forty graphs without an edge do not prove that it has probability 0
    errors = np.full((3, 3), 0.01).tolist()
    diagnostics = ChainDiagnostics(1.0, 1000.0, 0.01, 1.0, 1000.0, errors, {}, [], [], 4, 10, 100, 1.0)
    chains = posterior(graphs, marginals=graphs.mean(axis=0), record=RunRecord(diagnostics=diagnostics))
    assert "batch means" in dp.plot.edge_intervals(chains).get_title()
    row = chains.edge_intervals(0.9).iloc[0]
    assert row.upper - row.probability == pytest.approx(1.645 * 0.01, rel=1e-3)
    assert chains.weighted("uniform").edge_intervals().attrs["source"] == "graphs"  # other weights, other errors
    exact = dp.exact(dp.simulate(nodes=3, observations=50, interventional_sets=0).train)
    ax = dp.plot.edge_intervals(exact)
    assert "no Monte Carlo error" in ax.get_title()
    assert (exact.edge_intervals().lower == exact.edge_intervals().probability).all()
    with pytest.raises(dp.InputError, match="level=2"):
        exact.edge_intervals(2)


@pytest.mark.slow
def test_edge_intervals_of_chains_cover_the_exact_probabilities():
    sim = dp.simulate(nodes=4, observations=40, seed=2, interventional_sets=0)
    exact = dp.exact(sim.train, model="bge")
    auto = dp.fit(sim.train, model="bge", precision=0.02, seed=1)
    found = auto.edge_intervals(0.9999)
    assert found.attrs["source"] == "chains"
    truth = [exact.edge_probabilities.loc[c, e] for c, e in zip(found.cause, found.effect)]
    assert ((found.lower - 1e-6 <= truth) & (truth <= found.upper + 1e-6)).all()
    assert np.max(auto.info["edge_errors"]) == pytest.approx(auto.info["error"], abs=1e-6)


@pytest.mark.slow
def test_effects_show_means_intervals_and_no_effect():
    sim = dp.simulate(nodes=4, observations=30, seed=5, interventional_sets=0)
    post = dp.exact(sim.train, model="linear")
    pairs = [("x0", "x1"), ("x2", "x3")]
    ax = rendered(dp.plot.effects(post, pairs))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["x0 → x1", "x2 → x3"]
    effect = post.effect("x0", "x1")
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert dots[0].get_xdata()[0] == pytest.approx(effect.mean)
    bar = next(line for line in ax.lines if line.get_marker() != "o" and len(line.get_xdata()) == 2)
    np.testing.assert_allclose(bar.get_xdata(), effect.interval)
    if effect.zero >= 0.005:
        assert f"none: {effect.zero:.2f}" in texts(ax)
    largest = dp.plot.effects(post, top=3)
    assert len(largest.get_yticklabels()) == 3
    same = dp.plot.effects([effect])
    assert [t.get_text() for t in same.get_yticklabels()] == ["x0 → x1"]
    for wrong, message in ([], "list of effects"), (["x"], "list of effects"):
        with pytest.raises(dp.InputError, match=message):
            dp.plot.effects(wrong)
    with pytest.raises(dp.InputError, match="pairs"):
        dp.plot.effects(post, [])


def linear_chain(names=("$x^2$", "b", "c")):
    """One particle of a linear model: a -> b -> c with the weights 2 and -0.5."""
    graphs = np.zeros((1, 3, 3), dtype=bool)
    graphs[0, 0, 1] = graphs[0, 1, 2] = True
    theta = np.zeros((1, 3, 3))
    theta[0, 0, 1], theta[0, 1, 2] = 2.0, -0.5
    return dp.Posterior(graphs, np.zeros(1), names, dp.LinearGaussian(), dp.Uniform(), theta)


@pytest.mark.slow
def test_mechanism_draws_line_band_and_data():
    post = linear_chain()
    ax = rendered(dp.plot.mechanism(post, "$x^2$", "b"))
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_ydata(), 2 * line.get_xdata(), atol=1e-12)
    assert ax.get_xlabel() == "$x^2$" and not ax.xaxis.label.get_parse_math() and not ax.title.get_parse_math()
    assert ax.get_ylabel() == "contribution to b"
    assert ax.get_title() == "$x^2$ → b\nedge with probability 1.00, 90% band"
    curve = post.effect_curve(0, 2, [3.0, 1.0])
    given = pyplot.subplots()[1]
    assert dp.plot.mechanism(curve, ax=given) is given
    np.testing.assert_allclose(given.lines[0].get_xydata(), [[1, -1], [3, -3]], atol=1e-12)  # in increasing order
    assert "path with" in given.get_title() and given.get_ylabel() == "expected c"
    data = dp.simulate(nodes=3, observations=40, seed=1, interventional_sets=0).train
    exact = dp.exact(data, "linear")
    curve = exact.mechanism("x0", "x1", level=0.8)
    ax = dp.plot.mechanism(curve)
    marks = next(line for line in ax.lines if line.get_marker() == "|").get_xdata()
    column = data.values[:, 0]
    inside = column[(column >= curve.values[0]) & (column <= curve.values[-1])]
    np.testing.assert_array_equal(marks, np.sort(inside))
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(curve.lower.min()) and band.max() == pytest.approx(curve.upper.max())
    for wrong in (lambda: dp.plot.mechanism(post), lambda: dp.plot.mechanism(post.effect("b", "c"))):
        with pytest.raises(dp.InputError, match="or a curve such as"):
            wrong()


@pytest.mark.slow
def test_evolution_draws_what_the_history_saw():
    history, sim = dp.History(), dp.simulate(nodes=4, observations=50, seed=0, interventional_sets=0)
    options = {"model": "bge", "method": "dibs", "particles": 5, "steps": 30, "moves": 10}
    post = dp.fit(sim.train, **options, every=10, callback=history)
    unseen = dp.fit(sim.train, **options)
    np.testing.assert_array_equal(post.graphs, unseen.graphs)
    assert history.steps.tolist() == [10, 20, 30] and len(history) == 3
    assert history.particle_edges.shape == (3, 5) and history.frame().shape == (3, 5)
    ax = rendered(dp.plot.evolution(history, names=post.names, top=4))
    lines = {line.get_label(): line for line in ax.lines}
    assert len(lines) == 5 and "share of cyclic particles" in lines
    np.testing.assert_allclose(lines["share of cyclic particles"].get_ydata(), history.cyclic / 5)
    i, j = np.unravel_index(history.edge_probabilities[-1].argmax(), (4, 4))
    np.testing.assert_allclose(lines[f"x{i} → x{j}"].get_ydata(), history.edge_probabilities[:, i, j], atol=1e-4)
    ax = dp.plot.evolution(history.summary(post.names), show="temperatures")
    np.testing.assert_allclose(ax.lines[1].get_ydata(), history.beta)
    ax = dp.plot.evolution(history, show="particles")
    assert len(ax.lines) == 5 + 3
    with pytest.raises(dp.InputError, match="recorded no DiBS step"):
        dp.plot.evolution(dp.History())
    with pytest.raises(dp.InputError, match="did you mean 'particles'"):
        dp.plot.evolution(history, show="particle")


@pytest.mark.slow
def test_every_figure_draws_into_given_axes():
    sim = dp.simulate(nodes=3, observations=50, seed=0, interventional_sets=0)
    post = dp.exact(sim.train, model="bge")
    figure, axes = pyplot.subplots(2, 2)
    for draw, ax in zip((dp.plot.graph, dp.plot.heat_map, dp.plot.edge_intervals), axes.ravel()):
        assert draw(post, ax) is ax
    assert dp.plot.effects(post, ax=axes[1, 1]) is axes[1, 1]
    assert figure.number in pyplot.get_fignums() and len(pyplot.get_fignums()) == 1


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setattr("dagpost.plot.canvas.find_spec", lambda name: None)
    with pytest.raises(dp.InputError, match=r"dagpost\[report\]"):
        dp.plot.graph(table((0, 1, 1.0)))


def test_time_slices_stand_side_by_side():
    names = ["a", "b", "a[t-1]", "b[t-1]"]
    p = pd.DataFrame(np.zeros((4, 4)), index=names, columns=names)
    p.loc["a[t-1]", "a"] = p.loc["a[t-1]", "b"] = p.loc["a", "b"] = 0.9
    ax = dp.plot.graph(p)
    at = {text.get_text(): text.get_position() for text in ax.texts if text.get_text() in names}
    assert max(at["a[t-1]"][0], at["b[t-1]"][0]) < min(at["a"][0], at["b"][0])
    assert at["a[t-1]"][1] == at["a"][1] > at["b"][1] == at["b[t-1]"][1]
    assert {patch.get_gid() for patch in ax.patches} == {"edge-2-0", "edge-2-1", "edge-0-1"}


def test_experiments_are_drawn_with_their_errors():
    post = dp.exact(dp.simulate(nodes=3, observations=30, seed=1).train, model="bge")
    found = dp.next_experiment(post, rows=2, outcomes=16)
    ax = rendered(dp.plot.experiments(found))
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(found.table["gain"].tolist())
    assert [t.get_text() for t in ax.get_yticklabels()] == found.table["experiment"].tolist()
    (reach,) = [line for c in ax.containers if c.get_label() != "" for line in getattr(c, "lines", [[], [], []])[2]]
    low, high = reach.get_segments()[0][:, 0]
    assert high - low == pytest.approx(4 * found.table["error"].iloc[0])
    assert len(dp.plot.experiments(found, top=2).patches) == 2
    with pytest.raises(dp.InputError, match="next_experiment"):
        dp.plot.experiments(post)
