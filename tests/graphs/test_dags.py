"""Every DAG once, and random ones as often as they should be."""

import numpy as np
import pytest
from scipy.stats import chisquare

from dagpost.errors import InputError
from dagpost.graphs import all_dags, is_acyclic
from dagpost.graphs.dags import InDegreeLayers, erdos_renyi_dag, scale_free_dag
from dagpost.priors import Uniform


@pytest.mark.parametrize("d, count", [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281)])
def test_every_dag_once(d, count):
    graphs = all_dags(d)
    assert len(graphs) == count
    assert is_acyclic(graphs).all()
    assert len(np.unique(graphs.reshape(count, -1), axis=0)) == count


@pytest.mark.long
def test_every_dag_once_on_six_nodes():
    graphs = all_dags(6)
    assert len(graphs) == 3_781_503
    assert is_acyclic(graphs).all()


@pytest.mark.parametrize("d, count", [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281), (6, 3781503), (7, 1138779265)])
def test_counting_by_layers(d, count):
    assert np.exp(Uniform().log_normaliser(d)) == pytest.approx(count, rel=1e-12)


@pytest.mark.parametrize("d", [0, 7])
def test_too_many_are_refused(d):
    with pytest.raises(InputError, match="1 to 6 nodes"):
        all_dags(d)


RATE = 1e-4
"""Chance that a right sampler fails one of these tests; seeds are fixed, so they do not flicker."""


def test_erdos_renyi_has_the_expected_edges():
    rng = np.random.default_rng(0)
    graphs = np.stack([erdos_renyi_dag(rng, 20, 4 / 19) for _ in range(500)])
    assert is_acyclic(graphs).all()
    # 190 pairs, each with probability 4/19: mean 40, standard error 0.25
    assert graphs.sum(axis=(1, 2)).mean() == pytest.approx(40, abs=1.0)
    # no direction is preferred
    assert np.abs(graphs.mean(axis=0) - 2 / 19)[~np.eye(20, dtype=bool)].max() < 0.07


def test_scale_free_grows_hubs():
    rng = np.random.default_rng(1)
    graphs = np.stack([scale_free_dag(rng, 50, 2) for _ in range(200)])
    assert is_acyclic(graphs).all()
    assert (graphs.sum(axis=(1, 2)) == 2 * 48).all()
    # outgoing: two for each new node; incoming: heavy tail
    assert (np.sort(graphs.sum(axis=2), axis=1)[:, 3:] == 2).all()
    assert graphs.sum(axis=1).max(axis=1).mean() > 10


def test_scale_free_on_few_nodes():
    rng = np.random.default_rng(2)
    assert scale_free_dag(rng, 1, 2).sum() == 0
    assert scale_free_dag(rng, 2, 2).sum() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "log_weight",
    [lambda p: 0.0, lambda p: -3 * np.log1p(p), lambda p: 1.3 * p],
    ids=["uniform", "power", "dense"],
)
def test_draws_follow_the_density(log_weight):
    graphs = all_dags(3)
    weights = np.exp([sum(log_weight(p) for p in g.sum(axis=0)) for g in graphs])
    layers = InDegreeLayers(log_weight, 3)
    assert layers.log_normaliser == pytest.approx(np.log(weights.sum()), abs=1e-12)
    rng = np.random.default_rng(3)
    known = {g.tobytes(): m for m, g in enumerate(graphs)}
    counts = np.bincount([known[layers.sample(rng).tobytes()] for _ in range(20_000)], minlength=25)
    assert chisquare(counts, 20_000 * weights / weights.sum()).pvalue > RATE


def test_uniform_draws_on_many_nodes():
    rng = np.random.default_rng(4)
    layers = InDegreeLayers(lambda p: 0.0, 30)
    graphs = np.stack([layers.sample(rng) for _ in range(50)])
    assert is_acyclic(graphs).all()
    # a uniform DAG has close to d²/4 edges (McKay 1989)
    assert graphs.sum(axis=(1, 2)).mean() == pytest.approx(30**2 / 4, rel=0.05)
