"""`Exact`: the exact posterior over DAGs, for models with evidence on few nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax

from dagpost._util.environment import available_memory
from dagpost._util.numerics import generator, key_from_seed, log_sum_exp
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.errors import InputError, nearest, whole_number
from dagpost.graphs import all_dags
from dagpost.inference.exact import layers
from dagpost.inference.exact.by_orders import posterior_by_orders
from dagpost.inference.exact.families import check_mass, codes, evidence_table, log_priors, members, prior_table
from dagpost.inference.exact.layers import backward_pass, family_probabilities, work
from dagpost.inference.exact.orders import memory_bytes
from dagpost.inference.exact.posterior import ExactPosterior, Listing, Summation, posterior_of_sums
from dagpost.inference.method import Method, Problem
from dagpost.models import Model, Statistics
from dagpost.models.integrated import CLOSE, LARGEST_ERROR, Integrated, evidence_verdict, influences, order_gaps
from dagpost.posterior import log_joint_of, log_prior_of
from dagpost.posterior.records import ExactDiagnostics, RunRecord, Sampling, Verdict
from dagpost.priors import GraphPrior

ENUMERATE_UP_TO = 5
LAYERS_UP_TO = 16
LARGEST = 25
NEGLIGIBLE = 1e-12
"""Posterior share of a component of the prior that is left out."""
ALGORITHMS = ("auto", "enumerate", "layers", "orders")

_dags = lru_cache(maxsize=4)(all_dags)


@dataclass(frozen=True)
class Exact(Method):
    """The exact posterior over DAGs: all of them up to five nodes, dynamic programming over layers up to 16, and beyond
    independent exact draws by way of orders of the nodes, whose edge probabilities have a standard error of 0.005.

    Layers take a minute or two with 16 nodes on a machine of today, and orders seconds with 20 (memory ends it at 23 or
    so). Where evidence is integrated numerically about 8 nodes are the most, and the verdict says how far its errors
    reach.

    Parameters
    ----------
    draws
        Number of graphs in the result beyond five nodes: independent exact draws.
    parameters
        Whether the graphs are draws for every size, each with exact parameters from `p(theta | G, D)`.
    algorithm
        "enumerate", "layers", "orders", or "auto": by the number of nodes.
    memory_limit
        GiB that the tables may take; None means what is free.
    """

    interruptible: ClassVar[bool] = False
    takes_conditions: ClassVar[bool] = True
    spreads: ClassVar[bool] = True

    draws: int = 1000
    parameters: bool = False
    algorithm: Literal["auto", "enumerate", "layers", "orders"] = "auto"
    memory_limit: float | None = None

    def __post_init__(self):
        whole_number("draws", self.draws, least=1)
        if self.algorithm not in ALGORITHMS:
            raise InputError(f"unknown algorithm {self.algorithm!r}: {nearest(str(self.algorithm), ALGORITHMS)}")

    @property
    def name(self) -> str:
        return "exact"

    def graphs_kept(self, model: Model) -> int:
        return self.draws

    def run(self, problem: Problem) -> ExactPosterior:
        data, model, prior, seed = problem.data, problem.model, problem.prior, problem.seed
        algorithm = self.algorithm
        if algorithm == "auto":
            small, middle = data.nodes <= ENUMERATE_UP_TO, data.nodes <= LAYERS_UP_TO
            algorithm = "enumerate" if small else "layers" if middle else "orders"
        if algorithm != "enumerate":
            _check_memory(problem, self.memory_limit, algorithm)
        stats = model.summarise(data)

        def summed(model: Model) -> ExactPosterior:
            if algorithm == "enumerate":
                return _by_enumeration(data, model, prior, stats)
            if algorithm == "orders":
                return posterior_by_orders(problem, model, stats, self.draws)
            return _by_layers(data, model, prior, stats, self.draws, seed, problem.progress)

        if model.has_evidence:
            result = summed(model)
        else:
            result = _by_integration(Integrated(model, stats, seed), prior, summed, seed)
        result = _with_parameters(result, stats, self.draws, seed) if self.parameters else result
        return replace(result, model=model)


def _by_integration(
    model: Integrated, prior: GraphPrior, summed: Callable[[Model], ExactPosterior], seed: int
) -> ExactPosterior:
    """Return the sum over all DAGs with numerical evidence, estimated again where the posterior rests on it, by
    the rule of the chains (`Candidates.rough`); a prior that does not decompose has no part in that."""
    d = model.evidence.d
    sets, places = members(d), np.tile(np.arange(d), (d, 1))
    parts = prior.components(d)
    log_prior = prior_table(parts[0].prior, d) if parts else np.where(sets.T, -np.inf, 0.0)
    while True:
        result = summed(model)
        scores = evidence_table(model, model.stats, d) + log_prior
        graphs = result.sample(1000, seed)
        gaps = order_gaps(scores, places, graphs)
        close = (((j, sets[code]), gaps[j, code]) for j, code in np.argwhere(gaps <= CLOSE[0]).tolist())
        rough = model.rough_families(close, influences(graphs))
        if not rough:
            errors = model.edge_errors(graphs)
            names = result.names
            text = f"exact: a sum over all DAGs on {len(names)} nodes. {evidence_verdict(errors, names)}"
            return result.with_record(verdict=Verdict(text, bool(errors.max() <= LARGEST_ERROR)))
        model.evidence.fill([(*family, effort) for family, effort in rough])


def _verdict(d: int) -> Verdict:
    return Verdict(f"exact: a sum over all DAGs on {d} nodes, without sampling error.", trusted=True)


def _by_enumeration(data: Dataset, model: Model, prior: GraphPrior, stats: Statistics) -> ExactPosterior:
    """Return the posterior from a list of all DAGs."""
    graphs = _dags(data.nodes)
    if prior.constraints is not None:
        graphs = graphs[prior.constraints.honoured_by(graphs)]
    log_prior = log_prior_of(graphs, prior)
    log_joint = log_prior + model.log_evidence_of(graphs, stats)
    log_normaliser = log_sum_exp(log_joint)
    check_mass(log_normaliser)
    log_probability, log_evidence = log_softmax(log_joint), log_normaliser - log_sum_exp(log_prior)
    families = np.zeros((data.nodes, 1 << data.nodes))
    for j, sets in enumerate(codes(graphs).T):
        families[j] = np.bincount(sets, weights=np.exp(log_probability), minlength=1 << data.nodes)
    return ExactPosterior(
        graphs=graphs,
        log_weights=log_probability,
        names=data.names,
        model=model,
        prior=prior,
        log_joint=log_joint,
        marginals=_edge_marginals(families),
        record=RunRecord(
            "exact",
            Sampling(exhaustive=True),
            ExactDiagnostics("enumerate", log_evidence, log_normaliser),
            _verdict(data.nodes),
        ),
        log_evidence=log_evidence,
        log_normaliser=log_normaliser,
        parent_probabilities=families,
        best=graphs[log_joint.argmax()],
        _source=Listing(graphs, log_probability),
    )


def _edge_marginals(families: Float[np.ndarray, "d s"]) -> Float[np.ndarray, "d d"]:
    """Return `Pr(i -> j)`, summed over the parent sets of j that contain i."""
    return np.clip((families @ members(families.shape[0])).T, 0.0, 1.0)


def _by_layers(
    data: Dataset,
    model: Model,
    prior: GraphPrior,
    stats: Statistics,
    draws: int,
    seed: int,
    progress: bool | None,
) -> ExactPosterior:
    """Return the posterior from the sums over all DAGs, with exact draws."""
    d = data.nodes
    factors = list(log_priors(prior, d))
    evidence = evidence_table(model, stats, d)
    tables = [evidence + part for part in factors]
    families = np.zeros((d, 1 << d))
    with progress_bar(f"exact posterior, {d} nodes", 4 * len(tables) * work(d), progress) as advance:
        passes = [backward_pass(table, advance) for table in tables]
        log_sums = np.array([part.log_normaliser for part in passes])
        log_normaliser = log_sum_exp(log_sums)
        check_mass(log_normaliser)
        for c, share in enumerate(np.exp(log_sums - log_normaliser)):
            if share < NEGLIGIBLE:
                advance(3 * work(d))
            else:
                families += share * family_probabilities(passes[c], advance)
    source = Summation(tables, log_sums - log_normaliser, passes)
    graphs = source.draw(generator(key_from_seed(seed)), draws)
    log_evidence = log_normaliser - _log_sum_of_prior(prior, factors, d)
    diagnostics = ExactDiagnostics("layers", log_evidence, log_normaliser)
    marginals = _edge_marginals(families)
    return posterior_of_sums(data, model, prior, source, graphs, marginals, diagnostics, _verdict(d), families)


def _log_sum_of_prior(prior: GraphPrior, tables: list[Float[np.ndarray, "d s"]], d: int) -> float:
    """Return the log of the prior's sum over all DAGs, given its families by component."""
    known = prior.log_normaliser(d)
    return (
        known if known is not None else log_sum_exp(np.array([backward_pass(table).log_normaliser for table in tables]))
    )


