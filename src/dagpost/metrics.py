"""How good is a posterior? Against a true graph, held-out data, or an exact posterior."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

from dagpost.data import as_dataset
from dagpost.errors import InputError
from dagpost.graphs import essential_graph, structural_hamming_distance
from dagpost.graphs.acyclicity import as_graphs
from dagpost.inference.exact import ExactPosterior
from dagpost.posterior import Posterior
from dagpost.posterior.provenance import aligned
from dagpost.typing import Graph


def _truth(post: Posterior, truth: Any) -> Graph:
    """The true adjacency matrix; a labelled frame is brought into the posterior's order of names."""
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
    """E-SHD: posterior mean of the structural Hamming distance to the truth.

    Between essential graphs, as in the paper; between DAGs with `essential=False`.

    >>> import dagpost as dp
    >>> sim = dp.simulate(nodes=4, observations=500, seed=0)
    >>> expected_shd(dp.exact(sim.train, model="linear"), sim.graph) < 1
    True
    """
    target = _truth(post, truth)
    graphs = post.graphs
    if essential:
        graphs, target = essential_graph(graphs), essential_graph(target)
    return float(post.weights @ structural_hamming_distance(graphs, target))


def _favoured(post: Posterior, target: Graph) -> np.ndarray:
    """Edge frequencies of essential graphs, undirected edges read in their favour.

    An undirected edge takes the direction of the true edge between its ends; where there is none it counts as one
    mistake, from the first node to the second, not as two.
    """
    essential = essential_graph(post.graphs)
    undirected = essential & np.swapaxes(essential, 1, 2)
    true_pair = target | target.T
    as_read = np.where(true_pair, target, np.triu(np.ones_like(target), 1))
    return np.einsum("m,mij->ij", post.weights, np.where(undirected, as_read, essential), optimize=True)


def _classified(post: Posterior, truth: Any, diagonal: bool, by_class: bool = False) -> tuple[np.ndarray, np.ndarray]:
    target = _truth(post, truth)
    scores = _favoured(post, target) if by_class else post.edge_marginals
    kept = np.ones_like(target) if diagonal else ~np.eye(post.nodes, dtype=np.bool_)
    if not target[kept].any() or target[kept].all():
        raise InputError("the true graph has no edge (or every edge): ROC and PR curves are not defined")
    return target[kept], scores[kept]


def auroc(post: Posterior, truth: Any, *, diagonal: bool = True, by_class: bool = False) -> float:
    """Area under the ROC curve of edge probabilities.

    Over all d² entries as in the paper; `diagonal=False` leaves out the d impossible self-loops. `by_class=True` is how
    the paper scores PC and GES, which know graphs only up to equivalence: undirected edges of the essential graphs are
    oriented in their favour.

    >>> import dagpost as dp
    >>> sim = dp.simulate(nodes=4, observations=100, seed=0)
    >>> round(auroc(dp.exact(sim.train, model="linear"), sim.graph), 2)
    1.0
    """
    return float(roc_auc_score(*_classified(post, truth, diagonal, by_class)))


def auprc(post: Posterior, truth: Any, *, diagonal: bool = True) -> float:
    """Area under the precision-recall curve (average precision) of edge probabilities."""
    return float(average_precision_score(*_classified(post, truth, diagonal)))


def brier_score(post: Posterior, truth: Any) -> float:
    """Mean squared error of the edge probabilities over the d (d - 1) possible edges."""
    target = _truth(post, truth)
    off = ~np.eye(post.nodes, dtype=np.bool_)
    return float(np.mean((post.edge_marginals[off] - target[off]) ** 2))


def expected_edges(post: Posterior) -> float:
    """Posterior mean of the number of edges."""
    return post.expected_edges


# ---- against data


def negative_log_likelihood(post: Posterior, data: Any) -> float:
    """`- sum_m w_m log p(data | G_m, Theta_m)`, equation 19; without parameters the marginal `log p(data | G)`.

    Entries recorded as intervened on leave the likelihood (equation E.4), so the same call gives neg. LL,
    neg. MLL, I-LL and I-MLL. Of several data sets it is the mean.
    """
    if isinstance(data, list | tuple):
        if len(data) == 0:
            raise InputError("no data set to evaluate on")
        return float(np.mean([negative_log_likelihood(post, one) for one in data]))
    data = aligned(as_dataset(data), post.names)
    used = np.flatnonzero(post.weights > 0)
    theta = jax.tree.map(lambda leaf: np.asarray(leaf)[used], post.theta)
    return -float(post.weights[used] @ post.model.log_likelihoods(post.graphs[used], theta, data))


# ---- against an exact posterior


def _on_common_support(post: Posterior, exact: ExactPosterior) -> tuple[np.ndarray, np.ndarray]:
    merged = _graphs_only(post, exact)
    return merged.weights, np.exp(exact.log_probability(merged.graphs))


def _order(post: Posterior, other: Posterior) -> list[int]:
    """Where the nodes of `other` stand in `post`, by name."""
    if set(post.names) != set(other.names):
        raise InputError("the two posteriors are not about the same nodes")
    return [post.names.index(name) for name in other.names]


def _graphs_only(post: Posterior, exact: Posterior) -> Posterior:
    order = _order(post, exact)
    graphs = post.graphs[:, order][:, :, order]
    return Posterior(graphs, post.log_weights, exact.names, post.model, post.prior).merged()


def _marginal_errors(post: Posterior, exact: Posterior) -> np.ndarray:
    order = _order(post, exact)
    return post.edge_marginals[np.ix_(order, order)] - exact.edge_marginals


def total_variation(post: Posterior, exact: ExactPosterior) -> float:
    """Half the sum of `|p(G) - q(G)|` over all DAGs; 0 is perfect, 1 means disjoint."""
    p, q = _on_common_support(post, exact)
    return float(0.5 * (np.abs(p - q).sum() + max(0.0, 1.0 - q.sum())))


def kl_divergence(post: Posterior, exact: ExactPosterior) -> float:
    """`KL(post || exact)`; finite, since an exact posterior covers every DAG."""
    merged = _graphs_only(post, exact)
    used = merged.weights > 0
    difference = merged.log_weights[used] - exact.log_probability(merged.graphs[used])
    return float(merged.weights[used] @ difference)


def edge_marginal_rmse(post: Posterior, exact: Posterior) -> float:
    """Root mean squared error of the edge marginals over the d (d - 1) possible edges."""
    off = ~np.eye(post.nodes, dtype=np.bool_)
    return float(np.sqrt(np.mean(_marginal_errors(post, exact)[off] ** 2)))


def edge_marginal_maximum(post: Posterior, exact: Posterior) -> float:
    """Largest error of an edge marginal."""
    return float(np.abs(_marginal_errors(post, exact)).max())
