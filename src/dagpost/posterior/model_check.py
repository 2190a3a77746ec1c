"""Does a linear Gaussian model fit? Tests on the residuals of every node given its parents.

Three departures matter for edge probabilities: a nonlinear dependence, which a linear model misses or explains by wrong
edges; heavy tails and unequal variances, which make it too sure. Parents are those of the most probable graph among
the draws. Under the model, residuals of a node are Gaussian and independent of all nodes that are not its descendants,
so that squares and cubes of those columns have nothing to say about them. P-values are corrected for the number of
tests (Bonferroni). In time slices only present columns are tested: those of the past have no parents in the model,
which says nothing of how they depend on each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import special, stats

from dagpost.data import Dataset
from dagpost.data.slices import past_columns
from dagpost.errors import printable
from dagpost.graphs import descendants
from dagpost.posterior.sample import GraphSample
from dagpost.typing import Nodes

LEVEL = 0.001
"""Probability of a false alarm of each kind over all nodes, approximately."""
FEWEST_ROWS = 30
CHANGED = 0.5
"""Probability from which on rows of a condition that changes a node are left out of its residuals."""
MOST_ROWS = 20_000
"""Rows that are used; more would find departures too small to matter."""


Departure = tuple[str, int, int | None, float]
"""Kind, node, cause and corrected p-value."""


class Misfit(NamedTuple):
    """A node whose residuals contradict the model.

    Attributes
    ----------
    kind
        "nonlinear", "heavy tails" or "unequal variance".
    node
        Name of the node.
    cause
        Column that the residuals, or their variance, depend on; None for heavy tails.
    p_value
        Corrected p-value.
    """

    kind: str
    node: str
    cause: str | None
    p_value: float


def check_model(post: GraphSample) -> list[Misfit] | None:
    """Return what contradicts a linear Gaussian model, most significant first.

    Parameters
    ----------
    post
        Posterior with its data.

    Returns
    -------
    list of Misfit or None
        None if the model is not a linear one, or data or some of their cells are missing, or rows are few.
    """
    if post.data is None or not post.model.linear or post.model.latent:
        return None
    if post.data.observations < FEWEST_ROWS or post.data.is_missing.any():
        return None
    graph = post.graphs[int(np.argmax(post.log_weights if post.log_joint is None else post.log_joint))]
    values, observed = post.data.values[:MOST_ROWS], _unchanged(post, post.data)[:MOST_ROWS]
    scale = np.where(values.std(axis=0) > 0, values.std(axis=0), 1.0)
    values = (values - values.mean(axis=0)) / scale
    clipped = np.clip(values, -4, 4)
    powers = np.concatenate([values**2, clipped * clipped**2], axis=1)
    others = ~descendants(graph) & ~np.eye(post.nodes, dtype=np.bool_)
    tested = np.flatnonzero(~past_columns(post.names)) if post.data.lags else np.arange(post.nodes)
    found: list[Departure] = []
    residuals: dict[int, dict[int, np.ndarray]] = {}  # by number of rows, by node
    for j in tested.tolist():
        rows = observed[:, j]
        parents = np.flatnonzero(graph[:, j])
        if rows.sum() < max(FEWEST_ROWS, 5 * (len(parents) + 1)):
            continue
        used = slice(None) if rows.all() else rows
        target = values[used, j]
        design = np.column_stack([np.ones(len(target)), values[used][:, parents]])
        residual = _residual(target, design)
        if residual is not None:
            residuals.setdefault(len(residual), {})[j] = residual
            found += _of_node(j, residual, parents, design, powers[used], others[j], len(tested))
    for same_rows in residuals.values():
        p = stats.kurtosistest(np.stack(list(same_rows.values())), axis=1, alternative="greater").pvalue
        found += [("heavy tails", j, None, len(tested) * p_j) for j, p_j in zip(same_rows, p.tolist())]
    names = post.names
    misfits = [Misfit(kind, names[j], None if k is None else names[k], p) for kind, j, k, p in found if p < LEVEL]
    return sorted(misfits, key=lambda misfit: misfit.p_value)


def _unchanged(post: GraphSample, data: Dataset) -> Bool[np.ndarray, "n d"]:
    """Return whether the mechanism of each node was its own in each row, as far as that is known or probable."""
    targets, conditions = post.record.targets, data.conditions
    if targets is None or conditions is None:
        return ~data.intervened
    changed = np.array(targets.probability) >= CHANGED
    return ~np.concatenate([changed, np.zeros((1, data.nodes), dtype=np.bool_)])[conditions.of_row]


def _residual(target: Float[np.ndarray, " n"], design: Float[np.ndarray, "n q"]) -> Float[np.ndarray, " n"] | None:
    """Return the residual of the regression on the columns of `design`, of variance 1; None if nothing is left."""
    residual = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return residual / residual.std() if residual.std() >= 1e-9 else None


def _of_node(
    j: int, residual: Float[np.ndarray, " n"], parents: Nodes, design: Float[np.ndarray, "n q"],
    powers: Float[np.ndarray, "n k"], others: Bool[np.ndarray, " d"], tested: int,
) -> list[Departure]:  # fmt: skip
    """Return the strongest dependence on `powers` (squares of all columns, then cubes) of `others`, and the strongest
    dependence of the variance on the parents, at one of `tested` nodes; a row of `design` has a 1 and the parents."""
    n = len(residual)
    out: list[Departure] = []
    constant, parent_values = design[:, :1], design[:, 1:]
    if others.any():
        ranked = special.ndtri((stats.rankdata(residual) - 0.5) / n)  # one outlying row must not decide
        p = np.where(np.tile(others, 2), _p_values(ranked, powers, design), 1.0)
        best = int(p.argmin())
        out.append(("nonlinear", j, best % len(others), tested * 2 * int(others.sum()) * float(p[best])))
    if len(parents):
        spread = np.abs(residual)  # Glejser: absolute residuals against the parents and their sizes
        p = _p_values(spread, np.concatenate([parent_values, np.abs(parent_values)], axis=1), constant)
        best = int(p.argmin())
        out.append(("unequal variance", j, int(parents[best % len(parents)]), tested * len(p) * float(p[best])))
    return out


def _p_values(
    target: Float[np.ndarray, " n"], regressors: Float[np.ndarray, "n k"], known: Float[np.ndarray, "n q"]
) -> Float[np.ndarray, " k"]:
    """Return the p-value of the partial correlation of each regressor with the target given the known columns."""
    basis, _ = np.linalg.qr(known)
    size = target @ target
    target = target - basis @ (basis.T @ target)
    if target @ target <= 1e-10 * size:  # nothing but rounding errors
        return np.ones(regressors.shape[1])
    total = np.einsum("nk,nk->k", regressors, regressors)
    left = total - np.sum((basis.T @ regressors) ** 2, axis=0)  # squared norms of what is not in the known columns
    new = left > 1e-10 * total
    r = target @ regressors / (np.linalg.norm(target) * np.sqrt(np.where(new, left, 1.0)))
    r = np.clip(r, -0.999999, 0.999999)
    freedom = max(len(target) - basis.shape[1] - 1, 1)
    t = np.abs(r) * np.sqrt(freedom / (1 - r**2))
    return np.where(new, 2 * special.stdtr(freedom, -t), 1.0)


CURES = {
    "nonlinear": "a linear model may miss or turn round such edges: compare with --model additive (model='additive')",
    "heavy tails": "the model is too sure of edges there: take logarithms or ranks of these columns",
    "unequal variance": "the model is too sure of edges there: take logarithms of these columns",
}


def model_fit_text(misfits: list[Misfit] | None, shown: int = 3) -> str | None:
    """Return the result in plain sentences; None if the model was not tested.

    Parameters
    ----------
    misfits
        As from `check_model`.
    shown
        Most nodes to name for each kind.
    """
    if misfits is None:
        return None
    if not misfits:
        return "The residuals fit the model: no sign of nonlinearity, heavy tails or unequal variance."
    sentences = []
    for kind, cure in CURES.items():
        some = [m for m in misfits if m.kind == kind]
        if not some:
            continue
        names = [f"{printable(m.node)} on {printable(m.cause)}" if m.cause else printable(m.node) for m in some[:shown]]
        more = f" and {len(some) - shown} more" if len(some) > shown else ""
        what = {"nonlinear": "Dependence is not linear", "heavy tails": "Residuals have heavy tails"}.get(
            kind, "Noise varies with the parents"
        )
        sentences.append(f"{what} ({', '.join(names)}{more}): {cure}.")
    return " ".join(sentences)
