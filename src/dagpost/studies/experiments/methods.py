"""Settings of each method in the studies: at the paper's size, and with `--smoke`."""

from __future__ import annotations

from typing import Any

from dagpost.studies.study import Scale

MOVES_PER_NODE = 2_500_000
"""Maximum number of moves of all chains of `auto`, per node; its default with 20 nodes is six times as many."""
AS_PUBLISHED: dict[str, dict[str, Any]] = {"bootstrap-pc": {"significance": 0.05, "without_dag": "halve"}}
"""Options with which baselines run as the authors ran them."""

RECORDED = (100, 200, 500, 1000, 1500, 2000, 3000)
"""Steps at which runs on linear networks with 20 nodes are also measured, so that the ablation of the number of steps
is a by-product of the main study. Schedules grow linearly: a run of 1,000 steps is the beginning of one of 3,000."""

SMOKE: dict[str, dict[str, Any]] = {
    "auto": {"max_moves": 20_000, "draws": 20, "steps": 10},
    "dibs": {"steps": 10, "moves": 10},
    "dibs-paper": {"steps": 20, "cyclic": "repair"},
    "dibs-lib": {"steps": 20},
    "mc3": {"burn_in": 100, "thin": 10},
    "m-mc3": {"burn_in": 100, "thin": 10},
    "g-mc3": {"burn_in": 100, "thin": 10},
}
"""Options with `--smoke`."""
SMOKE_PARTICLES = 3


def run_of(method: str, model: str, scale: Scale, particles: int = 30, nodes: int = 20, **more: Any) -> dict[str, Any]:
    """Return the `run` part of a task; `more` holds further entries."""
    run: dict[str, Any] = {"model": model, "method": method, **more}
    options = {**AS_PUBLISHED.get(method, {}), **more.get("options", {})}
    if method == "auto":
        options = {"max_moves": MOVES_PER_NODE * nodes, **options}
    if scale.smoke:
        particles = SMOKE_PARTICLES
        options |= SMOKE.get(method, {})
        if model == "mlp":
            options.pop("moves", None)  # moves between graphs need closed-form evidence
        if "record" in run:
            run["record"] = [10, 20]
    if method != "exact":
        run["particles"] = particles
    if options:
        run["options"] = options
    return run
