"""Targets of conditions: the probability that a condition changes the mechanism of a node.

Given its parents P a node has `r_k(P) = p(k in T | P, D)` in closed form (`models/perturbed.py`), and

    p(k in T_j | D) = sum_P p(P_j = P | D) r_k(P).

Where the probabilities of all parent sets are known the sum is exact; else it is an average over the graphs, which
carries their sampling error and none of sampling targets.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from dagpost.errors import InputError
from dagpost.models import Perturbed
from dagpost.posterior.records import TargetProbabilities
from dagpost.posterior.sample import GraphSample, Sample

NEGLIGIBLE = 1e-10
"""Probability of a parent set that is left out."""

Families = tuple[Int[np.ndarray, " n"], Bool[np.ndarray, "n d"], Float[np.ndarray, " n"]]
"""Nodes, their parents, and the probability of each family."""


def with_targets(post: Sample) -> Sample:
    """Return the posterior with a record of the targets, if its model sums over them; it needs its data."""
    model, data = post.model, post.data
    if not isinstance(model, Perturbed) or data is None or data.conditions is None:
        return post
    nodes, parents, weights = _families(post)
    given = model.target_probabilities(nodes, parents, model.summarise(data))
    out = np.zeros((given.shape[1], post.nodes))
    np.add.at(out.T, nodes, weights[:, None] * given)
    whole = np.bincount(nodes, weights=weights, minlength=post.nodes)
    found = TargetProbabilities(
        list(data.conditions.labels),
        np.clip(out / whole, 0.0, 1.0).tolist(),
        model.targets.prior(data).tolist(),
        model.targets.change,
    )
    return post.with_record(targets=found)


def _families(post: GraphSample) -> Families:
    """Return the families of the posterior: all of them where it is exact, else those of its graphs."""
    d = post.nodes
    exact = getattr(post, "parent_probabilities", None)
    if exact is not None:
        nodes, codes = np.nonzero(exact > NEGLIGIBLE)
        return nodes, (codes[:, None] >> np.arange(d) & 1).astype(np.bool_), exact[nodes, codes]
    nodes, parents, weights = [], [], []
    for j in range(d):
        columns, where = np.unique(post.graphs[:, :, j], axis=0, return_inverse=True)
        nodes.append(np.full(len(columns), j))
        parents.append(columns)
        weights.append(np.bincount(where.reshape(-1), weights=post.weights))
    return np.concatenate(nodes), np.concatenate(parents), np.concatenate(weights)


def conditions_of(post: GraphSample) -> list[str]:
    """Return the conditions of the data; none for data without."""
    found = post.record.targets
    return [] if found is None else list(found.conditions)


def target_matrix(post: GraphSample) -> Float[np.ndarray, "k d"]:
    """Return the probability that each condition changes each node; no rows for data without conditions."""
    found = post.record.targets
    return np.zeros((0, post.nodes)) if found is None else np.array(found.probability, dtype=float)


def target_table(post: GraphSample) -> pd.DataFrame:
    """Return the targets, the most probable first; see `Posterior.targets`."""
    found = post.record.targets
    if found is None:
        raise InputError("the data had no conditions, and so no targets to find: fit with conditions=…")
    probability, prior = np.array(found.probability), np.array(found.prior)
    k, j = (index.reshape(-1) for index in np.indices(probability.shape))
    table = pd.DataFrame(
        {
            "condition": np.array(found.conditions, dtype=object)[k],
            "node": np.array(post.names, dtype=object)[j],
            "probability": probability[k, j],
            "prior": prior[k, j],
        }
    )
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)
