"""At d = 3 all 64 digraphs can be listed, so `log E_{p(G|z)}[p(D, theta | G)]` and its gradient are exact."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.inference.dibs.estimators import Estimator, log_mean_exp, surrogate
from dagpost.inference.dibs.flips import flip_ratios_in_jax, flip_ratios_on_host
from dagpost.inference.dibs.latent import hard_graph, log_graph_probability
from dagpost.models.conjugate import all_families, soft_evidence

D = 3
DATA = dp.simulate(nodes=D, observations=8, seed=3, interventional_sets=0).train
MODEL = dp.LinearGaussian(noise_variance=1.0)
STATS = MODEL.summarise(DATA)
ALPHA = 1.5


def all_digraphs():
    pairs = [(i, j) for i in range(D) for j in range(D) if i != j]
    graphs = np.zeros((64, D, D))
    for code in range(64):
        for bit, (i, j) in enumerate(pairs):
            graphs[code, i, j] = code >> bit & 1
    return jnp.asarray(graphs)


def log_families(graph, theta):
    return MODEL.log_families(graph, theta, STATS)


def exact_log_expectation(scores, theta):
    graphs = all_digraphs()
    log_p = jax.vmap(lambda g: jnp.sum(log_graph_probability(g, scores, ALPHA)))(graphs)
    log_f = jax.vmap(lambda g: jnp.sum(log_families(g, theta)))(graphs)
    return jax.nn.logsumexp(log_p + log_f)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def particle():
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.normal(size=(D, D))), jnp.asarray(rng.normal(size=(D, D)) / 2)


def estimates(estimator, particle, repetitions, seed=0):
    """Gradients by scores and theta from independent noise."""
    noise = jax.random.logistic(jax.random.key(seed), (repetitions, estimator.samples, D, D))

    def one(noise):
        function = lambda s, t: surrogate(estimator, log_families, s, t, ALPHA, noise)  # noqa: E731
        return jax.grad(function, argnums=(0, 1))(*particle)

    return jax.jit(jax.vmap(one))(noise)


@pytest.mark.slow
def test_expectation_factorises_over_families(particle):
    """`log E[prod_j f_j] = sum_j log E[f_j]`: both groupings have the same target."""
    scores, theta = particle
    graphs = all_digraphs()
    log_p = jax.vmap(log_graph_probability, in_axes=(0, None, None))(graphs, scores, ALPHA)
    log_f = jax.vmap(log_families, in_axes=(0, None))(graphs, theta)
    # each column of the 64 digraphs takes its 4 values 16 times
    by_family = jnp.sum(jax.nn.logsumexp(log_p + log_f, axis=0) - jnp.log(16.0))
    assert float(by_family) == pytest.approx(float(exact_log_expectation(scores, theta)), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("grouping", ["family", "graph"])
@pytest.mark.parametrize("control", [True, pytest.param(False, marks=pytest.mark.long)])
def test_score_function_is_consistent(particle, grouping, control):
    """With many samples the ratio's bias (order 1/S) is below five standard errors of the mean."""
    exact_scores, exact_theta = jax.grad(exact_log_expectation, argnums=(0, 1))(*particle)
    estimator = Estimator("score", grouping, 2000, control_variate=control)
    by_scores, by_theta = estimates(estimator, particle, 200)
    for found, exact in ((by_scores, exact_scores), (by_theta, exact_theta)):
        off = ~np.eye(D, dtype=bool)
        error = np.asarray(found.mean(axis=0) - exact)[off]
        standard = np.asarray(found.std(axis=0) / np.sqrt(200))[off]
        assert (np.abs(error) < 5 * standard + 5e-3).all()


