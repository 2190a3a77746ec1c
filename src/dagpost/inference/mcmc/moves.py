"""Moves between DAGs. Each leaves `[p(G) p(D | G)]^heat q(G)^(1 - heat)` invariant, with the sparse reference q of
`scoring.py`; at heat 1 that is the posterior.

* `edge_move` of a pair: two nodes have no edge, i -> j or j -> i; propose one of the other two states, each with
  probability 1/2. The proposal is symmetric, so no neighbourhood sizes are needed. The pair is uniform, or drawn from a
  fixed distribution that prefers nodes which were often adjacent ("near pair").
* `edge_move` to a neighbour: a uniform draw from the DAGs that are one addition, deletion or reversal away, as in MC³.
  Its acceptance ratio contains the sizes of both neighbourhoods; leaving them out is the paper's approximation.
* `parents_move`: redraw all parents of one node from their conditional distribution.
* `reversal_move`: reverse an edge i -> j and redraw the parents of both ends (Grzegorczyk and Husmeier, 2008).
* `exchange_move`: the ends of an edge exchange parents (`exchange.py`).
* `relocation_move`: reverse any number of edges of one node at once (`relocation.py`).

Moves allocate nothing, so that numba need not count references, which took five times as long as the moves themselves.
A move returns ACCEPTED, REJECTED, or MISSING if a family must be scored in Python first; in that case nothing has
changed, random numbers included.
"""

from __future__ import annotations

import numpy as np

from dagpost._util.compiled import njit
from dagpost.inference.mcmc.parent_sets import (
    ACCEPTED,
    MISSING,
    NO_NODE,
    REJECTED,
    accepts,
    below,
    draw_parents,
    near_pair,
    random_pair,
    uniform,
)
from dagpost.inference.mcmc.scoring import score
from dagpost.inference.mcmc.structure import (
    add_edge,
    copy_row,
    count,
    discard,
    has_detour,
    holds,
    insert,
    neighbours,
    remove_edge,
    set_parents,
)


@njit
def _other_state(dag, rng, affinity, is_near):
    """Draw another state of a random pair: an edge i -> j to remove, to add, or (both) to reverse, and whether the
    result is acyclic. The pair is uniform, or two near nodes in random order; no distribution of pairs that does not
    depend on the graph makes the proposal asymmetric."""
    if is_near:
        i, j = near_pair(affinity, rng)
        if uniform(rng) < 0.5:
            i, j = j, i
    else:
        i, j = random_pair(rng, dag.parents.shape[0])
    if holds(dag.parents, i, j):
        i, j = j, i
    removed = holds(dag.parents, j, i)
    added = not removed or uniform(rng) < 0.5
    acyclic = not has_detour(dag, i, j) if removed and added else removed or not holds(dag.ancestors, i, j)
    return i, j, removed, added, acyclic


@njit
def _neighbour(dag, rng):
    """Draw a uniform neighbour: an edge i -> j to remove, to add, or (both) to reverse."""
    while True:  # rejection sampling: uniform over the edits that lead to a DAG
        kind = below(rng, 3)
        i, j = random_pair(rng, dag.parents.shape[0])
        present = holds(dag.parents, j, i)
        if kind == 0 and not present and not holds(dag.ancestors, i, j):
            break
        if kind == 1 and present:
            break
        if kind == 2 and present and not has_detour(dag, i, j):
            break
    return i, j, kind > 0, kind != 1, True


@njit
def edge_move(dag, scores, scorer, cache, temper, rng, scratch, uniform_neighbour, exact, affinity, is_near):
    """Propose to remove an edge, to add it, or to reverse it: another state of a random pair of nodes, or a uniform
    neighbour; `exact` includes the sizes of the neighbourhoods in the acceptance ratio."""
    before = rng[0]
    if uniform_neighbour:
        i, j, removed, added, acyclic = _neighbour(dag, rng)
    else:
        i, j, removed, added, acyclic = _other_state(dag, rng, affinity, is_near)
    if not acyclic:
        return REJECTED
    first, second = scratch.first, scratch.second
    copy_row(first, dag.parents, j)
    if removed:
        discard(first, i)
    else:
        insert(first, i)
    at = score(scorer, cache, j, first, scratch.wanted, scratch.family)
    if at < 0:
        rng[0] = before
        return MISSING
    tempered_j, counted_j = cache.scores[at, 0], cache.scores[at, 1]
    gain = temper.slope * (counted_j - scores[j, 1]) + temper.heat * (tempered_j - scores[j, 0])
    tempered_i = counted_i = 0.0
    turned = removed and added
    if turned:
        copy_row(second, dag.parents, i)
        insert(second, j)
        at = score(scorer, cache, i, second, scratch.wanted, scratch.family)
        if at < 0:
            rng[0] = before
            return MISSING
        tempered_i, counted_i = cache.scores[at, 0], cache.scores[at, 1]
        gain += temper.slope * (counted_i - scores[i, 1]) + temper.heat * (tempered_i - scores[i, 0])
    if exact:
        gain += np.log(neighbours(dag))
    elif not accepts(rng, gain):
        return REJECTED
    if removed:
        remove_edge(dag, i, j)
    if added:
        add_edge(dag, j if turned else i, i if turned else j)
    # q(G | G') / q(G' | G) = |neighbours of G| / |neighbours of G'|
    if exact and not accepts(rng, gain - np.log(neighbours(dag))):
        if added:
            remove_edge(dag, j if turned else i, i if turned else j)
        if removed:
            add_edge(dag, i, j)
        return REJECTED
    scores[j, 0], scores[j, 1] = tempered_j, counted_j
    if turned:
        scores[i, 0], scores[i, 1] = tempered_i, counted_i
    return ACCEPTED


