"""Family scores and their cache for compiled loops, for any model with evidence and any prior that decomposes.

A family is a node and its set of parents. Gaussian and categorical families with a tabulated prior are scored by the
compiled loop itself. For everything else the loop stops at a family that is not in the cache, writes it to `wanted` and
continues once Python has stored its score. The cache is one open-addressed hash table.

Level k of a ladder samples `[p(G) p(D | G)]^heat q(G)^(1 - heat)`, where the reference `log q = reference * |G|` makes
parents as rare as the Erdős–Rényi prior with two edges per node. Without it, a prior that does not penalise parents
(uniform, scale-free) would fill the hot levels with dense graphs, which are expensive to score and useless.
A score is a pair: `log p(G_j) p(D_j | G_j) / q(G_j)`, which is tempered, and the number n_j of counted parents, so that
the log weight of a family is `heat * tempered + slope * n_j` with `slope = reference`.

A prior may be a mixture `p(G) = sum_c exp(log_weight_c) p_c(G)` of priors that decompose and differ by a factor
`exp(tilt_c * |G|)`. Then a chain samples `(G, c)`: given c it has `slope = reference + heat * tilt_c`, and c is
redrawn given the number of edges (`draw_component`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dagpost._util.compiled import njit
from dagpost._util.numerics import log_add
from dagpost.errors import InputError
from dagpost.inference.mcmc.structure import ONE, copy_row, holds, lowest, members, pack_parents, words_for
from dagpost.models import Model, Statistics
from dagpost.models.conjugate import ConjugateTable, FamilyScratch, evidence_with, family_scratch, no_table
from dagpost.models.counts import CountScratch, CountTable, count_evidence, count_scratch, no_counts
from dagpost.models.family_table import listed_evidence
from dagpost.models.integrated import Integrated
from dagpost.models.set_evidence import SetTable, evidence_over_sets, no_sets
from dagpost.priors import ErdosRenyi, GraphPrior
from dagpost.priors.base import ColumnTable, Component, family_prior


class FamilyCache(NamedTuple):
    """Family-score cache: keys (node + 1, parents) beside their values in one block of memory, for locality.

    A first word of 0 marks a free slot. The number of slots is a power of two.
    """

    keys: np.ndarray  # (slots, 1 + words)
    scores: np.ndarray  # (slots, 2)
    used: np.ndarray  # (1,)


def empty_cache(d: int, slots: int | None = None) -> FamilyCache:
    """Return an empty cache; `slots` must be a power of two. Small tables are faster."""
    if slots is None:
        slots = 1 << min(18, d + int(d).bit_length())
    words = words_for(d)
    memory = np.zeros((slots, 3 + words), np.uint64)
    return FamilyCache(memory[:, : 1 + words], memory.view(np.float64)[:, 1 + words :], np.zeros(1, np.int64))


@njit(inline="always")
def _hash(node, parents):
    """Return a multiplicative hash of node and parents."""
    h = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(parents.shape[0]):
        h ^= parents[w]
        h *= np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return h


@njit(inline="always")
def find(cache, node, parents):
    """Return the slot of a family, and whether its score is there."""
    mask = np.uint64(cache.keys.shape[0] - 1)
    slot = _hash(node, parents) & mask
    while True:
        at = np.int64(slot)
        if cache.keys[at, 0] == 0:
            return at, False
        if cache.keys[at, 0] == np.uint64(node + 1):
            same = True
            for w in range(parents.shape[0]):
                if cache.keys[at, 1 + w] != parents[w]:
                    same = False
                    break
            if same:
                return at, True
        slot = (slot + np.uint64(1)) & mask


@njit
def store(cache, node, parents, tempered, counted):
    """Store a score and return its slot. A table that is three quarters full is emptied first: lookups stay short."""
    if 4 * cache.used[0] >= 3 * cache.keys.shape[0]:
        cache.keys[:, 0] = 0
        cache.used[0] = 0
    at, known = find(cache, node, parents)
    cache.keys[at, 0] = node + 1
    cache.keys[at, 1:] = parents
    cache.scores[at, 0] = tempered
    cache.scores[at, 1] = counted
    if not known:
        cache.used[0] += 1
    return at


Score = tuple[float, float]  # log of p(G_j) p(D_j | G_j) / q(G_j), number of counted parents


class Temper(NamedTuple):
    """How a chain weighs the two parts of a score."""

    heat: float
    slope: float


class Scorer(NamedTuple):
    """What a compiled loop needs to score a family; with `compiled` False, Python scores it."""

    table: ConjugateTable
    by_count: np.ndarray  # (d, d) log prior of a node by its number of parents
    by_edge: np.ndarray  # (d, d) log prior that the edge i -> j adds
    uncounted: np.ndarray  # (d, words) parents left out of the number of parents
    required: np.ndarray  # (d, words) parents that must be present
    most: int  # parents of a node
    reference: float  # added to log q by each counted parent
    tilts: np.ndarray  # (c,) log prior that each counted edge adds, by component of the prior
    log_weights: np.ndarray  # (c,) of the components
    compiled: bool
    place: np.ndarray  # (d, d) of candidates in codes of families (`FamilyTable`); of shape (0, 0) without such a table
    listed: np.ndarray  # (d, sets) log evidence by code
    counts: CountTable  # rows of categorical data; none for other models
    sets: SetTable  # sets of conditions that may change a mechanism; none without conditions


class ScoringScratch(NamedTuple):
    """Memory for scoring a family."""

    gaussian: FamilyScratch
    counts: CountScratch


@njit
def scoring_scratch(scorer):
    """Return memory for scoring families."""
    return ScoringScratch(family_scratch(scorer.table), count_scratch(scorer.counts))


class Scoring(NamedTuple):
    """A compiled scorer, and the Python function that scores what it cannot."""

    scorer: Scorer
    in_python: Callable[[int, np.ndarray], Score]


@njit(inline="always")
def score(scorer, cache, j, words, wanted, scratch):
    """Return the slot of the family's score in the cache, or -1 if Python has to score it first."""
    at, known = find(cache, j, words)
    return at if known else _score_uncached(scorer, cache, j, words, wanted, scratch)


