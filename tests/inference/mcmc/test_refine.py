"""Refinement against exact posteriors; more, with other sizes and priors, in benchmarks/accuracy.py."""

import itertools

import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.inference.mcmc import refine
from dagpost.inference.mcmc.diagnostics import edge_errors
from dagpost.inference.mcmc.ladder import LARGE, REJECTED, UNIFORM, pair_weights, standard_recipe
from dagpost.inference.mcmc.refine import Effort


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "prior", "d", "rows"), [("bge", "uniform", 5, 20), ("linear", "erdos-renyi", 8, 100)]
)
def test_auto_agrees_with_the_exact_posterior(model, prior, d, rows):
    sim = dp.simulate(model, nodes=d, observations=rows, seed=d, interventional_sets=0)
    exact = dp.exact(sim.train, model, prior)
    post = dp.fit(sim.train, model, prior, draws=500, seed=1, precision=0.01)
    assert post.info["trusted"], post.info["verdict"]
    # a standard error of at most 0.01: five of them for the worst of d (d - 1) edges
    assert post.edge_marginals == pytest.approx(exact.edge_marginals, abs=0.05)
    assert len(post) == 500
    drawn = post.weighted("uniform").edge_marginals
    assert drawn == pytest.approx(post.edge_marginals, abs=0.12)


@pytest.mark.slow
def test_auto_draws_parameters_from_their_posterior():
    """Averages of theta over graphs and draws against exact inference with as many draws."""
    sim = dp.simulate("linear", nodes=4, observations=60, seed=3, interventional_sets=0)
    exact = dp.exact(sim.train, "linear", draws=4000, parameters=True)
    post = dp.fit(sim.train, "linear", draws=2000, seed=2, precision=0.02)
    assert np.asarray(post.theta).shape == (2000, 4, 4)
    assert (np.asarray(post.theta)[~post.graphs] == 0).all()
    assert np.asarray(post.theta).mean(axis=0) == pytest.approx(np.asarray(exact.theta).mean(axis=0), abs=0.12)


@pytest.mark.slow
def test_a_seed_fixes_the_result():
    sim = dp.simulate("bge", nodes=4, observations=30, seed=1, interventional_sets=0)
    options = {"steps": 20, "particles": 4, "draws": 50, "precision": 0.05, "method": "auto"}
    one, two, other = (dp.fit(sim.train, "bge", seed=seed, **options) for seed in (5, 5, 6))
    assert (one.graphs == two.graphs).all()
    assert (one.edge_marginals == two.edge_marginals).all()
    assert (one.graphs != other.graphs).any()


def test_moves_are_limited():
    sim = dp.simulate("bge", nodes=6, observations=100, seed=1, interventional_sets=0)
    options = {"draws": 100, "precision": 1e-6, "max_moves": 500_000}
    one, two = (dp.fit(sim.train, "bge", **options) for _ in range(2))
    assert one.info["ended_by"] == "limit"
    assert 490_000 < one.info["moves"] <= 500_000  # chains that agree use all of it
    assert (one.edge_marginals == two.edge_marginals).all()


@pytest.mark.slow
def test_near_pairs_and_the_ladder_follow_the_block_before(monkeypatch):
    sim = dp.simulate("bge", nodes=LARGE, observations=100, seed=1, interventional_sets=0)
    blocks, real = [], refine.run_block

    def listening(*arguments):
        block, complete = real(*arguments)
        tried, accepted = (sum(getattr(e, f"swaps_{n}") for e in arguments[0]) for n in ("tried", "accepted"))
        blocks.append((*arguments[1:4], block, 1 - accepted / tried))
        return block, complete

    asked, real_weights = [], refine.pair_weights

    def weighing(*arguments):
        asked.append((arguments, real_weights(*arguments)))
        return asked[-1][1]

    monkeypatch.setattr(refine, "pair_weights", weighing)
    monkeypatch.setattr(refine, "run_block", listening)
    real_diagnostics = refine.block_diagnostics  # chains that agree would prolong a block
    monkeypatch.setattr(refine, "block_diagnostics", lambda *block: real_diagnostics(*block)._replace(rhat=2.0))
    dp.fit(sim.train, "bge", draws=100, start="empty", precision=1e-6, max_moves=3_500_000)
    assert len(blocks) >= 3
    for k, ((scoring, heats, _, before, rejected), (_, new, recipe, _, _)) in enumerate(itertools.pairwise(blocks)):
        (frequencies, errors, weights), following = asked[k + 1]
        np.testing.assert_array_equal(frequencies, before.frequencies.mean(axis=(0, 1)))
        np.testing.assert_array_equal(errors, edge_errors(before.frequencies))
        assert weights is asked[k][1]
        assert (recipe.affinity.share == standard_recipe(LARGE, scoring, following).affinity.share).all()
        # the same share of all rejections between any two neighbours, and at most half of an exchange
        barrier = np.interp(new[::-1], heats[::-1], np.r_[0.0, rejected.cumsum()][::-1])[::-1]
        assert new[0] == 1 and new[-1] == heats[-1]
        assert np.ptp(np.diff(barrier)) < 1e-9 and (np.diff(barrier)[0] <= REJECTED or len(new) == 3)


