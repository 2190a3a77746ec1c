"""A model whose parameters are integrated out numerically, so that everything for closed forms works with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar
from uuid import uuid4

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from dagpost._util.clock import Clock
from dagpost._util.environment import available_cores
from dagpost.errors import printable
from dagpost.graphs import descendants
from dagpost.models.base import Model, Statistics
from dagpost.models.family_evidence import LARGEST, MOST, QUICK, ClosedForm, FamilyEvidence, Origin
from dagpost.models.family_table import FamilyTable
from dagpost.typing import Graphs, Key, Nodes, Scalar, SoftColumn, Theta

Family = tuple[int, Bool[np.ndarray, " d"]]
"""A node and its parents."""
CLOSE, ACCURATE = (7.0, 3.0), (-1.0, 0.1)
"""How near to the best of its node a family must be to be estimated better, by the effort made so far, and the standard
error of its log evidence that is good enough then: none is for a quick estimate."""
UPSIDE = (1.0, 0.2)
"""How much a better estimate may add to a log evidence, by the effort made so far: few draws miss what is rare."""
MOVES = 0.006
"""How far the standard error of a family's evidence may move an edge probability, before more effort goes into it."""
TIMES_DEARER = 5.0
"""How much longer each further effort takes."""
LARGE, COMMON = 1.5, 0.02
"""Standard error beyond which a log evidence is unknown, and the share of graphs that makes a family common."""
ORDERS_COMPARED = 64
"""Graphs in which families are compared."""
LARGEST_ERROR = 0.05
"""Largest standard error of an edge probability, from the evidence alone, of a result that can be trusted, and largest
probability of an edge whose parent is no candidate."""


def family_evidence(model: Model, stats: Statistics, seed: int) -> FamilyEvidence:
    """Return the evidence of a model's families, closed-form or numerical."""
    return ClosedForm(model, stats) if model.has_evidence else model.numerical_evidence(stats, seed)


class Integrated(Model):
    """A model together with the numerical evidence of one data set.

    Parameters
    ----------
    model
        The model; it stays available as `model`.
    stats
        Its statistics of the data.
    seed
        Seed of the estimates.
    """

    has_evidence: ClassVar[bool] = True
    traceable: ClassVar[bool] = False

    def __init__(self, model: Model, stats: Statistics, seed: int = 0):
        self.model, self.stats = model, stats
        self.evidence = family_evidence(model, stats, seed)
        self.evidence.origin = Origin(family_evidence, (model, jax.tree.map(np.asarray, stats), seed), uuid4().hex)
        self.table: FamilyTable | None = None  # what chains read; None lets them ask for every family

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.model.name

    @property
    def has_parameters(self) -> bool:  # type: ignore[override]
        return self.model.has_parameters

    @property
    def theta_axes(self) -> Any:
        return self.model.theta_axes

    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        return self.model.log_conditional(g_j, theta_j, stats_j)

    def log_parameter_prior(self, g_j: SoftColumn, theta_j: Theta) -> Scalar:
        return self.model.log_parameter_prior(g_j, theta_j)

    def log_evidence(self, j: int, parents: Nodes, stats: Statistics) -> float:
        row = np.zeros(self.evidence.d, dtype=np.bool_)
        row[np.asarray(parents, dtype=np.int64)] = True
        return self.evidence.estimate(j, row).log_evidence

    def log_evidences(
        self, nodes: Int[np.ndarray, " n"], parents: Bool[np.ndarray, "n d"], stats: Statistics
    ) -> Float[np.ndarray, " n"]:
        return np.array([found.log_evidence for found in self.evidence.estimates(nodes, parents)])

    def draw_thetas(self, keys: Key, graphs: Graphs, stats: Statistics) -> Theta:
        """Return a draw of `theta | G, D` for each graph, family by family, resampled by importance weight."""
        seed = int(np.asarray(jax.random.key_data(keys[0])).ravel()[-1])
        d, out = graphs.shape[-1], None
        families = []  # node, parents, and the graphs that have them
        for j in range(d):
            columns, where = np.unique(graphs[:, :, j], axis=0, return_inverse=True)
            families += [(j, column, np.flatnonzero(where.reshape(-1) == c)) for c, column in enumerate(columns)]
        with ThreadPoolExecutor(available_cores()) as pool:
            draws = pool.map(lambda family: self.evidence.draw(family[0], family[1], len(family[2]), seed), families)
            for (j, _, members), drawn in zip(families, draws):
                if out is None:
                    out = jax.tree.map(
                        lambda leaf, axis: np.zeros((len(graphs), *np.insert(leaf.shape[1:], axis, d))),
                        drawn, jax.tree.broadcast(self.theta_axes, drawn),
                    )  # fmt: skip
                jax.tree.map(
                    lambda whole, part, axis, j=j, members=members: _put(whole, part, axis, members, j),
                    out, drawn, jax.tree.broadcast(self.theta_axes, drawn),
                )  # fmt: skip
        return out

    # ---- how much the evidence itself may be off

    def rough_families(
        self, families: Iterable[tuple[Family, float]], influence: Mapping[tuple[int, bytes], float]
    ) -> list[tuple[Family, int]]:
        """Return the families that are not estimated well enough, with the effort to make next.

        Given are how far each is below the best of its node (in log probability), and how far an error of its log
        evidence moves an edge probability (`influences`). Little effort is for all that are near the best, since
        they may turn out better than they seem; more is for those whose errors move the posterior. Those come first
        whose errors may move it most, for the time that the next effort takes. An estimate that rests on a single draw,
        and may be far too high, does not wait until all others have had the same effort.
        """
        out = []
        for family, gap in families:
            found, moves = self.evidence.estimate(*family), influence.get((family[0], family[1].tobytes()), 0.0)
            failed = found.effort > QUICK and found.error > LARGE  # as if the effort had not been made
            made = found.effort - failed
            near = made < len(CLOSE) and gap <= CLOSE[made] and found.error > ACCURATE[made]
            if found.effort < MOST and (near or (made > QUICK and found.error * moves > MOVES)):
                weight = np.exp(UPSIDE[made] - gap) if near else moves
                log_cost = min(found.effort, LARGEST) * np.log(TIMES_DEARER)
                out.append((np.log(max(found.error, 0.1) * weight) - log_cost, family, found.effort + 1))
        out.sort(key=lambda item: -item[0])
        return [(family, effort) for _, family, effort in out]

    def improve(self, rough: Iterable[tuple[Family, int]], clock: Clock) -> Iterator[None]:
        """Estimate families with more effort, in parallel, as long as the clock runs; yield after each."""
        return self.evidence.each([(*family, effort) for family, effort in rough], clock)

    def edge_errors(self, graphs: Graphs, repeats: int = 50) -> Float[np.ndarray, "d d"]:
        """Return the standard error of every edge probability that comes from the errors of the evidence.

        The graphs are reweighted as if every family's log evidence were off by a normal error of its own size; by no
        more than `LARGE` where few graphs have it, since one of them would be all that counts. Where many have a family
        whose error is larger, its evidence is unknown, and so are the edges to its node: 0.5.
        """
        rng = np.random.default_rng(0)
        m, d = graphs.shape[:2]
        logs, unknown = np.zeros((repeats, m)), np.zeros(d, dtype=np.bool_)
        for j in range(d):
            columns, where, counts = np.unique(graphs[:, :, j], axis=0, return_inverse=True, return_counts=True)
            errors = np.array([self.evidence.estimate(j, column, QUICK).error for column in columns])
            unknown[j] = (errors[counts >= COMMON * m] > LARGE).any()
            errors = np.minimum(errors, LARGE)
            logs += (rng.standard_normal((repeats, len(columns))) * errors)[:, where.reshape(-1)]
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        found = np.einsum("rm,mij->rij", weights, graphs.astype(float)).std(axis=0)
        return np.where(unknown & ~np.eye(d, dtype=np.bool_), np.maximum(found, 0.5), found)


