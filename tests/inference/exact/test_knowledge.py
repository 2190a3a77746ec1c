"""Exact posteriors under knowledge: all DAGs that satisfy it, renormalised."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import all_dags
from dagpost.posterior import log_joint_of
from tests.knowledge_sets import random_knowledge, violations

SIM = dp.simulate("bge", nodes=4, observations=20, seed=4, interventional_sets=0)
NAMES = SIM.train.names
GRAPHS = all_dags(4)


def renormalised(knowledge, base):
    """Edge probabilities by a plain sum; odds of edges replace what the base says of them."""
    known = knowledge.bound(NAMES)
    kept = GRAPHS[[not violations(graph, NAMES, knowledge) for graph in GRAPHS]]
    joint = log_joint_of(kept & ~known.stated, (), dp.BGe(), base, dp.BGe().summarise(SIM.train))
    evidence = dp.BGe().log_evidence_of(kept, dp.BGe().summarise(SIM.train))
    without = dp.BGe().log_evidence_of(kept & ~known.stated, dp.BGe().summarise(SIM.train))
    log_weight = joint - without + evidence + (kept * known.log_odds).sum(axis=(1, 2))
    weight = np.exp(log_weight - log_weight.max())
    return np.einsum("m,mij->ij", weight / weight.sum(), kept)


@pytest.mark.parametrize("base", [dp.ErdosRenyi(probability=0.3), dp.ScaleFree(), dp.Uniform()], ids=lambda p: p.name)
@pytest.mark.parametrize("algorithm", ["enumerate", "layers"])
def test_posterior_is_the_one_over_allowed_dags(algorithm, base):
    rng = np.random.default_rng(7)
    for _ in range(6):
        knowledge = random_knowledge(rng, NAMES)
        post = dp.exact(SIM.train, "bge", base, knowledge=knowledge, algorithm=algorithm, draws=50)
        assert post.edge_marginals == pytest.approx(renormalised(knowledge, base), abs=1e-9)
        for graph in [*post.graphs, post.map_graph, *post.sample(20, seed=1)]:
            assert not violations(graph, NAMES, knowledge)


def test_both_algorithms_agree_on_everything():
    knowledge = {"required": ["x0 -> x1"], "max_parents": 2, "probabilities": {"x2 -> x3": 0.9}}
    one, two = (dp.exact(SIM.train, "bge", knowledge=knowledge, algorithm=a) for a in ("enumerate", "layers"))
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-9)
    assert one.log_normaliser == pytest.approx(two.log_normaliser, abs=1e-9)
    assert one.parent_probabilities == pytest.approx(two.parent_probabilities, abs=1e-9)
    assert one.log_probability(GRAPHS) == pytest.approx(two.log_probability(GRAPHS), abs=1e-9)
    assert (np.isfinite(one.log_probability(GRAPHS)) == GRAPHS[:, 0, 1] & (GRAPHS.sum(axis=1).max(axis=1) < 3)).all()
    assert np.exp(one.log_probability(GRAPHS)).sum() == pytest.approx(1)
    np.testing.assert_array_equal(one.map_graph, two.map_graph)
    wanted = {"required": [["x0", "x1"]], "max_parents": 2, "probabilities": [[["x2", "x3"], 0.9]]}
    assert one.info["knowledge"] == two.info["knowledge"] == wanted


def test_evidence_favours_knowledge_that_is_true():
    """`log p(D)` normalises over allowed DAGs, so it compares what different people claim to know."""
    cause, effect = np.argwhere(SIM.graph)[0]
    claim = (NAMES[cause], NAMES[effect])
    present = dp.exact(SIM.train, "bge", knowledge={"required": [claim]}).log_evidence
    absent = dp.exact(SIM.train, "bge", knowledge={"forbidden": [claim, claim[::-1]]}).log_evidence
    assert present > absent


@pytest.mark.parametrize("p", [0.02, 0.5, 0.9])
def test_probabilities_move_marginals_as_stated(p):
    """With its reverse forbidden, nobody else about and data that say nothing, an edge is as probable as stated."""
    almost_nothing = dp.Dataset([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], names=["a", "b"])
    knowledge = {"forbidden": ["b -> a"], "probabilities": {"a -> b": p}}
    post = dp.exact(almost_nothing, dp.LinearGaussian(weight_scale=1e-6), knowledge=knowledge)
    assert post.edge_marginals[0, 1] == pytest.approx(p, abs=1e-6)


def test_a_fully_known_graph():
    knowledge = {
        "required": ["x0 -> x1", "x1 -> x2"],
        "forbidden": ["x0 -> x2"],
        "roots": ["x3"],
        "leaves": ["x3"],
    }
    for algorithm in ("enumerate", "layers"):
        post = dp.exact(SIM.train, "bge", knowledge=knowledge, algorithm=algorithm, draws=3)
        assert set(post.edge_marginals.ravel()) <= {0.0, 1.0} and post.expected_edges == 2


def test_parameters_come_along():
    post = dp.exact(SIM.train, "linear", knowledge={"roots": ["x2"]}, parameters=True, draws=20)
    assert not post.graphs[:, :, 2].any() and not np.asarray(post.theta)[:, :, 2].any()
    assert post.info["knowledge"] == {"roots": ["x2"]}
    assert isinstance(post, dp.ExactPosterior)


def test_errors_reach_the_user():
    with pytest.raises(InputError, match="unknown name 'x9' in required"):
        dp.exact(SIM.train, knowledge={"required": ["x9 -> x1"]})
    assert "knowledge" not in dp.exact(SIM.train).info
    assert dp.exact(SIM.train, knowledge={}).info["knowledge"] == {}