@njit(inline="always")
def log_weight(cache, at, temper):
    """Return the log weight of the family in this slot; -inf if the prior rules it out."""
    tempered = cache.scores[at, 0]
    return temper.heat * tempered + temper.slope * cache.scores[at, 1] if tempered > -np.inf else -np.inf


@njit(inline="always")
def temper_of(scorer, heat, component):
    """Return how a chain at this heat and component weighs scores."""
    return Temper(heat, scorer.reference + heat * scorer.tilts[component])


@njit
def log_density(scorer, scores, component):
    """Return `log p(G) p(D | G) / q(G)` of a DAG from its family scores (d, 2), jointly with a component."""
    out = scorer.log_weights[component]
    for j in range(scores.shape[0]):
        out += scores[j, 0] + scorer.tilts[component] * scores[j, 1]
    return out


@njit
def log_weight_of_edges(scorer, edges):
    """Return what the number of counted edges adds to the log posterior, summed over components."""
    out = -np.inf
    for c in range(scorer.tilts.shape[0]):
        out = log_add(out, scorer.log_weights[c] + scorer.tilts[c] * edges)
    return out + scorer.reference * edges


@njit
def log_posterior(scorer, scores):
    """Return the unnormalised log posterior of a DAG from its family scores."""
    out = edges = 0.0
    for j in range(scores.shape[0]):
        out += scores[j, 0]
        edges += scores[j, 1]
    return out + log_weight_of_edges(scorer, edges)


@njit
def rescore(dag, scores, scorer, cache, node, scratch):
    """Update the score of a node from its current parents, a family that is in the cache or compiled."""
    words = scratch.sets[4]
    copy_row(words, dag.parents, node)
    at = score(scorer, cache, node, words, scratch.wanted, scratch.family)
    copy_row(scores[node], cache.scores, at)