@pytest.mark.slow
@pytest.mark.parametrize("grouping", ["family", pytest.param("graph", marks=pytest.mark.long)])
def test_bias_of_the_ratio_falls_like_one_over_samples(particle, grouping):
    exact = jax.grad(exact_log_expectation)(*particle)
    off = ~np.eye(D, dtype=bool)
    bias = []
    for samples, repetitions in ((4, 200_000), (32, 100_000)):
        found, _ = estimates(Estimator("score", grouping, samples), particle, repetitions)
        bias.append(float(np.abs(np.asarray(found.mean(axis=0) - exact))[off].max()))
    # eight times the samples: an eighth of the bias, within a factor of two for noise and higher orders
    assert bias[1] < bias[0] / 4


@pytest.mark.slow
def test_numerator_and_denominator_are_unbiased(particle):
    """The two expectations of the ratio, each estimated with a single sample and averaged."""
    scores, theta = particle
    noise = jax.random.logistic(jax.random.key(1), (400_000, D, D))
    graphs = hard_graph(noise, scores, ALPHA)
    log_f = jax.jit(jax.vmap(lambda g: jnp.sum(log_families(g, theta))))(graphs)
    score = jax.jit(jax.vmap(jax.grad(lambda s, g: jnp.sum(log_graph_probability(g, s, ALPHA))), in_axes=(None, 0)))(
        scores, graphs
    )
    top = log_f.max()
    weights = jnp.exp(log_f - top)
    denominator = float(jnp.exp(exact_log_expectation(scores, theta) - top))
    numerator = denominator * np.asarray(jax.grad(exact_log_expectation)(scores, theta))
    assert abs(float(weights.mean()) - denominator) < 5 * float(weights.std()) / np.sqrt(400_000)
    each = np.asarray(weights[:, None, None] * score)
    assert (np.abs(each.mean(axis=0) - numerator) <= 5 * each.std(axis=0) / np.sqrt(400_000) + 1e-15).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["score", "gumbel", "straight-through"])
def test_family_grouping_has_the_smaller_variance(particle, kind):
    spread = {}
    for grouping in ("family", "graph"):
        by_scores, _ = estimates(Estimator(kind, grouping, 16), particle, 2000)
        spread[grouping] = float(jnp.sum(jnp.var(by_scores, axis=0)))
    assert spread["family"] < spread["graph"]


