"""The protein-signalling data: the paper's main table and both tables of its appendix.

Posteriors are scored against each consensus graph aligned by name, and as the published table was computed.

The authors' code takes the adjacency matrix of the consensus graph in the order in which its edge file first names the
nodes, and compares it with posteriors whose nodes are in the order of the data's columns. That reference is a permuted
graph. It is kept here, under a name that says so, because the published numbers can be compared with nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dagpost.data import Dataset, sachs, sachs_graph
from dagpost.graphs import essential_graph, literal_essential_graph, structural_hamming_distance
from dagpost.metrics import auroc
from dagpost.posterior import Posterior
from dagpost.studies.experiments.fitting import Fits, fit_run, run_of
from dagpost.studies.study import Layout, Scale, Study
from dagpost.studies.tables import AS_PUBLISHED
from dagpost.studies.task import Task
from dagpost.typing import Graph

METHODS = {
    "bge": ("exact", "mc3", "bootstrap-pc", "bootstrap-ges", "dibs", "auto", "dibs-paper"),
    "linear": ("exact", "m-mc3", "g-mc3", "dibs", "auto", "dibs-paper"),
    "mlp": ("m-mc3", "g-mc3", "dibs", "auto", "dibs-paper"),
}
MINIBATCH = 100
"""Rows of a minibatch, as published. dibs-lib has no minibatches."""
OPTIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("dibs-paper", "linear"): {"batch": MINIBATCH, "scaled": False},
    ("dibs-paper", "mlp"): {"batch": MINIBATCH, "scaled": False},
    ("dibs", "mlp"): {"batch": MINIBATCH},
}
"""Options by method and model. The authors add the log likelihood of a minibatch without scaling it up to all rows;
`dibs` scales it. BGe uses statistics of all rows."""


def tasks_for(models: Sequence[dict[str, Any]], scale: Scale) -> list[Task]:
    """Return every method for each model (with its hyperparameters) from each restart; the exact posterior once."""
    data = {"rows": 200} if scale.smoke else {}
    out = []
    for restart in scale.replicates:
        for settings in models:
            for method in METHODS[settings["model"]] + scale.include:
                if method == "exact" and restart > 0:
                    continue
                more = {**settings, "restart": restart}
                if options := OPTIONS.get((method, settings["model"])):
                    more["options"] = options
                out.append(Task("sachs", data, run_of(method, scale=scale, **more)))
    return out


def make_study(
    name: str, title: str, source: str, shows: str, models: Sequence[dict[str, Any]], rows: tuple[str, ...]
) -> Study:
    """Return the study of these models, with rows named by reference graph, `rows` and method."""
    layout = Layout(
        rows=("truth", *rows, "method"),
        metrics={"shd": "E-SHD", "auroc": "AUROC", "edges": "edges"},
        panels="truth",
        digits={"auroc": 3},
    )
    return Study(name, title, source, shows, lambda scale: tasks_for(models, scale), layout, published=True)


SACHS = (
    make_study(
        "sachs", "Protein signalling", "table 1",
        "7,466 cells, 11 proteins, standardised; BGe, linear and MLP models with an Erdős–Rényi prior.",
        [{"model": "bge"}, {"model": "linear"}, {"model": "mlp"}],
        ("model",),
    ),
    make_study(
        "sachs-alpha-mu", "Protein signalling, BGe with α_μ = 10", "appendix, first additional table",
        "As the main table, with a larger effective sample size of the prior mean.",
        [{"model": "bge", "alpha_mu": 10.0}],
        (),
    ),
    make_study(
        "sachs-noise", "Protein signalling, other noise", "appendix, second additional table",
        "As the main table, linear and MLP models, with noise variances 0.01 and 1 in place of 0.1.",
        [{"model": model, "noise": noise} for model in ("linear", "mlp") for noise in (0.01, 1.0)],
        ("model", "noise"),
    ),
)  # fmt: skip


FILE_ORDER = ("PIP2", "PKC", "plcg", "PIP3", "pjnk", "P38", "PKA", "praf", "pmek", "p44/42", "pakts473")
"""Nodes in the order in which the edge file of the consensus graph first names them."""


def references() -> dict[str, Graph]:
    """Return the consensus graphs in the order of the data's columns, and the permuted one of the published table."""
    cdt = sachs_graph("cdt")
    return {
        AS_PUBLISHED: cdt.loc[list(FILE_ORDER), list(FILE_ORDER)].to_numpy(),
        "cdt": cdt.to_numpy(),
        "sachs20": sachs_graph("sachs20").to_numpy(),
        "bnlearn": sachs_graph("bnlearn").to_numpy(),
    }


def measurements(rows: int | None = None) -> Dataset:
    """Return the data, standardised as in the paper; with `rows`, about that many at regular intervals."""
    data = sachs()
    if rows is not None:
        kept = np.zeros(data.observations, dtype=np.bool_)
        kept[:: data.observations // rows] = True
        data = data.rows(kept)
    return data.standardised()


def protein_signalling(task: Task, fits: Fits = fit_run) -> Iterator[dict[str, Any]]:
    """Yield one row for each posterior and reference graph."""
    data = measurements(task.data.get("rows"))
    for fitted in fits(data, task.run, "erdos-renyi", task.seed):
        post = fitted.posterior
        for name, truth in references().items():
            scores = {"shd": None, "auroc": None, "edges": None}
            if post is not None:
                by_class = fitted.columns["method"].startswith("bootstrap")
                scores = {
                    "shd": distance(post, truth),
                    "auroc": auroc(post, truth, by_class=by_class),
                    "edges": post.expected_edges,
                }
            yield {**fitted.columns, "truth": name, **scores}


def distance(post: Posterior, truth: Graph) -> float:
    """Return E-SHD; the `cdt` graph has a cycle, so the construction of essential graphs is applied to it literally."""
    essential = essential_graph(post.graphs)
    return float(post.weights @ structural_hamming_distance(essential, literal_essential_graph(truth)))
