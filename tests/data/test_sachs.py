import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import find_cycle, is_acyclic

NAMES = ("praf", "pmek", "plcg", "PIP2", "PIP3", "p44/42", "pakts473", "PKA", "PKC", "P38", "pjnk")


def test_shape_names_and_values():
    data = dp.sachs()
    assert data.values.shape == (7466, 11)
    assert data.names == NAMES
    np.testing.assert_array_equal(data.values[0, :3], [26.4, 13.2, 8.82])
    assert not data.intervened.any()


def test_conditions():
    labels = dp.sachs_conditions()
    counts = labels.value_counts(sort=False)
    assert list(counts) == [853, 902, 911, 723, 810, 799, 848, 913, 707]
    assert labels.iloc[853] == "ICAM-2" and labels.iloc[-1] == "b2cAMP"
    assert dp.sachs(condition="U0126").observations == 799
    with pytest.raises(InputError, match="did you mean 'PMA'"):
        dp.sachs(condition="PMAA")


def test_interventions():
    data = dp.sachs(interventions=True)
    by_node = dict(zip(NAMES, data.intervened.sum(axis=0)))
    assert by_node == {
        **dict.fromkeys(NAMES, 0), "pakts473": 911, "PKC": 723 + 913, "PIP2": 810, "pmek": 799, "PKA": 707,
    }  # fmt: skip
    assert data.intervened.sum(axis=1).max() == 1


@pytest.mark.parametrize("name, edges, acyclic", [("cdt", 18, False), ("bnlearn", 17, True), ("sachs20", 20, True)])
def test_consensus_graphs(name, edges, acyclic):
    graph = dp.sachs_graph(name)
    assert tuple(graph.columns) == tuple(graph.index) == NAMES
    assert graph.to_numpy().sum() == edges
    assert is_acyclic(graph.to_numpy()) == acyclic
    assert graph.loc["praf", "pmek"] and not graph.loc["pmek", "praf"]


def test_the_cycle_of_the_papers_graph():
    cycle = find_cycle(dp.sachs_graph("cdt").to_numpy())
    assert {NAMES[i] for i in cycle} == {"plcg", "PIP2", "PIP3"}
