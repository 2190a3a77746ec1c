"""Metrics of a posterior: against a true graph, held-out data or an exact posterior."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

from dagpost._util.numerics import log_sum_exp
from dagpost.data import Dataset, as_dataset
from dagpost.data.missing import missing_problems
from dagpost.data.slices import past_columns
from dagpost.data.values import raise_problems
from dagpost.errors import InputError
from dagpost.graphs import essential_graph, structural_hamming_distance
from dagpost.graphs.acyclicity import as_graphs
from dagpost.inference.exact import ExactPosterior
from dagpost.posterior import Posterior
from dagpost.posterior.provenance import aligned, in_time
from dagpost.typing import Graph


def _held_out(data: Any, post: Posterior) -> Dataset:
    """Return held-out data, which must be complete, with the columns of the posterior."""
    column = post.record.provenance.conditions
    conditions = column if isinstance(data, pd.DataFrame) and column in [*map(str, data.columns)] else None
    table = aligned(as_dataset(data, conditions=conditions, keep=post.names, **in_time(data, post)), post)
    raise_problems(missing_problems(table, "the density of held-out rows"))
    return table


def _true_graph(post: Posterior, truth: Any) -> Graph:
    """Return the true adjacency matrix; the nodes of a labelled frame are put in the posterior's order."""
    if isinstance(truth, pd.DataFrame):
        missing = [n for n in post.names if n not in truth.index or n not in truth.columns]
        if missing:
            raise InputError(f"the true graph does not know the node {missing[0]!r}")
        truth = truth.loc[list(post.names), list(post.names)].to_numpy()
    graph = as_graphs(truth)
    if graph.shape != (post.nodes, post.nodes):
        raise InputError(f"the true graph has shape {graph.shape}, the posterior {post.nodes} nodes")
    return graph


# ---- against a true graph


def expected_shd(post: Posterior, truth: Any, *, essential: bool = True) -> float:
    """Return the expected structural Hamming distance (E-SHD) to the true graph.

    Parameters
    ----------
    post
        Posterior to evaluate.
    truth
        True adjacency matrix, or a frame labelled by node names.
    essential
        Compare essential graphs, as in the paper; if False, compare DAGs.

    Returns
    -------
    float
        Posterior mean of the distance; 0 is perfect.

    Examples
    --------
    >>> import dagpost as dp
    >>> sim = dp.simulate(nodes=4, observations=500, seed=0)
    >>> expected_shd(dp.exact(sim.train, model="linear"), sim.graph) < 1
    True
    """
    target = _true_graph(post, truth)
    graphs = post.graphs
    if essential:
        graphs, target = essential_graph(graphs), essential_graph(target)
    return float(post.weights @ structural_hamming_distance(graphs, target))


def _favourable_marginals(post: Posterior, target: Graph) -> np.ndarray:
    """Return edge frequencies of the essential graphs, with undirected edges oriented favourably.

    An undirected edge takes the direction of the true edge between its two nodes; if there is none, it counts as one
    false edge (from the lower to the higher index) instead of two.
    """
    essential = essential_graph(post.graphs)
    undirected = essential & np.swapaxes(essential, 1, 2)
    true_pair = target | target.T
    as_read = np.where(true_pair, target, np.triu(np.ones_like(target), 1))
    return np.einsum("m,mij->ij", post.weights, np.where(undirected, as_read, essential), optimize=True)


