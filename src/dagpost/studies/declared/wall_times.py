"""Wall times: the table of the paper's appendix E, on a CPU and on a GPU."""

from __future__ import annotations

from typing import Any

from dagpost.studies.declared.methods import MOVES_PER_NODE
from dagpost.studies.study import Layout, Scale, Study
from dagpost.studies.task import Task

TIMED_STEPS = {"cpu": 10, "gpu": 300}
"""Of the published method, from which the time of its 3,000 is scaled."""
METHODS = {
    "bge": ("dibs-paper", "dibs", "auto"),
    "linear": ("dibs-paper", "dibs", "auto"),
    "mlp": ("dibs-paper", "dibs"),
}


def tasks_for(device: str, scale: Scale) -> list[Task]:
    out = []
    for restart in scale.replicates:
        for nodes in (3, 4) if scale.smoke else (10, 20, 50):
            for model, methods in METHODS.items():
                for particles in (2, 3) if scale.smoke else (10, 30):
                    data = {
                        "generator": "mlp" if model == "mlp" else "linear", "graphs": "erdos-renyi", "nodes": nodes,
                        "observations": 20 if scale.smoke else 100, "interventional_sets": 0, "set": restart,
                    }  # fmt: skip
                    for method in methods:
                        run: dict[str, Any] = {"model": model, "method": method, "particles": particles}
                        run |= {"device": device}
                        if method == "dibs-paper":
                            run["timed_steps"] = 2 if scale.smoke else TIMED_STEPS[device]
                        elif scale.smoke:
                            run["options"] = {"steps": 5} | ({"max_moves": 10_000} if method == "auto" else {})
                        elif method == "auto":
                            run["options"] = {"max_moves": MOVES_PER_NODE * nodes}
                        out.append(Task("wall-time", data, run))
    return out


def declared(device: str) -> Study:
    return Study(
        f"wall-times-{device}",
        f"Wall times on a {device.upper()}",
        "appendix E, table of wall times",
        "Minutes of one run without compiling. Those of `dibs-paper` are scaled to 3,000 steps from "
        f"{TIMED_STEPS[device]}; every step does the same work. The paper's were taken on "
        + (
            "a whole Xeon Gold 6150 node."
            if device == "cpu"
            else "one GeForce RTX 2080 Ti; a dash exceeded its memory."
        ),
        lambda scale: tasks_for(device, scale),
        Layout(
            rows=("model", "method", "particles"),
            metrics={"minutes": "minutes"},
            spread="nodes",
            figure="lines",
            panels="model",
            x="nodes",
            logarithmic=True,
            digits={"minutes": 3},
        ),
        published=True,
        alone=True,
        seeds=10,
    )


WALL_TIMES = (declared("cpu"), declared("gpu"))
