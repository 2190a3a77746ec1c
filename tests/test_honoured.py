"""Knowledge is never violated: random knowledge, every method that takes it, every graph."""

import jax
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import is_acyclic
from dagpost.inference.dibs import Estimator, default_settings, infer
from dagpost.inference.dibs.inference import prepare
from dagpost.inference.dibs.latent import limiting_graph
from dagpost.inference.dibs.particles import to_posterior
from dagpost.inference.dibs.svgd import Snapshot
from dagpost.inference.fit import METHODS
from dagpost.inference.mcmc.refine import Effort, refine
from dagpost.priors import informed
from tests.knowledge_sets import random_knowledge, violations

NAMES = ("a", "b->c", "c", "Erk 1/2", "e")
SIM = dp.simulate("linear", nodes=5, observations=20, seed=3, interventional_sets=0)
DATA = dp.Dataset(SIM.train.values, names=NAMES)
SHORT = {"particles": 4, "burn_in": 50, "thin": 5}
SMALL = {
    "auto": {"particles": 3, "steps": 4, "draws": 20, "max_moves": 1},
    "dibs": {"particles": 3, "steps": 4, "moves": 20},
    "dibs-paper": {"particles": 3, "steps": 4, "cyclic": "repair", "estimator": Estimator("gumbel", "graph", 4)},
    "mc3": SHORT,
    "m-mc3": SHORT,
    "g-mc3": SHORT,
    "exact": {},
}
COMPILED_ANEW = ("auto", "dibs", "dibs-paper", "m-mc3", "g-mc3")
"""Methods whose JAX code is compiled for each prior, some seconds each."""


def check(graphs, knowledge):
    assert is_acyclic(graphs).all()
    for graph in np.unique(graphs.reshape(len(graphs), -1), axis=0).reshape(-1, 5, 5):
        assert violations(graph, NAMES, knowledge) == [], knowledge


def run(method, sets, seed):
    rng = np.random.default_rng(seed)
    for n in range(sets):
        knowledge = random_knowledge(rng, NAMES)
        model = "linear" if method in COMPILED_ANEW or n % 2 else "bge"
        post = dp.fit(DATA, model, method=method, knowledge=knowledge, seed=n, progress=False, **SMALL[method])
        check(post.graphs, knowledge)
        assert (post.edge_marginals[~knowledge.bound(NAMES).allowed] == 0).all()
        assert post.edge_marginals[knowledge.bound(NAMES).required] == pytest.approx(1, abs=1e-12)  # a sum, rounded
        assert post.info["knowledge"] == knowledge.resolved(NAMES).as_dict()
        if method in COMPILED_ANEW and n % 10 == 9:
            jax.clear_caches()  # hundreds of compiled programs in one process take more memory maps than Linux allows


@pytest.mark.slow
@pytest.mark.parametrize("method", SMALL)
def test_every_graph_honours_it(method):
    run(method, 2 if method in COMPILED_ANEW else 100, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("method", SMALL)
def test_every_graph_honours_it_at_length(method):
    run(method, 100 if method in COMPILED_ANEW else 2000, seed=1)


@pytest.mark.slow
def test_whatever_z_says():
    """The graphs of DiBS depend on z alone, so any z will do in place of a run."""
    rng = np.random.default_rng(2)
    model = dp.BGe()
    for n in range(300):
        knowledge = random_knowledge(rng, NAMES)
        settings = default_settings(model, 5, 20, moves=10 * (n % 2))
        prior = informed(dp.ErdosRenyi(), knowledge, NAMES)
        target, _, stats = prepare(model, prior, settings, DATA, 8)
        z = rng.normal(size=(8, 5, 5, 2)) * 3
        graphs = np.asarray(limiting_graph(np.einsum("mik,mjk->mij", z[..., 0], z[..., 1]), target.known))
        last = Snapshot(1, 1, 1, 1.0, 1.0, z, (), np.zeros_like(graphs, dtype=float), graphs, 0)
        post = to_posterior(target, last, DATA, stats, jax.random.key(n), "dibs", False)
        assert len(post) == 8
        check(post.graphs, knowledge)
        assert np.isfinite(post.log_joint).all()


@pytest.mark.slow
def test_chains_from_any_start():
    """The second half of "auto", without the DiBS run before it."""
    rng = np.random.default_rng(3)
    model = dp.LinearGaussian()
    stats = model.summarise(DATA)
    for n in range(20):
        knowledge = random_knowledge(rng, NAMES)
        prior = informed(dp.ErdosRenyi(), knowledge, NAMES)
        first = np.stack([prior.sample(key, 5) for key in jax.random.split(jax.random.key(n), 3)])
        effort = Effort(max_moves=1)
        found = refine(first, model, prior, stats, jax.random.key(n), rows=20, draws=100, effort=effort, progress=False)
        check(found.graphs, knowledge)


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(SMALL)))
def test_methods_that_cannot_honour_it_refuse(method):
    with pytest.raises(
        InputError, match=f"{method} cannot be held to prior knowledge or to lags: .* 'auto', 'exact', 'dibs'"
    ):
        dp.fit(DATA, method=method, knowledge={"roots": ["a"]}, particles=2)


@pytest.mark.slow
def test_a_prior_with_knowledge_of_its_own():
    prior = informed(dp.Uniform(), dp.Knowledge(required=["a -> c"]), NAMES)
    assert dp.fit(DATA, "bge", prior, method="exact").graphs[:, 0, 2].all()
    with pytest.raises(InputError, match="carries knowledge already"):
        dp.fit(DATA, "bge", prior, method="exact", knowledge={"roots": ["a"]})
    with pytest.raises(InputError, match="knows about 5 nodes, but the data have 4 columns"):
        dp.fit(DATA.values[:, :4], "bge", prior)


@pytest.mark.slow
def test_without_knowledge_nothing_changes():
    settings = default_settings(dp.BGe(), 5, 20, steps=5, moves=50)
    plain = infer(DATA, dp.BGe(), dp.ErdosRenyi(), settings, particles=3)
    told = dp.fit(DATA, "bge", method="dibs", knowledge={}, particles=3, steps=5, moves=50)
    np.testing.assert_array_equal(plain.graphs, told.graphs)
    assert told.info["knowledge"] == {} and "knowledge" not in plain.info


@pytest.mark.parametrize("method", ["auto", "mc3", "exact"])
def test_errors_come_before_the_work(method):
    with pytest.raises(InputError, match="unknown name 'Erk' in required"):
        dp.fit(DATA, "bge", method=method, knowledge={"required": ["Erk -> a"]})
