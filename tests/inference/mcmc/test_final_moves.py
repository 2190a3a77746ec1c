"""Moves of given DAGs, with which particles of DiBS end."""

import jax
import numpy as np
import pytest

import dagpost as dp
from dagpost.inference.mcmc import equilibrate
from dagpost.inference.mcmc.final_moves import final_round
from dagpost.inference.mcmc.ladder import LARGE
from dagpost.inference.mcmc.scoring import scorer_for
from tests.inference.mcmc.test_moves import counts_of, exact_probabilities, p_value, problem


def test_dags_end_at_the_posterior():
    model, prior, stats = problem()
    graphs, exact = exact_probabilities(model, prior, stats, 3)
    moved, made = equilibrate(np.zeros((2000, 3, 3), np.bool_), 45, model, prior, stats, jax.random.key(3))
    assert made == 45
    assert p_value(counts_of(moved, graphs), exact) > 1e-3


@pytest.mark.parametrize("d", [LARGE - 1, LARGE])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_every_dag_makes_the_moves_that_were_asked_for(d, more):
    sim = dp.simulate("bge", nodes=d, observations=50, seed=1, interventional_sets=0)
    model, prior = dp.BGe(), dp.ErdosRenyi()
    stats = model.summarise(sim.train)
    moves = 2 * int(final_round(d, scorer_for(model, prior, stats, d)).counts.sum()) + more
    moved, made = equilibrate(np.zeros((3, d, d), np.bool_), moves, model, prior, stats, jax.random.key(3))
    assert made == moves
    assert moved.any(axis=(1, 2)).all() and (moved[0] != moved[1]).any()
