"""`fit` and `exact`: from data to posterior, by any method."""

from __future__ import annotations

import builtins
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from dagpost._util.clock import FOREVER, Clock
from dagpost._util.compiled import announced
from dagpost._util.numerics import key_from_seed
from dagpost._util.progress import is_shown
from dagpost._util.workers import use_workers, workers_of
from dagpost.data import as_dataset, check_for_inference
from dagpost.data.checks import check_ranks
from dagpost.data.missing import missing_problems
from dagpost.data.slices import past_columns
from dagpost.data.values import raise_problems
from dagpost.errors import InputError, nearest, whole_number
from dagpost.inference.auto import Auto
from dagpost.inference.bootstrap.resampling import Bootstrap
from dagpost.inference.checkpoints import Checkpoint, describe, recording, versions
from dagpost.inference.checkpoints.recorder import SIGNALS, catch_signals
from dagpost.inference.defaults import assume
from dagpost.inference.dibs import Dibs
from dagpost.inference.exact import Exact, ExactPosterior
from dagpost.inference.mcmc.joint import JointMc3
from dagpost.inference.mcmc.mc3 import Mc3
from dagpost.inference.memory import check_memory
from dagpost.inference.method import Method, MethodName, Problem
from dagpost.models import Model, Perturbed, as_model, perturbed
from dagpost.posterior import Posterior
from dagpost.posterior.model_check import check_model, model_fit_text
from dagpost.posterior.provenance import with_provenance
from dagpost.posterior.records import Provenance
from dagpost.posterior.targets import with_targets
from dagpost.priors import GraphPrior, as_knowledge, as_prior, informed

METHODS: dict[str, MethodName] = {
    "auto": MethodName(Auto),
    "dibs": MethodName(Dibs, fixed=(("published", False),)),
    "dibs-paper": MethodName(Dibs, fixed=(("published", True),)),
    "mc3": MethodName(Mc3),
    "m-mc3": MethodName(JointMc3, fixed=(("variant", "m"),)),
    "g-mc3": MethodName(JointMc3, fixed=(("variant", "g"),)),
    "bootstrap-pc": MethodName(Bootstrap, fixed=(("learner", "pc"),), without=("penalty",)),
    "bootstrap-ges": MethodName(Bootstrap, fixed=(("learner", "ges"),), without=("significance", "without_dag")),
    "exact": MethodName(Exact),
}
"""Methods by name; a new one is a file with its class, and a line here."""


def as_method(
    method: str | Method, common: dict[str, Any] | None = None, options: dict[str, Any] | None = None
) -> Method:
    """Return the method that a name or an object means.

    Parameters
    ----------
    method
        A key of `METHODS`, or an object.
    common
        Options that every method understands or ignores; None leaves one to the method.
    options
        Options of this method.
    """
    common = {name: value for name, value in (common or {}).items() if value is not None}
    options = dict(options or {})
    if isinstance(method, Method):
        for name in (*common, *options):
            raise InputError(f"{name!r} is an option of the method: set it there, {type(method).__name__}({name}=…)")
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"unknown method {method!r}: {nearest(str(method), METHODS)}")
    known = METHODS[method].option_names()
    return METHODS[method].build({name: value for name, value in common.items() if name in known} | options)