def _put(whole: np.ndarray, part: np.ndarray, axis: int, members: np.ndarray, j: int) -> None:
    """Write the parameters of node j to those members."""
    np.moveaxis(whole, axis + 1, 0)[j, members] = part


def common_families(graphs: Graphs, share: float, covering: float = 0.0, most: int = 0) -> list[Family]:
    """Return the families that at least this share of the graphs have; for nodes with many families of which none is
    common, also the most frequent ones that together cover so much, but no more than `most`."""
    out = []
    for j in range(graphs.shape[-1]):
        columns, counts = np.unique(graphs[:, :, j], axis=0, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        before = np.r_[0, np.cumsum(counts[order])[:-1]]  # graphs with a more frequent family
        enough = (before < covering * len(graphs)) & (np.arange(len(order)) < most)
        out += [(j, columns[at]) for at, more in zip(order, enough) if more or counts[at] >= share * len(graphs)]
    return out


def influences(graphs: Graphs) -> dict[tuple[int, bytes], float]:
    """Return how far a small error of the log evidence of each family that graphs have moves an edge probability at
    most, for each unit of the error: the covariance of having the family and having the edge."""
    out, marginals = {}, graphs.mean(axis=0)
    for j in range(graphs.shape[-1]):
        columns, where, counts = np.unique(graphs[:, :, j], axis=0, return_inverse=True, return_counts=True)
        for at, (column, count) in enumerate(zip(columns, counts)):
            apart = np.abs(graphs[where.reshape(-1) == at].mean(axis=0) - marginals).max()
            out[j, column.tobytes()] = float(apart * count / len(graphs))
    return out


def order_gaps(
    scores: Float[np.ndarray, "d s"], place: Int[np.ndarray, "d d"], graphs: Graphs
) -> Float[np.ndarray, "d s"]:
    """Return how far every family is below the best one that its node could have in one of the graphs, with parents
    that are no descendants.

    Parameters
    ----------
    scores
        Log posterior weight of every node given sets of parents, by code.
    place
        The bit of i in codes of parents of j at `[j, i]`; negative where there is none.
    graphs
        Graphs, some of which are taken.
    """
    gaps, sets = np.full(scores.shape, np.inf), np.arange(scores.shape[1])
    for below in descendants(graphs[:: max(1, len(graphs) // ORDERS_COMPARED)]):
        for j in range(len(scores)):
            barred = sum(1 << at for at in place[j, below[j]].tolist() if at >= 0)
            free = (sets & barred) == 0
            gaps[j, free] = np.minimum(gaps[j, free], scores[j, free].max() - scores[j, free])
    return gaps


def evidence_verdict(errors: Float[np.ndarray, "d d"], names: tuple[str, ...]) -> str:
    """Return a sentence on how much the errors of the evidence matter."""
    i, j = np.unravel_index(errors.argmax(), errors.shape)
    return (
        "The evidence of families is estimated, and its errors may move edge probabilities by "
        f"±{2 * errors.max():.3f}, most at {printable(names[i])} -> {printable(names[j])}."
    )


def outside_verdict(outside: Float[np.ndarray, "d d"], names: tuple[str, ...]) -> str:
    """Return a sentence on edges whose parent is no candidate, by their estimated probabilities."""
    i, j = np.unravel_index(outside.argmax(), outside.shape)
    return (
        f"Graphs drawn lack edges from nodes that are no candidates, an estimated {outside.sum():.3f} per graph and "
        f"{outside.max():.3f} at most for one ({printable(names[i])} -> {printable(names[j])}); edge probabilities "
        "have them."
    )