@njit
def _list_allowed(dag, j, allowed):
    """Write the possible parents of j, all nodes but j and its descendants, to `allowed`; return how many."""
    d = dag.parents.shape[0]
    n = 0
    for i in range(d):
        if i != j and not holds(dag.ancestors, i, j):
            allowed[n] = i
            n += 1
    return n


@njit
def parents_move(dag, scores, scorer, cache, temper, rng, scratch, most):
    """Redraw the parents of a random node among sets of at most `most`; a node with more parents is left as it is."""
    before = rng[0]
    j = below(rng, dag.parents.shape[0])
    if count(dag.parents[j]) > most:
        return REJECTED
    new, drawn = scratch.first, scratch.drawn[0]
    n = _list_allowed(dag, j, scratch.allowed)
    known, _ = draw_parents(scorer, cache, j, scratch.allowed, n, NO_NODE, most, temper, rng, scratch, new, drawn)
    if not known:
        rng[0] = before
        return MISSING
    set_parents(dag, j, new)
    copy_row(scores[j], scratch.drawn, 0)
    return ACCEPTED


@njit
def _random_edge(dag, edges, rng):
    """Return a uniform random edge of a DAG with `edges` edges."""
    chosen = below(rng, edges)
    d = dag.parents.shape[0]
    for j in range(d):
        for i in range(d):
            if holds(dag.parents, j, i):
                if chosen == 0:
                    return i, j
                chosen -= 1
    return -1, -1


@njit
def reversal_move(dag, scores, scorer, cache, temper, rng, scratch, most):
    """Reverse a random edge and redraw the parents of its ends; ends with more than `most` parents stay as they are."""
    before = rng[0]
    edges = 0
    for y in range(dag.parents.shape[0]):
        edges += count(dag.parents[y])
    if edges == 0:
        return REJECTED
    i, j = _random_edge(dag, edges, rng)
    if count(dag.parents[i]) > most or count(dag.parents[j]) > most:
        return REJECTED
    new_i, new_j = scratch.first, scratch.second
    nothing, spare, old_i, old_j = scratch.sets[0], scratch.sets[1], scratch.sets[2], scratch.sets[3]
    copy_row(old_i, dag.parents, i)
    copy_row(old_j, dag.parents, j)
    drawn_i, drawn_j, unused = scratch.drawn[0], scratch.drawn[1], scratch.drawn[2]
    own = scratch.own  # the backward proposals need normalisers only: they must not use the chain's random numbers
    allowed = scratch.allowed

    # forward: i gets parents including j; backward: j gets parents including i
    set_parents(dag, i, nothing)
    set_parents(dag, j, nothing)
    n = _list_allowed(dag, i, allowed)
    known_1, forth_i = draw_parents(scorer, cache, i, allowed, n, j, most, temper, rng, scratch, new_i, drawn_i)
    n = _list_allowed(dag, j, allowed)
    known_2, back_j = draw_parents(scorer, cache, j, allowed, n, i, most, temper, own, scratch, spare, unused)
    # forward: then j gets any parents; backward: with j at its old parents, i gets any
    set_parents(dag, i, new_i)
    n = _list_allowed(dag, j, allowed)
    known_3, forth_j = draw_parents(scorer, cache, j, allowed, n, NO_NODE, most, temper, rng, scratch, new_j, drawn_j)
    set_parents(dag, i, nothing)
    set_parents(dag, j, old_j)
    n = _list_allowed(dag, i, allowed)
    known_4, back_i = draw_parents(scorer, cache, i, allowed, n, NO_NODE, most, temper, own, scratch, spare, unused)
    known = known_1 and known_2 and known_3 and known_4

    edges_then = edges + count(new_i) + count(new_j) - count(old_i) - count(old_j)
    ratio = np.log(edges) - np.log(edges_then) + forth_i + forth_j - back_i - back_j
    if known and accepts(rng, ratio):
        set_parents(dag, j, nothing)
        set_parents(dag, i, new_i)
        set_parents(dag, j, new_j)
        copy_row(scores[i], scratch.drawn, 0)
        copy_row(scores[j], scratch.drawn, 1)
        return ACCEPTED
    set_parents(dag, i, old_i)
    if not known:
        rng[0] = before
        return MISSING
    return REJECTED
