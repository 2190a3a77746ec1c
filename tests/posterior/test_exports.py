import io
import json
import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.posterior import Posterior
from dagpost.posterior.exports import neutral

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
