"""Family scores inside compiled loops, for any model with evidence and any prior that decomposes.

Gaussian families with a prior in closed form are scored by the loop itself. For everything else the loop stops at a
family it does not know, notes it in `wanted`, and Python fills the cache and lets it go on: every family is scored
once, whoever scores it.

A score is a pair: what tempering flattens, and what it leaves. Level k of a ladder samples `[p(G) p(D | G)]^heat
q(G)^(1 - heat)`, where the reference q makes parents as rare as the Erdős–Rényi prior with two edges for each node.
Without it a prior that does not mind parents (uniform, scale-free) would fill the hot levels with dense graphs, dear to
score and of no use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numba import njit

from dagpost.errors import InputError
from dagpost.inference.mcmc.bitsets import copy_row, has, holds, members, packed
from dagpost.inference.mcmc.families import find, store
from dagpost.models import Model, Statistics
from dagpost.models.conjugate import ConjugateTable, evidence_with
from dagpost.priors import ErdosRenyi, GraphPrior
from dagpost.priors.base import ColumnTable

Score = tuple[float, float]  # log of p(G_j) p(D_j | G_j) / q(G_j), log of q(G_j)


class Scorer(NamedTuple):
    """What a compiled loop needs to score a family; `compiled` is False where Python has to."""

    table: ConjugateTable
    by_count: np.ndarray  # (d, d) log prior of a node by its number of parents
    by_edge: np.ndarray  # (d, d) what the edge i -> j adds
    uncounted: np.ndarray  # (d, words) parents that do not count
    required: np.ndarray  # (d, words) parents that must be there
    most: int  # parents of one node
    reference: float  # what a parent adds to log q
    compiled: bool


class Scoring(NamedTuple):
    """A compiled scorer, and the function that scores what it cannot."""

    scorer: Scorer
    in_python: Callable[[int, np.ndarray], Score]


@njit(cache=True, inline="always")
def score(scorer, cache, j, words, wanted, parents, lower):
    """Slot of the family's score in the cache, or -1 if Python has to score it first.

    `parents` (d) and `lower` (d, d) are scratch.
    """
    at, known = find(cache, j, words)
    return at if known else _score_anew(scorer, cache, j, words, wanted, parents, lower)


@njit(cache=True, inline="always")
def log_weight(cache, at, heat):
    """Of the family in this slot, at a level of this heat; -inf if its prior rules it out."""
    return heat * cache.scores[at, 0] + cache.scores[at, 1] if cache.scores[at, 1] > -np.inf else -np.inf


@njit(cache=True)
def rescore(dag, scores, scorer, cache, node, scratch):
    """Note the score of the parents that a node has now, a family that the loop can score or knows."""
    words = scratch.sets[4]
    copy_row(words, dag.parents, node)
    at = score(scorer, cache, node, words, scratch.wanted, scratch.parents, scratch.lower)
    copy_row(scores[node], cache.scores, at)


@njit(cache=True)
def _score_anew(scorer, cache, j, words, wanted, parents, lower):
    if not scorer.compiled:
        wanted[0] = np.uint64(j + 1)
        wanted[1:] = words
        return -1
    p = 0
    counted = 0
    prior = 0.0
    for i in range(parents.shape[0]):
        if has(words, i):
            parents[p] = i
            prior += scorer.by_edge[i, j]
            counted += not holds(scorer.uncounted, j, i)
            p += 1
    prior += scorer.by_count[j, counted]
    if p > scorer.most:
        prior = -np.inf
    for w in range(words.shape[0]):
        if scorer.required[j, w] & ~words[w]:
            prior = -np.inf
    if prior == -np.inf:
        return store(cache, j, words, -np.inf, -np.inf)
    reference = scorer.reference * p
    evidence = evidence_with(scorer.table, j, parents, p, lower)
    return store(cache, j, words, evidence + prior - reference, reference)


def scorer_for(model: Model, prior: GraphPrior, stats: Statistics, d: int) -> Scoring:
    """How to score families of this model under this prior."""
    if not model.has_evidence:
        raise InputError(f"the model {model.name!r} has no closed-form evidence, so no MCMC over graphs alone")
    if not prior.decomposes:
        raise InputError(f"the prior {prior.name!r} does not decompose by column, so no MCMC over graphs")
    table, columns = model.evidence_table(stats), prior.column_table(d)
    compiled = table is not None and columns is not None
    if columns is None:
        columns = ColumnTable(np.zeros((d, d)), np.zeros((d, d)))
    uncounted, required = (
        packed(np.zeros((d, d), dtype=np.bool_) if edges is None else edges)
        for edges in (columns.uncounted, columns.required)
    )
    most = d if columns.most is None else columns.most
    probability = ErdosRenyi().edge_probability(d)
    per_parent = float(np.log(probability) - np.log1p(-probability))
    scorer = Scorer(
        table if table is not None else _no_table(d), columns.by_count, columns.by_edge, uncounted, required, most,
        per_parent, compiled,
    )  # fmt: skip

    def in_python(node: int, words: np.ndarray) -> Score:
        parents = members(words, d)
        with jax.enable_x64(True):
            column = jnp.zeros(d).at[parents].set(1.0)
            log_prior = float(prior.log_column(column, node))
        if log_prior == -np.inf:
            return -np.inf, -np.inf
        reference = per_parent * len(parents)
        return model.log_evidence(node, parents, stats) + log_prior - reference, reference

    return Scoring(scorer, in_python)


def _no_table(d: int) -> ConjugateTable:
    """Stands in where the model has no compiled evidence; never read."""
    return ConjugateTable(
        matrix=np.zeros((1, d, d)), prior_matrix=np.zeros((d, d)), diagonal_prior=True, floor=0.0,
        constant=np.zeros((1, d)), power=np.zeros((1, d)), prior_power=np.zeros(d),
        offset=0.0, scale=0.0, linear=0.0, group=np.zeros(d, np.int64),
    )  # fmt: skip
