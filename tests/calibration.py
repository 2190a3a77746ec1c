"""Simulation-based calibration: with truth drawn from the prior, posterior ranks are uniform.

For a statistic T of (graph, data), `u = P(T < t* | D) + v P(T = t* | D)` with v uniform is exactly uniform
when the posterior is right.
"""

from collections.abc import Callable

import numpy as np

import dagpost as dp


def ranks(
    infer: Callable[[dp.Dataset], dp.Posterior], model, prior, *, simulations: int, nodes: int = 4,
    observations: int = 20,
) -> dict[str, list[float]]:  # fmt: skip
    """`u` of the number of edges, of one edge and of the log likelihood, for every simulated data set."""
    rng = np.random.default_rng(0)
    out = {"edges": [], "edge 0 -> 1": [], "log likelihood": []}
    for seed in range(simulations):
        sim = dp.simulate(
            model, prior, nodes=nodes, observations=observations, seed=seed, source="density",
            test_observations=0, interventional_sets=0,
        )  # fmt: skip
        post = infer(sim.train)
        stats = model.summarise(sim.train)
        graphs = np.concatenate([post.graphs, sim.graph[None]])  # the truth comes last
        likelihood = np.round(model.log_evidence_of(graphs, stats), 8)
        for name, values in (
            ("edges", graphs.sum(axis=(1, 2))),
            ("edge 0 -> 1", graphs[:, 0, 1]),
            ("log likelihood", likelihood),
        ):
            below = post.weights[values[:-1] < values[-1]].sum()
            equal = post.weights[values[:-1] == values[-1]].sum()
            out[name].append(below + rng.random() * equal)
    return out
