"""Exchange of graphs, or of regions of graphs, between neighbouring levels of a ladder.

Levels k and k + 1 hold the DAGs A and B. The target of both together, a product over levels and over families, is left
invariant by exchanging the families of any set R of nodes, A_j ↔ B_j for j in R, if both graphs remain acyclic, with
the acceptance ratio

    log r = sum over j in R of  w_k(B_j) + w_(k+1)(A_j) - w_k(A_j) - w_(k+1)(B_j),

w_k being the log weight of a family at level k, provided that R is chosen by the unordered pairs {A_j, B_j} alone,
which are the same afterwards. With whole graphs log r sums over all nodes at which levels differ, so that a ladder
needs about as many levels as the square root of the number of nodes, and every level costs as much as the recorded one.
Regions are exchanged one by one. Two sweeps differ in what belongs together, among the nodes whose families differ:

* the ends of edges that are reversed from A to B (exchanging one end alone would lose or duplicate the edge);
* the ends of all edges by which A and B differ; larger regions, for cases in which smaller ones leave a cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dagpost._util.compiled import njit
from dagpost.inference.mcmc.parent_sets import accepts
from dagpost.inference.mcmc.scoring import temper_of
from dagpost.inference.mcmc.structure import ONE, Structure, copy_row, has, holds, lowest, set_parents


class SwapScratch(NamedTuple):
    """Memory of the exchange of regions."""

    region: np.ndarray  # (d,) the smallest node of the region that a node belongs to
    before: np.ndarray  # (2, d, words) parents at both levels before an exchange
    words: np.ndarray  # (2, words) a set, and scratch of the structures


@njit
def swap_scratch(d, words):
    """Return scratch memory for graphs of d nodes."""
    return SwapScratch(np.zeros(d, np.int64), np.zeros((2, d, words), np.uint64), np.zeros((2, words), np.uint64))


@njit
def swap_regions(ensemble, scorer, heats, parity, scratch):
    """Exchange regions between levels k and k + 1 for every other k: one sweep for each rule of what belongs together.

    Counters have the Metropolis acceptance of the smaller regions, apart from cycles: it tells how far apart the heats
    are. Cycles depend on the graphs alone.
    """
    d = ensemble.parents.shape[1]
    for k in range(parity, heats.shape[0] - 1, 2):
        cold = temper_of(scorer, heats[k], ensemble.component[k])
        hot = temper_of(scorer, heats[k + 1], ensemble.component[k + 1])
        for reversed_only in range(2):
            _find_regions(ensemble.parents, k, reversed_only == 1, scratch.region)
            for r in range(d):
                if scratch.region[r] != r:
                    continue
                log_ratio = 0.0
                for j in range(r, d):
                    if scratch.region[j] == r:
                        tempered = ensemble.scores[k + 1, j, 0] - ensemble.scores[k, j, 0]
                        counted = ensemble.scores[k + 1, j, 1] - ensemble.scores[k, j, 1]
                        log_ratio += (cold.heat - hot.heat) * tempered + (cold.slope - hot.slope) * counted
                if reversed_only == 1:
                    ensemble.swaps_tried[k] += 1
                    ensemble.swaps_accepted[k] += np.exp(min(0.0, log_ratio))
                if accepts(ensemble.rng, log_ratio):
                    _exchange(ensemble, k, r, scratch)


@njit
def _find_regions(parents, k, reversed_only, region):
    """Write the region of every node at which levels k and k + 1 differ, -1 for the others."""
    d, words = parents.shape[1:]
    for j in range(d):
        region[j] = -1
        for w in range(words):
            if parents[k, j, w] != parents[k + 1, j, w]:
                region[j] = j
    for j in range(d):
        if region[j] < 0:
            continue
        for w in range(words):
            left = parents[k, j, w] ^ parents[k + 1, j, w]
            while left:
                i = 64 * w + lowest(left)
                left &= left - ONE
                if region[i] < 0:
                    continue
                if reversed_only and has(parents[k, i], j) == has(parents[k + 1, i], j):
                    continue
                one, two = _root(region, i), _root(region, j)
                region[max(one, two)] = min(one, two)
    for j in range(d):
        if region[j] >= 0:
            region[j] = _root(region, j)


@njit
def _root(region, j):
    """Return the smallest node of a region: links lead to smaller nodes."""
    while region[j] != j:
        j = region[j]
    return j


@njit
def _exchange(ensemble, k, r, scratch):
    """Exchange the families of region r between levels k and k + 1, unless one of the graphs would have a cycle."""
    region, before, words = scratch.region, scratch.before, scratch.words[0]
    cold = Structure(ensemble.parents[k], ensemble.ancestors[k], scratch.words[1])
    hot = Structure(ensemble.parents[k + 1], ensemble.ancestors[k + 1], scratch.words[1])
    d = region.shape[0]
    for j in range(r, d):
        if region[j] == r:
            copy_row(before[0, j], cold.parents, j)
            copy_row(before[1, j], hot.parents, j)
    if not _replace_families(cold, before[1], r, region, words):
        _replace_families(cold, before[0], r, region, words)
        return
    if not _replace_families(hot, before[0], r, region, words):
        _replace_families(hot, before[1], r, region, words)
        _replace_families(cold, before[0], r, region, words)
        return
    for j in range(r, d):
        if region[j] == r:
            for part in range(2):
                score = ensemble.scores[k, j, part]
                ensemble.scores[k, j, part] = ensemble.scores[k + 1, j, part]
                ensemble.scores[k + 1, j, part] = score


@njit
def _replace_families(dag, parents, r, region, words):
    """Give the nodes of region r these parents; stop at an edge that would close a cycle, and return False then."""
    d = parents.shape[0]
    for j in range(r, d):
        if region[j] == r:
            for w in range(words.shape[0]):
                words[w] = dag.parents[j, w] & parents[j, w]
            set_parents(dag, j, words)
    for j in range(r, d):
        if region[j] == r:
            for w in range(words.shape[0]):
                left = parents[j, w] & ~dag.parents[j, w]
                while left:
                    if holds(dag.ancestors, 64 * w + lowest(left), j):
                        return False
                    left &= left - ONE
            copy_row(words, parents, j)
            set_parents(dag, j, words)
    return True
