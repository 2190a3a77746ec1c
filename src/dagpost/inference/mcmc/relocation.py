"""Relocation move: a node moves to another position in the order of the nodes, reversing any of its edges at once.

A node with many children can have few parents, and vice versa; reversing one edge after the other leads through graphs
of low probability. Let N be the neighbours of j, and G0 the graph without the edges of j. Sort N so that
ancestors in G0 come before their descendants. Wherever this row is cut, the nodes before the cut can be parents of j
and those after it children: an edge from a child back to a parent would contradict the order. The move draws the cut
from its conditional distribution,

    w(cut) = w_j(N before the cut) * prod_(c before) w_c(P_c) * prod_(c after) w_c(P_c + j),

P_c being the parents of c in G0. Order and cuts depend only on G0, N and random numbers, so each of these graphs is
drawn with the same probability from every other: a Gibbs step. A graph that is not among them stays as it is.
"""

from __future__ import annotations

import numpy as np

from dagpost._util.compiled import njit
from dagpost._util.numerics import exponentiate
from dagpost.inference.mcmc.parent_sets import ACCEPTED, MISSING, REJECTED, below, near, next_word, uniform
from dagpost.inference.mcmc.scoring import log_weight, rescore, score
from dagpost.inference.mcmc.structure import (
    add_edge,
    clear,
    copy_row,
    copy_rows,
    count,
    has,
    holds,
    insert,
    remove_edges,
)


@njit
def relocation_move(dag, scores, scorer, cache, temper, rng, scratch, affinity):
    """Make one relocation move; it counts as accepted if an edge is reversed. The node is drawn by its weight, if the
    affinity is one of these nodes."""
    before = rng[0]
    d = dag.parents.shape[0]
    j = near(affinity, d, rng) if affinity.share.shape[1] == d else below(rng, d)
    by_ancestors = uniform(rng) < 0.5
    ties = next_word(rng)
    parents, others = scratch.sets[5], scratch.sets[6]
    copy_row(parents, dag.parents, j)
    clear(others)
    for c in range(d):
        if holds(dag.parents, c, j):
            insert(others, c)
    n_parents = count(parents)
    n = n_parents + count(others)
    if n == 0:
        return REJECTED
    before_parents, before_ancestors = scratch.saved[0], scratch.saved[1]
    copy_rows(before_parents, dag.parents)
    copy_rows(before_ancestors, dag.ancestors)
    remove_edges(dag, j)  # from here on the DAG is G0
    row = scratch.allowed
    _sort(dag, parents, others, row, scratch.chosen, by_ancestors, ties)
    is_cut = True
    for a in range(n):
        is_cut = is_cut and has(parents, row[a]) == (a < n_parents)
    known = is_cut and _weigh(dag, scorer, cache, temper, j, row, n, scratch)
    if not known:
        copy_rows(dag.parents, before_parents)
        copy_rows(dag.ancestors, before_ancestors)
        if is_cut:
            rng[0] = before
        return MISSING if is_cut else REJECTED
    cut = _draw(scratch.cuts, n, rng)
    if cut == n_parents:
        copy_rows(dag.parents, before_parents)
        copy_rows(dag.ancestors, before_ancestors)
        return REJECTED
    clear(parents)
    clear(others)
    for a in range(n):
        insert(parents if a < cut else others, row[a])
    _place(dag, j, row, n, parents, others)
    rescore(dag, scores, scorer, cache, j, scratch)
    for a in range(min(cut, n_parents), max(cut, n_parents)):
        rescore(dag, scores, scorer, cache, row[a], scratch)
    return ACCEPTED


@njit
def _sort(dag, parents, others, row, keys, by_ancestors, ties):
    """Write the neighbours to `row`: ancestors first (fewer ancestors, more descendants), ties at random."""
    d = dag.parents.shape[0]
    n = 0
    for y in range(d):
        if not has(parents, y) and not has(others, y):
            continue
        key = 0
        for x in range(d):
            if by_ancestors:
                key += holds(dag.ancestors, y, x)
            else:
                key -= holds(dag.ancestors, x, y)
        mixed = (ties ^ np.uint64(y + 1)) * np.uint64(0xBF58476D1CE4E5B9)
        key = key * 65536 + np.int64(mixed >> np.uint64(48))
        at = n
        while at > 0 and (keys[at - 1] > key or (keys[at - 1] == key and row[at - 1] > y)):
            row[at], keys[at] = row[at - 1], keys[at - 1]
            at -= 1
        row[at], keys[at] = y, key
        n += 1


@njit
def _place(dag, j, row, n, parents, others):
    """Add the edges of j: from its parents and to the others."""
    for a in range(n):
        if has(parents, row[a]):
            add_edge(dag, row[a], j)
    for a in range(n):
        if has(others, row[a]):
            add_edge(dag, j, row[a])


@njit
def _weigh(dag, scorer, cache, temper, j, row, n, scratch):
    """Write the log weights of all cuts; return False if Python has to score a family first."""
    cuts, words = scratch.cuts, scratch.sets[4]
    for cut in range(n + 1):
        cuts[cut] = 0.0
    clear(words)
    for cut in range(n + 1):
        known, weight = _weight(scorer, cache, temper, j, words, scratch)
        if not known:
            return False
        cuts[cut] += weight
        if cut < n:
            insert(words, row[cut])
    for a in range(n):
        copy_row(words, dag.parents, row[a])
        known, without = _weight(scorer, cache, temper, row[a], words, scratch)
        if not known:
            return False
        insert(words, j)
        known, with_j = _weight(scorer, cache, temper, row[a], words, scratch)
        if not known:
            return False
        for cut in range(n + 1):
            cuts[cut] += without if a < cut else with_j
    return True


@njit
def _weight(scorer, cache, temper, node, words, scratch):
    """Return whether the family's score is known, and its log weight."""
    at = score(scorer, cache, node, words, scratch.wanted, scratch.family)
    if at < 0:
        return False, 0.0
    return True, log_weight(cache, at, temper)


@njit
def _draw(cuts, n, rng):
    """Draw a cut with probability proportional to its weight; that of the current graph is always positive."""
    exponentiate(cuts, n + 1)
    total = 0.0
    for cut in range(n + 1):
        total += cuts[cut]
    left = uniform(rng) * total
    chosen = -1
    for cut in range(n + 1):
        if cuts[cut] > 0:
            chosen = cut
            left -= cuts[cut]
            if left < 0:
                break
    return chosen
