"""The prior that carries knowledge: densities by enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import all_dags, is_acyclic
from dagpost.inference.exact.families import members, prior_table
from dagpost.posterior import log_prior_of
from dagpost.priors import InformedPrior, informed
from tests.knowledge_sets import random_knowledge, violations

NAMES = ("a", "b", "c", "d")
BASES = [dp.ErdosRenyi(probability=0.2), dp.ScaleFree(), dp.Uniform()]
GRAPHS = all_dags(4)


class Sparse(dp.GraphPrior):
    """A prior that looks at the whole graph."""

    name = "sparse"
    decomposes = False

    def log_density(self, graph):
        return -0.3 * jnp.sum(jnp.asarray(graph, dtype=float)) ** 2

    def sample(self, key, d):
        return np.zeros((d, d), dtype=bool)


@pytest.mark.parametrize("base", [*BASES, Sparse()], ids=lambda p: p.name)
def test_hard_knowledge_confines_and_changes_nothing_else(base):
    rng = np.random.default_rng(0)
    for _ in range(5):
        knowledge = random_knowledge(rng, NAMES, probabilities=False)
        density = log_prior_of(GRAPHS, informed(base, knowledge, NAMES))
        honoured = np.array([not violations(graph, NAMES, knowledge) for graph in GRAPHS])
        assert np.isneginf(density[~honoured]).all()
        assert density[honoured] == pytest.approx(log_prior_of(GRAPHS[honoured], base), abs=1e-9)


@pytest.mark.parametrize("base", [*BASES, Sparse()], ids=lambda p: p.name)
def test_odds_given_the_rest_are_the_stated_ones(base):
    """Of any two DAGs that differ in the edge alone, whatever the base prior thinks of it."""
    prior = informed(base, dp.Knowledge(probabilities={"a -> b": 0.9, "c -> b": 0.2}), NAMES)
    density = {g.tobytes(): x for g, x in zip(GRAPHS, log_prior_of(GRAPHS, prior))}
    plain = {g.tobytes(): x for g, x in zip(GRAPHS, log_prior_of(GRAPHS, base))}
    compared = 0
    for edge, odds in [((0, 1), 0.9 / 0.1), ((2, 1), 0.2 / 0.8)]:
        for graph in GRAPHS[GRAPHS[:, *edge]]:
            without = graph.copy()
            without[edge] = False
            assert density[graph.tobytes()] - density[without.tobytes()] == pytest.approx(np.log(odds), abs=1e-9)
            compared += 1
    assert compared > 200
    for graph in GRAPHS[~GRAPHS[:, 0, 1] & ~GRAPHS[:, 2, 1]]:
        assert density[graph.tobytes()] == pytest.approx(plain[graph.tobytes()], abs=1e-9)


def test_marginals_of_one_pair():
    """Two nodes: no edge, a -> b, b -> a have weights 1, p / (1 - p) and the base's odds of an edge."""
    prior = informed(dp.ErdosRenyi(probability=0.3), dp.Knowledge(probabilities={"a -> b": 0.8}), ("a", "b"))
    graphs = all_dags(2)
    weights = np.exp(log_prior_of(graphs, prior))
    share = weights[graphs[:, 0, 1]].sum() / weights.sum()
    assert share == pytest.approx(4 / (1 + 4 + 3 / 7))


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES, ids=lambda p: p.name)
def test_columns_table_and_density_agree(base):
    rng = np.random.default_rng(1)
    for _ in range(5):
        prior = informed(base, random_knowledge(rng, NAMES), NAMES)
        by_set = prior_table(prior, 4)
        table = prior.column_table(4)
        for subset, row in enumerate(members(4)):
            for j in np.flatnonzero(~row):
                counted = row if table.uncounted is None else row & ~table.uncounted[:, j]
                value = table.by_count[j, counted.sum()] + table.by_edge[row, j].sum()
                if table.required is not None and (table.required[:, j] & ~row).any():
                    value = -np.inf
                if table.most is not None and row.sum() > table.most:
                    value = -np.inf
                assert by_set[j, subset] == pytest.approx(value, abs=1e-9)
        codes = np.einsum("mij,i->mj", GRAPHS.astype(int), 1 << np.arange(4))
        by_columns = by_set[np.arange(4), codes].sum(axis=1)
        assert log_prior_of(GRAPHS, prior) == pytest.approx(by_columns, abs=1e-9)
        with jax.enable_x64(True):
            in_jax = jax.vmap(prior.log_density)(jnp.asarray(GRAPHS, dtype=float))
        assert np.asarray(in_jax) == pytest.approx(by_columns, abs=1e-9)


def test_only_graphs_with_the_required_edges_have_a_density():
    prior = informed(dp.ErdosRenyi(), dp.Knowledge(required=["a -> b"]), NAMES)
    densities = jax.vmap(prior.log_density)(jnp.asarray(GRAPHS, dtype=float))
    assert (np.isfinite(densities) == GRAPHS[:, 0, 1]).all()


@pytest.mark.parametrize("base", BASES, ids=lambda p: p.name)
def test_soft_graphs_have_finite_densities_and_gradients(base):
    prior = informed(base, random_knowledge(np.random.default_rng(3), NAMES), NAMES)
    assert prior.constraints is not None
    for soft in (np.full((4, 4), 0.3), np.ones((4, 4)), np.zeros((4, 4))):
        value, gradient = jax.value_and_grad(prior.log_soft_density)(jnp.asarray(soft))
        assert np.isfinite(value) and np.isfinite(gradient).all()


def test_samples_honour_it_and_are_fixed_by_the_key():
    rng = np.random.default_rng(4)
    for n in range(30):
        knowledge = random_knowledge(rng, NAMES)
        prior = informed(dp.ErdosRenyi(), knowledge, NAMES)
        graph = prior.sample(jax.random.key(n), 4)
        assert is_acyclic(graph) and not violations(graph, NAMES, knowledge)
        np.testing.assert_array_equal(graph, prior.sample(jax.random.key(n), 4))


def test_nothing_known_leaves_the_prior_as_it_is():
    base = dp.ScaleFree()
    assert informed(base, None, NAMES) is base
    assert informed(base, dp.Knowledge(max_parents=3, tiers=[["a", "b"]]), NAMES) is base


def test_compared_by_value():
    one, two = (informed(dp.ErdosRenyi(), dp.Knowledge(required=["a -> b"]), NAMES) for _ in range(2))
    assert one == two and hash(one) == hash(two)
    assert one != informed(dp.ErdosRenyi(), dp.Knowledge(required=["b -> a"]), NAMES)
    assert one.decomposes and not informed(Sparse(), dp.Knowledge(roots=["a"]), NAMES).decomposes


def test_errors():
    prior = informed(dp.ErdosRenyi(), dp.Knowledge(required=["a -> b"]), NAMES)
    with pytest.raises(InputError, match="carries knowledge already"):
        informed(prior, dp.Knowledge(roots=["a"]), NAMES)
    with pytest.raises(InputError, match="knows about 4 nodes, but the data have 3 columns"):
        informed(prior, None, ("a", "b", "c"))
    with pytest.raises(InputError, match="knows about 4 nodes, not 3"):
        prior.sample(jax.random.key(0), 3)
    assert isinstance(prior, InformedPrior) and informed(prior, None, NAMES) is prior
