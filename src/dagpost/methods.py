"""`fit`: from data to posterior by the name of a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dagpost.data import Dataset, as_dataset, check_for_inference
from dagpost.dibs import Settings, default_settings, infer, paper_settings
from dagpost.errors import InputError, nearest, whole_number
from dagpost.exact_inference import exact
from dagpost.models import Model, as_model
from dagpost.posterior import Posterior
from dagpost.priors import GraphPrior, as_prior
from dagpost.randomness import key_from_seed

Method = Callable[..., Posterior]

WATCHING = ("callback", "every", "progress")
"""Options of DiBS that are about looking on, not about the result."""


def _dibs(method: str, preset: Callable[..., Any]) -> Method:
    def run(data: Dataset, model: Model, prior: GraphPrior, *, particles: int, seed: int, **options):
        watch = {k: options.pop(k) for k in WATCHING if k in options}
        changes = {k: v for k, v in options.items() if not (k == "steps" and v is None)}
        settings = _settings(preset, model, data, changes)
        return infer(data, model, prior, settings, particles=particles, seed=seed, method=method, **watch)

    return run


def _settings(preset: Callable[..., Settings], model: Model, data: Dataset, changes: dict[str, Any]) -> Settings:
    known = [*Settings.__dataclass_fields__, *WATCHING]
    for name in changes:
        if name not in known:
            raise InputError(f"unknown option {name!r}: {nearest(name, known)}")
    return preset(model, data.nodes, data.observations, **changes)


METHODS: dict[str, Method] = {
    "dibs": _dibs("dibs", default_settings),
    "dibs-paper": _dibs("dibs-paper", paper_settings),
    "exact": exact,
}


def fit(
    data: Any,
    model: str | Model = "linear",
    prior: str | GraphPrior = "erdos-renyi",
    method: str = "dibs",
    *,
    particles: int = 30,
    draws: int = 1000,
    steps: int | None = None,
    seed: int = 0,
    interventions: Any = None,
    **options: Any,
) -> Posterior:
    """A posterior over graphs (and parameters) from data.

    `method` is "dibs" (DiBS with our defaults), "dibs-paper" (everything as published) or "exact".
    `particles` is the number of DiBS particles, `draws` the number of graphs of the exact method. Further
    options go to the method; for DiBS these are the fields of `dagpost.dibs.Settings`, a `callback` that sees
    a `Snapshot` after `every` steps, and `progress`.

    >>> import dagpost as dp
    >>> sim = dp.simulate(nodes=5, observations=100, seed=0)
    >>> post = dp.fit(sim.train, model="linear", method="dibs", particles=5, steps=200)
    >>> post.graphs.shape
    (5, 5, 5)
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}: {nearest(str(method), METHODS)}")
    whole_number("particles", particles, least=1)
    whole_number("draws", draws, least=1)
    if steps is not None:
        whole_number("steps", steps, least=1)
    key_from_seed(seed)
    if method == "exact":
        return exact(data, model, prior, draws=draws, seed=seed, interventions=interventions, **options)
    table = check_for_inference(as_dataset(data, interventions=interventions))
    scored, graph_prior = as_model(model), as_prior(prior)
    scored.check(table)
    return METHODS[method](table, scored, graph_prior, particles=particles, steps=steps, seed=seed, **options)
