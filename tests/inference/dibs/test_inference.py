import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import AllCyclic, InputError
from dagpost.graphs import is_acyclic
from dagpost.inference.dibs import (
    Estimator,
    InnerProduct,
    Linear,
    ScalarEmbedding,
    default_settings,
    infer,
    paper_settings,
)
from dagpost.inference.dibs.inference import prepare
from dagpost.inference.dibs.particles import without_cycles
from dagpost.inference.dibs.svgd import Diverged, initial_state, run, step
from dagpost.models import as_model
from dagpost.models.family_evidence import CAREFUL
from dagpost.models.integrated import Integrated
from dagpost.posterior import log_joint_of

PRIOR = dp.ErdosRenyi()
SIM = dp.simulate(nodes=6, observations=60, seed=1, interventional_sets=0)


def quick(model, **changes):
    return default_settings(model, 6, 60, **{"steps": 30, **changes})


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, preset",
    [("bge", "dibs"), ("bge", "dibs-paper"), ("linear", "dibs-paper"), ("mlp", "dibs")]
    + [pytest.param(*pair, marks=pytest.mark.long) for pair in (("linear", "dibs"), ("mlp", "dibs-paper"))],
)
def test_every_model_runs_with_both_presets(name, preset):
    model = as_model(name)
    settings = quick(model) if preset == "dibs" else paper_settings(model, 6, steps=20, cyclic="repair")
    post = infer(SIM.train, model, PRIOR, settings, particles=4, seed=0, method=preset)
    assert is_acyclic(post.graphs).all() and len(post) == 4
    assert post.info["method"] == preset and post.info["steps"] == settings.steps
    assert post.log_joint is not None and np.isfinite(post.log_joint).all()
    assert (len(jax.tree.leaves(post.theta)) > 0) == (name != "bge")
    weighted = post.weighted("posterior")
    assert weighted.weights.sum() == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator, collapsed",
    [
        (Estimator("gumbel", "family", 4), False),
        (Estimator("straight-through", "family", 4), False),
        (Estimator("score", "graph", 4), False),
        (Estimator("gumbel", "family", 4), True),
        pytest.param(Estimator("gumbel", "graph", 4), False, marks=pytest.mark.long),
        pytest.param(Estimator("score", "family", 4), False, marks=pytest.mark.long),
        pytest.param(Estimator("flip", "family", 4), True, marks=pytest.mark.long),
        pytest.param(Estimator("score", "family", 4), True, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_every_estimator_runs(estimator, collapsed):
    model = dp.LinearGaussian()
    settings = quick(model, estimator=estimator, collapsed=collapsed, steps=5)
    assert len(infer(SIM.train, model, PRIOR, settings, particles=3)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("embedding", [InnerProduct(size=2), InnerProduct(size=9), ScalarEmbedding()], ids=str)
def test_every_embedding_runs(embedding):
    model = dp.LinearGaussian()
    assert len(infer(SIM.train, model, PRIOR, quick(model, embedding=embedding), particles=3)) == 3


@pytest.mark.slow
def test_seed_fixes_the_result_bit_for_bit():
    model = dp.LinearGaussian()
    for collapsed in (False, True):
        estimator = Estimator("flip" if collapsed else "gumbel", "family", 4)
        settings = quick(model, estimator=estimator, collapsed=collapsed)
        one, two = (infer(SIM.train, model, PRIOR, settings, particles=4, seed=5) for _ in range(2))
        other = infer(SIM.train, model, PRIOR, settings, particles=4, seed=6)
        np.testing.assert_array_equal(one.graphs, two.graphs)
        np.testing.assert_array_equal(one.theta, two.theta)
        assert (one.theta != other.theta).any()


@pytest.mark.parametrize("every", [7, 100])
def test_exactly_the_steps_asked_for(every):
    model = dp.LinearGaussian()
    seen = []
    post = infer(SIM.train, model, PRIOR, quick(model), particles=2, callback=seen.append, every=every)
    assert [s.step for s in seen] == [*range(every, 30, every), 30]
    assert post.info["steps"] == 30
    unwatched = infer(SIM.train, model, PRIOR, quick(model), particles=2)
    assert unwatched.info["steps"] == 30
    np.testing.assert_array_equal(unwatched.theta, post.theta)
    last = seen[-1]
    schedules = quick(model)
    assert last.alpha == pytest.approx(float(schedules.alpha(29))) and last.beta == pytest.approx(2000 * 29 / 30)
    assert last.edge_probabilities.shape == (2, 6, 6) and 0 <= last.cyclic <= 2


@pytest.mark.slow
def test_looking_does_not_change_the_run():
    model = dp.LinearGaussian()
    plain = infer(SIM.train, model, PRIOR, quick(model), particles=3)
    watched = infer(SIM.train, model, PRIOR, quick(model), particles=3, callback=lambda s: None, every=4)
    np.testing.assert_array_equal(plain.graphs, watched.graphs)
    np.testing.assert_array_equal(plain.theta, watched.theta)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", pytest.param("mlp", marks=pytest.mark.long)])
def test_chunks_do_not_change_the_step(name):
    model = as_model(name)
    settings = quick(model, estimator=Estimator("gumbel", "family", 4), collapsed=False)
    target, stats, _ = prepare(model, PRIOR, settings, SIM.train, 5)
    state = initial_state(target, jax.random.key(0), 5, 6)
    stepped = jax.jit(step, static_argnums=0)
    whole = stepped(target._replace(chunk=5), state, stats)
    parts = stepped(target._replace(chunk=2, sample_chunk=3), state, stats)
    for a, b in zip(jax.tree.leaves((whole.z, whole.theta)), jax.tree.leaves((parts.z, parts.theta))):
        np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "limit, particles, samples",
    [(1e-3, 1, 15), *(pytest.param(*case, marks=pytest.mark.long) for case in ((1.0, 30, 128), (0.02, 2, 128)))],
)
def test_memory_limit_holds(limit, particles, samples):
    """XLA's own account of the memory that a compiled step takes for its intermediate values."""
    model = dp.MlpGaussian()
    settings = paper_settings(model, 6, steps=1, memory_limit=limit)
    target, stats, _ = prepare(model, PRIOR, settings, SIM.train, 30)
    assert (target.chunk, target.sample_chunk) == (particles, samples)
    state = initial_state(target, jax.random.key(0), 30, 6)
    compiled = jax.jit(step, static_argnums=0).lower(target, state, jax.tree.map(np.asarray, stats)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < limit * 2**30


@pytest.mark.long
def test_minibatches_are_unbiased():
    """The gradient on minibatches, averaged over all of them, is that on all rows."""
    from dagpost.inference.dibs.target import likelihood_gradients

    model = dp.MlpGaussian()
    settings = quick(model, estimator=Estimator("gumbel", "graph", 1), batch=20)
    target, stats, _ = prepare(model, PRIOR, settings, SIM.train, 2)
    state = initial_state(target, jax.random.key(0), 2, 6)
    scores = jax.vmap(settings.embedding.scores)(state.z)
    gradients = jax.jit(likelihood_gradients, static_argnums=0)
    whole, _ = gradients(target, jax.random.key(1), scores, state.theta, 1.0, stats, 1.0)
    parts = []
    for start in range(0, 60, 20):
        rows = slice(start, start + 20)
        part = model.summarise(SIM.train.rows(rows))
        parts.append(gradients(target, jax.random.key(1), scores, state.theta, 1.0, part, 3.0)[0])
    # with one sample the log-mean-exp is the log likelihood itself, which is additive over rows
    np.testing.assert_allclose(np.mean(parts, axis=0), whole, rtol=2e-3, atol=1e-2)
    assert len(infer(SIM.train, model, PRIOR, settings, particles=2)) == 2


def test_weakest_edge_of_each_cycle_goes():
    graph = np.zeros((4, 4), dtype=bool)
    for i, j in [(0, 1), (1, 2), (2, 0), (2, 3), (3, 2)]:
        graph[i, j] = True
    scores = np.array([[0, 5, 0, 0], [0, 0, 4, 0], [0.5, 0, 0, 3], [0, 0, 1, 0]], dtype=float)
    repaired = without_cycles(graph, scores)
    assert is_acyclic(repaired)
    assert not repaired[2, 0] and not repaired[3, 2] and repaired.sum() == 3


def test_cyclic_particles_are_counted_and_never_returned():
    model = dp.LinearGaussian()
    settings = quick(model, steps=1, cyclic="drop")
    with pytest.raises(AllCyclic, match="all 3 particles have a cycle after 1 steps") as error:
        infer(SIM.train, model, PRIOR, settings, particles=3, seed=0)
    assert isinstance(error.value, InputError) and error.value.steps == 1
    repaired = infer(SIM.train, model, PRIOR, quick(model, steps=1), particles=3, seed=0)
    assert repaired.info["cyclic"] == 3 and is_acyclic(repaired.graphs).all()


@pytest.mark.slow
def test_divergence_keeps_the_last_good_state():
    model = dp.LinearGaussian()
    settings = quick(model, estimator=Estimator("gumbel", "family", 4), collapsed=False)
    target, stats, _ = prepare(model, PRIOR, settings, SIM.train, 2)
    state = initial_state(target, jax.random.key(0), 2, 6)
    broken = jax.tree.map(lambda leaf: leaf * np.nan if leaf.dtype.kind == "f" else leaf, stats)
    with pytest.raises(Diverged, match="between steps 0 and 10") as error:
        run(target, state, broken, 10)
    assert int(error.value.state.step) == 0


@pytest.mark.slow
def test_it_learns_the_graph():
    """A strong signal: the linear model finds directions, BGe (which cannot tell them all) the skeleton."""
    sim = dp.simulate(nodes=8, observations=200, seed=2, weight_shift=0.5, interventional_sets=0)
    linear = infer(sim.train, dp.LinearGaussian(), PRIOR, default_settings(dp.LinearGaussian(), 8, 200), particles=10)
    assert dp.metrics.auroc(linear, sim.graph) > 0.9
    bge = infer(sim.train, dp.BGe(), PRIOR, default_settings(dp.BGe(), 8, 200), particles=30)
    joined = (bge.graphs | bge.graphs.transpose(0, 2, 1)).mean(axis=0)
    truth = sim.graph | sim.graph.T
    assert joined[truth].mean() > 0.9 and joined[truth].mean() > 2 * joined[~truth].mean()


@pytest.mark.slow
def test_one_particle_is_a_map_estimate():
    model = dp.LinearGaussian()
    post = infer(SIM.train, model, PRIOR, quick(model, steps=300), particles=1)
    assert len(post) == 1 and post.log_joint[0] > -1000


def test_published_settings():
    settings = paper_settings(dp.BGe(), 20)
    assert settings.estimator == Estimator("score", "graph", 128, control_variate=False)
    assert settings.alpha == Linear(2.0) and settings.bandwidth_z == 2.0 and settings.acyclicity_samples == 32
    assert paper_settings(dp.LinearGaussian(), 50).bandwidth_theta == 1000
    assert paper_settings(dp.MlpGaussian(), 20).alpha == Linear(0.02)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"steps": 0}, "steps=0"),
        ({"bandwidth_z": 0.0}, "bandwidth_z"),
        ({"bandwidth_theta": float("nan")}, "bandwidth_theta"),
        ({"acyclicity": "exact"}, "acyclicity"),
        ({"cyclic": "keep"}, "cyclic"),
        ({"batch": 0}, "batch=0"),
        ({"estimator": Estimator("flip"), "collapsed": False}, "needs closed-form evidence"),
    ],
)
def test_bad_settings_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        dataclasses.replace(default_settings(dp.LinearGaussian(), 6, 60), **changes)


