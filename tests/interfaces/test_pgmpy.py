"""The consensus graph as a pgmpy network has the edges and the d-separations of the graph."""

import itertools

import networkx as nx
import pytest

import dagpost as dp
from dagpost.errors import InputError

SIM = dp.simulate(nodes=4, observations=200, seed=3)
FRAME = SIM.train.frame().set_axis(["raf", "mek", "erk", "akt"], axis=1)


@pytest.mark.oracle
def test_pgmpy():
    pytest.importorskip("pgmpy")
    learner = dp.StructureLearner(method="exact").fit(FRAME.rename(columns={"raf": "raf, β 2"}))
    network, graph = dp.to_pgmpy(learner), learner.causal_graph_
    assert set(network.nodes()) == set(graph.nodes) and set(network.edges()) == set(graph.edges) != set()
    for one, other in itertools.combinations(graph.nodes, 2):
        for given in ([], *([node] for node in graph.nodes - {one, other})):
            separated = nx.is_d_separator(graph, {one}, {other}, set(given))
            assert network.is_dconnected(one, other, observed=given) != separated
    assert set(dp.to_pgmpy(learner.posterior_).edges()) == set(graph.edges)


def test_without_pgmpy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pgmpy.base", None)
    with pytest.raises(InputError, match="pip install pgmpy"):
        dp.to_pgmpy(dp.fit(FRAME, method="exact"))
