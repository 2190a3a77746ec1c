"""Independent libraries: dibs-lib for scores of hard graphs, causal-learn for essential graphs.

Needs the bench extra (`make setup-bench`); skipped without it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.graphs import essential_graph
from dagpost.graphs.dags import erdos_renyi_dag
from dagpost.models import BGe, LinearGaussian, MlpGaussian, MlpTheta

pytestmark = pytest.mark.oracle

D, N = 8, 60
SIM = dp.simulate(nodes=D, observations=N, seed=0, interventional_sets=0)
RNG = np.random.default_rng(0)
GRAPHS = np.stack([erdos_renyi_dag(RNG, D, p) for p in np.linspace(0.05, 0.9, 30)])
MASK = np.zeros((N, D), dtype=bool)
MASK[:20, 3] = MASK[10:30, 5] = True
DATA = SIM.train.with_interventions(MASK)
TARGETS = jnp.asarray(MASK)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("alpha_mu, alpha_w", [(1.0, D + 2.0), (2.5, D + 4.0)])
def test_bge_against_dibs_lib(alpha_mu, alpha_w):
    reference = pytest.importorskip("dibs.models.linearGaussian")
    theirs = reference.BGe(n_vars=D, alpha_mu=alpha_mu, alpha_lambd=alpha_w)
    model = BGe(alpha_mu=alpha_mu, alpha_w=alpha_w)
    found = model.log_evidence_of(GRAPHS, model.summarise(DATA))
    for graph, value in zip(GRAPHS, found):
        expected = theirs.log_marginal_likelihood(
            g=jnp.asarray(graph, dtype=float), x=jnp.asarray(SIM.train.values), interv_targets=TARGETS
        )
        assert value == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.slow
def test_linear_joint_against_dibs_lib():
    reference = pytest.importorskip("dibs.models.linearGaussian")
    theirs = reference.LinearGaussian(n_vars=D, obs_noise=0.1)
    model = LinearGaussian()
    stats = model.summarise(DATA)
    for graph, key in zip(GRAPHS, jax.random.split(jax.random.key(1), len(GRAPHS))):
        theta = model.sample_theta(key, D)
        g = jnp.asarray(graph, dtype=float)
        expected = theirs.log_prob_parameters(theta=theta, g=g) + theirs.log_likelihood(
            x=jnp.asarray(SIM.train.values), theta=theta, g=g, interv_targets=TARGETS
        )
        assert float(model.log_joint(graph, theta, stats)) == pytest.approx(float(expected), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "activation, bias",
    [("relu", True), ("tanh", False)]
    + [pytest.param(*pair, marks=pytest.mark.long) for pair in (("relu", False), ("tanh", True), ("sigmoid", True))],
)
def test_mlp_joint_against_dibs_lib(activation, bias):
    reference = pytest.importorskip("dibs.models.nonlinearGaussian")
    theirs = reference.DenseNonlinearGaussian(
        n_vars=D, hidden_layers=(5,), obs_noise=0.1, activation=activation, bias=bias
    )
    model = MlpGaussian(activation=activation, bias=bias)
    stats = model.summarise(DATA)
    for graph, key in zip(GRAPHS, jax.random.split(jax.random.PRNGKey(2), len(GRAPHS))):
        their_theta = theirs.sample_parameters(key=key, n_vars=D)
        their_theta = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), their_theta)
        layers = [layer for layer in their_theta if len(layer)]
        theta = MlpTheta(tuple(layer[0] for layer in layers), tuple(layer[1] for layer in layers) if bias else (), None)
        g = jnp.asarray(graph, dtype=float)
        expected = theirs.log_prob_parameters(theta=their_theta, g=g) + theirs.log_likelihood(
            x=jnp.asarray(SIM.train.values), theta=their_theta, g=g, interv_targets=TARGETS
        )
        assert float(model.log_joint(graph, theta, stats)) == pytest.approx(float(expected), rel=1e-10)


def test_priors_against_dibs_lib():
    reference = pytest.importorskip("dibs.models.graph")
    er, sf = reference.ErdosReniDAGDistribution(D, 2), reference.ScaleFreeDAGDistribution(D)
    ours = dp.ErdosRenyi(probability=er.p)
    empty = np.zeros((D, D))
    for graph in GRAPHS:
        soft = jnp.asarray(graph, dtype=float)
        # both leave out constants, so compare with the empty graph
        expected = er.unnormalized_log_prob_soft(soft_g=soft) - er.unnormalized_log_prob_soft(soft_g=empty)
        assert float(ours.log_density(graph) - ours.log_density(empty)) == pytest.approx(float(expected), rel=1e-6)
        expected = sf.unnormalized_log_prob_soft(soft_g=soft)
        assert float(dp.ScaleFree().log_density(graph)) == pytest.approx(float(expected), rel=1e-6)


def test_essential_graphs_against_causal_learn():
    pytest.importorskip("causallearn")
    from causallearn.graph.Dag import Dag
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.utils.DAG2CPDAG import dag2cpdag

    for graph in GRAPHS:
        nodes = [GraphNode(f"x{i}") for i in range(D)]
        dag = Dag(nodes)
        for i, j in np.argwhere(graph):
            dag.add_directed_edge(nodes[i], nodes[j])
        theirs = dag2cpdag(dag).graph  # [j, i] = 1 and [i, j] = -1 for i -> j; both -1 for i - j
        directed = (theirs.T == 1) & (theirs == -1)
        undirected = (theirs == -1) & (theirs.T == -1)
        np.testing.assert_array_equal(essential_graph(graph), directed | undirected)
