"""Log weights of all families: log evidence of the node given the parent set, plus log prior of the column.

Parent sets are bit sets: bit i of `subset` means that i is a parent. Tables have shape (d, 2^d), with -inf
where the set contains the node itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from dagpost._util.environment import cached_by_value
from dagpost.errors import InputError
from dagpost.models import Model, Statistics
from dagpost.models.conjugate_subsets import evidence_of_subsets
from dagpost.priors import GraphPrior
from dagpost.priors.column_subsets import factors_of_subsets
from dagpost.typing import Graphs


def members(d: int) -> Bool[np.ndarray, "s d"]:
    """Return the indicator of every set: row s is that of bit set s."""
    return (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(np.bool_)


def evidence_table(model: Model, stats: Statistics, d: int) -> Float[np.ndarray, "d s"]:
    """Return the log evidence of every node given every parent set."""
    if not model.has_evidence:
        raise InputError(f"the model {model.name!r} has no closed-form evidence, which exact inference needs")
    compiled = model.evidence_table(stats)
    if compiled is not None:
        return evidence_of_subsets(compiled)
    out = np.full((d, 1 << d), -np.inf)
    sets = members(d)
    nodes, subsets = np.nonzero(~sets.T)  # a node is not its own parent
    out[nodes, subsets] = model.log_evidences(nodes, sets[subsets], stats)
    return out


def prior_table(prior: GraphPrior, d: int) -> Float[np.ndarray, "d s"]:
    """Return the log prior factor of every node and parent set."""
    table = prior.column_table(d)
    if table is not None:
        return factors_of_subsets(table)
    sets = members(d)
    with jax.enable_x64(True):
        by_set = _batched(prior)
        out = np.stack([np.asarray(by_set(jnp.asarray(sets, dtype=float), j)) for j in range(d)])
    out[sets.T] = -np.inf
    return out


def log_priors(prior: GraphPrior, d: int) -> Iterator[Float[np.ndarray, "d s"]]:
    """Return the log prior factors of all families under each component of the prior, its weight included."""
    parts = prior.components(d)
    if not parts:
        raise InputError(f"the prior {prior.name!r} does not decompose by column: use at most 5 columns")
    return (part.log_weight / d + prior_table(part.prior, d) for part in parts)


@cached_by_value
def _batched(prior: GraphPrior):
    """Return the compiled log prior of many columns of one node."""
    return jax.jit(jax.vmap(prior.log_column, in_axes=(0, None)))


def codes(graphs: Graphs) -> np.ndarray:
    """Return the parent bit sets of every node of every graph, (m, d)."""
    d = graphs.shape[-1]
    return np.einsum("mij,i->mj", graphs.astype(np.int64), 1 << np.arange(d))


def log_weights(table: Float[np.ndarray, "d s"], graphs: Graphs) -> Float[np.ndarray, " m"]:
    """Return the unnormalised log posterior of each graph, from the table of families."""
    return table[np.arange(graphs.shape[-1]), codes(graphs)].sum(axis=1)


def mixture_log_weights(tables: list[Float[np.ndarray, "d s"]], graphs: Graphs) -> Float[np.ndarray, " m"]:
    """Return the same from the tables of all components of the prior."""
    return np.logaddexp.reduce([log_weights(table, graphs) for table in tables])


def check_mass(log_normaliser: float) -> None:
    """Raise if every DAG has probability zero."""
    if not np.isfinite(log_normaliser):
        raise InputError("no DAG is possible under this prior: its constraints contradict each other")
