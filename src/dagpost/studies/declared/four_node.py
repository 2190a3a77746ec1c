"""The four-node table of the paper's appendix: one data set, 30 initialisations."""

from __future__ import annotations

from dagpost.studies.declared.methods import run_of
from dagpost.studies.study import Layout, Scale, Study
from dagpost.studies.task import Task

METHODS = ("exact", "dibs-paper", "dibs", "auto", "mc3")


def tasks(scale: Scale) -> list[Task]:
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
