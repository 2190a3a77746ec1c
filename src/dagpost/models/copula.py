"""Gaussian copula: binary, ordinal, count and continuous columns as monotone transforms of latent Gaussian columns.

The graph is over the latent columns z, with the BGe score. The data enter through the order of the values in each
column alone (extended rank likelihood; Hoff, 2007),

    p(G | ranks) ∝ p(G) ∫_{z in the order of the ranks} p(z | G) dz,

so that units and monotone transforms of columns do not matter. The integral is a Markov chain that alternates draws of
z given G (`rank_draws.py`) with moves of G given z. Location and scale of a latent column are not in the ranks; the
prior of BGe keeps them proper, and they are drawn with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from dagpost.data import Dataset
from dagpost.data.checks import constant_problems
from dagpost.data.kinds import CATEGORICAL
from dagpost.data.missing import completed
from dagpost.data.values import columns_phrase, raise_problems
from dagpost.errors import InputError
from dagpost.models.base import Statistics
from dagpost.models.bge import BGe, BgeTheta
from dagpost.models.completion import Redrawn, TableCompletion
from dagpost.models.rank_draws import draw_cells, move_columns, ranks_of
from dagpost.typing import Graph, Graphs, Rows, Theta

NO_DENSITY = (
    "the model 'copula' sees ranks alone, so that rows have no density: compare models by their graphs, or name a "
    "model of the values"
)


class RankCompletion(TableCompletion):
    """Latent tables given the ranks of the columns: a `Completion` (`completion.py`) in which every cell is drawn.

    Parameters
    ----------
    data
        The table; missing cells have no rank, and only ranks matter.
    model
        The copula.
    """

    def __init__(self, data: Dataset, model: Copula):
        super().__init__(data, model)
        n, d = data.values.shape
        self.ranks = ranks_of(data.values)
        self.prior_matrix = model.prior_matrix(d)
        self.floor = float(np.linalg.eigvalsh(self.prior_matrix)[0])
        self.power = (model.degrees(d) - d + np.arange(d) + 1 + n) / 2
        self.base = model.summarise(completed(data, np.zeros((n, d))))

    def start(self, rng: np.random.Generator) -> Rows:
        """Return a first latent table: normal quantiles of ranks, those of equal values in random order."""
        d, n = self.ranks.rows.shape
        out = np.empty((n, d))
        for j in range(d):
            known, starts = self.ranks.known[j], self.ranks.level_start[j, : self.ranks.levels[j] + 1]
            place = np.concatenate([first + rng.permutation(last - first) for first, last in pairwise(starts)])
            out[self.ranks.rows[j, :known], j] = ndtri((place + 0.5) / known)
            out[self.ranks.rows[j, known:], j] = rng.standard_normal(n - known)
        return out

    def statistics(self, values: Rows) -> Statistics:
        """Return the statistics of a latent table: `Model.summarise`, without what does not change."""
        n, alpha, mean = len(values), self.model.alpha_mu, values.mean(axis=0)
        scatter = (values - mean).T @ (values - mean)
        matrix = self.prior_matrix + scatter + n * alpha / (n + alpha) * np.outer(mean, mean)
        shared = self.base.shared
        return self.base._replace(
            shared=shared._replace(
                table=shared.table._replace(matrix=matrix[None]),
                mean=n / (n + alpha) * mean[None],
                scatter=scatter[None],
                sample_mean=mean[None],
            )
        )

    def redraw(self, values: Rows, stats: Statistics, graph: Graph, rng: np.random.Generator) -> Redrawn:
        """Return the next latent table given a graph, and the parameters that its cells were drawn with; see
        `Completion.redraw`."""
        z, graph = np.array(values.T, order="C"), np.ascontiguousarray(graph, dtype=np.bool_)
        move_columns(z, self.ranks, graph, self.prior_matrix, self.model.alpha_mu, self.power, self.floor, rng)
        stats = self.statistics(z.T)
        theta = self.model.theta_from(rng, graph, stats)
        draw_cells(z, self.ranks, theta.weights, theta.intercept, theta.variance, rng)
        return Redrawn(z.T.copy(), standard_scale(theta, stats))

    def cells(self, values: Rows) -> np.ndarray:
        """Return the missing cells of the table in the units of their columns: the value of the observed cell whose
        latent value is nearest."""
        out = np.empty(len(self.rows))
        for j in np.unique(self.columns):
            here, known = self.columns == j, self.ranks.rows[j, : self.ranks.known[j]]
            order = known[np.argsort(values[known, j], kind="stable")]
            latent, wanted = values[order, j], values[self.rows[here], j]
            above = np.clip(np.searchsorted(latent, wanted), 1, len(latent) - 1)
            nearer = above - (wanted - latent[above - 1] < latent[above] - wanted)
            out[here] = self.data.values[order[nearer], j]
        return out


def standard_scale(theta: BgeTheta, stats: Statistics) -> BgeTheta:
    """Return parameters for latent columns of mean 0 and standard deviation 1, since their own have no meaning."""
    count, scatter, mean = (leaf[0] for leaf in stats.shared[3:])
    scale = np.sqrt(np.diagonal(scatter) / count)
    intercept = (theta.intercept + mean @ theta.weights - mean) / scale
    return BgeTheta(theta.weights * scale[:, None] / scale, intercept, theta.variance / scale**2)


@dataclass(frozen=True, eq=False)
class Copula(BGe):
    """Gaussian copula over columns of any ordered kind, by their ranks.

    Parameters
    ----------
    alpha_mu, alpha_w, scale_matrix
        Prior of the latent columns, as in `BGe`. The scale of a latent column has no meaning, so that a factor of
        `scale_matrix` makes no difference.
    mean
        None: the prior mean of latent columns is 0.

    Examples
    --------
    >>> import dagpost as dp
    >>> data = dp.Dataset([["no", 1.5], ["yes", 2.5], ["no", 0.5], ["yes", 9.5]], names=["smoker", "dose"])
    >>> post = dp.fit(data, model=dp.Copula(alpha_w=6.0), max_moves=100)
    >>> post.effect("smoker", "dose").meaning
    'smoker on dose, in standard deviations of latent columns'
    """

    name: ClassVar[str] = "copula"
    latent: ClassVar[bool] = True
    assumption: ClassVar[str] = (
        "every column is a monotone transform of a latent one, and latent relations are linear with Gaussian noise"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.mean is not None:
            raise InputError(f"mean={self.mean!r:.40}: the mean of a latent column has no meaning, leave it out")

    def accept(self, data: Dataset) -> Dataset:
        """Return the data, or raise an error that names columns without an order, interventions or time slices."""
        problems = []
        nominal = [
            name
            for name, kind, levels in zip(data.names, data.kinds, data.levels)
            if kind == CATEGORICAL and len(levels) > 2
        ]
        if nominal:
            what = columns_phrase(nominal, "holds more than two categories", "hold more than two categories")
            problems.append(
                f"{what} without an order, and the model {self.name!r} needs one: declare it (--kinds "
                '\'NAME=low<mid<high\', kinds={"NAME": "low<mid<high"}), leave the column out (--drop NAME), or cut '
                "numbers into intervals and use --model bdeu"
            )
        if data.intervened.any():
            names = [name for name, column in zip(data.names, data.intervened.T) if column.any()]
            problems.append(
                f"{columns_phrase(names, 'was intervened on', 'were intervened on')}, and the model {self.name!r} "
                "takes observed rows alone, since the value of an intervention has no latent distribution: leave such "
                "rows out, or name another model"
            )
        if data.lags:
            problems.append(f"lags: the model {self.name!r} takes rows without an order in time: name another model")
        raise_problems([*problems, *constant_problems(data)] if problems else [])
        return data

    def log_likelihoods(self, graphs: Graphs, theta: Theta, data: Dataset) -> Float[np.ndarray, " m"]:
        """Refuse: rows have no density under ranks."""
        raise InputError(NO_DENSITY)

    def log_predictive_of(self, graphs: Graphs, known: Dataset, new: Dataset) -> Float[np.ndarray, " m"]:
        """Refuse: rows have no density under ranks."""
        raise InputError(NO_DENSITY)

    def completion(self, data: Dataset) -> RankCompletion:
        """Return how latent tables are drawn given the ranks of the data."""
        return RankCompletion(data, self)
