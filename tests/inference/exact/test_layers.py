"""Dynamic programming over layers against enumeration and counting."""

import numpy as np
import pytest

from dagpost.graphs import all_dags, is_acyclic
from dagpost.inference.exact.families import codes, log_weights, members
from dagpost.inference.exact.layers import backward_pass, family_probabilities, log_subset_sums
from dagpost.inference.exact.sampling import draw_graphs, most_probable_graph


def random_table(d, spread, seed):
    table = np.random.default_rng(seed).normal(scale=spread, size=(d, 1 << d))
    table[members(d).T] = -np.inf
    return table


def enumerated(table):
    """Normaliser and family probabilities by summing over all DAGs."""
    d = table.shape[0]
    graphs = all_dags(d)
    scores = log_weights(table, graphs)
    top = scores.max()
    weights = np.exp(scores - top)
    families = np.stack([np.bincount(c, weights=weights, minlength=1 << d) for c in codes(graphs).T])
    return top + np.log(weights.sum()), families / weights.sum(), graphs[scores.argmax()]


@pytest.mark.parametrize("d, count", [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281), (6, 3781503), (7, 1138779265)])
def test_unit_weights_count_dags(d, count):
    table = np.where(members(d).T, -np.inf, 0.0)
    assert np.exp(backward_pass(table).log_normaliser) == pytest.approx(count, rel=1e-12)


@pytest.mark.parametrize("d", [2, 3, 4, 5])
@pytest.mark.parametrize("spread", [0.1, 3.0, 50.0, 3000.0])
def test_agrees_with_enumeration(d, spread):
    for seed in range(5):
        table = random_table(d, spread, seed)
        normaliser, families, best = enumerated(table)
        layers = backward_pass(table)
        # a log weight of size `spread` carries an absolute rounding error of about spread * 1e-16
        tolerance = 1e-10 + 1e-14 * spread
        assert layers.log_normaliser == pytest.approx(normaliser, abs=tolerance, rel=1e-14)
        np.testing.assert_allclose(family_probabilities(layers), families, atol=tolerance)
        graph, value = most_probable_graph(table)
        np.testing.assert_array_equal(graph, best)
        assert value == pytest.approx(log_weights(table, best[None])[0], rel=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_impossible_families_have_probability_zero(share):
    """Parent sets with weight zero, as hard prior knowledge makes them."""
    for seed in range(5):
        table = random_table(4, 2.0, seed)
        rng = np.random.default_rng(100 + seed)
        table[(rng.random(table.shape) < share) & (np.arange(16) > 0)] = -np.inf
        normaliser, families, _ = enumerated(table)
        layers = backward_pass(table)
        assert layers.log_normaliser == pytest.approx(normaliser, abs=1e-10)
        found = family_probabilities(layers)
        np.testing.assert_allclose(found, families, atol=1e-10)
        assert (found[np.isneginf(table)] == 0).all()


def test_required_parents():
    """Node 1 must have parent 0, so the empty set is impossible for it."""
    table = random_table(4, 1.0, 0)
    table[1, ~members(4)[:, 0]] = -np.inf
    normaliser, families, _ = enumerated(table)
    layers = backward_pass(table)
    assert layers.log_normaliser == pytest.approx(normaliser, abs=1e-10)
    np.testing.assert_allclose(family_probabilities(layers), families, atol=1e-10)
    assert draw_graphs(np.random.default_rng(0), layers, 200)[:, 0, 1].all()


def test_contradiction_has_no_mass():
    table = random_table(3, 1.0, 0)
    table[0, ~members(3)[:, 1]] = -np.inf
    table[1, ~members(3)[:, 0]] = -np.inf
    assert backward_pass(table).log_normaliser == -np.inf


@pytest.mark.parametrize("d, spread", [(7, 1.0), (9, 30.0), (10, 3000.0)])
def test_parent_sets_of_every_node_sum_to_one(d, spread):
    families = family_probabilities(backward_pass(random_table(d, spread, 1)))
    np.testing.assert_allclose(families.sum(axis=1), 1, atol=1e-10)


def test_sampled_graphs_follow_the_probabilities():
    table = random_table(4, 1.0, 3)
    layers = backward_pass(table)
    graphs = draw_graphs(np.random.default_rng(4), layers, 50_000)
    assert is_acyclic(graphs).all()
    exact = np.exp(log_weights(table, all_dags(4)) - layers.log_normaliser)
    keys = {c.tobytes(): m for m, c in enumerate(codes(all_dags(4)))}
    counts = np.bincount([keys[c.tobytes()] for c in codes(graphs)], minlength=543)
    # graphs with an expected count below 5 are pooled; error rate 1e-4
    from scipy.stats import chisquare

    common = exact * 50_000 >= 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(exact[common], exact[~common].sum()) * 50_000
    assert chisquare(observed, expected).pvalue > 1e-4


def test_subset_sums_by_hand():
    table = random_table(3, 1.0, 5)
    sums = log_subset_sums(table)
    for s in range(8):
        inside = [p for p in range(8) if p & ~s == 0 and not p >> 2 & 1]
        assert sums[2, s] == pytest.approx(np.log(np.exp(table[2, inside]).sum()), rel=1e-12)


def test_result_does_not_depend_on_the_number_of_threads():
    import numba

    table = random_table(8, 5.0, 6)
    several = family_probabilities(backward_pass(table))
    numba.set_num_threads(1)
    try:
        one = family_probabilities(backward_pass(table))
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    np.testing.assert_array_equal(one, several)
