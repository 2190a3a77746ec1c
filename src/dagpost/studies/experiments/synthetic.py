"""Simulated networks: figures 2 to 4 of the paper (20 nodes) and those of its appendix F (50 nodes).

The metrics are those of the paper: E-SHD, AUROC, negative (M)LL and I-(M)LL.

The ablations of its appendix G (scalar embedding, latent size k, number of steps) infer linear networks with 20 nodes,
on the data sets of the study `linear-20`. The run with everything as published, including its intermediate steps, is a
task of that study and is computed once.

The four-node table of the appendix has one data set and 30 initialisations. It compares the probabilities of pairs of
edges: of one pair the data identify the directions, of the other they cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dagpost.data import Dataset
from dagpost.metrics import auroc, expected_shd, negative_log_likelihood
from dagpost.posterior import Posterior
from dagpost.simulation import Simulation, simulate
from dagpost.studies.experiments.fitting import RECORDED, Fits, fit_run, run_of
from dagpost.studies.study import Layout, Scale, Study
from dagpost.studies.task import Task

GRAPHS = ("erdos-renyi", "scale-free")
METHODS = {
    "bge": ("mc3", "bootstrap-pc", "bootstrap-ges", "dibs", "auto", "dibs-paper"),
    "linear": ("m-mc3", "g-mc3", "bootstrap-pc", "bootstrap-ges", "dibs", "auto", "dibs-paper"),
    "mlp": ("m-mc3", "g-mc3", "dibs", "auto", "dibs-paper"),
}
"""Methods by model."""


def data_of(model: str, nodes: int, graphs: str, number: int, scale: Scale) -> dict[str, Any]:
    """Return the `data` part of a task. BGe and linear studies share their data sets."""
    data = {"generator": "mlp" if model == "mlp" else "linear", "graphs": graphs, "nodes": nodes, "set": number}
    if scale.smoke:
        return data | {"nodes": 5, "observations": 30, "test_observations": 10, "interventional_sets": 2}
    return data | {"observations": 100}


def particles_of(model: str, nodes: int, method: str) -> int:
    """Return the number of particles: 30, but 10 for DiBS on the MLP with 50 nodes, as in the paper."""
    return 10 if model == "mlp" and nodes == 50 and "dibs" in method else 30


def record_of(model: str, nodes: int, graphs: str, method: str) -> dict[str, Any]:
    """Return the steps to record, for the runs that the ablation of the number of steps uses."""
    in_ablation = (model, nodes, graphs, method) == ("linear", 20, "erdos-renyi", "dibs-paper")
    return {"record": list(RECORDED)} if in_ablation else {}


def synthetic_run(model: str, nodes: int, graphs: str, method: str, scale: Scale) -> dict[str, Any]:
    """Return the `run` part of a task.

    PC and GES learn the same graphs whatever the model, so one task weights them for both BGe and linear models.
    """
    if method.startswith("bootstrap"):
        return run_of(method, "bge", scale, also=["linear"])
    particles = particles_of(model, nodes, method)
    return run_of(method, model, scale, particles, nodes, **record_of(model, nodes, graphs, method))


def make_study(model: str, nodes: int, title: str, source: str, shows: str) -> Study:
    """Return the study of a model with this number of nodes."""

    def tasks(scale: Scale) -> list[Task]:
        return [
            Task(
                "synthetic",
                data_of(model, nodes, graphs, number, scale),
                synthetic_run(model, nodes, graphs, method, scale),
            )
            for number in scale.replicates
            for graphs in GRAPHS
            for method in METHODS[model] + scale.include
        ]

    marginal = model == "bge"
    metrics = {
        "shd": "E-SHD",
        "auroc": "AUROC",
        "nll": "neg. MLL" if marginal else "neg. LL",
        "inll": "neg. I-MLL" if marginal else "neg. I-LL",
        "edges": "edges",
    }
    layout = Layout(
        rows=("graphs", "method"),
        metrics=metrics,
        where={"final": (None, True), "model": (model,)},
        panels="graphs",
        digits={"auroc": 3},
    )
    return Study(f"{model}-{nodes}", title, source, shows, tasks, layout)


SYNTHETIC = (
    make_study(
        "bge", 20, "Marginal posterior, BGe, 20 nodes", "figure 2",
        "Posteriors over graphs of linear Gaussian networks, parameters integrated out; 100 rows.",
    ),
    make_study(
        "linear", 20, "Joint posterior, linear, 20 nodes", "figure 3",
        "Posteriors over graphs and weights of linear Gaussian networks with known noise; 100 rows.",
    ),
    make_study(
        "mlp", 20, "Joint posterior, MLP, 20 nodes", "figure 4",
        "Posteriors over graphs and parameters of networks with a small neural network at each node; 100 rows.",
    ),
    make_study(
        "bge", 50, "Marginal posterior, BGe, 50 nodes", "appendix F, first figure",
        "As with 20 nodes; the score-function estimator of the published method has more variance here.",
    ),
    make_study(
        "linear", 50, "Joint posterior, linear, 50 nodes", "appendix F, second figure",
        "As with 20 nodes.",
    ),
    make_study(
        "mlp", 50, "Joint posterior, MLP, 50 nodes", "appendix F, third figure",
        "As with 20 nodes; DiBS infers 10 particles, as published.",
    ),
)  # fmt: skip


def simulation_of(task: Task) -> Simulation:
    """Return the data set of a task, which depends on the `data` part alone."""
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


def synthetic(task: Task, fits: Fits = fit_run) -> Iterator[dict[str, Any]]:
    """Yield one row for each posterior of the run."""
    sim = simulation_of(task)
    for fitted in fits(sim.train, task.run, task.data["graphs"], task.seed):
        yield {**fitted.columns, **scores(fitted.posterior, sim, fitted.columns["method"])}


def scores(post: Posterior | None, sim: Simulation, method: str) -> dict[str, Any]:
    """Return the metrics of a posterior, all None without one. Smaller is better, except for AUROC.

    For PC and GES, AUROC resolves undirected edges in their favour. `auto` adds whether its chains agree (`trusted`).
    """
    if post is None:
        return dict.fromkeys(("shd", "auroc", "nll", "inll", "edges"))
    verdict = post.record.verdict
    trusted = {} if verdict is None or verdict.trusted is None else {"trusted": verdict.trusted}
    truth = sim.graph
    return {
        "shd": expected_shd(post, truth),
        "auroc": auroc(post, truth, by_class=method.startswith("bootstrap")) if truth.any() else None,
        "nll": negative_log_likelihood(post, sim.test),
        "inll": negative_log_likelihood(post, sim.interventional),
        "edges": post.expected_edges,
        **trusted,
    }


SIZES = (5, 7, 10, 15)
"""Sizes k of the latent vectors; 20 is the default."""
NO_MOVES = {"moves": 0}
"""Option of `dibs` that leaves out its final Metropolis moves, which would hide the effect of the embedding."""

DEFAULTS = {"embedding": "inner product", "latent": 20}
"""Values of runs that leave these columns out."""


def ablation_tasks(variants: Sequence[dict[str, Any]], scale: Scale) -> list[Task]:
    """Return the tasks of the published run and its variants, with the published method and with ours."""
    out = []
    for number in scale.replicates:
        data = data_of("linear", 20, "erdos-renyi", number, scale)
        published = run_of("dibs-paper", "linear", scale, record=list(RECORDED))
        runs = [published] + [run_of("dibs-paper", "linear", scale, **variant) for variant in variants]
        if variants:
            runs += [run_of("dibs", "linear", scale, options=NO_MOVES, **v) for v in ({}, *variants)]
        out += [Task("synthetic", data, run) for run in runs]
    return out


def make_ablation(
    name: str, title: str, source: str, shows: str, variants: Sequence[dict[str, Any]], column: str
) -> Study:
    """Return the study of these variants, with a row for each value of `column`."""
    layout = Layout(
        rows=(column, "method"),
        metrics={"shd": "E-SHD", "auroc": "AUROC", "nll": "neg. LL", "inll": "neg. I-LL", "edges": "edges"},
        where={} if column == "steps" else {"final": (None, True)},
        filled=DEFAULTS,
        figure="boxes" if column == "embedding" else "lines",
        x=column,
        digits={"auroc": 3},
    )
    return Study(name, title, source, shows, lambda scale: ablation_tasks(variants, scale), layout)


ABLATIONS = (
    make_ablation(
        "ablation-embedding", "Inner products or scalars", "appendix G, first figure",
        "Edge probabilities by inner products of latent vectors, and by one number for each edge. `dibs` runs without "
        "its final moves here.",
        [{"embedding": "scalar"}],
        "embedding",
    ),
    make_ablation(
        "ablation-latent-size", "Size of the latent vectors", "appendix G, second figure",
        "k below d limits the rank of the matrix of edge probabilities. `dibs` runs without its final moves here.",
        [{"latent": k} for k in SIZES],
        "latent",
    ),
    make_ablation(
        "ablation-steps", "Number of steps", "appendix G, third figure",
        "The published run, looked at on its way. Particles that are not DAGs are dropped; a row counts the data sets "
        "in which one was left.",
        [],
        "steps",
    ),
)  # fmt: skip


FOUR_NODE_METHODS = ("exact", "dibs-paper", "dibs", "auto", "mc3")


def four_node_tasks(scale: Scale) -> list[Task]:
    """Return every method from each restart; the exact posterior once."""
    data = {"network": "four-node", "observations": 100, "set": 0}
    return [
        Task("four-node", data, run_of(method, "bge", scale, restart=restart))
        for restart in scale.replicates
        for method in FOUR_NODE_METHODS
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
        four_node_tasks,
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
