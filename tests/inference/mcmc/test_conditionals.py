"""Conditional probabilities of edges: their posterior mean is the edge's probability, exactly."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.graphs import all_dags
from dagpost.inference.mcmc.conditionals import RARE, conditional_probabilities, with_rare_edges
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.models import as_model
from dagpost.priors import as_prior, informed

DATA = dp.simulate(nodes=4, observations=25, seed=4, interventional_sets=0).train
KNOWN = dp.Knowledge(required=[("x0", "x1")], forbidden=[("x2", "x3")], probabilities={("x1", "x3"): 0.8})


@pytest.mark.parametrize("known", [None, KNOWN], ids=["free", "known"])
@pytest.mark.parametrize("prior", ["erdos-renyi", "scale-free", "unknown-density"])
@pytest.mark.parametrize("model", ["bge", "linear"])
def test_their_mean_over_all_dags_is_the_probability(model, prior, known):
    exact = dp.exact(DATA, model, prior, knowledge=known)
    scored = as_model(model)
    chosen = informed(as_prior(prior), known, DATA.names)
    scorer = scorer_for(scored, chosen, scored.summarise(DATA), 4).scorer
    probabilities = np.exp(exact.log_probability(graphs := all_dags(4)))
    found = sum(p * conditional_probabilities(g[None], scorer) for p, g in zip(probabilities, graphs) if p > 0)
    np.testing.assert_allclose(found, exact.edge_marginals, atol=1e-10)


def test_rare_edges_are_ranked_and_others_left_alone():
    scored, prior = as_model("bge"), dp.ErdosRenyi(probability=0.05)
    exact = dp.exact(DATA, scored, prior)
    scorer = scorer_for(scored, prior, scored.summarise(DATA), 4).scorer
    drawn = exact.sample(300, 1)
    frequencies = drawn.mean(axis=0)
    found = with_rare_edges(frequencies, drawn, scorer)
    rare = (frequencies < RARE) & ~np.eye(4, dtype=bool)
    assert rare.any() and not rare.all()
    np.testing.assert_array_equal(found[frequencies >= RARE], frequencies[frequencies >= RARE])
    assert (found[rare] > 0).all() and np.abs(found - exact.edge_marginals)[rare].max() < 0.02
    uncompiled = with_rare_edges(frequencies, drawn, scorer._replace(compiled=False))
    np.testing.assert_array_equal(uncompiled, frequencies)
