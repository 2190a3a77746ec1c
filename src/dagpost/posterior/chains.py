"""Draws of Markov chains in a posterior: which chain each draw comes from, and the error of a mean over them.

Draws of a chain resemble their neighbours, so their mean is less precise than that of as many independent draws. A
posterior made of chains keeps its draws chain by chain, each in order of time, and holds in `info` how many each has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

if TYPE_CHECKING:
    from dagpost.posterior.posterior import Posterior

CHAIN_LENGTHS = "chain_lengths"
"""Key of `info` for the number of draws of every chain; absent where graphs are no draws of chains."""
FEWEST_DRAWS = 4
"""Shortest chain that an effective sample size can be estimated from."""


def chain_of_draws(post: Posterior) -> Int[np.ndarray, " m"] | None:
    """Index of the chain that each draw comes from; None where the graphs are not equally weighted draws of chains."""
    lengths = post.info.get(CHAIN_LENGTHS)
    if lengths is None or sum(lengths) != len(post) or np.ptp(post.log_weights) > 0:
        return None
    return np.repeat(np.arange(len(lengths)), lengths)


def lengths_of_members(post: Posterior, member: Int[np.ndarray, " n"]) -> list[int] | None:
    """Number of draws of every chain among these members, given in order; None where there are no chains."""
    chain = chain_of_draws(post)
    return None if chain is None else np.bincount(chain[member], minlength=chain[-1] + 1).tolist()


def with_chains(info: Mapping[str, Any], lengths: list[int] | None) -> dict[str, Any]:
    """A copy of `info` for graphs that stand chain by chain with these lengths, or, with None, for others."""
    kept = {name: value for name, value in info.items() if name != CHAIN_LENGTHS}
    return kept if lengths is None else {**kept, CHAIN_LENGTHS: lengths}


def chain_error(values: Float[np.ndarray, " n"], chain: Int[np.ndarray, " n"]) -> float:
    """Standard error of the mean, `sd / sqrt(ess)`, with the effective sample size of these values over their chains.

    It is 0 where all values are equal. Where some chain never changes, or is too short to tell how fast it does, the
    error is at least that of the chain means taken as independent; NaN where the only chain is that short.
    """
    from arviz_stats.base.array import array_stats

    if np.ptp(values) == 0:
        return 0.0
    parts = [values[chain == c] for c in np.unique(chain)]
    n = min(len(part) for part in parts)
    table = np.stack([part[:n] for part in parts])
    scale = values.std()  # ArviZ takes differences below 1e-15 for none
    within = scale * float(np.asarray(array_stats.mcse(table / scale))) if n >= FEWEST_DRAWS else np.nan
    if n >= FEWEST_DRAWS and (np.ptp(table, axis=1) > 0).all():
        return within
    if len(table) == 1:
        return np.nan
    between = np.sqrt(np.var([part.mean() for part in parts], ddof=1) / len(parts))
    return float(np.fmax(within, between))
