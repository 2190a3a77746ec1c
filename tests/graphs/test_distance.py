import numpy as np

from dagpost.graphs import all_dags, essential_hamming_distance, structural_hamming_distance


def edge(d, *pairs):
    graph = np.zeros((d, d), dtype=bool)
    for i, j in pairs:
        graph[i, j] = True
    return graph


def test_missing_extra_and_reversed_count_once():
    truth = edge(3, (0, 1), (1, 2))
    assert structural_hamming_distance(edge(3, (0, 1)), truth) == 1
    assert structural_hamming_distance(edge(3, (0, 1), (1, 2), (0, 2)), truth) == 1
    assert structural_hamming_distance(edge(3, (1, 0), (1, 2)), truth) == 1
    assert structural_hamming_distance(edge(3), truth) == 2


def test_undirected_against_directed_counts_once():
    assert structural_hamming_distance(edge(2, (0, 1), (1, 0)), edge(2, (0, 1))) == 1


def test_equivalent_graphs_have_essential_distance_zero():
    chain, reverse, collider = edge(3, (0, 1), (1, 2)), edge(3, (2, 1), (1, 0)), edge(3, (0, 1), (2, 1))
    assert essential_hamming_distance(chain, reverse) == 0
    assert structural_hamming_distance(chain, reverse) == 2
    # undirected chain against v-structure: both edges change their kind
    assert essential_hamming_distance(chain, collider) == 2


def test_it_is_a_metric_on_small_graphs():
    graphs = all_dags(3)
    table = np.array([structural_hamming_distance(graphs, g) for g in graphs])
    assert (table == table.T).all()
    assert (table.diagonal() == 0).all() and ((table == 0).sum() == len(graphs))
    assert (table[:, None, :] <= table[:, :, None] + table[None, :, :].transpose(0, 2, 1)).all()
