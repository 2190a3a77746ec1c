"""The paper's four-node example: probabilities of two pairs of edges, one that data identify and one they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dagpost.data import Dataset
from dagpost.studies.measures.fitting import Fits, fitted
from dagpost.studies.task import Task

WEIGHTS = {(0, 1): 2.0, (0, 2): -2.0, (1, 3): 3.0, (2, 3): 1.0}
"""Of the true network; every node has unit noise."""

FEATURES = {
    "x1 → x0 → x2": ((1, 0), (0, 2)),
    "x1 → x0 ← x2": ((1, 0), (2, 0)),
    "x1 ← x0 → x2": ((0, 1), (0, 2)),
    "x1 ← x0 ← x2": ((0, 1), (2, 0)),
    "x1 → x3 → x2": ((1, 3), (3, 2)),
    "x1 → x3 ← x2": ((1, 3), (2, 3)),
    "x1 ← x3 → x2": ((3, 1), (3, 2)),
    "x1 ← x3 ← x2": ((3, 1), (2, 3)),
}


def observed(rows: int, seed: int) -> Dataset:
    """Rows of the true network."""
    values = np.random.default_rng(seed).standard_normal((rows, 4))
    for (i, j), weight in WEIGHTS.items():  # parents come before their children
        values[:, j] += weight * values[:, i]
    return Dataset(values)


def four_node(task: Task, fits: Fits = fitted) -> Iterator[dict[str, Any]]:
    """One row for each posterior and pair of edges."""
    data = observed(task.data["observations"], task.data_seed)
    for found in fits(data, task.run, "uniform", task.seed):
        for name, edges in FEATURES.items():
            both = lambda graph, edges=edges: all(graph[i, j] for i, j in edges)  # noqa: E731
            probability = None if found.posterior is None else found.posterior.probability(both)
            yield {**found.columns, "feature": name, "probability": probability}