def fit(
    data: Any,
    model: str | Model | None = None,
    prior: str | GraphPrior | None = None,
    method: str | Method = "auto",
    *,
    particles: int | None = None,
    draws: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    time_limit: float | Literal["default"] | None = "default",
    interventions: Any = None,
    kinds: Any = None,
    knowledge: Any = None,
    lags: int | None = None,
    series: Any = None,
    conditions: Any = None,
    missing_values: Any = None,
    targets: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    callback: Callable[[Any], None] | None = None,
    every: int | None = None,
    on_interrupt: Literal["answer", "raise"] | None = None,
    workers: int | None = None,
    cluster: Any = None,
    progress: bool | None = None,
    **options: Any,
) -> Posterior:
    """Infer a posterior over graphs, and over parameters where the model has any.

    Parameters
    ----------
    data
        A `Dataset`, a pandas DataFrame, an array, or the path of a table. Missing cells (NaN, empty) are drawn together
        with the graphs by "auto", with the models "bge", "linear", "bdeu" and "copula"; others refuse.
    model
        "bge", "linear", "additive", "gp", "mlp", "bdeu" (categories), "copula" (columns of several kinds, by their
        ranks) or a model object, in the units of the data. None: "bdeu" where every column is categorical, "copula"
        where kinds differ and for counts and ordinal columns; otherwise columns are standardised and the model is
        "bge", so that the result does not depend on units.
    prior
        "unknown-density", "erdos-renyi", "scale-free", "uniform" or a prior object. None: "erdos-renyi" for a named
        model, as in the paper, otherwise "unknown-density".
    method
        A method object, such as `dp.Dibs(particles=50)`, or its name: "auto" (exact on few
        nodes and tempered chains at the posterior itself on more, on evidence in closed form or integrated
        numerically), "dibs" (DiBS with our
        defaults), "dibs-paper" (everything as published), "mc3" (structure MCMC as published), "m-mc3" and "g-mc3"
        (over graphs and parameters), "bootstrap-pc" and "bootstrap-ges" (a graph from each of many resamples) or
        "exact".
    particles
        Number of DiBS particles, MC³ samples or resamples [30].
    draws
        Number of graphs that "auto" and "exact" return [1000].
    steps
        Steps of DiBS [by size and model].
    seed
        Fixes the result, unless a time limit ends the run.
    time_limit
        Seconds for the whole run, compiling excepted (`post.info["compiling"]` has its seconds). What there is when
        the time is up is returned, with the verdict that it deserves. None: no limit. By default the chains of "auto"
        end after two minutes, unless `precision` or `max_moves` says when to stop; no other method has a limit.
    interventions
        What was intervened on in which row: a mask, names row by row, or the name of a column; see `dp.Dataset`.
    kinds
        "continuous", "count", "categorical", "ordinal" or "binary" by name of column, where it is not what the cells
        say; see `dp.Dataset`.
    knowledge
        What is known beforehand, by names of columns: a `dp.Knowledge`, a dict of its fields or the path of a TOML
        file. Required and forbidden edges, tiers, roots, leaves and `max_parents` hold in every graph; methods that
        cannot guarantee that refuse.
    lags
        1 if rows are in the order of time: a network of two slices, with the columns `x` of a row and `x[t-1]` of the
        row before it. Edges lead into the present alone, from the past or within it.
    series
        With `lags`, the name of the column that says which series a row belongs to, or one entry for each row.
    conditions
        Name of the column that says which experiment a row comes from, or one entry for each row; empty or "none"
        where nothing was done. Which mechanisms each condition changes is learnt: `post.targets()`.
    missing_values
        Further numbers and texts that stand for missing cells, such as `[-999, "unknown"]`; see `dp.read_table`.
    targets
        What conditions may change: a `dp.Targets`, "unknown" (its defaults), or "known": nothing but the nodes in
        `interventions`, which keep their parents and get new parameters. None: "unknown" if there are conditions.
    checkpoint
        Folder in which the run saves its state about every `checkpoint_every` seconds, and when it is interrupted
        (Ctrl-C, SIGTERM), fails or ends. It stays until it is deleted: `dp.Checkpoint(folder).clear()`.
    resume
        Continue from the state in `checkpoint`. The result is, bit for bit, that of an undisturbed run, unless a time
        limit ends either.
    callback, every
        For DiBS and "auto": called with a `Snapshot` after `every` steps; `dp.History()` is one. The chains of "auto"
        call it with a `ChainSnapshot` after every batch.
    on_interrupt
        What Ctrl-C does: "answer" returns what there is, as a time limit would, and a second Ctrl-C raises; "raise"
        raises `KeyboardInterrupt` at once. None: "answer" in an interactive session, "raise" in a script.
    workers
        For "auto": number of processes of this machine that run its ensembles of chains, and estimate evidence that is
        integrated numerically (for "exact", too). None: threads of this process. The result is the same, bit for bit.
    cluster
        The same on the workers of a Dask scheduler: its address, or a `distributed.Client`. Workers may come and go.
    progress
        Whether to show a progress bar; by default on a terminal.
    **options
        Fields of the method's class, where the method is given by name: `precision=0.01` for "auto".

    Returns
    -------
    Posterior
        Weighted graphs with their parameters, diagnostics and verdict.

    >>> import dagpost as dp
    >>> sim = dp.simulate(nodes=5, observations=100, seed=0)
    >>> post = dp.fit(sim.train, model="linear", draws=100)
    >>> post.graphs.shape
    (100, 5, 5)
    """
    common = {"particles": particles, "draws": draws, "steps": steps}
    for name, value in common.items():
        if value is not None:
            whole_number(name, value, least=1)
    chosen = as_method(method, common, options)
    key_from_seed(seed)
    if resume and checkpoint is None:
        raise InputError("resume=True: name the folder with the state to go on from, checkpoint=...")
    if not chosen.watchable and (callback is not None or every is not None):
        raise InputError(f"method {chosen.name!r} cannot be watched: leave `callback` and `every` out")
    if not chosen.interruptible:
        for name, value in (("time_limit", time_limit), ("checkpoint", checkpoint)):
            if value not in (None, "default"):
                raise InputError(f"method {chosen.name!r} is one calculation without a {name}: leave `{name}` out")
    if not chosen.spreads and (workers is not None or cluster is not None):
        raise InputError(f"method {chosen.name!r} runs in one process: leave `workers` and `cluster` out")
    missing = "keep" if chosen.takes_missing else None
    table = as_dataset(
        data, interventions=interventions, kinds=kinds, lags=lags, series=series, missing=missing,
        conditions=conditions, missing_values=missing_values,
    )  # fmt: skip
    raise_problems(missing_problems(table, None if chosen.takes_missing else f"the method {chosen.name!r}"))
    assumed: dict[str, str] = {}
    if model is None:
        assumptions = assume(table, None, prior, chosen.name)
        table, model, prior, assumed = (
            assumptions.data,
            assumptions.model,
            assumptions.prior,
            dict(assumptions.messages),
        )
    scored, table = perturbed(as_model(model), targets, table)
    if scored.latent and not chosen.takes_missing:
        raise InputError(
            f"the method {chosen.name!r} cannot draw the latent columns of the model {scored.name!r}: leave the method "
            'out, or use method="auto" (--method auto)'
        )
    if isinstance(scored, Perturbed) and not chosen.takes_conditions:
        raise InputError(f"method {chosen.name!r} takes no conditions: use 'auto', 'exact' or 'mc3'")
    table = scored.accept(table)
    if scored.latent:
        table = check_ranks(table)
    else:
        check_for_inference(table if scored.drops_intervened else table.with_interventions(None))
    known = as_knowledge(knowledge)
    past = [name for name, is_past in zip(table.names, past_columns(table.names)) if table.lags and is_past]
    graph_prior = informed(as_prior(prior or "erdos-renyi"), known, table.names, past)
    scored.check_methods()
    scored.check(table)
    check_memory(table.nodes, scored, chosen)
    problem = Problem(table, scored, graph_prior, seed, Clock(), None, callback, every, progress)
    if time_limit == "default":
        time_limit = chosen.default_time_limit(problem)
    elif time_limit == math.inf:
        time_limit = None
    answers = chosen.interruptible and (on_interrupt or ("answer" if is_interactive() else "raise")) == "answer"
    clock = Clock(FOREVER if time_limit is None and answers else time_limit)
    problem = replace(problem, clock=clock)
    if is_shown(progress):
        print(f"plan: {chosen.plan(problem)}", file=sys.stderr, flush=True)
    with (
        use_workers(workers_of(workers, cluster)),
        announced(chosen.compile_seconds(problem), progress),
        _stopping(clock, answers),
    ):
        if checkpoint is None:
            post = chosen.run(problem)
        else:
            folder, signals = Checkpoint(checkpoint, checkpoint_every), SIGNALS[1:] if answers else SIGNALS
            with recording(folder, _fingerprint(chosen, problem), resume, signals) as recorder:
                post = chosen.run(replace(problem, checkpoint=recorder))
    if clock.stopped.is_set() and post.record.verdict is not None:
        stopped = f"Stopped by Ctrl-C after {clock.seconds:.0f} s. {post.record.verdict.text}"
        post = post.with_record(verdict=replace(post.record.verdict, text=stopped))
    if assumed:
        post = post.with_record(assumptions=assumed)
    record = {"method": chosen.name, **chosen.options(), "seed": seed}
    if time_limit is not None:
        record["time_limit"] = time_limit
    provenance = Provenance(
        options=record,
        knowledge=None if known is None else known.resolved(table.names).as_dict(),
        total_seconds=round(clock.seconds, 3),
        compiling=round(clock.compiling, 3),
    )
    post = with_targets(with_provenance(post, table, provenance))
    if post.record.verdict is None:
        return post
    return post.with_record(verdict=replace(post.record.verdict, model_fit=model_fit_text(check_model(post))))


