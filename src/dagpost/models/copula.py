"""Gaussian copula: binary, ordinal, count and continuous columns as monotone transforms of latent Gaussian columns.

The graph is over the latent columns z, with the BGe score. The data enter through the order of the values in each
column alone (extended rank likelihood; Hoff, 2007),

    p(G | ranks) ∝ p(G) ∫_{z in the order of the ranks} p(z | G) dz,

so that units and monotone transforms of columns do not matter. The integral is a Markov chain that alternates draws of
z given G (`rank_draws.py`) with moves of G given z. Location and scale of a latent column are not in the ranks; the
prior of BGe keeps them proper, and they are drawn with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from dagpost._util.numerics import generator
from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.models.base import Model, Statistics
from dagpost.models.bge import BGe, BgeTheta
from dagpost.models.rank_draws import Ranks, draw_cells, move_columns, ranks_of
from dagpost.typing import Graph, Key


def normal_scores(ranks: Ranks) -> np.ndarray:
    """Return the latent table, of shape (n, d), in which a cell is the normal quantile of its middle rank; 0 if missing.

    Parameters
    ----------
    ranks
        Ranks of the columns.
    """
    d, n = ranks.rows.shape
    out = np.zeros((n, d))
    for j in range(d):
        starts = ranks.level_start[j, : ranks.levels[j] + 1]
        middle = np.repeat((starts[:-1] + starts[1:]) / 2, np.diff(starts))
        out[ranks.rows[j, : ranks.known[j]], j] = ndtri(middle / max(ranks.known[j], 1))
    return out


class RankCompletion:
    """Latent tables given the ranks of the columns.

    Parameters
    ----------
    model
        The copula.
    values
        Table of n rows and d columns, NaN in missing cells; only ranks matter.
    """

    def __init__(self, model: Copula, values: np.ndarray):
        n, d = values.shape
        self.model, self.ranks = model, ranks_of(values)
        self.prior_matrix = model.prior_matrix(d)
        self.floor = float(np.linalg.eigvalsh(self.prior_matrix)[0])
        self.power = (model.degrees(d) - d + np.arange(d) + 1 + n) / 2

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Return a first latent table: normal scores, cells of equal rank spread at random between their neighbours."""
        d, n = self.ranks.rows.shape
        out = np.empty((n, d))
        for j in range(d):
            place = rng.permutation(n) + 0.5  # missing cells are anywhere
            for first, last in zip(self.ranks.level_start[j, : self.ranks.levels[j]], self.ranks.level_start[j, 1:]):
                place[first:last] = first + (rng.permutation(last - first) + 0.5)
            known = self.ranks.known[j]
            size = np.where(np.arange(n) < known, max(known, 1), n)
            out[self.ranks.rows[j], j] = ndtri(place / size)
        return out

    def redraw(self, values: np.ndarray, adjacency: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the next latent table given a graph.

        Parameters
        ----------
        values
            Latent table, in the order of the ranks.
        adjacency
            Graph.
        rng
            Generator.
        """
        z = np.ascontiguousarray(values.T)
        graph = np.ascontiguousarray(adjacency, dtype=np.bool_)
        move_columns(z, self.ranks, graph, self.prior_matrix, self.model.alpha_mu, self.power, self.floor, rng)
        theta = self.model.theta_from(rng, graph, self.model.summarise(Dataset(z.T)))
        draw_cells(z, self.ranks, theta.weights, theta.intercept, theta.variance, rng)
        return z.T.copy()


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
    """

    name: ClassVar[str] = "copula"
    assumption: ClassVar[str] = (
        "every column is a monotone transform of a latent one, and latent relations are linear with Gaussian noise"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.mean is not None:
            raise InputError(f"mean={self.mean!r:.40}: the mean of a latent column has no meaning, leave it out")

    def completion(self, data: Dataset) -> RankCompletion:
        """Return draws of latent tables given the ranks of the data."""
        return RankCompletion(self, data.values)