def test_slow_pairs_have_more_weight():
    """Where the variance of a frequency is `c / w`, weights become the root of c, whatever they were."""
    rng = np.random.default_rng(0)
    upper = np.triu(rng.gamma(0.5, size=(9, 9)), 1)
    frequencies, c, before = rng.random((9, 9)), upper + upper.T, rng.gamma(0.5, size=(9, 9))
    before = before + before.T
    errors = np.sqrt(c / (before + UNIFORM / 9))
    usual, found = pair_weights(frequencies), pair_weights(frequencies, errors, before)
    shares = found[np.triu_indices(9, 1)] / np.sqrt(c[np.triu_indices(9, 1)])
    np.testing.assert_allclose(shares, shares[0])
    assert found.sum() == pytest.approx(usual.sum())
    np.testing.assert_allclose(usual**2, frequencies * (1 - frequencies) + (frequencies * (1 - frequencies)).T)
    assert (pair_weights(np.ones((9, 9)), np.zeros((9, 9)), before) == 0).all()  # nothing varies
    errors[0, 1] = np.nan  # chains stay in different states there
    unknown = pair_weights(frequencies, errors, before)
    assert np.isfinite(unknown).all() and unknown[0, 1] / unknown[0, 2] > found[0, 1] / found[0, 2]


def test_a_run_out_of_time_says_so():
    sim = dp.simulate("bge", nodes=15, observations=100, seed=1, interventional_sets=0)
    post = dp.fit(sim.train, "bge", draws=100, time_limit=0.5, precision=1e-4)
    assert post.info["ended_by"] == "limit"
    assert not post.info["trusted"]
    assert "Do not trust" in post.info["verdict"]
    assert post.graphs.shape == (100, 15, 15)


def test_interventions_count():
    sim = dp.simulate("linear", nodes=4, observations=40, seed=4, interventional_sets=0)
    data = dp.Dataset(sim.train.values, intervened=np.arange(40)[:, None] % 4 == np.arange(4))
    exact = dp.exact(data, "linear")
    post = dp.fit(data, "linear", draws=100, precision=0.01)
    assert post.edge_marginals == pytest.approx(exact.edge_marginals, abs=0.05)


@pytest.mark.slow
def test_chains_on_numerical_evidence_can_start_from_dibs():
    sim = dp.simulate("mlp", nodes=4, observations=30, seed=1, interventional_sets=0)
    post = dp.fit(sim.train, "mlp", steps=5, particles=3, draws=20, max_moves=20_000)
    found = post.record.diagnostics
    assert len(post) == 20 and (found.start, found.particles) == ("dibs", 3) and found.families > 0
    assert "estimated" in post.info["verdict"]


@pytest.mark.parametrize("wrong", [{"max_moves": 0}, {"precision": -1}, {"ensembles": 1}])
def test_effort_is_checked(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Effort(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("good_enough", "times"), [(1.0, 1), (0.0, 3)])
def test_chains_that_are_not_settled_go_on_for_longer(good_enough, times, monkeypatch):
    """No chain gets to a precision of 1e-9, so the limit ends each; which one, `SETTLED` decides."""
    for name, value in {"MOVES_PER_NODE": 500_000, "MOVES_PER_PAIR": 0, "SETTLED": good_enough}.items():
        monkeypatch.setattr(f"dagpost.inference.mcmc.refine.{name}", value)
    sim = dp.simulate("bge", nodes=4, observations=50, seed=2, interventional_sets=0)
    post = dp.fit(sim.train, "bge", method="auto", precision=1e-9, progress=False)
    assert post.info["moves"] == pytest.approx(times * 2_000_000, rel=0.3)
    assert Effort(max_moves=10).allowed(4, None) == 10