def test_impossible_combinations_are_named():
    with pytest.raises(InputError, match="no closed-form evidence"):
        infer(SIM.train, dp.MlpGaussian(), PRIOR, quick(dp.MlpGaussian(), estimator=Estimator("score"), collapsed=True))
    full = dp.BGe(scale_matrix=np.eye(6) + 0.1)
    with pytest.raises(InputError, match="diagonal scale_matrix"):
        infer(SIM.train, full, PRIOR, quick(full, estimator=Estimator("flip")))
    with pytest.raises(InputError, match="particles=0"):
        infer(SIM.train, dp.BGe(), PRIOR, quick(dp.BGe()), particles=0)


@pytest.mark.slow
@pytest.mark.parametrize("model", [dp.LinearGaussian(), dp.LinearGaussian(noise_variance=None), dp.MlpGaussian()])
def test_statistics_of_chosen_rows_are_those_of_a_smaller_table(model):
    from dagpost.inference.dibs.target import minibatch

    rng = np.random.default_rng(1)
    data = dp.Dataset(SIM.train.values, intervened=rng.random(SIM.train.values.shape) < 0.3)
    rows = jax.tree.map(jnp.asarray, model.rows(data))
    key = jax.random.key(3)
    found, scale = minibatch(key, model, rows, 20)
    chosen = np.asarray(jax.random.choice(key, 60, (20,), replace=False))
    few = dp.Dataset(data.values[chosen], intervened=data.intervened[chosen])
    graph, theta = np.asarray(PRIOR.sample(key, 6), dtype=float), model.sample_theta(key, 6)
    np.testing.assert_allclose(
        model.log_families(graph, theta, found), model.log_families(graph, theta, model.summarise(few)), rtol=1e-4
    )
    assert scale == 3.0


