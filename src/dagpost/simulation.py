"""Simulate a true network and data from it, following the protocol of the paper's experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import numpy as np

from dagpost._util.numerics import generator, key_from_seed
from dagpost.data import Dataset
from dagpost.errors import InputError, nearest, whole_number
from dagpost.models import LinearGaussian, Model, as_model
from dagpost.priors import GraphPrior, InDegreePrior, as_prior
from dagpost.typing import Graph, Theta


@dataclass(frozen=True, eq=False)
class Simulation:
    """A true graph with its parameters, and data generated from them.

    Attributes
    ----------
    graph
        True adjacency matrix; entry (i, j) is True for i -> j.
    theta
        True parameters of the generating model.
    train, test
        Observational data for fitting and for held-out evaluation.
    interventional
        Held-out data sets with interventions.
    model
        Model to fit with; it may differ from the generating model (BGe).
    prior
        Prior over graphs.
    seed
        Seed of the simulation.
    """

    graph: Graph
    theta: Theta
    train: Dataset
    test: Dataset
    interventional: tuple[Dataset, ...]
    model: Model
    prior: GraphPrior
    seed: int


def simulate(
    model: str | Model = "linear",
    prior: str | GraphPrior = "erdos-renyi",
    nodes: int = 20,
    observations: int = 100,
    seed: int = 0,
    *,
    test_observations: int = 100,
    interventional_sets: int = 10,
    interventional_observations: int = 100,
    intervened_share: float = 0.1,
    weight_shift: float = 0.0,
    source: Literal["paper", "density"] = "paper",
) -> Simulation:
    """Draw a random network, and training, held-out and interventional data from it.

    Parameters
    ----------
    model
        Name of a model or a `Model`.
    prior
        Name of a prior or a `GraphPrior`.
    nodes
        Number of nodes.
    observations
        Rows of training data.
    seed
        Seed that determines graph, parameters and data.
    test_observations
        Rows of held-out observational data.
    interventional_sets
        Number of interventional data sets.
    interventional_observations
        Rows of each interventional data set.
    intervened_share
        Share of the nodes, at least one node, that each interventional set clamps to 0.
    weight_shift
        Add `weight_shift · sign(weight)` to linear weights. The reference implementation uses 0.5; the model's prior
        does not include this.
    source
        `"paper"` uses the generators of the paper's experiments (for BGe: linear Gaussian data with noise 0.1).
        `"density"` draws the graph from the normalised density of the prior and the parameters from the model's own
        prior, which calibration requires.

    Returns
    -------
    Simulation
        The network and the data.

    Examples
    --------
    >>> sim = simulate(nodes=5, observations=20, seed=1)
    >>> sim.train
    Dataset(20 rows, 5 columns: x0, x1, x2, x3, x4)
    """
    fitted_model, graph_prior = as_model(model), as_prior(prior)
    _check_options(nodes, observations, test_observations, interventional_sets, intervened_share, source)
    simulator = fitted_model.simulator() if source == "paper" else fitted_model
    key_graph, key_theta, key_train, key_test, key_targets, key_interventional = jax.random.split(
        key_from_seed(seed), 6
    )
    if source == "density":
        if not isinstance(graph_prior, InDegreePrior):
            raise InputError(f"the prior {graph_prior.name!r} has no exact draws: use source='paper'")
        graph = graph_prior.sample_density(key_graph, nodes)
    else:
        graph = graph_prior.sample(key_graph, nodes)
    theta = simulator.sample_parameters(key_theta, graph)
    if weight_shift:
        theta = _shift_weights(simulator, theta, weight_shift)
    rng = generator(key_targets)
    count = max(1, round(intervened_share * nodes))
    interventional = []
    for key in jax.random.split(key_interventional, interventional_sets) if interventional_sets else ():
        clamped = {int(j): 0.0 for j in np.sort(rng.choice(nodes, count, replace=False))}
        interventional.append(simulator.sample_rows(key, graph, theta, interventional_observations, clamped))
    return Simulation(
        graph=graph,
        theta=theta,
        train=simulator.sample_rows(key_train, graph, theta, observations),
        test=simulator.sample_rows(key_test, graph, theta, test_observations),
        interventional=tuple(interventional),
        model=fitted_model,
        prior=graph_prior,
        seed=seed,
    )


def _shift_weights(model: Model, theta: Theta, shift: float) -> Theta:
    """Return theta with its linear weights moved away from 0 by `shift`."""
    if not isinstance(model, LinearGaussian):
        raise InputError(f"weight_shift is for linear data, not for the model {model.name!r}")
    if model.noise.learned:
        return theta._replace(weights=theta.weights + shift * np.sign(theta.weights))
    return theta + shift * np.sign(theta)


def _check_options(nodes, observations, test_observations, interventional_sets, intervened_share, source) -> None:
    whole_number("nodes", nodes, least=1)
    whole_number("observations", observations, least=0)
    whole_number("test_observations", test_observations, least=0)
    whole_number("interventional_sets", interventional_sets, least=0)
    if not 0 < intervened_share <= 1:
        raise InputError(f"intervened_share={intervened_share!r}: give a share above 0, up to 1")
    if source not in ("paper", "density"):
        raise InputError(f"unknown source {source!r}: {nearest(source, ['paper', 'density'])}")
