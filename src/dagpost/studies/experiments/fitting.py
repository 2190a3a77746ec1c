"""From the plain data of a task to posteriors: model, method, options, and both weightings of DiBS.

The settings of each method are at the paper's size, or tiny with `--smoke`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from dagpost._util.numerics import key_from_seed
from dagpost.data import Dataset
from dagpost.errors import AllCyclic
from dagpost.inference.bootstrap.resampling import weighted_posterior
from dagpost.inference.dibs import paper_settings
from dagpost.inference.dibs.inference import prepare
from dagpost.inference.dibs.latent import InnerProduct, ScalarEmbedding
from dagpost.inference.dibs.particles import to_posterior
from dagpost.inference.dibs.svgd import Snapshot
from dagpost.inference.fit import fit
from dagpost.models import BGe, LinearGaussian, MlpGaussian, Model, as_model
from dagpost.posterior import Posterior
from dagpost.priors import as_prior
from dagpost.studies.dibs_lib import fit_dibs_lib
from dagpost.studies.study import Scale

MOVES_PER_NODE = 2_500_000
"""Maximum number of moves of all chains of `auto`, per node; its default with 20 nodes is six times as many."""
NONLINEAR_SECONDS = 470.0
"""Time limit of `auto` where evidence is numerical: there is always something left to estimate better."""
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
        limit = {"time_limit": NONLINEAR_SECONDS} if model == "mlp" else {"max_moves": MOVES_PER_NODE * nodes}
        options = {**limit, **options}
    if scale.smoke:
        particles = SMOKE_PARTICLES
        options |= SMOKE.get(method, {})
        if model == "mlp":
            options.pop("moves", None)  # moves between graphs need closed-form evidence
            if method == "auto":
                options["time_limit"] = 3.0
        if "record" in run:
            run["record"] = [10, 20]
    if method != "exact":
        run["particles"] = particles
    if options:
        run["options"] = options
    return run


WEIGHTED = ("dibs", "dibs-paper", "dibs-lib")
"""Methods whose particles are reported twice, with equal weights and weighted by their posterior (DiBS+), unless final
Metropolis moves made them draws of the posterior."""


@dataclass(frozen=True)
class Fitted:
    """A posterior of a task.

    Attributes
    ----------
    columns
        Columns of the tidy table that distinguish it from other posteriors of the task.
    posterior
        None where no particle is a DAG; `columns` then contains `all_cyclic` (True) and `nodes`, which tables need.
    """

    columns: dict[str, Any]
    posterior: Posterior | None


Fits = Callable[[Dataset, Mapping[str, Any], str, int], Iterator[Fitted]]
"""Function from data, run, prior and seed to posteriors: `fit_run`, or a replacement that has them already."""


def model_of(run: Mapping[str, Any]) -> Model:
    """Return the model of a run, with the hyperparameters that it gives."""
    if "alpha_mu" in run:
        return BGe(alpha_mu=run["alpha_mu"])
    if "noise" in run:
        kind = {"linear": LinearGaussian, "mlp": MlpGaussian}[run["model"]]
        return kind(noise_variance=run["noise"])
    return as_model(run["model"])


def options_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `dagpost.fit` for a run."""
    options = dict(run.get("options", {}))
    if run.get("embedding") == "scalar":
        options["embedding"] = ScalarEmbedding()
    elif "latent" in run:
        options["embedding"] = InnerProduct(run["latent"])
    if "particles" in run:
        options["particles"] = run["particles"]
    return options


def fit_run(data: Dataset, run: Mapping[str, Any], prior: str, seed: int) -> Iterator[Fitted]:
    """Yield all posteriors of one run: by weighting, by recorded step, and by model where `run` names more of them."""
    model, method, options = model_of(run), run["method"], options_of(run)
    seen: list[Snapshot] = []
    if "record" in run:
        options |= {"callback": seen.append, "every": gcd(*run["record"])}
    try:
        if method == "dibs-lib":
            post = fit_dibs_lib(data, model, prior, seed=seed, **options)
        else:
            post = fit(data, model, prior, method, seed=seed, progress=False, **{"time_limit": None, **options})
    except AllCyclic as error:
        yield from label_posteriors(data, run, prior, error, seen)
        return
    yield from label_posteriors(data, run, prior, post, seen)
    for other in run.get("also", ()):
        post = weighted_posterior(post.graphs, data, as_model(other), as_prior(prior), post.record)
        yield from label_posteriors(data, {**run, "model": other}, prior, post, [])


def label_posteriors(
    data: Dataset, run: Mapping[str, Any], prior: str, outcome: Posterior | AllCyclic, seen: list[Snapshot]
) -> Iterator[Fitted]:
    """Yield the posteriors of a finished run with their columns, those of recorded steps first.

    `outcome` is `AllCyclic` where no particle is a DAG; `seen` holds the snapshots taken during the run.
    """
    model, method, record = model_of(run), run["method"], run.get("record")
    name = f"{method}*" if method.startswith("bootstrap") and model.has_parameters else method
    post, steps = (None, outcome.steps) if isinstance(outcome, AllCyclic) else (outcome, outcome.info.get("steps"))
    if not record:
        yield from _both_weightings(name, post, data.nodes, **({"model": model.name} if "also" in run else {}))
        return
    intermediate = [s for s in seen if s.step in record and s.step != steps]
    for snapshot in intermediate:
        early = _posterior_at(snapshot, data, model, prior, options_of(run))
        yield from _both_weightings(name, early, data.nodes, steps=snapshot.step, final=False)
    yield from _both_weightings(name, post, data.nodes, steps=steps, final=True)


def _both_weightings(name: str, post: Posterior | None, nodes: int, **columns: Any) -> Iterator[Fitted]:
    """Yield the posterior with its own weights and, for methods in `WEIGHTED`, weighted by the posterior (DiBS+)."""
    if post is None:
        columns |= {"all_cyclic": True, "nodes": nodes}
    yield Fitted({"method": name, **columns}, post)
    if name in WEIGHTED and not (post is not None and post.is_sample):  # draws of the posterior keep their weights
        yield Fitted({"method": f"{name}+", **columns}, None if post is None else post.weighted("posterior"))


def _posterior_at(
    snapshot: Snapshot, data: Dataset, model: Model, prior: str, options: Mapping[str, Any]
) -> Posterior | None:
    """Return the posterior after the steps of a snapshot, None if all particles are cyclic.

    It equals that of a shorter run, because the schedules of "dibs-paper" do not depend on the number of steps.
    """
    changes = {k: v for k, v in options.items() if k != "particles"}
    settings = paper_settings(model, data.nodes, data.observations, **changes)
    target, _, stats = prepare(model, as_prior(prior), settings, data, len(snapshot.z))
    try:
        return to_posterior(target, snapshot, data, stats, key_from_seed(0), "dibs-paper")
    except AllCyclic:
        return None
