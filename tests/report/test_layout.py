"""Nodes stand in layers, apart from each other, and always in the same place."""

import numpy as np
import pytest

from dagpost.plot import canvas
from dagpost.plot.canvas import label
from dagpost.posterior.features import consensus
from dagpost.report.content import LAYOUT_THRESHOLD, layout_of
from tests.report.made_up import HOSTILE, made_up

SIZES = [2, 5, 20, 100]


def overlapping(found) -> int:
    apart_x = np.abs(found.x[:, None] - found.x) >= (found.width[:, None] + found.width) / 2
    apart_y = np.abs(found.y[:, None] - found.y) >= 30
    return int(np.triu(~(apart_x | apart_y), 1).sum())


@pytest.mark.parametrize("dot", [True, False])
@pytest.mark.parametrize("d", SIZES)
def test_likely_edges_point_down_and_nodes_stay_apart(d, dot, monkeypatch):
    if dot:
        pytest.importorskip("pygraphviz", reason="dot comes with the report extra")
    else:
        monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    post = made_up(d)
    found = layout_of(post.names, post.edge_marginals)
    graph = consensus(post.edge_marginals, LAYOUT_THRESHOLD)
    for i, j in np.argwhere(graph):
        assert found.y[i] < found.y[j] and found.order.index(i) < found.order.index(j)
    assert overlapping(found) == 0 and sorted(found.order) == list(range(d))
    again = layout_of(post.names, post.edge_marginals)
    assert all(np.array_equal(a, b) for a, b in zip(found, again))


def test_nodes_without_edges_have_places_too():
    found = layout_of(tuple(f"x{j}" for j in range(30)), np.zeros((30, 30)))
    assert overlapping(found) == 0


def test_a_hundred_nodes_fit_a_page():
    post = made_up(100)
    found = layout_of(post.names, post.edge_marginals)
    assert np.ptp(found.x) < 2500 and np.ptp(found.y) < 2500


def test_names_do_not_reach_the_layout_program():
    post = made_up(6, names=HOSTILE)
    plain = made_up(6, names=[f"{j}" * len(label(n)) for j, n in enumerate(HOSTILE)])
    one, two = (layout_of(p.names, p.edge_marginals) for p in (post, plain))
    np.testing.assert_allclose(one.y, two.y)
    assert label("a" * 40) == "a" * 17 + "…"


def test_two_slices_stand_side_by_side():
    names = ["a", "b", "c", "a[t-1]", "b[t-1]", "c[t-1]"]
    p = np.zeros((6, 6))
    p[2, 0] = p[0, 1] = p[3, 0] = p[4, 2] = 0.9  # c -> a -> b within the present
    found = layout_of(names, p)
    assert found.x[3:].max() < found.x[:3].min()
    assert np.array_equal(found.y[:3], found.y[3:]) and found.y[2] < found.y[0] < found.y[1]
    assert overlapping(found) == 0
    assert sorted(found.order[:3]) == [3, 4, 5] and found.order[3:] == [2, 0, 1]
    assert label("a rather long name of a column[t-1]").endswith("…[t-1]")
