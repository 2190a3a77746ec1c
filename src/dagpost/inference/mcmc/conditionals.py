"""Probabilities of edges given the rest of the graph, averaged over draws.

A chain that made 10,000 rounds has seen an edge of probability 1e-5 once or never. Its conditional probability given
all other edges is known at every draw: a pair of nodes has three states, no edge and two directions, and their weights
differ in the scores of two families. The mean over draws has the same expectation as the edge's frequency, and ranks
edges that were never drawn (Rao and Blackwell).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import Float

from dagpost._util.compiled import njit
from dagpost._util.environment import available_cores
from dagpost.inference.mcmc.scoring import Scorer, empty_cache, log_weight_of_edges, score, scoring_scratch
from dagpost.inference.mcmc.structure import (
    Structure,
    clear,
    copy_row,
    discard,
    has_detour,
    holds,
    insert,
    structure_of,
)
from dagpost.typing import Graphs

RARE = 0.05
"""Edges with a smaller frequency get the mean of their conditional probabilities."""
MOST_FAMILIES = 2_000_000
"""Families that are scored, about: draws times pairs of nodes."""
DRAWS = (50, 2000)
"""Fewest and most draws that are used."""


@njit(nogil=True)
def _add_conditionals(parents, ancestors, scorer, cache, sums):
    """Add the conditional probabilities of every edge given one DAG to `sums` (d, d)."""
    d, words = parents.shape
    dag = Structure(parents, ancestors, np.zeros(parents.shape[1], np.uint64))
    wanted, family = np.zeros(1 + words, np.uint64), np.zeros(words, np.uint64)
    scratch = scoring_scratch(scorer)
    here = np.zeros((d, 2))
    changed = np.zeros((d, d, 2))  # score of j with the edge i -> j toggled
    for j in range(d):
        for i in range(-1, d):
            if i == j:
                continue
            clear(family)
            copy_row(family, parents, j)
            if i >= 0:
                if holds(parents, j, i):
                    discard(family, i)
                else:
                    insert(family, i)
            at = score(scorer, cache, j, family, wanted, scratch)
            if i < 0:
                copy_row(here[j], cache.scores, at)
            else:
                copy_row(changed[i, j], cache.scores, at)
    edges = here[:, 1].sum()
    base = log_weight_of_edges(scorer, edges)
    for a in range(d):
        for b in range(a + 1, d):
            i, j = (b, a) if holds(parents, a, b) else (a, b)  # an edge between them is i -> j
            joined = holds(parents, j, i)
            toggled = changed[i, j, 0] - here[j, 0]
            counted = changed[i, j, 1] - here[j, 1]
            added = changed[j, i, 0] - here[i, 0]  # by j -> i
            also = changed[j, i, 1] - here[i, 1]
            if joined:
                none = toggled + log_weight_of_edges(scorer, edges + counted) - base
                forth = 0.0
                back = -np.inf
                if not has_detour(dag, i, j):
                    back = toggled + added + log_weight_of_edges(scorer, edges + counted + also) - base
            else:
                none = 0.0
                forth = -np.inf
                back = -np.inf
                if not holds(ancestors, i, j):
                    forth = toggled + log_weight_of_edges(scorer, edges + counted) - base
                if not holds(ancestors, j, i):
                    back = added + log_weight_of_edges(scorer, edges + also) - base
            largest = max(none, forth, back)
            none, forth, back = np.exp(none - largest), np.exp(forth - largest), np.exp(back - largest)
            total = none + forth + back
            sums[i, j] += forth / total
            sums[j, i] += back / total


def conditional_probabilities(graphs: Graphs, scorer: Scorer) -> Float[np.ndarray, "d d"]:
    """Return the mean over DAGs of the probability of each edge given the rest of the graph.

    Parameters
    ----------
    graphs
        Draws from the posterior, (m, d, d).
    scorer
        Compiled scores of families.
    """
    m, d, _ = graphs.shape
    threads = min(4, m)

    def part(t: int) -> np.ndarray:
        sums, cache = np.zeros((d, d)), empty_cache(d, 1 << 16)
        for graph in graphs[t::threads]:
            dag = structure_of(graph)
            _add_conditionals(dag.parents, dag.ancestors, scorer, cache, sums)
        return sums

    with ThreadPoolExecutor(min(threads, available_cores())) as pool:
        return np.sum(list(pool.map(part, range(threads))), axis=0) / m


def draws_used(d: int) -> int:
    """Return how many draws `with_rare_edges` uses at most, each of which takes d² families."""
    return int(np.clip(MOST_FAMILIES / d**2, *DRAWS))


def with_rare_edges(frequencies: Float[np.ndarray, "d d"], graphs: Graphs, scorer: Scorer) -> Float[np.ndarray, "d d"]:
    """Return edge probabilities: frequencies, and for rare edges their mean conditional probabilities.

    Parameters
    ----------
    frequencies
        Of edges in all rounds of the chains.
    graphs
        Draws from the posterior, (m, d, d).
    scorer
        Scores of families; frequencies are returned as they are if it is not compiled.
    """
    m, d, _ = graphs.shape
    if not scorer.compiled:
        return frequencies
    chosen = np.linspace(0, m - 1, min(m, draws_used(d))).round().astype(int)
    return np.where(frequencies < RARE, conditional_probabilities(graphs[chosen], scorer), frequencies)
