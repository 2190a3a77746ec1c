"""Where chains start: annealing from the empty graph."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.graphs import is_acyclic
from dagpost.inference.mcmc import ladder, refine
from dagpost.inference.mcmc.ensembles import start
from dagpost.inference.mcmc.ladder import adapt_ladder, anneal
from dagpost.inference.mcmc.scoring import Scoring, log_posterior, scorer_for
from dagpost.models import as_model
from dagpost.priors import as_prior
from tests.digests import digest

NODES = 64
HEATS = np.geomspace(1.0, 0.25, 3)
EMPTY = np.zeros((1, NODES, NODES), np.bool_)


@pytest.fixture(scope="module")
def scoring() -> Scoring:
    sim = dp.simulate("linear", nodes=NODES, observations=200, seed=1, interventional_sets=0)
    model = as_model("linear")
    return scorer_for(model, as_prior("erdos-renyi"), model.summarise(sim.train), NODES)


def test_annealing_returns_a_dag_for_every_level_the_coldest_first(scoring):
    graphs = anneal(EMPTY, scoring, np.array([1, 2]), HEATS)
    assert graphs.shape == (6, NODES, NODES)
    assert all(is_acyclic(graph) for graph in graphs)
    values = [log_posterior(scoring.scorer, start(graph[None], scoring, 1).scores[0]) for graph in graphs]
    by_chain = np.reshape(values, (2, 3))
    assert (np.diff(by_chain, axis=1) < 0).all()
    assert by_chain[0, 0] != by_chain[1, 0]
    assert (anneal(EMPTY, scoring, np.array([2]), HEATS) == graphs[3:]).all()


def test_a_ladder_starts_from_annealed_graphs_where_asked(scoring, monkeypatch):
    monkeypatch.setattr(ladder, "ANNEALED", NODES)
    _, from_empty, _ = adapt_ladder(EMPTY, scoring, np.array([1, 2]), 0.25, times=0, annealed=True)
    assert from_empty.any(axis=(-1, -2)).all() and len(from_empty) == 20
    one_edge = EMPTY.copy()
    one_edge[0, 0, 1] = True
    _, kept, _ = adapt_ladder(one_edge, scoring, np.array([1, 2]), 0.25, times=0)
    assert (kept == one_edge).all()


def test_resumed_chains_keep_their_ladder(tmp_path, monkeypatch):
    """Adapted again, it could have other levels: a time limit can end it between the passes that are saved."""
    sim = dp.simulate("bge", nodes=6, observations=100, seed=1, interventional_sets=0)
    options = {"model": "bge", "seed": 3, "draws": 50, "precision": 1e-6, "max_moves": 400_000}
    undisturbed = dp.fit(sim.train, **options)

    def fail(snapshot):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dp.fit(sim.train, checkpoint=tmp_path, checkpoint_every=1e-9, callback=fail, **options)
    monkeypatch.setattr(refine, "adapt_ladder", None)
    assert digest(dp.fit(sim.train, checkpoint=tmp_path, resume=True, **options)) == digest(undisturbed)