def exact(
    data: Any,
    model: str | Model | None = None,
    prior: str | GraphPrior | None = None,
    *,
    draws: int = 1000,
    seed: int = 0,
    interventions: Any = None,
    kinds: Any = None,
    knowledge: Any = None,
    lags: int | None = None,
    series: Any = None,
    conditions: Any = None,
    missing_values: Any = None,
    targets: Any = None,
    parameters: bool = False,
    algorithm: Literal["auto", "enumerate", "layers"] = "auto",
    memory_limit: float | None = None,
    progress: bool | None = None,
) -> ExactPosterior:
    """Compute the exact posterior over DAGs: short for `fit` with `dp.Exact`.

    Parameters
    ----------
    data, model, prior, seed, interventions, kinds, knowledge, lags, series, conditions, missing_values, targets
        As in `fit`.
    progress
        As in `fit`.
    draws, parameters, algorithm, memory_limit
        Fields of `dp.Exact`.

    Returns
    -------
    ExactPosterior
        Edge probabilities, evidence, most probable graph and parent sets without sampling error.

    >>> import dagpost as dp
    >>> sim = dp.simulate(nodes=4, observations=50, seed=3)
    >>> dp.exact(sim.train, model="bge", prior="uniform")
    ExactPosterior(exact: 543 graphs on 4 nodes, 3.6 edges)
    """
    method = Exact(draws, parameters, algorithm, memory_limit)
    common = {
        "seed": seed, "interventions": interventions, "kinds": kinds, "knowledge": knowledge, "lags": lags,
        "series": series, "conditions": conditions, "missing_values": missing_values, "targets": targets,
        "progress": progress,
    }  # fmt: skip
    post = fit(data, model, prior, method, **common)
    assert isinstance(post, ExactPosterior)
    return post


def is_interactive() -> bool:
    """Return whether a person types commands: in Python's prompt, IPython or a notebook."""
    return hasattr(sys, "ps1") or hasattr(builtins, "__IPYTHON__")


@contextmanager
def _stopping(clock: Clock, enabled: bool) -> Iterator[None]:
    """Context in which the first Ctrl-C stops the clock, if enabled."""
    if not enabled:
        yield
        return

    def stop() -> None:
        clock.stopped.set()
        print("\nstopping; Ctrl-C again ends without a result", file=sys.stderr, flush=True)

    with catch_signals(SIGNALS[:1], stop):
        yield


def _fingerprint(method: Method, problem: Problem) -> dict[str, Any]:
    """Everything that a result depends on."""
    data = problem.data
    return {
        "method": method.name,
        **describe(method.options()),
        "seed": problem.seed,
        "data": describe(
            {"values": data.values, "names": data.names, "levels": data.levels, "interventions": data.intervened}
            | ({} if data.conditions is None else {"conditions": data.conditions.of_row})
        ),
        "model": describe(problem.model),
        "prior": describe(problem.prior),
        "versions": versions(),
    }
