"""The protein-signalling data, scored against each consensus graph by name, and as the published table was computed.

The authors' code takes the adjacency matrix of the consensus graph in the order in which its edge file first names the
nodes, and compares it with posteriors whose nodes are in the order of the data's columns. That reference is a permuted
graph. It is kept here, under a name that says so, because the published figures can be compared with nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dagpost.data import Dataset, sachs, sachs_graph
from dagpost.graphs import essential_graph, literal_essential_graph, structural_hamming_distance
from dagpost.metrics import auroc
from dagpost.posterior import Posterior
from dagpost.studies.labels import AS_PUBLISHED
from dagpost.studies.measures.fitting import Fits, fitted
from dagpost.studies.task import Task
from dagpost.typing import Graph

FILE_ORDER = ("PIP2", "PKC", "plcg", "PIP3", "pjnk", "P38", "PKA", "praf", "pmek", "p44/42", "pakts473")
"""Nodes as the edge file of the consensus graph first names them."""


def references() -> dict[str, Graph]:
    """Consensus graphs in the order of the data's columns, and the one that the published table rests on."""
    cdt = sachs_graph("cdt")
    return {
        AS_PUBLISHED: cdt.loc[list(FILE_ORDER), list(FILE_ORDER)].to_numpy(),
        "cdt": cdt.to_numpy(),
        "sachs20": sachs_graph("sachs20").to_numpy(),
        "bnlearn": sachs_graph("bnlearn").to_numpy(),
    }


def measurements(rows: int | None = None) -> Dataset:
    """Standardised as in the paper; every so many rows of them where fewer are asked for."""
    data = sachs()
    if rows is not None:
        chosen = np.zeros(data.observations, dtype=np.bool_)
        chosen[:: data.observations // rows] = True
        data = data.rows(chosen)
    return data.standardised()


def protein_signalling(task: Task, fits: Fits = fitted) -> Iterator[dict[str, Any]]:
    """One row for each posterior and reference graph."""
    data = measurements(task.data.get("rows"))
    for found in fits(data, task.run, "erdos-renyi", task.seed):
        post = found.posterior
        for name, truth in references().items():
            scored = {"shd": None, "auroc": None, "edges": None}
            if post is not None:
                by_class = found.columns["method"].startswith("bootstrap")
                scored = {
                    "shd": distance(post, truth),
                    "auroc": auroc(post, truth, by_class=by_class),
                    "edges": post.expected_edges,
                }
            yield {**found.columns, "truth": name, **scored}


def distance(post: Posterior, truth: Graph) -> float:
    """E-SHD; the `cdt` graph has a cycle, and the construction of essential graphs is applied to it literally."""
    essential = essential_graph(post.graphs)
    return float(post.weights @ structural_hamming_distance(essential, literal_essential_graph(truth)))
