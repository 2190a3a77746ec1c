"""The ablations of the paper's appendix: scalar embedding, latent size k, number of steps.

Joint inference of linear networks with 20 nodes, on the data sets of the study `linear-20`. The run with everything as
published, including its intermediate steps, is a task of that study and is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dagpost.studies.experiments.methods import RECORDED, run_of
from dagpost.studies.experiments.synthetic import data_of
from dagpost.studies.study import Layout, Scale, Study
from dagpost.studies.task import Task

SIZES = (5, 7, 10, 15)
"""Sizes k of the latent vectors; 20 is the default."""
NO_MOVES = {"moves": 0}
"""Option of `dibs` that leaves out its final Metropolis moves, which would hide the effect of the embedding."""

DEFAULTS = {"embedding": "inner product", "latent": 20}
"""Values of runs that leave these columns out."""


def tasks_for(variants: Sequence[dict[str, Any]], scale: Scale) -> list[Task]:
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


def make_study(
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
    return Study(name, title, source, shows, lambda scale: tasks_for(variants, scale), layout)


ABLATIONS = (
    make_study(
        "ablation-embedding", "Inner products or scalars", "appendix G, first figure",
        "Edge probabilities by inner products of latent vectors, and by one number for each edge. `dibs` runs without "
        "its final moves here.",
        [{"embedding": "scalar"}],
        "embedding",
    ),
    make_study(
        "ablation-latent-size", "Size of the latent vectors", "appendix G, second figure",
        "k below d limits the rank of the matrix of edge probabilities. `dibs` runs without its final moves here.",
        [{"latent": k} for k in SIZES],
        "latent",
    ),
    make_study(
        "ablation-steps", "Number of steps", "appendix G, third figure",
        "The published run, looked at on its way. Particles that are not DAGs are dropped; a row counts the data sets "
        "in which one was left.",
        [],
        "steps",
    ),
)  # fmt: skip
