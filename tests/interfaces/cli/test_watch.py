"""Looking on: what a person sees, and that looking changes nothing."""

import io
import json

import numpy as np
import pytest

import dagpost as dp
from dagpost.interfaces.cli import fit as inference
from dagpost.interfaces.cli import watch

rich_console = pytest.importorskip("rich.console")

SMALL = ["--particles", 4, "--steps", 40, "--draws", 50, "--precision", 0.05]


def terminal():
    return rich_console.Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)


def seen(console) -> str:
    return console.file.getvalue()


@pytest.mark.slow
def test_the_view_of_dibs_shows_edges_cycles_and_temperatures():
    sim, console, history = dp.simulate(nodes=4, observations=60, seed=0), terminal(), dp.History()
    options = {"model": "bge", "method": "dibs", "particles": 5, "steps": 40, "moves": 20, "seed": 3}
    with watch.live_view(("[bold]a", "b\x1b[31m", "c", "d"), console) as view:
        live = view.live
        post = dp.fit(sim.train, **options, callback=inference.CallbackPair(history, view), every=10, progress=False)
        live.refresh()
    text = seen(console)
    for part in ("DiBS", "step 40 of 40", "of 5", "alpha", "beta", "left", "█"):
        assert part in text
    assert "[bold]a" in text and "\x1b[31m" not in text  # names are text, no markup and no control characters
    assert "\x1b[?25h" in text  # the cursor is back
    unseen = dp.fit(sim.train, **options)
    np.testing.assert_array_equal(post.graphs, unseen.graphs)
    np.testing.assert_array_equal(post.edge_marginals, unseen.edge_marginals)


@pytest.mark.slow
def test_the_view_of_chains_shows_moves_and_precision():
    sim, console, history = dp.simulate(nodes=4, observations=60, seed=0), terminal(), dp.History()
    options = {"model": "bge", "particles": 4, "steps": 20, "precision": 0.02, "seed": 1}
    with watch.live_view(sim.train.names, console) as view:
        post = dp.fit(sim.train, **options, callback=inference.CallbackPair(history, view), every=10, progress=False)
        view.live.refresh()
    assert "chains" in seen(console) and "moves" in seen(console) and "(target 0.02)" in seen(console)
    assert history.chains[-1].moves == post.info["moves"]
    np.testing.assert_allclose(history.chains[-1].edge_probabilities, post.edge_marginals)
    np.testing.assert_array_equal(post.graphs, dp.fit(sim.train, **options).graphs)


def test_the_terminal_is_left_in_order_when_stopped():
    console = terminal()
    with pytest.raises(KeyboardInterrupt), watch.live_view(("a", "b"), console):
        raise KeyboardInterrupt
    assert seen(console).endswith("\x1b[?25h") or "\x1b[?25h" in seen(console)


def test_time_left(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    clock = watch.RemainingTime()
    assert clock.left(0.5) == "--"  # a resumed run: nothing is known of its speed yet
    now[0] = 130.0
    assert clock.left(0.75) == "0:30"
    now[0] = 160.0
    assert clock.left(1.0) == "0:00"


@pytest.mark.slow
def test_without_a_terminal_lines_are_written_and_the_result_is_the_same(dagpost, table, tmp_path):
    plain = dagpost("fit", table, *SMALL, "--out", "one")
    ended = dagpost("fit", table, *SMALL, "--out", "two", "--watch")
    assert ended.code == plain.code == 0 and "not a terminal" in ended.err
    assert "DiBS: step 40 of 40" in ended.err and "chains: moves" in ended.err
    one, two = (tmp_path / name / "edges.csv" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    course = json.loads((tmp_path / "two" / "summary.json").read_text())["evolution"]
    assert course["step"] == [10, 20, 30, 40] and len(course["particle_edges"][0]) == 4


def test_what_cannot_be_watched_says_so(dagpost, table):
    ended = dagpost("fit", table, "--watch", "--quiet")
    assert ended.code == 2 and "contradict" in ended.err
    ended = dagpost("fit", table, "--method", "exact", "--watch")
    assert ended.code == 0 and "'exact' has no particles" in ended.err


@pytest.mark.slow
def test_the_report_shows_intervals_effects_and_evolution(dagpost, table, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from dagpost import plot

    assert dagpost("fit", table, *SMALL).code == 0
    drawn = []
    for name in plot.__all__:
        whole = getattr(plot, name)
        monkeypatch.setattr(
            plot, name, lambda *a, _whole=whole, _name=name, **k: drawn.append(_name) or _whole(*a, **k)
        )
    assert dagpost("report", "run").code == 0
    # functions of edges are in the page itself, and experiments are drawn where a ranking was saved
    assert set(drawn) == set(plot.__all__) - {"mechanism", "experiments"}
    assert (tmp_path / "run" / "report.png").read_bytes().startswith(b"\x89PNG")