@pytest.mark.slow
def test_minibatches_as_published_are_not_scaled_up():
    """The authors add the log likelihood of a minibatch as it is, which makes the target that of so many rows."""
    from dagpost.inference.dibs.target import minibatch
    from dagpost.studies import Scale, study_by_name

    rows = dp.MlpGaussian().rows(SIM.train)
    assert [minibatch(jax.random.key(0), dp.MlpGaussian(), rows, 20, scaled)[1] for scaled in (True, False)] == [3, 1]
    assert minibatch(jax.random.key(0), dp.MlpGaussian(), rows, 100, True)[1] == 1
    for name in ("sachs", "sachs-noise"):
        for task in study_by_name(name).tasks(Scale(1)):
            if task.run["method"] == "dibs-paper" and task.run["model"] in ("linear", "mlp"):
                assert task.run["options"] == {"batch": 100, "scaled": False}
    for model in ("linear", "mlp"):
        post = dp.fit(SIM.train, model, method="dibs-paper", batch=10, scaled=False, steps=3, particles=2,
                      cyclic="repair", progress=False)  # fmt: skip
        assert len(post) == 2
    with pytest.raises(InputError, match="batch: closed forms"):
        dp.fit(SIM.train, "linear", method="dibs", batch=10)


@pytest.mark.slow
def test_parameters_settle_on_the_graph_of_their_particle():
    options = {"method": "dibs", "steps": 30, "particles": 4, "progress": False, "seed": 3}
    moving, settled = (dp.fit(SIM.train, "mlp", parameter_steps=n, **options) for n in (0, 300))
    np.testing.assert_array_equal(moving.graphs, settled.graphs)
    assert moving.log_joint is not None and settled.log_joint is not None
    assert (settled.log_joint > moving.log_joint + 10).all()
    again = dp.fit(SIM.train, "mlp", parameter_steps=300, **options)
    np.testing.assert_array_equal(again.log_joint, settled.log_joint)


