import numpy as np
import pytest
from scipy.stats import multivariate_normal

import dagpost as dp
from dagpost.errors import DataWarning, InputError
from dagpost.models import LinearGaussian

MODELS = [dp.BGe(), LinearGaussian(), LinearGaussian(None)]
PRIORS = [dp.ErdosRenyi(probability=0.3), dp.ScaleFree(), dp.Uniform(), dp.UnknownDensity()]


@pytest.fixture(scope="module")
def sim():
    return dp.simulate(nodes=5, observations=40, seed=2, interventional_sets=0)


@pytest.mark.parametrize("model", MODELS, ids=["bge", "linear", "linear-noise"])
@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: p.name)
def test_both_algorithms_agree(sim, model, prior):
    listed = dp.exact(sim.train, model, prior)
    layered = dp.exact(sim.train, model, prior, algorithm="layers", draws=10)
    assert layered.log_evidence == pytest.approx(listed.log_evidence, abs=1e-10)
    np.testing.assert_allclose(layered.edge_marginals, listed.edge_marginals, atol=1e-10)
    np.testing.assert_allclose(layered.parent_probabilities, listed.parent_probabilities, atol=1e-10)
    # equivalent graphs tie under BGe, so compare the probability and not the graph
    best = layered.log_probability(np.stack([layered.map_graph, listed.map_graph]))
    assert best[0] == pytest.approx(best[1], abs=1e-10)
    some = listed.graphs[::1000]
    np.testing.assert_allclose(layered.log_probability(some), listed.log_probability(some), atol=1e-9)


def test_interventions_enter(sim):
    mask = np.zeros(sim.train.values.shape, dtype=bool)
    mask[:20, 0] = True
    plain = dp.exact(sim.train, "bge", "uniform")
    intervened = dp.exact(sim.train.values, "bge", "uniform", interventions=mask)
    assert np.abs(plain.edge_marginals - intervened.edge_marginals).max() > 1e-3
    layered = dp.exact(sim.train.values, "bge", "uniform", interventions=mask, algorithm="layers", draws=1)
    np.testing.assert_allclose(layered.edge_marginals, intervened.edge_marginals, atol=1e-10)


