import io
import json
import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.posterior import Posterior
from dagpost.posterior.exports import neutral
from dagpost.posterior.records import RunRecord, TargetProbabilities

NAMES = ("=cmd()", 'a"b', "<x>&y", "back\\slash", "β 2")
GRAPHS = np.zeros((2, 5, 5), dtype=bool)
GRAPHS[0, 0, 1] = GRAPHS[:, 2, 3] = GRAPHS[1, 4, 0] = True
POST = Posterior(GRAPHS, np.log([0.75, 0.25]), NAMES, dp.BGe(), dp.Uniform())
EDGES = {("=cmd()", 'a"b'): 0.75, ("<x>&y", "back\\slash"): 1.0, ("β 2", "=cmd()"): 0.25}


def test_networkx_and_graphml():
    graph = POST.to_networkx()
    assert list(graph.nodes) == list(NAMES)
    assert dict(graph.edges) == {edge: {"probability": pytest.approx(p)} for edge, p in EDGES.items()}
    back = nx.parse_graphml(POST.to_graphml())
    assert set(back.nodes) == set(NAMES)
    assert {e: d["probability"] for e, d in dict(back.edges).items()} == pytest.approx(EDGES)
    assert POST.to_networkx(0.5).number_of_edges() == 2


def test_dot_is_read_as_it_was_meant():
    text = POST.to_dot()
    labels = dict(re.findall(r'^  (n\d) \[label=("(?:[^"\\]|\\.)*")\];$', text, re.MULTILINE))
    assert [json.loads(label) for label in labels.values()] == list(NAMES)  # the two escapes are those of JSON
    edges = re.findall(r"(n\d) -> (n\d) .*probability=([\d.e-]+)\]", text)
    assert {(NAMES[int(a[1])], NAMES[int(b[1])]): float(p) for a, b, p in edges} == pytest.approx(EDGES)
    assert len(re.findall("->", POST.to_dot(threshold=0.5))) == 2


RECORD = RunRecord(
    targets=TargetProbabilities(["<x>&y", "=cmd()\n", 'a"b'], [[0.9, 0, 0, 0, 0.04], [0] * 5, [0] * 5], [])
)
"""Conditions, two of which are called like columns; the last two change nothing."""
PERTURBED = replace(POST, names=("=cmd()", 'a"b', "<x>&y", "condition <x>&y", "β 2"), record=RECORD)


def test_conditions_are_nodes_of_their_own_in_graphml():
    graph = nx.parse_graphml(PERTURBED.to_graphml(0.1))
    kinds = nx.get_node_attributes(graph, "kind")
    assert [n for n, kind in kinds.items() if kind == "variable"] == list(PERTURBED.names)
    nodes = [n for n, kind in kinds.items() if kind == "condition"]
    assert nodes == ["condition <x>&y'", "condition =cmd()\\n", 'condition a"b']  # the first was taken by a column
    assert [graph.nodes[n]["label"] for n in nodes] == ["<x>&y", "=cmd()\\n", 'a"b']
    of = {
        kind: {e for e, k in nx.get_edge_attributes(graph, "kind").items() if k == kind} for kind in ("cause", "target")
    }
    assert of["target"] == {(nodes[0], "=cmd()")} and len(of["cause"]) == 3
    assert graph.edges[nodes[0], "=cmd()"]["probability"] == 0.9
    assert nx.parse_graphml(PERTURBED.to_graphml()).number_of_edges() == 5  # the same threshold for all edges
    assert set(PERTURBED.to_networkx()) == set(PERTURBED.names)  # the graph of variables stays one
    assert "kind" not in POST.to_graphml() and "kind" not in POST.to_dot()


def test_conditions_are_ellipses_in_dot():
    text = PERTURBED.to_dot()
    nodes = re.findall(r'^  (c\d) \[label=("(?:[^"\\]|\\.)*"), shape=ellipse.* kind=condition\];$', text, re.MULTILINE)
    assert [json.loads(label) for _, label in nodes] == ["<x>&y", "=cmd()\\n", 'a"b']
    assert text.count("kind=variable") == 5 and text.count("kind=cause") == 3
    assert re.findall(r"(c\d) -> (n\d) .*probability=([\d.]+).* kind=target", text) == [("c0", "n0", "0.9")]
    assert len(re.findall("c0 -> ", PERTURBED.to_dot(0.01))) == 2


def test_tables_of_edges_have_no_conditions():
    assert PERTURBED.edge_marginals.shape == (5, 5) and PERTURBED.to_csv().count("\n") == 21
    assert "->" in PERTURBED.to_dagitty() and PERTURBED.to_dagitty().count("condition") == 2


def test_dagitty():
    lines = POST.to_dagitty().splitlines()
    assert lines[0] == "dag {" and lines[-1] == "}"
    assert '"=cmd()" -> "a\\"b"' in lines and '"<x>&y" -> "back\\slash"' in lines
    assert sum("->" in line for line in lines) == 2
    assert sum("->" in line for line in POST.to_dagitty(POST.graphs[1]).splitlines()) == 2
    with pytest.raises(InputError, match="cannot represent the name"):
        Posterior(GRAPHS[:, :1, :1], np.zeros(2), ("a\\",), dp.BGe(), dp.Uniform()).to_dagitty()


def test_csv_cells_are_no_formulas():
    table = pd.read_csv(io.StringIO(POST.to_csv()))
    assert list(table.columns) == ["cause", "effect", "probability", "adjacent", "direction"]
    assert len(table) == 20 and table.iloc[1].tolist()[:3] == ["'=cmd()", 'a"b', 0.75]
    for text in ("=1", "+1", "-1", "@x", "\tx", "\rx", " =1"):
        assert neutral(text) == "'" + text
    for text in ("a", "1-2", "", "β=1"):
        assert neutral(text) == text


@pytest.mark.parametrize("ending", ["csv", "graphml", "dot", "dagitty"])
def test_files_by_their_ending(ending, tmp_path):
    path = POST.export(tmp_path / f"a.{ending}")
    assert path.read_text(encoding="utf-8") == getattr(POST, f"to_{ending}")()
    with pytest.raises(InputError, match="exists"):
        POST.export(path)
    POST.export(path, overwrite=True)


def test_unknown_endings_are_named(tmp_path):
    with pytest.raises(InputError, match=r"unknown file extension '\.grapml': did you mean '\.graphml'"):
        POST.export(tmp_path / "a.grapml")


def test_xarray():
    tree = POST.to_xarray()
    assert tree["posterior/graph"].sel(cause="=cmd()", effect='a"b').values.tolist() == [[True, False]]
    np.testing.assert_allclose(np.exp(tree["sample_stats/log_weight"]), [[0.75, 0.25]])