def _check_memory(problem: Problem, limit: float | None, algorithm: str) -> None:
    """Raise if the tables exceed the memory limit in GiB (None: the available memory)."""
    d, available = problem.data.nodes, available_memory() if limit is None else limit

    def needed(size: int) -> float:
        if algorithm == "layers":
            return layers.memory_bytes(size) / 2**30
        return memory_bytes(size, len(problem.prior.components(size))) / 2**30

    if d > LARGEST or needed(d) > available:
        within = [size for size in range(2, LARGEST + 1) if needed(size) <= available]
        raise InputError(
            f"an exact posterior over {d} nodes needs {'over ' if d > 60 else ''}{needed(min(d, 60)):.3g} GiB of "
            f"memory ({available:.3g} GiB available): use at most {max(within, default=5)} columns, or a sampling "
            "method"
        )


def _with_parameters(post: ExactPosterior, stats: Statistics, draws: int, seed: int) -> ExactPosterior:
    """Return draws of graphs, each with an exact draw of its parameters."""
    graphs = post.sample(draws, seed) if isinstance(post._source, Listing) else post.graphs
    keys = jax.random.split(jax.random.fold_in(key_from_seed(seed), 1), draws)
    theta = post.model.draw_thetas(keys, graphs, stats)
    return replace(
        post,
        graphs=graphs,
        log_weights=np.zeros(draws),
        theta=theta,
        log_joint=log_joint_of(graphs, theta, post.model, post.prior, stats),
        record=post.record.with_sampling(exhaustive=False),
    )
