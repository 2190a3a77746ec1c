"""Block move: redraw all edges into a few nodes S from these nodes and a pool B, given everything else.

The orientation of densely connected nodes is what single edges, or two nodes at a time, change slowest: turning one edge
means exchanging parents, and that turns others. Here up to `NODES` nodes S and up to `POOL` possible parents B are drawn
from a fixed distribution (`Affinity`) that does not depend on the graph, and the edges from S and B into S are drawn from
their conditional distribution: a Gibbs step, nothing is rejected.

Let G0 be the graph without those edges. A set of parents of j in S brings j below the members of S that are in it or
are ancestors in G0 of j or of one of its members; call them E. With edges into S alone changed, the new graph is acyclic
if and only if the relation "s in E_j" on S is: every piece of a cycle between two visits to S ends with a parent whose
ancestors in G0 include the former. So with

    W_j(E) = sum of w_j(P) over the sets of parents P that bring j below exactly E,

the relation is drawn in proportion to `prod_j W_j(E_j)` among the DAGs on S (543 on four nodes), and then the parents of
each j among the sets that bring it below E_j.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from dagpost._util.compiled import njit
from dagpost._util.numerics import exponentiate
from dagpost.inference.mcmc.parent_sets import ACCEPTED, MISSING, NODES, POOL, REJECTED, near, uniform
from dagpost.inference.mcmc.scoring import log_weight, rescore, score
from dagpost.inference.mcmc.structure import copy_row, discard, find_ancestors, holds, insert, lowest



def _acyclic(above: tuple[int, ...]) -> bool:
    """Return whether a relation is acyclic, given the predecessors of every node as bits."""
    left = set(range(len(above)))
    while first := {s for s in left if not any(above[s] >> t & 1 for t in left)}:
        left -= first
    return not left


RELATIONS = np.array([above for above in product(range(1 << NODES), repeat=NODES) if _acyclic(above)])
"""All DAGs on `NODES` nodes: the predecessors of every node as bits."""
TRIES = 4  # draws for each member of S and B; a member drawn before is drawn again


@njit
def block_move(dag, scores, scorer, cache, temper, rng, scratch, affinity):
    """Make one block move; it counts as accepted if an edge changes."""
    before = rng[0]
    d, words = dag.parents.shape
    nodes, work = scratch.allowed, scratch.block
    m, n = _draw_nodes(affinity, nodes, rng, d)  # S, then B
    copied, found = work.parents, work.ancestors  # from here on G0
    for j in range(d):
        copy_row(copied[j], dag.parents, j)
    for s in range(m):
        for a in range(n):
            discard(copied[nodes[s]], nodes[a])
    find_ancestors(copied, found, work.done)
    for a in range(n):  # members of S that a member of S or B is below
        work.above[a] = 0
        for s in range(m):
            work.above[a] |= np.int64(holds(found, nodes[a], nodes[s])) << s
    for s in range(NODES):
        for relation in range(1 << NODES):
            work.sums[s, relation] = 1.0 if s >= m and relation == 0 else 0.0
    for s in range(m):
        if not _weigh(scorer, cache, temper, nodes, s, m, n, work, scratch):
            rng[0] = before
            return MISSING
    chosen = _draw_relation(work.sums, rng)
    if chosen < 0:  # all of it is below the smallest number
        return REJECTED
    changed = False
    for s in range(m):
        j = nodes[s]
        subset = _draw_set(work.weights[s], work.below[s], 1 << (n - 1), RELATIONS[chosen, s], rng)
        _add_members(copied[j], nodes, s, n, subset)
        for w in range(words):
            changed = changed or copied[j, w] != dag.parents[j, w]
    if not changed:
        return REJECTED
    for s in range(m):
        copy_row(dag.parents[nodes[s]], copied, nodes[s])
        rescore(dag, scores, scorer, cache, nodes[s], scratch)
    find_ancestors(dag.parents, dag.ancestors, work.done)
    return ACCEPTED


@njit
def _draw_nodes(affinity, nodes, rng, d):
    """Draw S and B, each member near one of S; return the number of S and of both."""
    nodes[0] = np.int64(uniform(rng) * d)
    m = n = 1
    for member in range(1, NODES + POOL):
        for _ in range(TRIES):
            new = near(affinity, nodes[np.int64(uniform(rng) * m)], rng)
            known = False
            for a in range(n):
                known = known or nodes[a] == new
            if not known:
                nodes[n] = new
                n += 1
                break
        if member < NODES:
            m = n
    return m, n


@njit(inline="always")
def _add_members(words, nodes, s, n, subset):
    """Insert the members of a subset of S and B without its member s: bit a stands for member a, or a + 1 from s on."""
    for a in range(n - 1):
        if (subset >> a) & 1:
            insert(words, nodes[a + (a >= s)])


@njit
def _weigh(scorer, cache, temper, nodes, s, m, n, work, scratch):
    """Write the weights of all sets of parents of member s, what each brings it below, and the sums W(E).

    Return False if Python has to score a family first.
    """
    j, words = nodes[s], scratch.sets[4]
    weights, below = work.weights[s], work.below[s]
    size = 1 << (n - 1)
    for subset in range(size):
        relation = work.above[s]
        if subset > 0:  # what the set without its lowest bit brings j below, and what that bit adds
            member = lowest(np.uint64(subset))
            member += member >= s
            relation = below[subset & (subset - 1)] | work.above[member]
            if member < m:
                relation |= np.int64(1) << member
        below[subset] = relation
        weights[subset] = -np.inf
        if (relation >> s) & 1:
            continue  # a cycle
        copy_row(words, work.parents, j)
        _add_members(words, nodes, s, n, subset)
        at = score(scorer, cache, j, words, scratch.wanted, scratch.family)
        if at < 0:
            return False
        weights[subset] = log_weight(cache, at, temper)
    exponentiate(weights, size)
    for subset in range(size):
        work.sums[s, below[subset]] += weights[subset]
    return True


@njit
def _draw_relation(sums, rng):
    """Draw a DAG on S with probability proportional to the product of the sums; -1 if all are 0."""
    total = 0.0
    for r in range(RELATIONS.shape[0]):
        total += _product(sums, r)
    left = uniform(rng) * total
    chosen = -1
    for r in range(RELATIONS.shape[0]):
        weight = _product(sums, r)
        if weight > 0:
            chosen = r
            left -= weight
            if left < 0:
                break
    return chosen


@njit(inline="always")
def _product(sums, r):
    """Return the weight of a DAG on S."""
    out = 1.0
    for s in range(NODES):
        out *= sums[s, RELATIONS[r, s]]
    return out


@njit
def _draw_set(weights, below, size, relation, rng):
    """Draw a set among those that bring a node below exactly these members of S."""
    total = 0.0
    for subset in range(size):
        if below[subset] == relation:
            total += weights[subset]
    left = uniform(rng) * total
    chosen = -1
    for subset in range(size):
        if below[subset] == relation and weights[subset] > 0:
            chosen = subset
            left -= weights[subset]
            if left < 0:
                break
    return chosen
