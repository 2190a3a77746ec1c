from itertools import permutations, product
from math import comb

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from dagpost.errors import InputError
from dagpost.graphs import cyclicity, cyclicity_gradient, find_cycle, is_acyclic, topological_order, without_cycles
from dagpost.graphs.acyclicity import MOST_UNSCALED


def all_digraphs(d):
    pairs = [(i, j) for i in range(d) for j in range(d) if i != j]
    graphs = np.zeros((2 ** len(pairs), d, d), dtype=bool)
    for m, bits in enumerate(product([False, True], repeat=len(pairs))):
        for (i, j), bit in zip(pairs, bits):
            graphs[m, i, j] = bit
    return graphs


def cycle(d, length):
    graph = np.zeros((d, d), dtype=bool)
    for a in range(length):
        graph[a, (a + 1) % length] = True
    return graph


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_agrees_with_networkx_on_every_digraph(d):
    graphs = all_digraphs(d)
    expected = [nx.is_directed_acyclic_graph(nx.from_numpy_array(g, create_using=nx.DiGraph)) for g in graphs]
    np.testing.assert_array_equal(is_acyclic(graphs), expected)


def test_hamiltonian_cycles_are_cycles_and_paths_are_not():
    rng = np.random.default_rng(0)
    for d in range(3, 101):
        names = rng.permutation(d)
        graph = cycle(d, d)[np.ix_(names, names)]
        assert not is_acyclic(graph)
        assert sorted(find_cycle(graph)) == list(range(d))
        a, b = np.argwhere(graph)[0]
        graph[a, b] = False
        assert is_acyclic(graph)
        assert find_cycle(graph) is None


def test_float32_h_misses_long_cycles():
    """Why the decision is combinatorial: h of a long cycle rounds to zero in float32."""
    assert float(cyclicity(jnp.asarray(cycle(20, 20), dtype=jnp.float32))) == 0.0
    assert not is_acyclic(cycle(20, 20))


def test_self_loop_is_a_cycle():
    assert not is_acyclic(np.eye(3, dtype=bool))
    assert find_cycle(np.eye(3, dtype=bool)) == [0]


def test_found_cycle_is_one():
    rng = np.random.default_rng(1)
    for _ in range(200):
        graph = rng.random((7, 7)) < 0.25
        np.fill_diagonal(graph, False)
        found = find_cycle(graph)
        if found is None:
            assert is_acyclic(graph)
        else:
            assert all(graph[a, b] for a, b in zip(found, found[1:] + found[:1]))
            assert len(set(found)) == len(found)


def test_topological_order_puts_parents_first():
    rng = np.random.default_rng(2)
    for _ in range(50):
        names = rng.permutation(12)
        graph = np.triu(rng.random((12, 12)) < 0.3, 1)[np.ix_(names, names)]
        position = np.argsort(topological_order(graph))
        for i, j in np.argwhere(graph):
            assert position[i] < position[j]


def test_topological_order_of_a_cycle_names_it():
    with pytest.raises(InputError, match=r"the graph has a cycle: \d -> \d -> \d -> \d$"):
        topological_order(cycle(3, 3))


@pytest.mark.slow
def test_h_of_a_k_cycle_is_known():
    with jax.enable_x64(True):
        for d, k in [(3, 2), (3, 3), (5, 4), (10, 2), (10, 7), (30, 9)]:
            value = float(cyclicity(jnp.asarray(cycle(d, k), dtype=float)))
            # tr(G^m) = k for every multiple m of k; the trace carries the rounding of d, hence the absolute part
            expected = sum(comb(d, m) * k / d**m for m in range(k, d + 1, k))
            assert value == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_h_is_zero_exactly_on_dags():
    graphs = all_digraphs(3)
    with jax.enable_x64(True):
        values = np.array([float(cyclicity(jnp.asarray(g, dtype=float))) for g in graphs])
    np.testing.assert_array_equal(values < 1e-12, is_acyclic(graphs))


def test_gradient_is_analytic_and_autodiff_uses_it():
    with jax.enable_x64(True):
        graph = jnp.asarray(np.random.default_rng(3).random((6, 6)))
        expected = jax.grad(lambda g: jnp.trace(jnp.linalg.matrix_power(jnp.eye(6) + g / 6, 6)))(graph)
        np.testing.assert_allclose(cyclicity_gradient(graph), expected, rtol=1e-12)
        np.testing.assert_allclose(jax.grad(cyclicity)(graph), expected, rtol=1e-12)
        np.testing.assert_allclose(jax.vmap(jax.grad(cyclicity))(graph[None])[0], expected, rtol=1e-12)


def test_h_does_not_depend_on_labels():
    with jax.enable_x64(True):
        graph = np.random.default_rng(4).random((4, 4))
        values = [float(cyclicity(jnp.asarray(graph[np.ix_(p, p)]))) for p in permutations(range(4))]
        assert np.ptp(values) < 1e-12


@pytest.mark.parametrize("bad", [np.zeros((2, 3)), np.zeros(4), np.full((2, 2), 2)])
def test_bad_matrices_are_refused(bad):
    with pytest.raises(InputError):
        is_acyclic(bad)


@pytest.mark.parametrize(
    "d", [30, MOST_UNSCALED, pytest.param(200, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.slow)]
)
def test_gradient_of_a_dense_soft_graph_is_finite_in_single_precision(d):
    """Edge probabilities of 1/2, where DiBS starts: 1.5^499 is 1e87, above what single precision holds."""
    half = jnp.full((d, d), 0.5, dtype=jnp.float32) * (1 - jnp.eye(d, dtype=jnp.float32))
    gradient = np.asarray(jax.grad(cyclicity)(half))
    assert np.isfinite(gradient**2).all() and gradient.min() > 0
    with jax.enable_x64(True):
        exact = np.linalg.matrix_power(np.eye(d) + np.asarray(half, dtype=np.float64) / d, d - 1).T
    scale = min(1.0, 1e12 / exact.max())
    np.testing.assert_allclose(gradient, scale * exact, rtol=1e-3)


def test_dense_graphs_keep_their_strongest_edges():
    """Against the same rule step by step: an edge is left out if it closes a cycle with stronger ones."""
    rng = np.random.default_rng(8)
    strength = rng.random((70, 70))
    dense = rng.random((70, 70)) < 0.4
    np.fill_diagonal(dense, False)
    found = without_cycles(dense, strength)
    assert is_acyclic(found) and not (found & ~dense).any()
    expected = np.zeros_like(dense)
    for edge in np.argsort(-strength, axis=None):
        i, j = divmod(int(edge), 70)
        if dense[i, j]:
            expected[i, j] = True
            expected[i, j] = bool(is_acyclic(expected))
    np.testing.assert_array_equal(found, expected)