def test_evidence_of_a_single_pair_by_hand():
    """Two nodes, three DAGs: p(D) is the mean of three evidences under the uniform prior."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(10, 2))
    model = dp.BGe()
    stats = model.summarise(dp.Dataset(values))
    empty = model.log_evidence(0, [], stats) + model.log_evidence(1, [], stats)
    joined = model.log_evidence(0, [], stats) + model.log_evidence(1, [0], stats)
    expected = np.logaddexp(empty, joined + np.log(2)) - np.log(3)
    assert dp.exact(values, model, "uniform").log_evidence == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bge", "linear"])
def test_peaked_posterior_stays_sound(model):
    sim = dp.simulate(nodes=9, observations=10_000, seed=5, interventional_sets=0)
    post = dp.exact(sim.train, model, draws=2000)
    np.testing.assert_allclose(post.parent_probabilities.sum(axis=1), 1, atol=1e-9)
    # 2,000 draws: five standard errors are at most 0.056
    assert np.abs(post.graphs.mean(axis=0) - post.edge_marginals).max() < 0.056
    assert post.log_probability(post.map_graph[None])[0] >= post.log_probability(post.graphs).max() - 1e-9


def test_features_by_sampling_agree_with_enumeration(sim):
    def ancestor(graph):
        return np.linalg.matrix_power(np.eye(5) + graph, 5)[0, 4] > 0

    listed = dp.exact(sim.train, "bge", "uniform")
    value, error = listed.feature_probability(ancestor)
    assert error == 0
    layered = dp.exact(sim.train, "bge", "uniform", algorithm="layers", draws=1)
    estimate, error = layered.feature_probability(ancestor, draws=4000, seed=1)
    assert 0 < error < 0.01
    assert abs(estimate - value) < 5 * error


def test_seed_fixes_everything(sim):
    one = dp.exact(sim.train, "linear", algorithm="layers", draws=50, seed=3)
    two = dp.exact(sim.train, "linear", algorithm="layers", draws=50, seed=3)
    other = dp.exact(sim.train, "linear", algorithm="layers", draws=50, seed=4)
    np.testing.assert_array_equal(one.graphs, two.graphs)
    np.testing.assert_array_equal(one.edge_marginals, two.edge_marginals)
    assert (one.graphs != other.graphs).any()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["enumerate", "layers"])
def test_parameters_come_with_the_draws(sim, algorithm):
    post = dp.exact(sim.train, "linear", parameters=True, draws=200, algorithm=algorithm)
    assert post.theta.shape == (200, 5, 5) and len(post) == 200
    assert ((post.theta != 0) == post.graphs).all()
    exact = dp.exact(sim.train, "linear")
    np.testing.assert_allclose(post.edge_marginals, exact.edge_marginals, atol=1e-10)
    assert np.isfinite(dp.metrics.negative_log_likelihood(post, sim.test))


def test_parent_sets_by_name(sim):
    post = dp.exact(sim.train.frame().rename(columns={"x0": "a"}), "linear")
    sets = post.parents("a")
    assert sum(p for _, p in post.parents("a", top=None)) == pytest.approx(1)
    assert sets == sorted(sets, key=lambda s: -s[1])


def test_errors_name_the_cause(sim):
    for options, message in [
        ({"model": "linar"}, "did you mean 'linear'"),
        ({"prior": "unifrom"}, "did you mean 'uniform'"),
        ({"draws": 0}, "draws=0"),
        ({"seed": -1}, "seed=-1"),
        ({"algorithm": "layer"}, "did you mean 'layers'"),
        ({"algorithm": "layers", "memory_limit": 1e-6}, "needs .* GiB of memory"),
    ]:
        with pytest.raises(InputError, match=message):
            dp.exact(sim.train, **{"algorithm": "layers", **options})
    with pytest.raises(InputError, match="26 nodes needs"), pytest.warns(DataWarning):
        dp.exact(np.random.default_rng(0).normal(size=(20, 26)))
    with pytest.raises(InputError, match="constant"):
        dp.exact(np.column_stack([np.ones(10), np.arange(10.0)]))


def test_user_model_with_evidence_of_its_own(sim):
    """A model without a compiled table works through `log_evidence`."""

    class Mine(LinearGaussian):
        def evidence_table(self, stats):
            return None

        def log_evidence(self, j, parents, stats):
            return LinearGaussian().log_evidence(j, parents, stats)

    expected = dp.exact(sim.train, "linear").edge_marginals
    for algorithm in ("enumerate", "layers"):
        mine = dp.exact(sim.train, Mine(), algorithm=algorithm, draws=1)
        np.testing.assert_allclose(mine.edge_marginals, expected, atol=1e-10)


def test_equivalent_graphs_of_the_papers_example_score_alike():
    import importlib.util
    from pathlib import Path

    path = Path(__file__).parents[3] / "examples" / "four_node_table.py"
    spec = importlib.util.spec_from_file_location("four_node_table", path)
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    post = dp.exact(table.simulate_data(100, 0), model="bge", prior="uniform")
    graphs = np.stack([table.graph_of(e) for e in table.EQUIVALENT.values()])
    assert np.ptp(post.log_probability(graphs)) < 1e-9
    found = np.mean(
        [table.probabilities(dp.exact(table.simulate_data(100, s), "bge", "uniform")) for s in range(30)], axis=0
    )
    # the paper's single data set lies within the spread over data sets (at most 0.09 for the v-structure)
    np.testing.assert_allclose(found, [published for _, _, published in table.ROWS], atol=0.09)


class Contradiction(dp.GraphPrior):
    """0 -> 1 and 1 -> 0 are both required."""

    name = "contradiction"
    weights = np.zeros(3)  # an array among the settings must not matter
    __hash__ = None

    def log_column(self, column, node):
        import jax.numpy as jnp

        required = jnp.where(node == 0, column[1], jnp.where(node == 1, column[0], 1.0))
        return jnp.log(required)

    def sample(self, key, d):
        raise NotImplementedError


@pytest.mark.parametrize("nodes", [4, 6])
def test_contradictory_prior_is_said(nodes):
    data = dp.simulate(nodes=nodes, observations=30, interventional_sets=0).train
    with pytest.raises(InputError, match="no DAG is possible"):
        dp.exact(data, "bge", Contradiction())


@pytest.mark.slow
def test_draws_with_parameters_still_know_all_graphs(sim):
    full, drawn = dp.exact(sim.train, "linear"), dp.exact(sim.train, "linear", parameters=True, draws=50)
    np.testing.assert_array_equal(drawn.log_probability(full.graphs), full.log_weights)
    feature = lambda g: g[0, 1]  # noqa: E731
    assert drawn.feature_probability(feature) == full.feature_probability(feature)
    assert full.feature_probability(feature)[0] == pytest.approx(full.edge_marginals[0, 1], abs=1e-10)
    assert drawn.weighted("uniform") is drawn and drawn.weighted("posterior") is drawn
    expected = [
        float(drawn.prior.log_density(g.astype(float))) + drawn.model.log_likelihood(g, t, sim.train)
        + multivariate_normal(np.zeros(g.sum() or 1), np.eye(g.sum() or 1)).logpdf(t[g] if g.any() else [0.0])
        + (0.5 * np.log(2 * np.pi) if not g.any() else 0.0)
        for g, t in zip(drawn.graphs, drawn.theta)
    ]  # fmt: skip
    np.testing.assert_allclose(drawn.log_joint, expected, rtol=1e-6)


def test_likelihood_of_drawn_bge_parameters(sim):
    post = dp.exact(sim.train, "bge", parameters=True, draws=5)
    for graph, weights, intercept, variance in zip(post.graphs, *post.theta):
        theta = type(post.theta)(weights, intercept, variance)
        residual = sim.test.values - intercept - sim.test.values @ weights
        expected = (-0.5 * (residual**2 / variance + np.log(2 * np.pi * variance))).sum()
        assert post.model.log_likelihood(graph, theta, sim.test) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_probabilities_stay_within_bounds():
    post = dp.exact(dp.sachs().standardised(), draws=1)
    assert post.edge_marginals.max() <= 1.0 and post.edge_marginals.min() >= 0.0


def test_large_common_offset_of_the_weights():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 4)) + 1000
    with pytest.warns(DataWarning, match="no intercept"):
        post = dp.exact(values, "linear")
    assert post.weights.sum() == pytest.approx(1, abs=1e-12)
    assert post.sample(10, seed=0).shape == (10, 4, 4)


def test_a_thousand_columns_say_the_memory():
    with pytest.raises(InputError, match="1000 nodes needs over"), pytest.warns(DataWarning):
        dp.exact(np.random.default_rng(0).normal(size=(50, 1000)))


def test_unknown_node_suggests_the_nearest(sim):
    post = dp.exact(sim.train, "bge")
    with pytest.raises(InputError, match="unknown node 'x9': known: 'x0'"):
        post.parents("x9")
    with pytest.raises(InputError, match="node 9"):
        post.parents(9)
