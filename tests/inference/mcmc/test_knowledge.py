"""Chains under knowledge: they sample the posterior over the DAGs that it allows, and never leave them."""

import jax
import numpy as np
import pytest

import dagpost as dp
from dagpost.graphs import all_dags
from dagpost.inference.mcmc.ensembles import advance, recipe, start
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.posterior import log_joint_of
from dagpost.priors import InformedPrior, informed
from tests.inference.mcmc.test_moves import RECIPES, counts_of, p_value, problem

NAMES = ("a", "b", "c", "d")
EVERYTHING = dp.Knowledge(
    required=["a -> b"], forbidden=["c -> d"], leaves=["b"], max_parents=2, probabilities={"c -> b": 0.8, "d -> a": 0.1}
)
SETS = {
    "everything": EVERYTHING,
    "required": dp.Knowledge(required=["c -> a", "d -> a"]),
    "few parents": dp.Knowledge(max_parents=1),
    "tiers": dp.Knowledge(tiers=[["d", "c"], ["a"], ["b"]], probabilities={"d -> b": 0.9}),
}


def chains_for(prior, model, stats, count=4):
    scoring = scorer_for(model, prior, stats, 4)
    first = prior.sample(jax.random.key(0), 4)
    return scoring, [start(first[None], scoring, seed) for seed in range(count)]


def is_quick(moves, known):
    """Every kind of move under everything at once, all moves under every set, few parents in moves and knowledge."""
    return known == "everything" or moves == "all" or ("few parents" in moves and known == "few parents")


# 36 tests at level 1e-4: a correct chain fails one of them in about 280 sets of seeds
@pytest.mark.parametrize(
    ("moves", "known"),
    [
        pytest.param(moves, known, marks=() if is_quick(moves, known) else pytest.mark.slow)
        for moves in RECIPES
        if "affinity" not in RECIPES[moves]  # of three nodes
        for known in SETS
    ],
)
def test_stationary_distribution(moves, known):
    base = dp.ScaleFree(exponent=1.0) if known == "everything" else dp.ErdosRenyi(probability=0.3)
    model, _, stats = problem(d=4)
    prior = informed(base, SETS[known], NAMES)
    graphs = all_dags(4)
    log_weight = log_joint_of(graphs, (), model, prior, stats)
    exact = np.exp(log_weight - log_weight.max())
    scoring, chains = chains_for(prior, model, stats)
    steps = recipe(**{"most": 3, "pair": 20, **RECIPES[moves]})
    # draws that are far enough apart for Pearson's test: several rounds of moves for each
    advance(chains, scoring, [1.0], steps, 100)
    drawn = advance(chains, scoring, [1.0], steps, 10000, thin=5).graphs.reshape(-1, 4, 4)
    counts = counts_of(drawn, graphs)
    assert counts[np.isneginf(log_weight)].sum() == 0
    assert p_value(counts, exact / exact.sum()) > 1e-4


class Slow(InformedPrior):
    def column_table(self, d):
        return None


@pytest.mark.parametrize("known", SETS)
def test_scoring_in_python_gives_the_same_chain(known):
    model, base, stats = problem(d=4)
    fast = informed(base, SETS[known], NAMES)
    records = []
    for prior in (fast, Slow(fast.base, fast.known)):
        scoring, chains = chains_for(prior, model, stats, 1)
        records.append(advance(chains, scoring, [1.0], recipe(most=2, pair=9, parents=1, reversal=2, neighbour=3), 60))
    assert (records[0].graphs == records[1].graphs).all()
    assert records[0].log_posterior == pytest.approx(records[1].log_posterior)


@pytest.mark.parametrize("heat", [0.0, 0.2])
def test_hot_chains_keep_to_it_too(heat):
    model, base, stats = problem(d=4)
    prior = informed(base, EVERYTHING, NAMES)
    scoring, chains = chains_for(prior, model, stats)
    drawn = advance(chains, scoring, [heat], recipe(most=2, pair=9, parents=1, reversal=2), 500).graphs
    assert prior.known.honoured_by(drawn.reshape(-1, 4, 4)).all()
    assert len(np.unique(drawn.reshape(-1, 16), axis=0)) > 10


def test_auto_agrees_with_exact_inference():
    sim = dp.simulate("linear", nodes=5, observations=30, seed=5, interventional_sets=0)
    knowledge = {
        "required": ["x0 -> x3"],
        "forbidden": ["x1 -> x2"],
        "max_parents": 2,
        "probabilities": {"x4 -> x3": 0.95, "x2 -> x1": 0.05},
    }
    exact = dp.exact(sim.train, "linear", knowledge=knowledge)
    post = dp.fit(sim.train, "linear", knowledge=knowledge, precision=0.01)
    assert post.edge_marginals == pytest.approx(exact.edge_marginals, abs=0.04)  # four standard errors
    assert post.edge_marginals[0, 3] == 1 and post.edge_marginals[1, 2] == 0
    assert post.info["trusted"]


@pytest.mark.slow
@pytest.mark.parametrize("method, model", [("mc3", "bge"), ("g-mc3", "linear")])
def test_published_chains_agree_with_exact_inference(method, model):
    sim = dp.simulate(model, nodes=4, observations=20, seed=2, interventional_sets=0)
    knowledge = {"required": ["x0 -> x3"], "roots": ["x1"], "max_parents": 2}
    exact = dp.exact(sim.train, model, knowledge=knowledge)
    post = dp.fit(
        sim.train, model, method=method, knowledge=knowledge, particles=2000, burn_in=5000, thin=50,
        neighbourhood="exact",
    )  # fmt: skip
    assert post.edge_marginals == pytest.approx(exact.edge_marginals, abs=0.08)
    assert (post.graphs[:, 0, 3]).all() and not post.graphs[:, :, 1].any()


@pytest.mark.slow
def test_a_fully_known_graph():
    sim = dp.simulate("bge", nodes=3, observations=20, seed=2, interventional_sets=0)
    knowledge = {"required": ["x0 -> x1", "x1 -> x2"], "forbidden": ["x0 -> x2"]}
    for method, few in (
        ("auto", {"steps": 5, "particles": 2, "draws": 10}),
        ("mc3", {"burn_in": 10, "thin": 5, "particles": 3}),
    ):
        post = dp.fit(sim.train, "bge", method=method, knowledge=knowledge, **few)
        np.testing.assert_array_equal(post.edge_marginals, [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
