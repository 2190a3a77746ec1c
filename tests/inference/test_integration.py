"""Chains on evidence that is estimated family by family: exact "estimates" must give the exact posterior."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
import pytest

import dagpost as dp
from dagpost._util.clock import Clock
from dagpost.inference import candidates as candidates_module
from dagpost.inference import integration
from dagpost.inference.candidates import FEW_CANDIDATES, Candidates, Worth
from dagpost.inference.integration import AT_A_TIME, AT_LEAST, at_once
from dagpost.models import LinearGaussian
from dagpost.models.family_evidence import LARGEST, MOST, Estimate, FamilyEvidence
from dagpost.models.family_table import ABSENT, listed_evidence
from dagpost.models.integrated import LARGEST_ERROR, Integrated, common_families, influences, order_gaps


class FromClosedForm(FamilyEvidence):
    """Estimates of the linear model that are its closed form, with an error that is only claimed."""

    def __init__(self, stats, error):
        super().__init__(len(stats.node.index))
        self.stats, self.error, self.computed = stats, error, 0

    def compute(self, node, parents, effort):
        self.computed += 1
        value = LinearGaussian().log_evidence(node, np.flatnonzero(parents), self.stats)
        return Estimate(value, self.error, effort)

    def draw(self, node, parents, count, seed):
        graph = np.zeros((self.d, self.d), dtype=bool)
        graph[:, node] = parents
        keys = jax.random.split(jax.random.key(seed), count)
        return LinearGaussian().draw_thetas(keys, np.repeat(graph[None], count, axis=0), self.stats)[:, :, node]


@dataclass(frozen=True)
class Estimated(LinearGaussian):
    """The linear model, with its evidence as if it had to be estimated."""

    claimed: float = 0.0
    name: ClassVar[str] = "estimated"
    has_evidence: ClassVar[bool] = False

    def numerical_evidence(self, stats, seed=0):
        return FromClosedForm(stats, self.claimed)


SIM = dp.simulate(nodes=8, observations=60, seed=4, interventional_sets=0)
FEW = dp.simulate(nodes=5, observations=60, seed=4, interventional_sets=0)


def fit(model=None, **options):
    return dp.fit(SIM.train, model or Estimated(), max_moves=1_500_000, draws=200, progress=False, **options)


def fit_few(claimed=0.0):
    return dp.fit(FEW.train, Estimated(claimed=claimed), max_moves=300_000, draws=200, progress=False)


@pytest.fixture(scope="module")
def chains():
    return fit()


@pytest.fixture(scope="module")
def few():
    return fit_few()


@pytest.mark.slow
@pytest.mark.parametrize(("fitted", "sim", "families"), [("few", FEW, 50), ("chains", SIM, 100)])
def test_the_chains_sample_the_exact_posterior(fitted, sim, families, request):
    chains = request.getfixturevalue(fitted)
    exact = dp.exact(sim.train, "linear", prior="erdos-renyi")
    assert np.abs(chains.edge_marginals - exact.edge_marginals).max() < 0.04
    found = chains.record.diagnostics
    assert found.start == "additive" and found.evidence_error < 1e-9 and found.families > families
    assert "estimated" in chains.record.verdict.text
    assert isinstance(chains.model, Estimated)


@pytest.mark.slow
@pytest.mark.parametrize(("fitted", "sim"), [("few", FEW), ("chains", SIM)])
def test_parameters_come_with_the_graphs(fitted, sim, request):
    chains = request.getfixturevalue(fitted)
    d = len(sim.graph)
    assert chains.theta.shape == (200, d, d) and (chains.theta[~chains.graphs] == 0).all()
    best = chains.graphs[0]
    i, j = np.argwhere(best)[0].tolist()
    same = (chains.graphs[:, :, j] == best[:, j]).all(axis=1)
    moments = LinearGaussian().weight_moments(j, np.flatnonzero(best[:, j]), LinearGaussian().summarise(sim.train))
    place = np.flatnonzero(best[:, j]).tolist().index(i)
    error = np.sqrt(moments.covariance[place, place] / same.sum())
    assert chains.theta[same, i, j].mean() == pytest.approx(moments.mean[place], abs=5 * error)


@pytest.mark.slow
def test_a_seed_fixes_the_result(few):
    again = fit_few()
    np.testing.assert_array_equal(again.graphs, few.graphs)
    np.testing.assert_array_equal(again.theta, few.theta)


@pytest.mark.slow
def test_claimed_errors_are_in_the_verdict(few):
    rough = fit_few(claimed=1.5)
    assert rough.record.diagnostics.evidence_error > 0.05 and not rough.record.verdict.trusted
    assert few.record.diagnostics.evidence_error < 1e-9 and few.record.verdict.trusted  # the claim alone differs


@pytest.mark.slow
def test_a_table_that_was_not_finished_is_not_trusted(few, monkeypatch):
    """Chains agree on a table without the families that matter, too."""
    monkeypatch.setattr(integration, "LAST_STAGE", 0.0)
    cut = fit_few().record
    assert not cut.verdict.trusted and "too little time" in cut.verdict.text
    assert "too little time" not in few.record.verdict.text


def test_nodes_with_many_families_have_their_most_frequent_ones_looked_around():
    graphs = np.zeros((20, 6, 6), dtype=bool)
    graphs[:, 1, 0] = True  # one family of node 0
    for at, count in enumerate((7, 4, 3, 2, 2, 2)):  # six of node 5, of which two together make more than half
        first = sum((7, 4, 3, 2, 2, 2)[:at])
        graphs[first : first + count, :5, 5] = np.arange(5) == at
    parents = {
        arguments: [row.argmax() for node, row in common_families(graphs, *arguments) if node == 5]
        for arguments in ((0.2,), (0.2, 0.5, 10), (0.2, 0.6, 10), (0.2, 0.9, 3), (0.2, 0.9, 1))
    }
    assert list(parents.values()) == [[0, 1], [0, 1], [0, 1, 2], [0, 1, 2], [0, 1]]
    assert [row.tolist() for node, row in common_families(graphs, 0.2) if node == 0] == [graphs[0, :, 0].tolist()]


@pytest.mark.slow
def test_knowledge_holds():
    names = SIM.train.names
    known = {"required": [[names[0], names[1]]], "forbidden": [[names[2], names[3]]], "max_parents": 2}
    post = fit(knowledge=known)
    assert post.graphs[:, 0, 1].all() and not post.graphs[:, 2, 3].any() and post.graphs.sum(axis=1).max() <= 2


@pytest.mark.slow
def test_a_checkpoint_holds_the_evidence(tmp_path, monkeypatch, chains):
    made: list[FromClosedForm] = []
    monkeypatch.setattr(
        Estimated, "numerical_evidence", lambda self, stats, seed=0: made.append(FromClosedForm(stats, 0.0)) or made[-1]
    )
    whole = fit(checkpoint=tmp_path / "state", checkpoint_every=0.01)
    resumed = fit(checkpoint=tmp_path / "state", resume=True)
    assert made[0].computed > 100 and made[1].computed < 0.2 * made[0].computed
    np.testing.assert_allclose(resumed.edge_marginals, whole.edge_marginals, atol=0.04)


@pytest.fixture(scope="module")
def searched():
    """Six columns of a network, and six of noise; the candidates that the search finds, and the table."""
    values = dp.simulate(nodes=6, observations=50_000, seed=1, interventional_sets=0).train.values
    noise = np.sqrt(0.1) * np.random.default_rng(0).normal(size=values.shape)
    data = dp.Dataset(np.concatenate([values, noise], axis=1))
    scored = Integrated(Estimated(), Estimated().summarise(data))
    empty = np.zeros((1, 12, 12), dtype=bool)
    candidates = Candidates(scored, dp.ErdosRenyi())
    candidates.search(empty, Clock(), True, False)
    candidates.fill(empty, Clock(), False)
    return data, candidates


def test_the_search_keeps_what_matters_and_drops_the_rest(searched):
    data, candidates = searched
    listed = candidates.model.table.place.T >= 0
    probable = dp.exact(data, "linear", prior="erdos-renyi").edge_marginals > 0.1
    assert listed[probable].all() and not listed.diagonal().any()
    assert listed[6:].mean() < 0.3


@pytest.mark.slow
def test_families_left_out_are_far_below_their_subsets(searched):
    candidates = Candidates(searched[1].model, dp.ErdosRenyi())
    candidates.worth[:] = 0.0  # any edge may be a candidate
    before = candidates.model.table
    candidates.fill(np.zeros((1, 12, 12), dtype=bool), Clock(), False)
    table, candidates.model.table = candidates.model.table, before
    assert ((table.place >= 0).sum(axis=1) == FEW_CANDIDATES).all()
    _check_left_out(candidates, table)


def _check_left_out(candidates, table):
    prior = dp.ErdosRenyi().column_table(12)
    left_out = 0
    for j, code in np.argwhere(np.isneginf(table.evidence)).tolist():
        row = table.row(j, code)
        left_out += 1
        own = candidates.score(j, row)
        assert own == pytest.approx(
            LinearGaussian().log_evidence(j, np.flatnonzero(row), candidates.model.stats)
            + prior.log_column(j, np.flatnonzero(row))
        )
        subsets = [s for s in range(code) if s & ~code == 0 and np.isfinite(table.evidence[j, s])]
        assert max(candidates.score(j, table.row(j, s)) for s in subsets) - own > 8
    assert left_out > 100


def test_a_table_holds_what_was_estimated(searched):
    _, candidates = searched
    table = candidates.model.table
    for j, code in np.argwhere(np.isfinite(table.evidence)).tolist()[::7]:
        row = table.row(j, code)
        assert table.code(j, row) == code
        assert table.evidence[j, code] == candidates.model.log_evidence(j, np.flatnonzero(row), candidates.model.stats)
        parents = np.flatnonzero(row)
        assert listed_evidence(*table, j, parents, len(parents)) == table.evidence[j, code]
    j, i = np.argwhere((table.place == ABSENT) & ~np.eye(12, dtype=bool))[0].tolist()
    assert table.code(j, np.arange(12) == i) is None
    assert listed_evidence(*table, j, np.array([i]), 1) == -np.inf
    full = np.triu(np.ones((1, 12, 12), dtype=bool), 1)
    near = table.nearest(full)
    assert not (near & ~full).any() and near.any()
    codes = [(j, table.code(j, near[0][:, j])) for j in range(12)]
    assert all(np.isfinite(table.evidence[j, code]) for j, code in codes)
    np.testing.assert_array_equal(table.nearest(near), near)


def rough_candidates():
    """A model whose estimates claim an error of 1, its candidates around the empty graph, and that graph."""
    data = dp.simulate(nodes=6, observations=60, seed=4, interventional_sets=0).train
    scored = Integrated(Estimated(claimed=1.0), Estimated().summarise(data))
    candidates = Candidates(scored, dp.ErdosRenyi())
    empty = np.zeros((1, 6, 6), dtype=bool)
    candidates.fill(empty, Clock(), False)
    return scored, candidates, empty


def test_rough_families_are_those_near_the_best():
    scored, candidates, empty = rough_candidates()
    first = candidates.rough(empty, {})
    assert len(first) > 6 and {effort for _, effort in first} == {1}
    assert len(list(scored.improve(first[:3], Clock()))) == 3
    over = Clock()
    over.stopped.set()
    list(scored.improve(first, over))
    efforts = [effort for _, effort in candidates.rough(empty, {})]
    assert efforts.count(2) == 3 and efforts.count(1) == len(first) - 3


def test_families_are_compared_with_those_that_a_graph_allows():
    """Node 1 between 0 and 2: its parents can be 0 alone, in the chain 0 -> 1 -> 2, and all in the empty graph."""
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    scores = np.full((3, 8), -np.inf)
    scores[1, [0b000, 0b001, 0b100, 0b101]] = [-3.0, -1.0, 2.0, 0.5]
    scores[0, 0] = scores[2, 0] = 0.0
    place = np.tile(np.arange(3), (3, 1))
    bound = order_gaps(scores, place, chain[None])[1, [0b000, 0b001, 0b100, 0b101]]
    free = order_gaps(scores, place, np.stack([chain, np.zeros_like(chain)]))[1, [0b000, 0b001, 0b100, 0b101]]
    assert bound.tolist() == [2.0, 0.0, np.inf, np.inf] and free.tolist() == [2.0, 0.0, 0.0, 1.5]


def test_better_estimates_change_which_families_matter():
    scored, candidates, empty = rough_candidates()
    before = candidates.rough(empty, {})
    (j, row), _ = before[0]
    scored.evidence.known[j, row.tobytes()] = Estimate(scored.log_evidence(j, np.flatnonzero(row), None) + 30, 0.0, 3)
    candidates.update([(j, row)])
    # far above all others of its node now, which no longer matter
    after = candidates.rough(empty, {})
    assert {family[0] for family, _ in after} == {family[0] for family, _ in before} - {j}
    table = candidates.model.table
    assert table.evidence[j, table.code(j, row)] == scored.evidence.estimate(j, row).log_evidence


@pytest.mark.parametrize(
    ("estimates", "order"),
    [
        # (error, effort so far, log probability below the best of the node, influence on an edge)
        (
            [(1.0, 0, 5.0, 0), (1.0, 0, 3.0, 0), (1.0, 0, 11.0, 0)],
            [1, 0],
        ),  # the more probable first, the far never
        ([(0.5, 1, 1.0, 0), (2.0, 1, 1.0, 0), (0.05, 1, 1.0, 0)], [1, 0]),  # the less certain first, the certain never
        ([(1.0, 0, 6.0, 0), (2.0, 1, 0.0, 0)], [1, 0]),  # the best of a node before quick estimates far below
        ([(1.0, 0, 0.5, 0), (1.0, 2, 0.5, 0.2)], [0, 1]),  # of equal ones what is cheap first
        ([(0.1, 2, 0.0, 0.04), (0.1, 2, 3.0, 0.2)], [1]),  # much effort for those alone that move an edge
        ([(0.1, LARGEST, 0.0, 0.2)], [0]),  # and if need be, again and again
        ([(0.1, MOST, 0.0, 0.2)], []),  # nothing is left to do
    ],
)
def test_the_errors_that_matter_most_come_first(estimates, order):
    data = dp.simulate(nodes=4, observations=20, seed=4, interventional_sets=0).train
    scored = Integrated(Estimated(), Estimated().summarise(data))
    families = [(j, np.zeros(4, dtype=bool)) for j in range(len(estimates))]
    for (j, row), (error, effort, *_) in zip(families, estimates):
        scored.evidence.known[j, row.tobytes()] = Estimate(0.0, error, effort)
    influence = {(j, row.tobytes()): estimates[j][3] for j, row in families}
    found = scored.rough_families(zip(families, (gap for _, _, gap, _ in estimates)), influence)
    assert [(family[0], effort) for family, effort in found] == [(j, estimates[j][1] + 1) for j in order]


def test_the_influence_of_a_family_is_how_far_its_evidence_moves_an_edge():
    graphs = dp.exact(dp.simulate(nodes=4, observations=30, seed=4, interventional_sets=0).train).sample(2000, 0)
    found, step = influences(graphs), 1e-4
    for (j, parents), influence in found.items():
        has = (graphs[:, :, j] == np.frombuffer(parents, dtype=bool)).all(axis=1)
        moved = np.average(graphs, axis=0, weights=np.exp(step * has))
        assert np.abs(moved - graphs.mean(axis=0)).max() / step == pytest.approx(influence, rel=1e-3)


def test_costly_estimates_are_made_a_few_at_a_time():
    families = [(0, np.zeros(4, dtype=bool))] * 200
    assert len(at_once([(family, 1) for family in families])) == AT_A_TIME
    assert len(at_once([(family, 2) for family in families])) == 25
    assert len(at_once([(family, MOST) for family in families])) == AT_LEAST


def test_edges_outside_the_table_have_the_chance_of_being_added():
    data = dp.simulate(nodes=5, observations=60, seed=4, interventional_sets=0).train
    exact = dp.exact(data, "linear", prior="erdos-renyi")
    rare = (exact.edge_marginals > 0.01) & (exact.edge_marginals < 0.1)
    assert rare.any()
    for i, j in np.argwhere(rare).tolist():
        candidates = Candidates(Integrated(Estimated(), Estimated().summarise(data)), dp.ErdosRenyi())
        candidates.open[i, j] = False
        empty = np.zeros((1, 5, 5), dtype=bool)
        candidates.fill(empty, Clock(), False)
        candidates.open[i, j] = True
        assert candidates.model.table.place[j, i] == ABSENT
        draws = exact.sample(2000, 0)
        draws = draws[~draws[:, i, j]]
        candidates.search(draws, Clock(), False, False)
        found = candidates.absent_edges(draws)
        assert found[i, j] == pytest.approx(exact.edge_marginals[i, j], rel=0.3)
        assert np.count_nonzero(found) == 1


@pytest.mark.slow
def test_the_verdict_has_the_edges_outside_the_candidates(monkeypatch):
    monkeypatch.setattr(candidates_module, "FEW_CANDIDATES", 2)
    monkeypatch.setattr(candidates_module, "MOST_CANDIDATES", 2)
    data = dp.simulate(nodes=5, observations=60, seed=4, interventional_sets=0).train
    post = dp.fit(data, Estimated(), precision=0.05, max_moves=200_000, progress=False)
    lacking, outside = post.edge_marginals[~post.graphs.any(axis=0)], post.info["outside_candidates"]
    assert lacking.sum() == pytest.approx(outside, rel=1e-3)
    assert lacking.max() > LARGEST_ERROR and not post.info["trusted"]
    assert f"an estimated {outside:.3f} per graph and {lacking.max():.3f} at most" in post.info["verdict"]


def test_an_edge_is_worth_what_the_score_loses_without_it():
    data = dp.simulate(nodes=5, observations=60, seed=4, interventional_sets=0).train
    candidates = Candidates(Integrated(Estimated(), Estimated().summarise(data)), dp.ErdosRenyi())
    row = np.arange(5) == 0
    node, worth, log_chance = candidates.worth_in(3, row, -1.0)
    here = candidates.score(3, row)
    assert node == 3 and np.isneginf(worth[3])
    np.testing.assert_array_equal(log_chance, np.minimum(worth, 0) - 1)
    assert worth[0] == here - candidates.score(3, np.zeros(5, dtype=bool))
    assert worth[1] == candidates.score(3, row | (np.arange(5) == 1)) - here


def test_a_better_parent_comes_before_rare_ones():
    """A node that graphs do not have yet takes the place of one in few of them, but not of one in many."""
    data = dp.simulate(nodes=5, observations=60, seed=4, interventional_sets=0).train
    candidates = Candidates(Integrated(Estimated(), Estimated().summarise(data)), dp.ErdosRenyi())
    graphs = np.zeros((100, 5, 5), dtype=bool)
    graphs[:90, 0, 4] = graphs[:3, 1, 4] = True
    candidates.worth[:4, 4] = [5.0, 3.0, 4.0, 9.0]
    candidates.log_chance[:4, 4] = [-0.2, -4.0, -1.0, -7.0]  # node 3 is worth much, but where graphs hardly go
    assert candidates.chosen(4, graphs, 4) == [0, 2, 1, 3]
    assert candidates.chosen(4, graphs, 2) == [0, 2]


def test_nodes_that_together_stand_in_for_a_parent_are_found():
    """Column 2 is nearly the sum of two others: they explain its child without it, and add nothing beside it."""
    values = np.random.default_rng(0).normal(size=(60, 12))
    values[:, 2] = values[:, 0] + values[:, 1] + 0.001 * values[:, 2]
    values[:, 3] = 0.25 * values[:, 2] + np.sqrt(0.1) * values[:, 3]
    candidates = Candidates(Integrated(Estimated(), Estimated().summarise(dp.Dataset(values))), dp.ErdosRenyi())
    graphs = np.zeros((1, 12, 12), dtype=bool)
    graphs[0, 2, 3] = True
    candidates.fill(graphs, Clock(), False)
    candidates.search(graphs, Clock(), False, False, without=True)
    candidates.renew(graphs, Clock(), False)
    table, both = candidates.model.table, np.arange(12) < 2
    assert np.isfinite(table.evidence[3, table.code(3, both)])
    worth, score = candidates.worth[:, 3], candidates.score
    assert worth[0] == score(3, both) - score(3, np.arange(12) == 1) > 0


def test_a_node_in_place_of_a_parent_becomes_a_candidate(monkeypatch):
    """A near copy of the parent, for a model in which nothing is worth anything beside a parent."""
    noise = np.random.default_rng(0).normal(size=(60, 12))
    noise[:, 2] = 2 * noise[:, 0] + 0.1 * noise[:, 2]
    noise[:, 1] = noise[:, 0] + 0.001 * noise[:, 1]
    model = Integrated(Estimated(), Estimated().summarise(dp.Dataset(noise)))
    candidates = Candidates(model, dp.ErdosRenyi())
    candidates.open[1, 2] = False
    graphs = np.zeros((1, 12, 12), dtype=bool)
    graphs[0, 0, 2] = graphs[0, 2, 3] = True
    candidates.fill(graphs, Clock(), False)
    candidates.open[1, 2] = True
    assert model.table.place[2, 1] == ABSENT
    nothing = np.full(12, -np.inf)
    monkeypatch.setattr(candidates, "worth_in", lambda node, row, log_share: Worth(node, nothing, nothing))
    candidates.search(graphs, Clock(), False, False)
    one, other = (candidates.score(2, np.arange(12) == i) for i in (0, 1))
    assert candidates.worth[1, 2] == other - one > -1
    assert np.isneginf(candidates.worth[3, 2])  # a descendant
    candidates.renew(graphs, Clock(), False)
    assert model.table.evidence[2, model.table.code(2, np.arange(12) == 1)] > -np.inf
