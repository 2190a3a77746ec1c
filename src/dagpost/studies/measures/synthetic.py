"""The paper's metrics on simulated networks: E-SHD, AUROC, negative (M)LL and I-(M)LL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dagpost.metrics import auroc, expected_shd, negative_log_likelihood
from dagpost.posterior import Posterior
from dagpost.simulation import Simulation, simulate
from dagpost.studies.measures.fitting import Fits, fitted
from dagpost.studies.task import Task


def simulated(task: Task) -> Simulation:
    """The data set of a task; it depends on the data part of the task alone."""
    data = task.data
    return simulate(
        data["generator"],
        data["graphs"],
        data["nodes"],
        data["observations"],
        task.data_seed,
        test_observations=data.get("test_observations", 100),
        interventional_sets=data.get("interventional_sets", 10),
    )


def synthetic(task: Task, fits: Fits = fitted) -> Iterator[dict[str, Any]]:
    """One row for each posterior of the run."""
    sim = simulated(task)
    for found in fits(sim.train, task.run, task.data["graphs"], task.seed):
        yield {**found.columns, **scores(found.posterior, sim, found.columns["method"])}


def scores(post: Posterior | None, sim: Simulation, method: str) -> dict[str, Any]:
    """Smaller is better, except for AUROC; PC and GES have their undirected edges read in their favour there.

    `auto` says whether its chains agree (`trusted`)."""
    if post is None:
        return dict.fromkeys(("shd", "auroc", "nll", "inll", "edges"))
    told = {"trusted": post.info["trusted"]} if "trusted" in post.info else {}
    truth = sim.graph
    return {
        "shd": expected_shd(post, truth),
        "auroc": auroc(post, truth, by_class=method.startswith("bootstrap")) if truth.any() else None,
        "nll": negative_log_likelihood(post, sim.test),
        "inll": negative_log_likelihood(post, sim.interventional),
        "edges": post.expected_edges,
        **told,
    }
