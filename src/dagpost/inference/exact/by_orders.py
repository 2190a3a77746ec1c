"""The posterior by way of orders: draws until edge probabilities are precise, and what is known from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from dagpost._util.numerics import generator, key_from_seed, log_sum_exp
from dagpost._util.progress import Advance, progress_bar
from dagpost.errors import FewOrders
from dagpost.inference.exact.families import check_mass, evidence_table, log_priors
from dagpost.inference.exact.orders import Draws, EdgeMeans, Orders, add_edges, draw_orders, graphs_of, order_sums
from dagpost.inference.exact.posterior import ExactPosterior, OrderSums, posterior_of_sums
from dagpost.inference.method import Problem
from dagpost.models import Model, Statistics
from dagpost.posterior.records import ExactDiagnostics, Verdict
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs

ERROR = 0.005
"""Standard error of an edge probability at which drawing ends."""
NEGLIGIBLE = 40.0
"""Components of the prior whose bound is so far below the largest one, in nats, are left out. Even if one in a million
orders is accepted, they have less than 1e-11 of the posterior."""
MOST_PROPOSALS = 50_000_000
"""Orders that are proposed at most."""
LARGEST_DOUBT = 0.02
"""Standard error of an edge probability above which draws are called too few."""


class DrawnOrders(NamedTuple):
    """Orders drawn, and what is known from them."""

    evidence: Float[np.ndarray, "d s"]  # of all families
    sums: list[Orders]  # of each component of the prior that is not negligible
    kept: Draws  # orders that graphs are drawn for
    edges: EdgeMeans  # of all orders
    proposals: int

    @property
    def log_normaliser(self) -> float:
        """Log of the sum over all DAGs."""
        return _log_bound(self.sums) + float(np.log(self.edges.orders / self.proposals))

    def verdict(self) -> Verdict:
        """Say what these draws are, and how precise."""
        error, d = self.edges.error.max(), len(self.edges.mean)
        text = (
            f"exact: {self.edges.orders:,} independent draws from sums over all orders of {d} nodes. Standard error of "
            f"an edge probability at most {error:.3f}."
        )
        return Verdict(text, trusted=bool(error <= LARGEST_DOUBT))

    def diagnostics(self, log_evidence: float | None = None) -> ExactDiagnostics:
        """Return the record of the draws."""
        acceptance, errors = self.edges.orders / self.proposals, self.edges.error.round(6).tolist()
        return ExactDiagnostics("orders", log_evidence, self.log_normaliser, self.edges.orders, acceptance, errors)

    def graphs(self, seed: int) -> Graphs:
        """Return a DAG for each order that was kept."""
        return graphs_of(self.sums, self.kept, generator(jax.random.fold_in(key_from_seed(seed), 2)))


def orders_drawn(problem: Problem, model: Model, stats: Statistics, draws: int) -> DrawnOrders:
    """Return orders drawn until every edge probability has a standard error of at most `ERROR`, or time is up; half of
    it, where too few are accepted even for the draws."""
    prior, d = problem.prior, problem.data.nodes
    half = problem.clock.until(0.5)
    factors, stages = log_priors(prior, d), 1 + (d + 1) * len(prior.components(d)) + 3
    with progress_bar(f"exact draws, {d} nodes", stages, problem.progress) as advance:
        evidence = evidence_table(model, stats, d)
        advance(1)
        sums = _sums_of_components((evidence + part for part in factors), advance)
        check_mass(_log_bound(sums))
        edges, proposals, kept = EdgeMeans.none(d), 0, []
        for found, proposed in draw_orders(sums, generator(key_from_seed(problem.seed))):
            if edges.orders < draws:
                kept.append(found)
            edges, proposals = add_edges(sums, found, edges), proposals + proposed
            precise = edges.error.max() <= ERROR or problem.clock.expired
            hopeless = proposals >= MOST_PROPOSALS or (edges.orders < draws and half.expired)
            if (edges.orders >= draws and precise) or hopeless:
                break
        advance(3)
    if edges.orders < draws:
        raise FewOrders(
            f"only {edges.orders:,} of {proposals:,} orders were accepted, fewer than the {draws:,} draws wanted: use "
            "method='auto' with start='empty', whose chains do without orders"
        )
    first = Draws(*(np.concatenate(part)[:draws] for part in zip(*kept)))
    return DrawnOrders(evidence, sums, first, edges, proposals)


def posterior_by_orders(problem: Problem, model: Model, stats: Statistics, draws: int) -> ExactPosterior:
    """Return independent draws of the posterior; edge probabilities are means over all orders that were drawn."""
    data, prior, drawn = problem.data, problem.prior, orders_drawn(problem, model, stats, draws)
    known = prior.log_normaliser(data.nodes)
    log_evidence = drawn.log_normaliser - (_log_sum_of_prior(prior, data.nodes) if known is None else known)
    source = OrderSums([drawn.evidence + factors for factors in log_priors(prior, data.nodes)], drawn.sums)
    return posterior_of_sums(
        data, model, prior, source, drawn.graphs(problem.seed), drawn.edges.mean, drawn.diagnostics(log_evidence),
        drawn.verdict(),
    )  # fmt: skip


def _sums_of_components(
    tables: Iterable[Float[np.ndarray, "d s"]], advance: Advance = lambda amount: None
) -> list[Orders]:
    """Return the sums over orders for each table, without those that are negligible beside the others."""
    kept: list[Orders] = []
    for table in tables:
        kept.append(order_sums(table, advance))
        most = max(part.log_bound for part in kept)
        kept = [part for part in kept if part.log_bound >= most - NEGLIGIBLE]
    return kept


def _log_bound(sums: list[Orders]) -> float:
    return log_sum_exp(np.array([part.log_bound for part in sums]))


def _log_sum_of_prior(prior: GraphPrior, d: int) -> float:
    """Return the log of the prior's sum over all DAGs, from some ten thousand orders."""
    sums, accepted, proposals = _sums_of_components(log_priors(prior, d)), 0, 0
    for found, proposed in draw_orders(sums, generator(key_from_seed(0))):
        accepted, proposals = accepted + len(found.part), proposals + proposed
        if accepted > 10_000 or proposals > MOST_PROPOSALS:
            break
    return _log_bound(sums) + float(np.log(accepted / proposals))
