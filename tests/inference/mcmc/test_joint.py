"""M-MC³ and G-MC³: proposals against enumeration, chains against exact posteriors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import all_dags
from dagpost.inference.mcmc.joint import joint_mc3, joint_mc3_batched, propose, valid_edits
from dagpost.inference.mcmc.mc3 import Thinning
from dagpost.inference.mcmc.structure import neighbours, structure_of


@pytest.mark.parametrize("d", [3, 4])
def test_possible_edits_are_all_neighbours(d):
    graphs = all_dags(d)
    counts = jax.vmap(lambda g: valid_edits(g).sum())(jnp.asarray(graphs, dtype=float))
    assert np.asarray(counts).astype(int).tolist() == [neighbours(structure_of(g)) for g in graphs]


@pytest.mark.slow
def test_proposals_are_uniform_neighbours():
    graph = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    keys = jax.random.split(jax.random.key(0), 3000)
    drawn, log_size = jax.vmap(lambda k: propose(k, jnp.asarray(graph, dtype=float)))(keys)
    found, counts = np.unique(np.asarray(drawn).reshape(3000, -1), axis=0, return_counts=True)
    assert len(found) == neighbours(structure_of(graph.astype(bool))) == round(float(np.exp(log_size[0])))
    assert counts == pytest.approx(np.full(len(found), 3000 / len(found)), abs=5 * np.sqrt(3000 / len(found)))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "scale"), [("m-mc3", 0.3), ("g-mc3", None)])
def test_graphs_follow_the_exact_posterior(method, scale):
    # few rows of large noise: both the graph and the weights move freely
    model = dp.LinearGaussian(noise_variance=1.0)
    rng = np.random.default_rng(1)
    values = rng.standard_normal((12, 3))
    values[:, 1] += 0.7 * values[:, 0]
    exact = dp.exact(values, model, draws=4000, parameters=True)
    options = {"particles": 3000, "burn_in": 20_000, "thin": 100, "neighbourhood": "exact", "scale": scale, "seed": 1}
    post = dp.fit(values, model, method=method, **options)
    if scale is None:
        assert post.info["acceptance"] == pytest.approx(0.2, abs=0.08)
    assert post.edge_marginals == pytest.approx(exact.edge_marginals, abs=0.08)
    present = np.where(post.graphs, np.asarray(post.theta), 0.0).mean(axis=0)
    assert present == pytest.approx(np.asarray(exact.theta).mean(axis=0), abs=0.08)


@pytest.mark.long
def test_mlp_runs_and_a_given_scale_is_kept():
    sim = dp.simulate("mlp", nodes=4, observations=20, seed=0, interventional_sets=0)
    post = dp.fit(sim.train, "mlp", method="g-mc3", particles=2, burn_in=20, thin=10, scale=0.01)
    assert post.info["scale"] == pytest.approx(0.01)
    assert len(post) == 2


def test_a_model_without_parameters_is_sent_to_mc3():
    sim = dp.simulate("bge", nodes=4, observations=20, seed=0, interventional_sets=0)
    with pytest.raises(InputError, match="use 'mc3'"):
        dp.fit(sim.train, "bge", method="m-mc3")


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["m", "g"])
def test_together_is_as_alone(variant):
    """Few steps, so that rounding has no time to grow."""
    sets = [dp.simulate(nodes=4, observations=30, seed=seed, interventional_sets=0).train for seed in (1, 2, 3)]
    common = {"variant": variant, "particles": 3, "thinning": Thinning(burn_in=50, thin=10)}
    together = joint_mc3_batched(sets, dp.LinearGaussian(), dp.ErdosRenyi(), seeds=(5, 6, 7), **common)
    for data, seed, one in zip(sets, (5, 6, 7), together):
        alone = joint_mc3(data, dp.LinearGaussian(), dp.ErdosRenyi(), seed=seed, **common)
        assert np.array_equal(one.graphs, alone.graphs)
        assert np.allclose(one.theta, alone.theta, rtol=1e-3, atol=1e-3)
        assert one.info["method"] == alone.info["method"]
        assert one.info["scale"] == pytest.approx(alone.info["scale"], rel=1e-3)
        assert one.info["acceptance"] == pytest.approx(alone.info["acceptance"], abs=1e-6)
        assert one.log_joint == pytest.approx(alone.log_joint, rel=1e-3)
    assert len({one.graphs.tobytes() for one in together}) == 3


def test_sets_of_different_shapes_are_refused():
    sets = [dp.simulate(nodes=4, observations=n, seed=1, interventional_sets=0).train for n in (20, 30)]
    with pytest.raises(InputError, match="one shape"):
        joint_mc3_batched(
            sets, dp.LinearGaussian(), dp.ErdosRenyi(), seeds=(0, 1), variant="m", particles=2, thinning=Thinning()
        )
