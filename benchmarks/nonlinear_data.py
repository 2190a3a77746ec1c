"""Nonlinear networks that the benchmarks of nonlinear models use: data and graph by kind, size and number.

* `additive-noise`: every edge is `a sin(b x)` or `a tanh(b x)` with a from 1 to 2 (either sign) and b from 0.5 to 2;
  the noise is normal with standard deviation 0.3 to 1. Erdős–Rényi with two edges per node.
* `interactions`: every node is one draw of a Gaussian process of all its parents, with a squared-exponential covariance
  of length 0.7 to 1.5 times sqrt(number of parents) and standard deviation 1 to 2; graphs and noise as above.
* `gp-networks`: the generator of the paper on Gaussian-process networks (Giudice, Kuipers, Moffa, NeurIPS 2023). An
  edge is `b (w_0 x + sum_k w_k cos(k x) + v_k sin(k x))`, k from 1 to 6, b from 0.5 to 2; the sizes of (w, v) are a
  Dirichlet draw with parameters proportional to `exp(-k / lambda)` that sum to 1, their signs are random, lambda is 1
  (their most nonlinear setting), and the noise has standard deviation 1. Erdős–Rényi with one edge per node; columns
  are standardised at the end.
* `mlp`: the training rows of the study mlp-20 (the protocol of the DiBS paper; 20 nodes and 100 rows).

In the first two, columns are standardised before their children are drawn: variances do not tell the order.
"""

from __future__ import annotations

import numpy as np

KINDS = ("additive-noise", "interactions", "gp-networks", "mlp")
FREQUENCIES = 6


def simulate(kind: str, nodes: int, rows: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return data and graph."""
    if kind == "mlp":
        return _of_study(nodes, rows, number)
    rng = np.random.default_rng([number, nodes])
    order = rng.permutation(nodes)
    graph = np.zeros((nodes, nodes), dtype=bool)
    chance = (2 if kind == "gp-networks" else 4) / (nodes - 1)
    for place, j in enumerate(order):
        graph[order[:place], j] = rng.random(place) < chance
    mean = {"additive-noise": _waves, "interactions": _process, "gp-networks": _fourier}[kind]
    values = np.zeros((rows, nodes))
    for j in order:
        total = (1.0 if kind == "gp-networks" else rng.uniform(0.3, 1.0)) * rng.normal(size=rows)
        total += mean(rng, values[:, graph[:, j]])
        values[:, j] = total if kind == "gp-networks" else (total - total.mean()) / total.std()
    return (values - values.mean(axis=0)) / values.std(axis=0), graph


def _waves(rng: np.random.Generator, inputs: np.ndarray) -> np.ndarray:
    """Return a sum of sines and hyperbolic tangents of the columns."""
    total = np.zeros(len(inputs))
    for x in inputs.T:
        shape = np.sin if rng.random() < 0.5 else np.tanh
        total += rng.choice([-1, 1]) * rng.uniform(1, 2) * shape(rng.uniform(0.5, 2) * x)
    return total


def _process(rng: np.random.Generator, inputs: np.ndarray) -> np.ndarray:
    """Return a draw of a Gaussian process of all columns together."""
    n, p = inputs.shape
    if p == 0:
        return np.zeros(n)
    length, size = rng.uniform(0.7, 1.5) * p**0.5, rng.uniform(1, 2)
    squares = ((inputs[:, None] - inputs[None]) ** 2).sum(axis=2)
    covariance = np.exp(-squares / (2 * length**2)) + 1e-8 * np.eye(n)
    return size * np.linalg.cholesky(covariance) @ rng.normal(size=n)


def _fourier(rng: np.random.Generator, inputs: np.ndarray) -> np.ndarray:
    """Return a sum of Fourier series of the columns."""
    frequency = np.append(0, np.tile(np.arange(1, FREQUENCIES + 1), 2))
    decay = np.exp(-frequency / 1.0)
    total = np.zeros(len(inputs))
    for x in inputs.T:
        weights = rng.dirichlet(decay / decay.sum()) * rng.choice([-1, 1], size=len(frequency)) * rng.uniform(0.5, 2)
        phase = x[:, None] * np.arange(1, FREQUENCIES + 1)
        total += np.column_stack([x, np.cos(phase), np.sin(phase)]) @ weights
    return total


def _of_study(nodes: int, rows: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a data set of the study on Erdős–Rényi graphs."""
    from dagpost.studies import study_by_name
    from dagpost.studies.experiments.synthetic import simulation_of
    from dagpost.studies.study import Scale

    tasks = study_by_name(f"mlp-{nodes}").tasks(Scale(number + 1))
    task = next(t for t in tasks if (t.data["set"], t.data["graphs"]) == (number, "erdos-renyi"))
    sim = simulation_of(task)
    if len(sim.train.values) != rows:
        raise ValueError(f"the study mlp-{nodes} has {len(sim.train.values)} rows: use --rows {len(sim.train.values)}")
    return np.asarray(sim.train.values), np.asarray(sim.graph)