@njit
def _score_uncached(scorer, cache, j, words, wanted, scratch):
    """Score a family that is not in the cache and return its slot; or write it to `wanted` and return -1."""
    if not scorer.compiled:
        wanted[0] = np.uint64(j + 1)
        wanted[1:] = words
        return -1
    parents = scratch.gaussian.parents
    p = counted = np.int64(0)
    prior = 0.0
    for w in range(words.shape[0]):
        left = words[w]
        while left:
            i = 64 * w + lowest(left)
            left &= left - ONE
            parents[p] = i
            p += 1
            prior += scorer.by_edge[i, j]
            counted += not holds(scorer.uncounted, j, i)
        if scorer.required[j, w] & ~words[w]:
            prior = -np.inf
    prior += scorer.by_count[j, counted]
    if p > scorer.most:
        prior = -np.inf
    if prior == -np.inf:
        return store(cache, j, words, -np.inf, counted)
    if scorer.place.shape[0] > 0:
        evidence = listed_evidence(scorer.place, scorer.listed, j, parents, p)
    elif scorer.sets.members.shape[0] > 0:
        evidence = evidence_over_sets(
            scorer.table, scorer.counts, scorer.sets, j, parents, p, scratch.gaussian, scratch.counts
        )
    elif scorer.counts.weights.shape[0] > 0:
        evidence = count_evidence(scorer.counts, j, parents, p, scratch.counts)
    else:
        evidence = evidence_with(scorer.table, j, parents, p, scratch.gaussian.columns, scratch.gaussian.lower)
    return store(cache, j, words, evidence + prior - scorer.reference * counted, counted)


def scorer_for(model: Model, prior: GraphPrior, stats: Statistics, d: int) -> Scoring:
    """Return how to score families of this model under this prior."""
    if not model.has_evidence:
        raise InputError(
            f"the model {model.name!r} has no closed-form evidence, which MCMC over graphs needs: "
            "use 'dibs', 'm-mc3' or 'g-mc3'"
        )
    mixture = prior.components(d)
    if not mixture:
        raise InputError(
            f"the prior {prior.name!r} does not decompose by column, which MCMC over graphs needs: use 'dibs'"
        )
    first = mixture[0].prior  # the one that families are scored with
    (table, counts, sets), columns = model.compiled_tables(stats), first.column_table(d)
    listed = model.table if isinstance(model, Integrated) else None
    compiled = (columns is not None and (table is not None or counts is not None)) or listed is not None
    if columns is None:
        columns = ColumnTable(np.zeros((d, d)), np.zeros((d, d)))
    uncounted, required = (
        pack_parents(np.zeros((d, d), dtype=np.bool_) if edges is None else edges)
        for edges in (columns.uncounted, columns.required)
    )
    most = d if columns.most is None else columns.most
    probability = ErdosRenyi().edge_probability(d)
    reference = float(np.log(probability) - np.log1p(-probability))
    tilts, weights = _tilts(mixture, d)
    scorer = Scorer(
        table if table is not None else no_table(d), columns.by_count, columns.by_edge, uncounted, required,
        most, reference, tilts, weights, compiled,
        *(listed if listed is not None else (np.zeros((0, 0), np.int64), np.zeros((0, 0)))),
        no_counts(d) if counts is None else counts, no_sets(d) if sets is None else sets,
    )  # fmt: skip

    return Scoring(scorer, ScoreInPython(model, first, stats, columns, reference, d))


class ScoreInPython:
    """Function that scores a family: node and words of its parents. Other processes get what it is made of."""

    def __init__(
        self, model: Model, prior: GraphPrior, stats: Statistics, columns: ColumnTable, reference: float, d: int
    ):
        self.parts = (model, prior, stats, columns, reference, d)
        self.log_factor = family_prior(prior, d)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.parts

    def __call__(self, node: int, words: np.ndarray) -> Score:
        model, _, stats, columns, reference, d = self.parts
        parents = members(words, d)
        counted, log_prior = columns.counted(node, parents), self.log_factor(node, parents)
        if log_prior == -np.inf:
            return -np.inf, counted
        return model.log_evidence(node, parents, stats) + log_prior - reference * counted, counted


def _tilts(mixture: Sequence[Component], d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what each counted edge adds to the log density of each component, relative to the first, and the log
    weight of each component."""
    tables = [component.prior.column_table(d) for component in mixture]
    tilts, weights = np.zeros(len(mixture)), np.array([component.log_weight for component in mixture])
    for c in range(1, len(mixture)):
        this, first = tables[c], tables[0]
        assert this is not None and first is not None, "components of a mixture have tables"
        difference = this.by_count - first.by_count
        tilts[c] = difference[0, 1] - difference[0, 0]
        weights[c] += difference[:, 0].sum()
        linear = difference[:, :1] + tilts[c] * np.arange(d)
        assert np.allclose(difference, linear) and np.array_equal(this.by_edge, first.by_edge)
    return tilts, weights
