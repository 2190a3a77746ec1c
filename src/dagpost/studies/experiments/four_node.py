"""The four-node table of the paper's appendix: one data set, 30 initialisations.

It compares the probabilities of pairs of edges: of one pair the data identify the directions, of the other they cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dagpost.data import Dataset
from dagpost.studies.experiments.fitting import Fits, fit_run, run_of
from dagpost.studies.study import Layout, Scale, Study
from dagpost.studies.task import Task

METHODS = ("exact", "dibs-paper", "dibs", "auto", "mc3")


def tasks(scale: Scale) -> list[Task]:
    """Return every method from each restart; the exact posterior once."""
    data = {"network": "four-node", "observations": 100, "set": 0}
    return [
        Task("four-node", data, run_of(method, "bge", scale, restart=restart))
        for restart in scale.replicates
        for method in METHODS
        if restart == 0 or method != "exact"
    ]


FOUR_NODE = (
    Study(
        "four-node",
        "Four nodes, against the exact posterior",
        "appendix G, table of posterior marginals",
        "Probabilities of pairs of edges under a uniform prior, mean over initialisations on one data set of 100 rows. "
        "The paper's data set is not published: its exact column is another than ours, and each method is to be "
        "compared with the exact column beside it.",
        tasks,
        Layout(
            rows=("feature",),
            metrics={"probability": "probability"},
            spread="method",
            figure="lines",
            x="feature",
            digits={"probability": 3},
        ),
        published=True,
    ),
)


WEIGHTS = {(0, 1): 2.0, (0, 2): -2.0, (1, 3): 3.0, (2, 3): 1.0}
"""Edge weights of the true network; every node has unit noise."""

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
"""Edges that must all be present, by label."""


def sample_data(rows: int, seed: int) -> Dataset:
    """Return rows sampled from the true network."""
    values = np.random.default_rng(seed).standard_normal((rows, 4))
    for (i, j), weight in WEIGHTS.items():  # parents come before their children
        values[:, j] += weight * values[:, i]
    return Dataset(values)


def four_node(task: Task, fits: Fits = fit_run) -> Iterator[dict[str, Any]]:
    """Yield one row for each posterior and pair of edges."""
    data = sample_data(task.data["observations"], task.data_seed)
    for fitted in fits(data, task.run, "uniform", task.seed):
        for name, edges in FEATURES.items():
            both = lambda graph, edges=edges: all(graph[i, j] for i, j in edges)  # noqa: E731
            probability = None if fitted.posterior is None else fitted.posterior.probability(both)
            yield {**fitted.columns, "feature": name, "probability": probability}
