"""`fit`: from data to posterior by the name of a method."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import jax

from dagpost._util.clock import Clock
from dagpost._util.environment import available_memory
from dagpost._util.numerics import key_from_seed
from dagpost.data import Dataset, as_dataset, check_for_inference
from dagpost.errors import DataWarning, InputError, nearest, whole_number
from dagpost.inference.auto import auto
from dagpost.inference.bootstrap.resampling import PcSettings, bootstrap
from dagpost.inference.checkpoints import Checkpoint, Recorder, describe, recording, versions
from dagpost.inference.dibs import Settings, default_settings, infer, paper_settings
from dagpost.inference.exact import exact
from dagpost.inference.mcmc.joint import joint_mc3
from dagpost.inference.mcmc.mc3 import Thinning, mc3
from dagpost.inference.mcmc.refine import KEPT, Effort
from dagpost.models import Model, as_model
from dagpost.posterior import Posterior
from dagpost.posterior.provenance import with_provenance
from dagpost.priors import GraphPrior, as_knowledge, as_prior, informed


class Common(NamedTuple):
    """What `fit` hands to every method."""

    data: Dataset
    model: Model
    prior: GraphPrior
    particles: int
    draws: int
    steps: int | None
    seed: int
    clock: Clock
    checkpoint: Recorder | None = None


Method = Callable[..., Posterior]

SETTINGS = tuple(Settings.__dataclass_fields__)
EFFORT = tuple(Effort.__dataclass_fields__)
THINNING = tuple(Thinning.__dataclass_fields__)
PC = tuple(PcSettings.__dataclass_fields__)
WATCHING = ("callback", "every", "progress")
"""Options of DiBS and "auto" that are about looking on, not about the result."""

LARGE = 1.0
"""GiB from which on a run says how much memory it needs."""


def _check(options: dict[str, Any], known: Iterable[str]) -> None:
    for name in options:
        if name not in known:
            raise InputError(f"unknown option {name!r}: {nearest(name, list(known))}")


def _dibs(method: str, preset: Callable[..., Settings]) -> Method:
    def run(c: Common, **options) -> Posterior:
        _check(options, (*SETTINGS, *WATCHING))
        watch = {k: options.pop(k) for k in WATCHING if k in options}
        changes = options if c.steps is None else {**options, "steps": c.steps}
        settings = preset(c.model, c.data.nodes, c.data.observations, **changes)
        common = {"particles": c.particles, "seed": c.seed, "checkpoint": c.checkpoint, "clock": c.clock}
        return infer(c.data, c.model, c.prior, settings, method=method, **common, **watch)

    return run


def _auto(c: Common, **options) -> Posterior:
    _check(options, ("start", *EFFORT, *WATCHING, *SETTINGS))
    common = {"particles": c.particles, "draws": c.draws, "steps": c.steps, "seed": c.seed}
    common |= {"checkpoint": c.checkpoint, "clock": c.clock}
    return auto(c.data, c.model, c.prior, **common, **_gathered("effort", Effort, options))


def _gathered(name: str, kind: type, options: dict[str, Any]) -> dict[str, Any]:
    """The options with those that are fields of `kind` gathered in one of this name."""
    own = {k: v for k, v in options.items() if k in kind.__dataclass_fields__}
    return {name: kind(**own), **{k: v for k, v in options.items() if k not in own}}


def _mc3(c: Common, **options) -> Posterior:
    _check(options, (*THINNING, "progress"))
    common = {"particles": c.particles, "seed": c.seed, "checkpoint": c.checkpoint, "clock": c.clock}
    return mc3(c.data, c.model, c.prior, **common, **_gathered("thinning", Thinning, options))


def _joint_mc3(variant: Literal["m", "g"]) -> Method:
    def run(c: Common, **options) -> Posterior:
        _check(options, (*THINNING, "scale", "progress"))
        common = {"variant": variant, "particles": c.particles, "seed": c.seed, "checkpoint": c.checkpoint}
        common["clock"] = c.clock
        return joint_mc3(c.data, c.model, c.prior, **common, **_gathered("thinning", Thinning, options))

    return run


def _bootstrap_pc(c: Common, **options) -> Posterior:
    _check(options, (*PC, "progress"))
    common = {"learner": "pc", "particles": c.particles, "seed": c.seed, "checkpoint": c.checkpoint}
    common["clock"] = c.clock
    return bootstrap(c.data, c.model, c.prior, **common, **_gathered("pc", PcSettings, options))


def _bootstrap_ges(c: Common, **options) -> Posterior:
    _check(options, ("progress",))
    common = {"learner": "ges", "particles": c.particles, "seed": c.seed, "checkpoint": c.checkpoint}
    common["clock"] = c.clock
    return bootstrap(c.data, c.model, c.prior, **common, **options)


METHODS: dict[str, Method] = {
    "auto": _auto,
    "dibs": _dibs("dibs", default_settings),
    "dibs-paper": _dibs("dibs-paper", paper_settings),
    "mc3": _mc3,
    "m-mc3": _joint_mc3("m"),
    "g-mc3": _joint_mc3("g"),
    "bootstrap-pc": _bootstrap_pc,
    "bootstrap-ges": _bootstrap_ges,
    "exact": exact,
}


def needed_memory(d: int, model: Model, method: str, particles: int, draws: int) -> float:
    """GiB that a run takes at least: the graphs and parameters it keeps, and what its particles work with."""
    kept = draws if method == "auto" and model.has_evidence else particles
    numbers = 0.0
    if model.has_parameters:
        shapes = jax.eval_shape(lambda key: model.sample_theta(key, d), jax.random.key(0))
        numbers = float(sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)))
    chains = 4 * KEPT * d**2 if kept == draws else 0.0
    return (kept * (d**2 + 16 * numbers) + particles * (32 * d**2 + 16 * numbers) + chains) / 2**30


def _check_memory(d: int, model: Model, method: str, particles: int, draws: int) -> None:
    needed, available = needed_memory(d, model, method, particles, draws), available_memory()
    text = f"method {method!r} on {d} columns needs about {needed:.1f} GiB of memory ({available:.1f} GiB at hand)"
    if needed > available:
        raise InputError(f"{text}: use fewer columns, draws or particles")
    if needed > LARGE:
        warnings.warn(text, DataWarning, stacklevel=3)


def fit(
    data: Any,
    model: str | Model = "linear",
    prior: str | GraphPrior = "erdos-renyi",
    method: str = "auto",
    *,
    particles: int = 30,
    draws: int = 1000,
    steps: int | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    interventions: Any = None,
    knowledge: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    **options: Any,
) -> Posterior:
    """A posterior over graphs (and parameters) from data.

    `method` is "auto" (DiBS, then chains at the posterior itself where evidence has a closed form), "dibs" (DiBS with
    our defaults), "dibs-paper" (everything as published), "mc3" (structure MCMC as published), "m-mc3" and "g-mc3"
    (over graphs and parameters), "bootstrap-pc" and "bootstrap-ges" (a graph from each of many resamples) or "exact".
    `particles` is the number of DiBS particles, MC³ samples or resamples, `draws` the number of graphs that "auto" and
    "exact" return.

    `knowledge` is what is known beforehand, by the names of columns: a `Knowledge`, a dict of its fields or the path of
    a TOML file. Required and forbidden edges, tiers, roots, leaves and `max_parents` hold in every graph; methods that
    cannot see to that refuse.

    `time_limit` bounds the whole run in seconds, compiling excepted (`post.info["compiling"]` says how long that was).
    What there is when the time is up is returned, with the verdict that it deserves.

    Further options go to the method: for "auto" `precision`, the wanted standard error of an edge probability, the
    limit `max_moves`, and `start`, where the chains start; for DiBS the fields of `dp.dibs.Settings`, a `callback`
    that sees a `Snapshot` after `every` steps (`dp.History()` is one; with "auto" it then sees a `ChainSnapshot` after
    every batch of the chains), and `progress`; for MC³ and its variants `burn_in`, `thin` and `neighbourhood`; for
    "bootstrap-pc" `significance`, the level of its tests, and `without_dag`, "halve" (the level) or "drop" (the
    resample), for when a learned graph contains no DAG. A seed fixes the result, unless a time limit ends the run.

    `checkpoint` names a folder in which the run saves its state about every `checkpoint_every` seconds, and when it is
    interrupted (Ctrl-C, SIGTERM), fails or ends. The same call with `resume=True` goes on from there and returns, bit
    for bit, what an undisturbed run returns (unless a time limit ends either). The state stays until it is deleted:
    `dp.Checkpoint(folder).clear()`.

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
    if resume and checkpoint is None:
        raise InputError("resume=True: name the folder with the state to go on from, checkpoint=...")
    clock = Clock(time_limit)
    if method == "exact":
        if time_limit is not None:
            raise InputError("method 'exact' is one calculation and keeps no time limit: leave `time_limit` out")
        if checkpoint is not None:
            raise InputError("method 'exact' is one calculation and keeps no checkpoints: leave `checkpoint` out")
        common = {"draws": draws, "seed": seed, "interventions": interventions, "knowledge": knowledge}
        return exact(data, model, prior, **common, **options)
    table = check_for_inference(as_dataset(data, interventions=interventions))
    asked = as_knowledge(knowledge)
    scored, graph_prior = as_model(model), informed(as_prior(prior), asked, table.names)
    scored.check(table)
    _check_memory(table.nodes, scored, method, particles, draws)
    common = Common(table, scored, graph_prior, particles, draws, steps, seed, clock)
    if checkpoint is None:
        post = METHODS[method](common, **options)
    else:
        folder = Checkpoint(checkpoint, checkpoint_every)
        with recording(folder, _fingerprint(method, common, options), resume) as recorder:
            post = METHODS[method](common._replace(checkpoint=recorder), **options)
    asked_for = {"method": method, "particles": particles, "draws": draws, "steps": steps, "seed": seed}
    own = {name: value for name, value in options.items() if name not in WATCHING}
    if time_limit is not None:
        own["time_limit"] = time_limit
    post = with_provenance(post, table, {**asked_for, **own})
    post = post.with_info(total_seconds=round(clock.seconds, 3), compiling=round(clock.compiling, 3))
    return post if asked is None else post.with_info(knowledge=asked.resolved(table.names).as_dict())


def _fingerprint(method: str, common: Common, options: dict[str, Any]) -> dict[str, Any]:
    """Everything that a result depends on."""
    data = common.data
    return {
        "method": method,
        **describe({name: getattr(common, name) for name in ("seed", "particles", "draws", "steps")}),
        "data": describe({"values": data.values, "names": data.names, "interventions": data.intervened}),
        "model": describe(common.model),
        "prior": describe(common.prior),
        "options": describe({name: value for name, value in options.items() if name not in WATCHING}),
        "versions": versions(),
    }
