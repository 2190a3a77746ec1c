"""`method="auto"`: the best road to the posterior: exact on few nodes, and sampled by tempered chains on many. The
evidence of families is a closed form or, for other models, integrated numerically. Priors that do not decompose by node
leave DiBS.

Where families take microseconds, chains start from the empty graph; where they take milliseconds, from graphs that
chains of the additive model reach in a moment. Running DiBS or greedy search first does not pay: with 12, 20 and 50
nodes chains need as long from there to a given precision (`benchmarks/starts.py`), since the hot end of their ladder
forgets where they began. `start="dibs"` is still there, and is what options of DiBS imply.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import jax
import numpy as np

from dagpost._util.clock import FOREVER, Clock
from dagpost._util.environment import available_memory
from dagpost._util.numerics import generator, key_from_seed
from dagpost._util.workers import current_workers
from dagpost.data import Dataset
from dagpost.data.missing import missing_assumption
from dagpost.errors import FewOrders, InputError, nearest, printable, whole_number
from dagpost.graphs import consistent_extension
from dagpost.inference.bootstrap.ges import limited_search
from dagpost.inference.checkpoints.recorder import Sections
from dagpost.inference.dibs import Dibs, default_settings, infer
from dagpost.inference.exact import Exact
from dagpost.inference.exact.by_orders import orders_drawn
from dagpost.inference.exact.orders import memory_bytes
from dagpost.inference.integration import additive_start, integrated, refine_numerically
from dagpost.inference.mcmc.augmented import Augmented, augment
from dagpost.inference.mcmc.refine import Effort, Refined, refine
from dagpost.inference.method import Method, Problem
from dagpost.models import Model
from dagpost.models.integrated import LARGEST_ERROR, evidence_verdict, outside_verdict
from dagpost.posterior import Posterior, posterior_of_cells, posterior_of_draws
from dagpost.posterior.records import ChainDiagnostics, ImputedCells, RunRecord, Sampling, Verdict
from dagpost.priors import GraphPrior
from dagpost.typing import Graph, Graphs, Key

Start = Literal["dibs", "ges", "empty", "random", "additive"]
STARTS = ("dibs", "ges", "empty", "random", "additive")

DIBS_SHARE = 0.25
"""Of the steps that DiBS takes on its own: its particles are starting points here, not the result."""
WITHOUT_EFFECT = ("sampler", "moves", "parameter_steps", "draw_parameters")
"""Options of DiBS that do not say where its particles are, or not as starting points of chains."""
START_TIME = 0.25
"""Of a time limit, for finding where to start the chains."""
EXACT_UP_TO = 14
"""Nodes up to which the exact posterior takes seconds."""
ORDERS_UP_TO = 20
"""Nodes up to which independent exact draws by way of orders take seconds, for models with a table of families."""
EXACT_SLOW_UP_TO = 10
"""The same for a model whose families take milliseconds, because their evidence has no compiled table."""
MOST_FAMILIES = 1 << 25
"""Most families of all nodes, times the terms of each (sets of conditions), which take about half a minute."""
EXACT_NUMERICAL_UP_TO = 6
"""The same where evidence is integrated numerically."""
TIME_LIMIT = 120.0
"""Seconds that chains run if nobody sets a limit."""
NUMERICAL_TIME_LIMIT = 600.0
"""The same where evidence is integrated numerically."""
SEARCHES = 4
"""Starting points by greedy search, one for each ensemble of chains."""


def auto(
    data: Dataset, model: Model, prior: GraphPrior, *, particles: int, draws: int, seed: int, steps: int | None = None,
    start: Start | None = None, effort: Effort | None = None, clock: Clock | None = None,
    progress: bool | None = None, checkpoint: Sections | None = None,
    callback: Callable[[Any], None] | None = None, every: int | None = None, **options: Any,
) -> Posterior:  # fmt: skip
    """The posterior over graphs by MCMC; by DiBS alone where the prior does not decompose.

    `draws` is the number of graphs kept. `start` says where the chains start: "empty", "random", "ges", "additive"
    (`starting_graphs`) or "dibs", at so many `particles`; `effort` how long they run; the clock holds for all.
    `callback` sees a `Snapshot` after `every` steps of DiBS, and a `ChainSnapshot` after every batch of the chains.
    """
    d, rows = data.nodes, data.observations
    clock = clock or Clock()
    common: dict[str, Any] = {
        "particles": particles, "seed": seed, "method": "auto", "progress": progress, "checkpoint": checkpoint,
        "callback": callback, "every": every,
    }  # fmt: skip
    if not prior.components(d):
        what = f"prior {prior.name!r} does not decompose by column"
        settings = default_settings(model, d, rows, **({} if steps is None else {"steps": steps}), **options)
        post = infer(data, model, prior, settings, clock=clock, **common)
        also = f" {post.record.verdict.text}" if post.record.verdict is not None else ""
        return post.with_record(verdict=Verdict(f"DiBS alone, without chains: the {what}.{also}"))
    own = [*options, *([] if steps is None else ["steps"])]  # options of DiBS
    usual_start = "empty" if model.has_compiled_evidence else "additive"
    start = _checked(start) if start is not None else "dibs" if own else usual_start
    key_chains, key_theta, key_start = jax.random.split(jax.random.fold_in(key_from_seed(seed), 1), 3)
    made: dict[str, Any] = {"start": start}
    if start == "dibs":
        usual = default_settings(model, d, rows, **options)
        steps = steps or max(1, round(DIBS_SHARE * usual.steps))
        settings = default_settings(model, d, rows, **{**options, "steps": steps, "moves": 0})
        graphs = infer(data, model, prior, settings, clock=clock.until(START_TIME), **common).graphs
        made |= {"particles": particles, "steps": steps}
    else:
        if own:
            raise InputError(f"{own[0]} is an option of DiBS, and the chains start from {start!r}: set start='dibs'")
        graphs = starting_graphs(start, data, prior, key_start, clock.until(START_TIME))
    stats = model.summarise(data)
    run: dict[str, Any] = {
        "rows": rows, "draws": draws, "effort": effort, "clock": clock, "progress": progress,
        "checkpoint": checkpoint, "callback": callback,
    }  # fmt: skip
    scored, also, fine = model, "", True
    if model.has_compiled_evidence:
        found = refine(graphs, model, prior, stats, key_chains, annealed=start == "empty", **run)
    else:
        listed = integrated(model, stats, seed, checkpoint)
        found, outside, fine = refine_numerically(graphs, listed, prior, key_chains, **run)
        if not fine:
            also = (
                " Do not trust this run yet: there was too little time to find the sets of parents that matter. "
                "A longer time limit helps (--time-limit, time_limit=)."
            )
        made |= {"families": len(listed.evidence.known), "outside_candidates": float(outside.sum())}
        if outside.any():
            also += " " + outside_verdict(outside, data.names)
            fine = fine and bool(outside.max() <= LARGEST_ERROR)
        if not model.has_evidence:
            scored, errors = listed, listed.edge_errors(found.graphs)
            made |= {"evidence_error": float(errors.max())}
            also += " " + evidence_verdict(errors, data.names)
            fine = fine and bool(errors.max() <= LARGEST_ERROR)
    record = RunRecord(
        "auto",
        Sampling(chain_lengths=found.chain_lengths),
        ChainDiagnostics(**found.diagnostics._asdict(), **found.measured, **made),
        Verdict(found.diagnostics.verdict(_worst_edge(found, data.names)) + also, found.diagnostics.trusted and fine),
    )
    post = posterior_of_draws(found.graphs, data.names, scored, prior, stats, key_theta, record, found.marginals)
    return replace(post, model=model)


def auto_with_cells(problem: Problem, draws: int, start: Start | None, effort: Effort) -> Posterior:
    """Return draws of graphs, parameters and unobserved cells: chains that alternate moves over graphs and cells."""
    data, model, prior = problem.data, problem.model, problem.prior
    start = start or "random"
    if start not in ("random", "empty"):
        raise InputError(f"start={start!r} cannot draw {problem.unobserved}: give 'random' or 'empty'")
    if not prior.components(data.nodes):
        raise InputError(
            f"the prior {prior.name!r} does not decompose by column, which the chains that draw {problem.unobserved} "
            "need: use another prior" + ("" if model.latent else ", or drop incomplete rows (missing='drop')")
        )
    if current_workers() is not None:
        what = problem.unobserved
        raise InputError(f"chains that draw {what} run in one process: leave `workers` and `cluster` out")
    completion = model.completion(data)
    assert completion is not None, "the model has accepted the table"
    key_chains, key_start = jax.random.split(jax.random.fold_in(key_from_seed(problem.seed), 1))
    graphs = starting_graphs(start, data, prior, key_start, problem.clock)
    found = augment(
        graphs, completion, model, prior, key_chains, draws=draws, effort=effort, clock=problem.clock,
        progress=problem.progress, checkpoint=problem.checkpoint, callback=problem.callback,
    )  # fmt: skip
    record = RunRecord(
        "auto",
        Sampling(chain_lengths=found.chain_lengths),
        ChainDiagnostics(**found.diagnostics._asdict(), **found.measured, start=start),
        Verdict(found.diagnostics.verdict(_worst_edge(found, data.names)), found.diagnostics.trusted),
        assumptions={"missing": missing_assumption(data)} if data.is_missing.any() else {},
    )
    rows, columns = np.nonzero(data.is_missing)
    cells = ImputedCells(rows, columns, found.cells) if len(rows) else None
    return posterior_of_cells(found.graphs, found.theta, data.names, model, prior, record, found.marginals, cells)


def _worst_edge(found: Refined | Augmented, names: tuple[str, ...]) -> str:
    """Return the edge with the largest standard error."""
    errors = np.asarray(found.measured["edge_errors"])
    i, j = np.unravel_index(errors.argmax(), errors.shape)
    return f"{printable(names[i])} -> {printable(names[j])}"


def _checked(start: str) -> Start:
    if start not in STARTS:
        raise InputError(f"unknown start {start!r}: {nearest(str(start), STARTS)}")
    return start  # type: ignore[return-value]


def starting_graphs(start: Start, data: Dataset, prior: GraphPrior, key: Key, clock: Clock) -> Graphs:
    """DAGs to start the chains from: the empty one, draws of the prior ("random"), draws of short chains of the
    additive model ("additive"), or members of the equivalence classes that greedy search finds in the rows and in
    resamples of them ("ges", as many as fit into the clock's time).
    They have the edges that are known to be there, and none that is known not to be."""
    d, known = data.nodes, prior.constraints
    rng = generator(key)
    if start == "additive":
        empty = starting_graphs("empty", data, prior, key, clock)
        return additive_start(data, prior, empty, key, clock)
    if start == "random":
        return np.stack([np.asarray(prior.sample(k, d), dtype=np.bool_) for k in jax.random.split(key, SEARCHES)])
    out: list[Graph] = []
    if start == "ges":
        rows = np.arange(data.observations)
        while len(out) < SEARCHES and not (out and clock.expired):
            out.append(consistent_extension(limited_search(data.values[rows], clock=clock).graph, rng))
            rows = rng.integers(data.observations, size=data.observations)
    else:
        out.append(np.zeros((d, d), dtype=np.bool_))
    return np.stack([g if known is None else known.repaired(g, rng.random((d, d))) for g in out])


def exact_seconds(d: int) -> float:
    """Return seconds that the exact posterior over d nodes takes on two cores: its tables grow as 3^d, and as d 2^d
    where draws come by way of orders."""
    if d > EXACT_UP_TO:
        return 8.0 * 2.1 ** (d - ORDERS_UP_TO)
    return 15.0 * 3.0 ** (d - EXACT_UP_TO)


def draws_of_exact(problem: Problem, draws: int) -> Posterior:
    """Return independent draws of the exact posterior, with exact edge probabilities."""
    data, model, seed = problem.data, problem.model, problem.seed
    if data.nodes > EXACT_UP_TO:
        stats = model.summarise(data)
        drawn = orders_drawn(problem, model, stats, draws)
        record = RunRecord("auto", diagnostics=drawn.diagnostics(), verdict=drawn.verdict())
        key, graphs = jax.random.fold_in(key_from_seed(seed), 1), drawn.graphs(seed)
        return posterior_of_draws(graphs, data.names, model, problem.prior, stats, key, record, drawn.edges.mean)
    exact = Exact(draws, parameters=not model.has_evidence).run(problem)
    record = RunRecord("auto", diagnostics=exact.record.diagnostics, verdict=exact.record.verdict)
    if not model.has_evidence:  # the parameters came with the evidence
        return replace(exact, record=record.with_sampling(sample=True, collapsed=True))
    graphs = exact.sample(draws, seed) if exact.record.sampling.exhaustive else exact.graphs
    key = jax.random.fold_in(key_from_seed(seed), 1)
    stats = model.summarise(data)
    drawn = posterior_of_draws(graphs, data.names, model, problem.prior, stats, key, record, exact.marginals)
    changed = ("graphs", "log_weights", "theta", "log_joint", "record")
    return replace(exact, **{name: getattr(drawn, name) for name in changed})


@dataclass(frozen=True)
class Auto(Method):
    """The default: the exact posterior on few nodes, and on more tempered chains that sample it and judge themselves.

    For priors that decompose by node; for others it is DiBS, and the verdict says so. Models without closed-form
    evidence have it integrated numerically, and the verdict has the error of that, too. Gaussian models with a table of
    families draw exactly and independently up to `ORDERS_UP_TO` nodes. On few nodes (these, `EXACT_UP_TO`,
    `EXACT_SLOW_UP_TO`, `EXACT_NUMERICAL_UP_TO`) chains run if `precision`, `max_moves`, `ensembles`, `start` or
    an option of DiBS is set, if the run is watched (`every`), or if the time limit is too short for the exact
    posterior. Missing cells are drawn together with the graphs by chains without a ladder.

    Parameters
    ----------
    draws
        Number of graphs kept.
    precision
        Largest standard error of an edge probability at which the chains may end. None means 0.01, or the exact
        posterior on few nodes.
    max_moves
        Most moves of all chains; None lets it depend on the number of nodes.
    ensembles
        Number of independent ensembles of tempered chains, whose agreement is tested.
    start
        Where the chains start: "empty", "random" (draws of the prior), "ges" (greedy search), "additive" (short chains
        of the additive model) or "dibs". None means "dibs" where `dibs` changes a setting, otherwise "empty", or
        "additive" for models whose families take milliseconds.
    dibs
        Options of DiBS, where the chains start from it or where the prior does not decompose.

    >>> import dagpost as dp
    >>> data = dp.simulate(nodes=4, observations=50, seed=0).train
    >>> print(dp.fit(data, "bge", method=dp.Auto(draws=50)).record.verdict.text)
    exact: a sum over all DAGs on 4 nodes, without sampling error.
    """

    watchable: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True
    takes_conditions: ClassVar[bool] = True
    spreads: ClassVar[bool] = True

    draws: int = 1000
    precision: float | None = None
    max_moves: int | None = Effort.max_moves
    ensembles: int = Effort.ensembles
    start: Start | None = None
    dibs: Dibs = field(default_factory=Dibs)

    def __post_init__(self):
        whole_number("draws", self.draws, least=1)
        self.effort()
        if self.start is not None:
            _checked(self.start)

    @property
    def name(self) -> str:
        return "auto"

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        own = (name for name in super().option_names() if name != "dibs")
        return (*own, *(name for name in Dibs.option_names() if name != "published"))

    @classmethod
    def from_options(cls, **options: Any) -> Auto:
        of_dibs = {name: options.pop(name) for name in Dibs.option_names() if name in options}
        return cls(dibs=Dibs(**of_dibs), **options)

    def options(self) -> dict[str, Any]:
        own = super().options()
        del own["dibs"]
        return {**own, "particles": self.dibs.particles, **self.dibs.changes()}

    def effort(self) -> Effort:
        precision = Effort.precision if self.precision is None else self.precision
        return Effort(precision, self.max_moves, self.ensembles)

    def graphs_kept(self, model: Model) -> int:
        return self.draws

    def compile_seconds(self, problem: Problem) -> int:
        return 20 if self.is_exact(problem) else 90

    def samples_by_chains(self, problem: Problem) -> bool:
        """Return whether chains are the way."""
        return bool(problem.prior.components(problem.data.nodes)) and not self.is_exact(problem)

    def default_time_limit(self, problem: Problem) -> float | None:
        stops = (self.precision, self.max_moves) != (None, None)
        limit = TIME_LIMIT if problem.model.has_evidence else NUMERICAL_TIME_LIMIT
        draws = self.samples_by_chains(problem) or (self.is_exact(problem) and problem.data.nodes > EXACT_UP_TO)
        return limit if draws and not stops else None

    def plan(self, problem: Problem) -> str:
        self._refuse_idle(problem)
        d = problem.data.nodes
        if self.is_exact(problem):
            drawn = d > EXACT_UP_TO
            seconds = exact_seconds(d) * len(problem.prior.components(d)) / (1 if drawn else 4)
            duration = "a second or two" if seconds < 2 else f"about {seconds:.0f} s"
            what = "exact draws from sums over all orders" if drawn else "exact sum over all graphs"
            return f"{what} of {d} columns, {duration}"
        if not self.samples_by_chains(problem):
            return self.dibs.plan(problem)
        drawn = f" and {problem.unobserved}" if problem.unobserved else ""
        end = f"until every edge probability has a standard error of at most {self.effort().precision}"
        limit = problem.clock.limit
        evidence = "" if problem.model.has_evidence else ", on numerical evidence"
        return f"chains over graphs{drawn}{evidence}, {end}" + (
            f", or for {limit:.0f} s" if limit and limit < FOREVER else ""
        )

    def is_exact(self, problem: Problem) -> bool:
        """Return whether the exact posterior is the way: few nodes, and nothing asks for chains."""
        model, prior, d = problem.model, problem.prior, problem.data.nodes
        of_chains = (self.start, self.precision, self.effort(), self.dibs.changes(), problem.every)
        most = EXACT_UP_TO if model.has_compiled_evidence else EXACT_SLOW_UP_TO
        if EXACT_UP_TO < d <= ORDERS_UP_TO and model.has_conjugate_table:
            fits = memory_bytes(d, len(prior.components(d))) / 2**30 < available_memory()
            most = ORDERS_UP_TO if fits else most
        if model.family_terms(problem.data) * d << (d - 1) > MOST_FAMILIES:  # about a microsecond each
            most = 0
        return bool(
            d <= (most if model.has_evidence else EXACT_NUMERICAL_UP_TO)
            and prior.components(d)
            and not problem.unobserved
            and of_chains == (None, None, Effort(), {}, None)
            and problem.clock.left > exact_seconds(d) * len(prior.components(d))
        )

    def _refuse_idle(self, problem: Problem) -> None:
        """Raise an error for options of DiBS that change nothing where its graphs are starting points."""
        for name in WITHOUT_EFFECT if problem.prior.components(problem.data.nodes) else ():
            if name in self.dibs.changes() and not problem.unobserved:
                raise InputError(
                    f"{name} is an option of DiBS, which the method 'auto' does not run for its result: "
                    "use method='dibs' (--method dibs), or leave it out"
                )

    def run(self, problem: Problem) -> Posterior:
        self._refuse_idle(problem)
        if self.is_exact(problem):
            with suppress(FewOrders):
                return draws_of_exact(problem, self.draws)
        changes = self.dibs.changes()
        if problem.unobserved:
            for name in changes:
                raise InputError(f"{name} is an option of DiBS, which cannot draw {problem.unobserved}: leave it out")
            return auto_with_cells(problem, self.draws, self.start, self.effort())
        return auto(
            problem.data, problem.model, problem.prior, particles=self.dibs.particles, draws=self.draws,
            seed=problem.seed, steps=changes.pop("steps", None), start=self.start, effort=self.effort(),
            clock=problem.clock, progress=problem.progress, checkpoint=problem.checkpoint,
            callback=problem.callback, every=problem.every, **changes,
        )  # fmt: skip