def _labels_and_scores(
    post: Posterior, truth: Any, diagonal: bool, by_class: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the true labels and the predicted scores of all edges, as flat arrays."""
    target = _true_graph(post, truth)
    scores = _favourable_marginals(post, target) if by_class else post.edge_marginals
    kept = np.ones_like(target) if diagonal else ~np.eye(post.nodes, dtype=np.bool_)
    if not target[kept].any() or target[kept].all():
        raise InputError("the true graph has no edge (or every edge): ROC and PR curves are not defined")
    return target[kept], scores[kept]


def auroc(post: Posterior, truth: Any, *, diagonal: bool = True, by_class: bool = False) -> float:
    """Return the area under the ROC curve of the edge probabilities.

    Parameters
    ----------
    post
        Posterior to evaluate.
    truth
        True adjacency matrix, or a frame labelled by node names.
    diagonal
        Score all d² entries, as in the paper; if False, leave out the d impossible self-loops.
    by_class
        Score essential graphs, with undirected edges oriented favourably. The paper scores PC and GES this way, which
        identify graphs only up to equivalence.

    Returns
    -------
    float
        1 is perfect, 0.5 is chance.

    Examples
    --------
    >>> import dagpost as dp
    >>> sim = dp.simulate(nodes=4, observations=100, seed=0)
    >>> round(auroc(dp.exact(sim.train, model="linear"), sim.graph), 2)
    1.0
    """
    return float(roc_auc_score(*_labels_and_scores(post, truth, diagonal, by_class)))


def auprc(post: Posterior, truth: Any, *, diagonal: bool = True) -> float:
    """Return the area under the precision-recall curve (average precision) of the edge probabilities.

    Parameters
    ----------
    post
        Posterior to evaluate.
    truth
        True adjacency matrix, or a frame labelled by node names.
    diagonal
        Score all d² entries, as in the paper; if False, leave out the d impossible self-loops.

    Returns
    -------
    float
        1 is perfect.
    """
    return float(average_precision_score(*_labels_and_scores(post, truth, diagonal)))


def brier_score(post: Posterior, truth: Any) -> float:
    """Return the mean squared error of the edge probabilities over the d (d - 1) possible edges.

    Parameters
    ----------
    post
        Posterior to evaluate.
    truth
        True adjacency matrix, or a frame labelled by node names.

    Returns
    -------
    float
        0 is perfect.
    """
    target = _true_graph(post, truth)
    off = ~np.eye(post.nodes, dtype=np.bool_)
    return float(np.mean((post.edge_marginals[off] - target[off]) ** 2))


def expected_edges(post: Posterior) -> float:
    """Return the posterior mean of the number of edges."""
    return post.expected_edges


# ---- against data


def negative_log_likelihood(post: Posterior, data: Any) -> float:
    """Return `- sum_m w_m log p(data | G_m, Theta_m)`, equation 19.

    Without parameters it uses the marginal likelihood `log p(data | G)`. Entries recorded as intervened on are left
    out of the likelihood (equation E.4), so the same function gives neg. LL, neg. MLL, I-LL and I-MLL.

    Parameters
    ----------
    post
        Posterior to evaluate.
    data
        Held-out data in any form that `fit` accepts; for a list or tuple of data sets the result is their mean.

    Returns
    -------
    float
        Smaller is better.
    """
    if isinstance(data, list | tuple):
        if len(data) == 0:
            raise InputError("no data set to evaluate on")
        return float(np.mean([negative_log_likelihood(post, one) for one in data]))
    data = _held_out(data, post)
    used = np.flatnonzero(post.weights > 0)
    theta = jax.tree.map(lambda leaf: np.asarray(leaf)[used], post.theta)
    return -float(post.weights[used] @ post.model.log_likelihoods(post.graphs[used], theta, data))


def log_predictive_density(post: Posterior, data: Any) -> float:
    """Return `log p(data | training data)`, the posterior predictive log density of held-out rows, in raw units.

    `log sum_m w_m p(data | G_m, training data)`. Where evidence has a closed form, parameters are integrated out:
    `p(data | G, training data) = p(data, training data | G) / p(training data | G)`; otherwise each graph has its
    parameters. Posteriors of different models, standardised or not, can be compared by it. With lags it is the density
    of the present given the past.

    Parameters
    ----------
    post
        Posterior with the data that it was fitted to.
    data
        Held-out data in raw units, in any form that `fit` accepts, or a standardised `Dataset`.

    Returns
    -------
    float
        Larger is better.
    """
    raw = _held_out(data, post).raw()
    counted, scaling = post.model.counted(raw), post.scaling
    if raw.lags:
        past = past_columns(raw.names)
        counted, raw = counted & ~past, raw.with_interventions(raw.intervened | past)
    values = raw.values if scaling is None else (raw.values - scaling.mean) / scaling.scale
    held_out, used = replace(raw, values=values, names=post.names), np.flatnonzero(post.weights > 0)
    graphs, log_weights = post.graphs[used], np.log(post.weights[used])
    if post.model.has_evidence and post.data is not None and not post.data.is_missing.any():
        log_densities = post.model.log_predictive_of(graphs, post.data, held_out)
    else:
        theta = jax.tree.map(lambda leaf: np.asarray(leaf)[used], post.theta)
        log_densities = post.model.log_likelihoods(graphs, theta, held_out)
    change_of_units = 0.0 if scaling is None else float((counted @ np.log(scaling.scale)).sum())
    return log_sum_exp(log_weights + log_densities) - change_of_units


# ---- against an exact posterior


def _on_common_support(post: Posterior, exact: ExactPosterior) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of the graphs of `post` under `post` and under `exact`."""
    merged = _merged_graphs(post, exact)
    return merged.weights, np.exp(exact.log_probability(merged.graphs))


def _node_order(post: Posterior, other: Posterior) -> list[int]:
    """Return the positions in `post` of the nodes of `other`, matched by name."""
    if set(post.names) != set(other.names):
        raise InputError("the two posteriors are not about the same nodes: fit both to the same columns")
    return [post.names.index(name) for name in other.names]


def _merged_graphs(post: Posterior, exact: Posterior) -> Posterior:
    """Return `post` without parameters, with equal graphs merged and nodes in the order of `exact`."""
    order = _node_order(post, exact)
    graphs = post.graphs[:, order][:, :, order]
    return Posterior(graphs, post.log_weights, exact.names, post.model, post.prior).merged()


def _marginal_errors(post: Posterior, exact: Posterior) -> np.ndarray:
    """Return the difference of the edge marginals, nodes in the order of `exact`."""
    order = _node_order(post, exact)
    return post.edge_marginals[np.ix_(order, order)] - exact.edge_marginals


def total_variation(post: Posterior, exact: ExactPosterior) -> float:
    """Return half the sum of `|p(G) - q(G)|` over all DAGs.

    Parameters
    ----------
    post, exact
        Posterior to evaluate, and the exact posterior of the same nodes.

    Returns
    -------
    float
        0 is perfect, 1 means disjoint.
    """
    p, q = _on_common_support(post, exact)
    return float(0.5 * (np.abs(p - q).sum() + max(0.0, 1.0 - q.sum())))


def kl_divergence(post: Posterior, exact: ExactPosterior) -> float:
    """Return `KL(post || exact)`, in nats.

    It is finite unless prior knowledge excludes a graph of `post`: otherwise every DAG has positive probability.

    Parameters
    ----------
    post, exact
        Posterior to evaluate, and the exact posterior of the same nodes.

    Returns
    -------
    float
        0 is perfect.
    """
    merged = _merged_graphs(post, exact)
    used = merged.weights > 0
    difference = merged.log_weights[used] - exact.log_probability(merged.graphs[used])
    return float(merged.weights[used] @ difference)


def edge_marginal_rmse(post: Posterior, exact: Posterior) -> float:
    """Return the root mean squared error of the edge marginals over the d (d - 1) possible edges.

    Parameters
    ----------
    post, exact
        Posterior to evaluate, and the reference posterior of the same nodes.

    Returns
    -------
    float
        0 is perfect.
    """
    off = ~np.eye(post.nodes, dtype=np.bool_)
    return float(np.sqrt(np.mean(_marginal_errors(post, exact)[off] ** 2)))


def edge_marginal_maximum(post: Posterior, exact: Posterior) -> float:
    """Return the largest absolute error of an edge marginal.

    Parameters
    ----------
    post, exact
        Posterior to evaluate, and the reference posterior of the same nodes.

    Returns
    -------
    float
        0 is perfect.
    """
    return float(np.abs(_marginal_errors(post, exact)).max())