@pytest.mark.slow
@pytest.mark.parametrize("model", [dp.LinearGaussian(), dp.MlpGaussian()], ids=lambda m: m.name)
def test_parameters_can_be_drawn_given_the_graphs(model):
    options = {
        "method": "dibs",
        "collapsed": False,
        "moves": 0,
        "steps": 30,
        "particles": 4,
        "progress": False,
        "seed": 3,
    }
    own, drawn = (dp.fit(SIM.train, model, draw_parameters=drawn, **options) for drawn in (False, True))
    np.testing.assert_array_equal(own.graphs, drawn.graphs)
    stats = model.summarise(SIM.train)
    scored = model if model.has_evidence else Integrated(model, stats)
    if not model.has_evidence:
        scored.evidence.fill([(j, g[:, j], CAREFUL) for g in drawn.graphs for j in range(len(g))])
    expected = log_joint_of(drawn.graphs, (), scored, drawn.prior, stats)
    np.testing.assert_allclose(drawn.log_joint, expected, rtol=1e-6)
    assert drawn.record.sampling.collapsed and not own.record.sampling.collapsed
    first = jax.tree.leaves(drawn.theta)[0]
    assert len(first) == 4 and not np.allclose(first, jax.tree.leaves(own.theta)[0])


@pytest.mark.slow
def test_many_nodes_do_not_diverge():
    """With 200 nodes the gradient of the acyclicity term is 1e35 where all edges are open, and its square infinite."""
    data = dp.simulate("linear", nodes=200, observations=20, seed=1, interventional_sets=0).train
    post = dp.fit(data, "linear", method="dibs", particles=2, steps=8, moves=0, progress=False)
    assert post.graphs.shape == (2, 200, 200)


def test_the_acyclicity_term_has_the_samples_of_the_authors_code():
    assert paper_settings(dp.BGe(), 20).acyclicity_samples == 32
    assert "128" in str(paper_settings.__doc__)