@pytest.mark.slow
def test_control_variate_lowers_the_variance(particle):
    plain, _ = estimates(Estimator("score", "family", 16, control_variate=False), particle, 4000)
    centred, _ = estimates(Estimator("score", "family", 16, control_variate=True), particle, 4000)
    assert float(jnp.sum(jnp.var(centred, axis=0))) < float(jnp.sum(jnp.var(plain, axis=0)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gumbel", "straight-through"])
def test_relaxed_estimators_point_the_right_way(particle, kind):
    """Biased for finite tau, so no equality: the mean must correlate with the exact gradient."""
    exact = np.asarray(jax.grad(exact_log_expectation)(*particle))
    found, by_theta = estimates(Estimator(kind, "family", 64), particle, 2000)
    off = ~np.eye(D, dtype=bool)
    mean = np.asarray(found.mean(axis=0))
    assert np.corrcoef(mean[off], exact[off])[0, 1] > 0.8
    # the gradient by theta uses hard samples and is consistent for every kind
    exact_theta = np.asarray(jax.grad(exact_log_expectation, argnums=1)(*particle))
    assert np.abs(np.asarray(by_theta.mean(axis=0)) - exact_theta).max() < 0.1 * np.abs(exact_theta).max()


# ---- closed-form families


def flip_gradient(model, scores, samples, seed, d, function=flip_ratios_on_host):
    table = model.evidence_table(
        model.summarise(dp.simulate(nodes=d, observations=8, seed=3, interventional_sets=0).train)
    )
    noise = jax.random.logistic(jax.random.key(seed), (samples, d, d))
    ratios = function(table, np.asarray(hard_graph(noise, scores, ALPHA))[None])[0]
    logits = ALPHA * scores
    return ALPHA * (jax.nn.sigmoid(logits + ratios) - jax.nn.sigmoid(logits))


def exact_evidence_gradient(model, scores):
    table = model.evidence_table(model.summarise(DATA))
    graphs = all_digraphs()
    log_f = jnp.asarray(all_families(table, np.asarray(graphs) > 0)).sum(axis=1)

    def log_expectation(scores):
        log_p = jax.vmap(lambda g: jnp.sum(log_graph_probability(g, scores, ALPHA)))(graphs)
        return jax.nn.logsumexp(log_p + log_f)

    return np.asarray(jax.grad(log_expectation)(scores))


MARGINAL = [dp.BGe(), dp.LinearGaussian(), dp.LinearGaussian(None)]


@pytest.mark.slow
@pytest.mark.parametrize("model", MARGINAL, ids=["bge", "linear", "noise"])
def test_flips_are_consistent(model, particle):
    scores, _ = particle
    found = np.asarray(flip_gradient(model, scores, 20_000, 0, D))
    off = ~np.eye(D, dtype=bool)
    np.testing.assert_allclose(found[off], exact_evidence_gradient(model, scores)[off], atol=0.03)


@pytest.mark.long
def test_flips_beat_the_score_function(particle):
    """Same number of samples, smaller spread around the exact gradient: why the estimator is kept."""
    scores, _ = particle
    model = dp.BGe()
    exact = exact_evidence_gradient(model, scores)
    off = ~np.eye(D, dtype=bool)
    flips = np.stack([np.asarray(flip_gradient(model, scores, 8, s, D)) for s in range(150)])
    table = model.evidence_table(model.summarise(DATA))
    evidence = lambda g, t: jax.vmap(lambda c, j: soft_evidence(table, c, j, 0), in_axes=(1, 0))(g, jnp.arange(D))  # noqa: E731
    noise = jax.random.logistic(jax.random.key(9), (150, 8, D, D))
    plain = jax.vmap(
        lambda n: jax.grad(lambda s: surrogate(Estimator("score", "family", 8), evidence, s, (), ALPHA, n))(scores)
    )(noise)
    error = lambda x: float(((np.asarray(x) - exact) ** 2)[:, off].mean())  # noqa: E731
    assert error(flips) < 0.5 * error(plain)


@pytest.mark.slow
@pytest.mark.parametrize("model", MARGINAL, ids=["bge", "linear", "noise"])
def test_flips_are_evidences_of_flipped_families(model):
    d = 6
    data = dp.simulate(nodes=d, observations=30, seed=5, interventional_sets=0).train
    mask = np.zeros(data.values.shape, dtype=bool)
    mask[:10, 2] = True
    stats = model.summarise(data.with_interventions(mask))
    table = model.evidence_table(stats)
    rng = np.random.default_rng(1)
    graphs = (rng.random((2, 4, d, d)) < 0.4) & ~np.eye(d, dtype=bool)
    graphs[0, 3] = graphs[0, 1]  # a repeated sample counts twice
    found = flip_ratios_on_host(table, graphs)
    for m in range(2):
        for i, j in [(0, 1), (3, 2), (5, 4), (2, 0)]:
            with_i, without = [], []
            for g in graphs[m]:
                parents = set(np.flatnonzero(g[:, j]))
                with_i.append(model.log_evidence(j, list(parents | {i}), stats))
                without.append(model.log_evidence(j, list(parents - {i}), stats))
            expected = np.logaddexp.reduce(with_i) - np.logaddexp.reduce(without)
            assert found[m, i, j] == pytest.approx(expected, abs=1e-8)
    on_device = np.asarray(flip_ratios_in_jax(jax.tree.map(jnp.asarray, table), jnp.asarray(graphs, dtype=float)))
    np.testing.assert_allclose(on_device, found, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("most", [16, 17])
def test_blocks_of_parents_hold_all_of_them(most):
    """On 34 nodes: blocks of 16 parents, or of all nodes. Column 1 has the most parents."""
    rng, d = np.random.default_rng(most), 34
    model = dp.LinearGaussian()
    table = model.evidence_table(model.summarise(dp.Dataset(rng.normal(size=(50, d)))))
    graphs = (rng.random((3, 2, d, d)) < min(most, 3) / d) & ~np.eye(d, dtype=bool)
    graphs[1, 0, :, 1] = np.isin(np.arange(d), rng.permutation(np.delete(np.arange(d), 1))[:most])
    found = flip_ratios_in_jax(jax.tree.map(jnp.asarray, table), jnp.asarray(graphs, dtype=float), chunk=2)
    np.testing.assert_allclose(found, flip_ratios_on_host(table, graphs), atol=1e-6)


@pytest.mark.slow
def test_lapack_calls_of_a_program_come_one_after_the_other():
    """Batches of them that run at the same time can wait for each other's threads for ever (`map_chunked`)."""
    d, model = 34, dp.LinearGaussian()
    data = dp.Dataset(np.random.default_rng(0).normal(size=(50, d)))
    table = jax.tree.map(jnp.asarray, model.evidence_table(model.summarise(data)))
    flips = jax.jit(lambda graphs: flip_ratios_in_jax(table, graphs, chunk=2)).lower(jnp.zeros((3, 2, d, d)))
    soft = jax.jit(lambda column: soft_evidence(table, column, 0, 0)).lower(jnp.zeros(d))
    branches = 2  # blocks of 16 parents, or of all nodes
    for calls, lowered in ((branches, flips), (1, soft)):
        program = lowered.compile().as_text()
        assert [len(re.findall(f'target="lapack_.{name}', program)) for name in ("potrf", "trsm")] == [calls, calls]


def test_log_mean_exp_by_hand():
    values = jnp.asarray(np.log([[1.0, 4.0], [3.0, 2.0]]))
    assert float(log_mean_exp(values, "family")) == pytest.approx(np.log(2) + np.log(3))
    assert float(log_mean_exp(values, "graph")) == pytest.approx(np.log((4 + 6) / 2))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"kind": "gumble"}, "did you mean 'gumbel'"),
        ({"grouping": "graphs"}, "did you mean 'graph'"),
        ({"samples": 0}, "samples=0"),
        ({"tau": 0.0}, "tau=0.0"),
        ({"kind": "flip", "grouping": "graph"}, "by family"),
    ],
)
def test_errors_name_the_cause(options, message):
    with pytest.raises(InputError, match=message):
        Estimator(**options)


