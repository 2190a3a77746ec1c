"""DiBS under knowledge: certain edges are certain in every sample, and z has no say in them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.inference.dibs import Estimator, default_settings, infer, paper_settings
from dagpost.inference.dibs.inference import prepare
from dagpost.inference.dibs.latent import (
    edge_probabilities,
    hard_graph,
    limiting_graph,
    log_graph_probability,
    soft_graph,
)
from dagpost.inference.dibs.svgd import initial_state
from dagpost.inference.dibs.target import gradients, likelihood_gradients
from dagpost.priors import informed

SIM = dp.simulate(nodes=5, observations=40, seed=1, interventional_sets=0)
NAMES = SIM.train.names
KNOWLEDGE = dp.Knowledge(
    required=["x0 -> x1", "x3 -> x1"], forbidden=["x2 -> x4"], roots=["x3"], max_parents=2,
    probabilities={"x4 -> x2": 0.9},
)  # fmt: skip
PRIOR = informed(dp.ErdosRenyi(), KNOWLEDGE, NAMES)
KNOWN = PRIOR.known


def certain(graphs):
    graphs = np.asarray(graphs, dtype=float)
    return (graphs[..., KNOWN.required] == 1).all() and (graphs[..., ~KNOWN.allowed] == 0).all()


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1e4])
def test_every_kind_of_graph_has_the_certain_edges(alpha):
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(5, 5)))
    noise = jax.random.logistic(jax.random.key(0), (100, 5, 5))
    assert certain(edge_probabilities(scores, alpha, KNOWN))
    assert certain(soft_graph(noise, scores, alpha, known=KNOWN))
    assert certain(hard_graph(noise, scores, alpha, KNOWN))
    assert certain(limiting_graph(scores, KNOWN)) and certain(limiting_graph(-scores, KNOWN))


def test_probabilities_of_graphs_sum_to_one_over_free_edges():
    known = informed(dp.ErdosRenyi(), dp.Knowledge(required=["a -> b"], forbidden=["a -> c"]), "abc").known
    scores = jnp.asarray(np.random.default_rng(1).normal(size=(3, 3)))
    free = np.argwhere(known.free)
    total = 0.0
    for bits in range(1 << len(free)):
        graph = known.required.astype(float)
        for k, (i, j) in enumerate(free):
            graph[i, j] = bits >> k & 1
        total += float(jnp.exp(jnp.sum(log_graph_probability(jnp.asarray(graph), scores, 1.3, known))))
    assert total == pytest.approx(1, rel=1e-5)


SETTINGS = {
    "flip": default_settings(dp.LinearGaussian(), 5, 40),
    "flip, log-mean": default_settings(dp.LinearGaussian(), 5, 40, estimator=Estimator("flip")),
    "gumbel": default_settings(dp.LinearGaussian(), 5, 40, collapsed=False),
    "straight-through": default_settings(
        dp.LinearGaussian(), 5, 40, collapsed=False, estimator=Estimator("straight-through")
    ),
    "score": default_settings(dp.LinearGaussian(), 5, 40, collapsed=False, estimator=Estimator("score")),
    "as published": paper_settings(dp.LinearGaussian(), 5, estimator=Estimator("gumbel", "graph", 8)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETTINGS)
def test_gradients_are_finite_and_leave_certain_edges_alone(kind):
    target, used, _ = prepare(dp.LinearGaussian(), PRIOR, SETTINGS[kind], SIM.train, 3)
    state = initial_state(target, jax.random.key(0), 3, 5)
    stats = jax.tree.map(jnp.asarray, used)
    scores = jax.vmap(target.settings.embedding.scores)(state.z)
    of_likelihood, of_all = (jax.jit(f, static_argnums=0) for f in (likelihood_gradients, gradients))
    for alpha in (0.0, 2.0, 200.0):
        by_scores, _ = of_likelihood(target, jax.random.key(1), scores, state.theta, alpha, stats)
        assert np.isfinite(by_scores).all() and not np.asarray(by_scores)[:, ~KNOWN.free].any()
        assert alpha == 0 or np.asarray(by_scores)[:, KNOWN.free].any()
        by_z, by_theta = of_all(target, jax.random.key(2), state.z, state.theta, alpha, 10.0, stats)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((by_z, by_theta)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, settings",
    [
        (dp.LinearGaussian(), default_settings(dp.LinearGaussian(), 5, 40, steps=40, moves=0)),
        (dp.LinearGaussian(), default_settings(dp.LinearGaussian(), 5, 40, steps=40)),
        (dp.BGe(), paper_settings(dp.BGe(), 5, steps=40, cyclic="repair")),
        pytest.param(dp.MlpGaussian(), default_settings(dp.MlpGaussian(), 5, 40, steps=5), marks=pytest.mark.long),
    ],
    ids=["particles", "with moves", "as published", "mlp"],
)
def test_returned_graphs_honour_it(model, settings):
    seen = []
    post = infer(SIM.train, model, PRIOR, settings, particles=6, callback=seen.append, every=20)
    assert KNOWN.honoured_by(post.graphs).all()
    assert np.isfinite(post.log_joint).all()
    assert all(certain(snap.edge_probabilities) and certain(snap.graphs) for snap in seen)


@pytest.mark.slow
def test_dropping_cyclic_particles_honours_it():
    settings = paper_settings(dp.LinearGaussian(), 5, steps=300, estimator=Estimator("gumbel", "graph", 8))
    post = infer(SIM.train, dp.LinearGaussian(), PRIOR, settings, particles=6)
    assert KNOWN.honoured_by(post.graphs).all()


@pytest.mark.slow
def test_knowledge_helps():
    """Required edges that are there and forbidden ones that are not: the rest is found no worse."""
    sim = dp.simulate(nodes=8, observations=50, seed=3, interventional_sets=0)
    names = sim.train.names
    edges = [(names[i], names[j]) for i, j in np.argwhere(sim.graph)]
    backwards = [edge[::-1] for edge in edges]
    plain = dp.fit(sim.train, method="dibs", particles=5, steps=300, moves=0)
    told = dp.fit(sim.train, method="dibs", particles=5, steps=300, moves=0, knowledge={"forbidden": backwards})
    assert dp.metrics.expected_shd(told, sim.graph) <= dp.metrics.expected_shd(plain, sim.graph)
