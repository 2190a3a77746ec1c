"""Compiled evidence of families with the targets of conditions summed out (`perturbed.py` has the formula).

Tables of the model have a group of rows for each set T of conditions, the rows outside it, and after these one for each
condition alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from dagpost._util.compiled import njit
from dagpost._util.numerics import log_add
from dagpost.models.conjugate import ConjugateTable, evidence_of_rows, family_scratch
from dagpost.models.counts import CountTable, count_evidence_of_rows, count_scratch


class SetTable(NamedTuple):
    """Sets of conditions that may change a mechanism."""

    members: np.ndarray  # (s, k) conditions of each set
    log_prior: np.ndarray  # (s, d) by node; -inf for a set that it cannot have
    log_unit: np.ndarray  # (d,) added to the evidence of a family
    hard: bool  # whether a changed node has no parents


def no_sets(d: int) -> SetTable:
    """Return a table without sets, for models of one condition."""
    return SetTable(np.zeros((0, 0), np.bool_), np.zeros((0, d)), np.zeros(d), False)


def plain_table(table: Any) -> Any:
    """Return a named tuple with the types that compiled code takes, from fields that are arrays of any kind."""
    return type(table)(*(np.asarray(f).item() if np.ndim(f) == 0 else np.ascontiguousarray(f) for f in table))


@njit
def _of_rows(table, counts, rows, j, parents, p, gaussian, counting):
    """Return the log evidence of a family in one group of rows."""
    if counts.weights.shape[0] > 0:
        return count_evidence_of_rows(counts, rows, j, parents, p, counting)
    return evidence_of_rows(table, rows, j, parents, p, gaussian.columns, gaussian.lower)


@njit
def write_set_terms(table, counts, sets, j, parents, p, gaussian, counting, own, out):
    """Write `log p_j(T) Z_j(P, T)` of one family to `out`, for every set T; `own`, of length k, is scratch."""
    own[:] = np.nan
    for t in range(sets.members.shape[0]):
        out[t] = sets.log_prior[t, j]
        if out[t] == -np.inf:
            continue
        out[t] += _of_rows(table, counts, t, j, parents, p, gaussian, counting)
        for k in range(sets.members.shape[1]):
            if sets.members[t, k]:
                if np.isnan(own[k]):
                    rows, few = sets.members.shape[0] + k, 0 if sets.hard else p
                    own[k] = _of_rows(table, counts, rows, j, parents, few, gaussian, counting)
                out[t] += own[k]


@njit
def evidence_over_sets(table, counts, sets, j, parents, p, gaussian, counting):
    """Return `log sum_T p_j(T) Z_j(P, T)` of one family."""
    own, terms = np.empty(sets.members.shape[1]), np.empty(sets.members.shape[0])
    write_set_terms(table, counts, sets, j, parents, p, gaussian, counting, own, terms)
    total = -np.inf
    for t in range(terms.shape[0]):
        total = log_add(total, terms[t])
    return total + sets.log_unit[j]


@njit(nogil=True)
def _all_terms(table, counts, sets, nodes, parents, out):
    """Write the terms of families, given as indicators of their parents, to `out`."""
    gaussian, counting = family_scratch(table), count_scratch(counts)
    own = np.empty(sets.members.shape[1])
    for f in range(nodes.shape[0]):
        p = 0
        for i in range(parents.shape[1]):
            if parents[f, i]:
                gaussian.parents[p] = i
                p += 1
        write_set_terms(table, counts, sets, nodes[f], gaussian.parents, p, gaussian, counting, own, out[f])


def set_terms(
    table: ConjugateTable, counts: CountTable, sets: SetTable, nodes: Int[np.ndarray, " n"],
    parents: Bool[np.ndarray, "n d"],
) -> Float[np.ndarray, "n s"]:  # fmt: skip
    """Return `log p_j(T) Z_j(P, T)` of families, for every set T of conditions.

    Parameters
    ----------
    table, counts
        Evidence of the model by group of rows: one of them is empty.
    sets
        The sets of conditions.
    nodes, parents
        Families: node, and indicator of its parents.
    """
    out = np.empty((len(nodes), len(sets.members)))
    _all_terms(table, counts, sets, np.ascontiguousarray(nodes, np.int64), np.ascontiguousarray(parents, np.bool_), out)
    return out