@pytest.mark.slow
@pytest.mark.parametrize("model", MARGINAL, ids=["bge", "linear", "noise"])
def test_flips_of_the_lower_bound_are_unbiased(model, particle):
    """`d E[log f] / d logit` against enumeration: an average, so five standard errors suffice."""
    scores, _ = particle
    table = model.evidence_table(model.summarise(DATA))
    graphs = all_digraphs()
    log_f = jnp.asarray(all_families(table, np.asarray(graphs) > 0)).sum(axis=1)

    def expected_log(scores):
        log_p = jax.vmap(lambda g: jnp.sum(log_graph_probability(g, scores, ALPHA)))(graphs)
        return jnp.sum(jnp.exp(log_p) * log_f)

    exact = np.asarray(jax.grad(expected_log)(scores))
    noise = jax.random.logistic(jax.random.key(4), (20_000, 1, D, D))
    hard = np.asarray(hard_graph(noise, scores, ALPHA))
    ratios = flip_ratios_on_host(table, hard, mean_log=True)
    p = np.asarray(jax.nn.sigmoid(ALPHA * scores))
    each = ALPHA * p * (1 - p) * ratios
    off = ~np.eye(D, dtype=bool)
    error = 5 * each.std(axis=0)[off] / np.sqrt(20_000)
    assert (np.abs(each.mean(axis=0) - exact)[off] < error + 1e-9).all()
    on_device = flip_ratios_in_jax(jax.tree.map(jnp.asarray, table), jnp.asarray(hard[:5]), mean_log=True)
    np.testing.assert_allclose(on_device, ratios[:5], atol=1e-6)
