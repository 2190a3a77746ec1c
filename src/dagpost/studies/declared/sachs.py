"""The protein-signalling data: the paper's main table and both tables of its appendix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dagpost.studies.declared.methods import run_of
from dagpost.studies.study import Layout, Scale, Study
from dagpost.studies.task import Task

METHODS = {
    "bge": ("exact", "mc3", "bootstrap-pc", "bootstrap-ges", "dibs", "auto", "dibs-paper"),
    "linear": ("exact", "m-mc3", "g-mc3", "dibs", "auto", "dibs-paper"),
    "mlp": ("m-mc3", "g-mc3", "dibs", "dibs-paper"),
}
MINIBATCH = 100
"""Rows of a minibatch, as published. dibs-lib knows no minibatches."""
OPTIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("dibs-paper", "linear"): {"batch": MINIBATCH, "scaled": False},
    ("dibs-paper", "mlp"): {"batch": MINIBATCH, "scaled": False},
    ("dibs", "mlp"): {"batch": MINIBATCH},
}
"""By method and model. The authors add the log likelihood of a minibatch without scaling it up to all rows; `dibs`
scales it. BGe takes statistics of all rows."""


def tasks_for(models: Sequence[dict[str, Any]], scale: Scale) -> list[Task]:
    """Every method of each model (with its hyperparameters), from each restart; the exact posterior once."""
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


def declared(name: str, title: str, source: str, shows: str, models: Sequence[dict[str, Any]], rows: tuple[str, ...]):
    layout = Layout(
        rows=("truth", *rows, "method"),
        metrics={"shd": "E-SHD", "auroc": "AUROC", "edges": "edges"},
        panels="truth",
        digits={"auroc": 3},
    )
    return Study(name, title, source, shows, lambda scale: tasks_for(models, scale), layout, published=True)


SACHS = (
    declared(
        "sachs", "Protein signalling", "table 1",
        "7,466 cells, 11 proteins, standardised; BGe, linear and MLP models with an Erdős–Rényi prior.",
        [{"model": "bge"}, {"model": "linear"}, {"model": "mlp"}],
        ("model",),
    ),
    declared(
        "sachs-alpha-mu", "Protein signalling, BGe with α_μ = 10", "appendix, first additional table",
        "As the main table, with a larger effective sample size of the prior mean.",
        [{"model": "bge", "alpha_mu": 10.0}],
        (),
    ),
    declared(
        "sachs-noise", "Protein signalling, other noise", "appendix, second additional table",
        "As the main table, linear and MLP models, with noise variances 0.01 and 1 in place of 0.1.",
        [{"model": model, "noise": noise} for model in ("linear", "mlp") for noise in (0.01, 1.0)],
        ("model", "noise"),
    ),
)  # fmt: skip
