"""From the plain words of a task to posteriors: model, method, options, and both weightings of DiBS."""

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

WEIGHTED = ("dibs", "dibs-paper", "dibs-lib")
"""Methods whose particles are shown twice: with equal weights, and weighted by their posterior (DiBS+), unless they
ended with Metropolis moves at the posterior."""


@dataclass(frozen=True)
class Fitted:
    """A posterior, and the columns that tell it from others of its task.

    Where no particle is a DAG the posterior is None; columns `all_cyclic` (True) and `nodes` then say what tables need.
    """

    columns: dict[str, Any]
    posterior: Posterior | None


Fits = Callable[[Dataset, Mapping[str, Any], str, int], Iterator[Fitted]]
"""How measures come to posteriors: `fitted`, or something that has them already."""


def model_of(run: Mapping[str, Any]) -> Model:
    """The model by name, with the hyperparameters that the task names."""
    if "alpha_mu" in run:
        return BGe(alpha_mu=run["alpha_mu"])
    if "noise" in run:
        kind = {"linear": LinearGaussian, "mlp": MlpGaussian}[run["model"]]
        return kind(noise_variance=run["noise"])
    return as_model(run["model"])


def options_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `fit`."""
    options = dict(run.get("options", {}))
    if run.get("embedding") == "scalar":
        options["embedding"] = ScalarEmbedding()
    elif "latent" in run:
        options["embedding"] = InnerProduct(run["latent"])
    if "particles" in run:
        options["particles"] = run["particles"]
    return options


def fitted(data: Dataset, run: Mapping[str, Any], prior: str, seed: int) -> Iterator[Fitted]:
    """All posteriors that one run gives: by weighting, and by step where the task asks for steps in between."""
    model, method, options = model_of(run), run["method"], options_of(run)
    seen: list[Snapshot] = []
    if "record" in run:
        options |= {"callback": seen.append, "every": gcd(*run["record"])}
    try:
        if method == "dibs-lib":
            post = fit_dibs_lib(data, model, prior, seed=seed, **options)
        else:
            post = fit(data, model, prior, method, seed=seed, progress=False, **options)
    except AllCyclic as error:
        yield from told(data, run, prior, error, seen)
        return
    yield from told(data, run, prior, post, seen)
    for other in run.get("also", ()):
        post = weighted_posterior(post.graphs, data, as_model(other), as_prior(prior), post.info)
        yield from told(data, {**run, "model": other}, prior, post, [])


def told(
    data: Dataset, run: Mapping[str, Any], prior: str, outcome: Posterior | AllCyclic, seen: list[Snapshot]
) -> Iterator[Fitted]:
    """The posteriors of a run that has ended, with a DAG among its particles or without, and of what was seen on the
    way."""
    model, method, record = model_of(run), run["method"], run.get("record")
    name = f"{method}*" if method.startswith("bootstrap") and model.has_parameters else method
    post, steps = (None, outcome.steps) if isinstance(outcome, AllCyclic) else (outcome, outcome.info.get("steps"))
    if not record:
        yield from _both(name, post, data.nodes, **({"model": model.name} if "also" in run else {}))
        return
    early = [s for s in seen if s.step in record and s.step != steps]
    for snapshot in early:
        then = _at(snapshot, data, model, prior, options_of(run))
        yield from _both(name, then, data.nodes, steps=snapshot.step, final=False)
    yield from _both(name, post, data.nodes, steps=steps, final=True)


def _both(name: str, post: Posterior | None, nodes: int, **columns: Any) -> Iterator[Fitted]:
    """With equal weights, and weighted by the posterior where the method has both."""
    if post is None:
        columns |= {"all_cyclic": True, "nodes": nodes}
    yield Fitted({"method": name, **columns}, post)
    if name in WEIGHTED and not (post is not None and post.is_sample):  # draws of the posterior have their weights
        yield Fitted({"method": f"{name}+", **columns}, None if post is None else post.weighted("posterior"))


def _at(snapshot: Snapshot, data: Dataset, model: Model, prior: str, options: Mapping[str, Any]) -> Posterior | None:
    """The posterior as it stood after some steps; the schedules of "dibs-paper" do not know how many are to come."""
    changes = {k: v for k, v in options.items() if k != "particles"}
    settings = paper_settings(model, data.nodes, data.observations, **changes)
    target, _, stats = prepare(model, as_prior(prior), settings, data, len(snapshot.z))
    try:
        return to_posterior(target, snapshot, data, stats, key_from_seed(0), "dibs-paper")
    except AllCyclic:
        return None
