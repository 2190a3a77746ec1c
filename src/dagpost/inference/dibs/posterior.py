"""The posterior of DiBS with its particles: expectations at the finite alpha of the last step (proposition 1).

A particle z stands for a distribution over graphs, `p_alpha(G | z)`, of which the posterior keeps one graph, that of
infinite alpha. The particles themselves give

    E_{p(G | D)}[f(G)] = E_{p(z | D)}[ E_{p(G | z)}[f(G) p(D | G)] / E_{p(G | z)}[p(D | G)] ],

and the same with `p(theta, D | G)` and f(G, theta) for joint inference. The ratio is the mean of f over
`p(G | z, D) ∝ p(G | z) p(D | G)`, which is a product over families,

    p(G | z, D) = prod_j p(g_j | z) f_j(g_j) / E[f_j],

so that graphs are drawn from it column by column: exactly where all parent sets can be listed (up to 12 nodes), beyond
by choosing among columns sampled from `p(g_j | z)` with weights f_j, whose error falls with their number. This also is
one weight per family instead of one per graph (`estimators.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax

from dagpost._util.numerics import generator, key_from_seed, map_chunked
from dagpost.errors import InputError, whole_number
from dagpost.graphs import all_columns
from dagpost.graphs.dags import MOST_COLUMNS
from dagpost.models import Model, Statistics
from dagpost.models.conjugate import ConjugateTable, all_families
from dagpost.models.counts import CountTable, evidence_of_columns
from dagpost.posterior import Expectation, Posterior
from dagpost.typing import Graphs, Theta


class Latent(NamedTuple):
    """Particles after the last step, those with a cycle among them.

    Attributes
    ----------
    z
        Latent variables, one row per particle.
    theta
        Parameters of each particle; `()` where they are integrated out.
    alpha, beta
        Temperatures of the last step.
    log_odds
        `log p(g_ij = 1 | z) / p(g_ij = 0 | z)`, (m, d, d); infinite for edges that are certain and on the diagonal.
    whole_prior
        Whether parameters of absent edges have their prior, as they do for SGLD and HMC (`target.py`).
    """

    z: np.ndarray
    theta: Theta
    alpha: float
    beta: float
    log_odds: Float[np.ndarray, "m d d"]
    whole_prior: bool


@dataclass(frozen=True, eq=False, repr=False)
class DibsPosterior(Posterior):
    """A posterior with the particles that its graphs were read off. Files hold the graphs, not the particles."""

    latent: Latent | None = None

    def _by_posterior(self) -> Self:
        """Return the graphs weighted by their posterior, without the particles, which have no such weights."""
        return replace(super()._by_posterior(), latent=None)

    def latent_expectation(
        self, feature: Callable[..., Any], *, parameters: bool = False, samples: int = 1000, seed: int = 0
    ) -> Expectation:
        """Posterior mean of a function of the graph over the latent particles, at the alpha of the last step.

        `expectation` averages over the graphs of the posterior instead: one per particle, all of them DAGs. Here each
        particle counts with all graphs that it makes possible, weighted by the data. These can have cycles while alpha
        is small, and the feature gets those too.

        Parameters
        ----------
        feature
            Function of an adjacency matrix that returns a number or an array; `lambda graph: graph` gives the
            probabilities of all edges.
        parameters
            Whether the feature is a function of graph and parameters, for joint inference.
        samples
            Graphs drawn for each particle. Beyond 12 nodes also the number of columns to choose from.
        seed
            Seed of these draws.

        Returns
        -------
        Expectation
            The mean over particles, and its standard error. It counts particles as independent, which those of SVGD
            are not: theirs is a rough guide.

        >>> import dagpost as dp
        >>> data = dp.simulate(nodes=3, observations=50, seed=1).train
        >>> post = dp.fit(data, method="dibs", sampler="hmc", particles=20, steps=30, moves=0)
        >>> post.latent_expectation(lambda graph: graph, samples=100).mean.shape
        (3, 3)
        """
        whole_number("samples", samples, least=1)
        latent, data = self.latent, self.data
        if latent is None:
            raise InputError(
                "these graphs are weighted by their posterior, and the particles are not: ask the posterior that "
                "dp.fit(method='dibs') returned, or call expectation"
            )
        if data is None:
            raise InputError("the expectation is weighted by the data: give them back with post.with_data(data)")
        has_theta = bool(jax.tree.leaves(latent.theta))
        if parameters and not has_theta:
            raise InputError("parameters=True: they are integrated out; infer them jointly with collapsed=False")
        rng = generator(key_from_seed(seed))
        score = _family_scores(self.model, self.model.summarise(data), latent)
        means, inner = [], []
        for m, odds in enumerate(latent.log_odds):
            theta = jax.tree.map(lambda leaf, m=m: np.asarray(leaf)[m], latent.theta)
            graphs, count = np.unique(_draw(rng, odds, theta, score, samples), axis=0, return_counts=True)
            values = np.array([np.asarray(feature(g, theta) if parameters else feature(g), float) for g in graphs])
            mean = np.tensordot(count / samples, values, axes=1)
            means.append(mean)
            inner.append(np.tensordot(count / samples, (values - mean) ** 2, axes=1) / samples)
        count = len(means)
        total = np.mean(means, axis=0)
        # the spread between particles holds the error of each; with few particles the latter may be the larger
        between = np.var(means, axis=0, ddof=1) / count if count > 1 else np.zeros_like(total)
        error = np.sqrt(np.maximum(between, np.sum(inner, axis=0) / count**2))
        return Expectation(total, error) if total.ndim else Expectation(float(total), float(error))


def evidences(table: ConjugateTable | CountTable, graphs: Graphs) -> Float[np.ndarray, "s d"]:
    """Return the log evidence of every family of graphs that may have cycles."""
    return all_families(table, graphs) if isinstance(table, ConjugateTable) else evidence_of_columns(graphs, *table)


def _family_scores(model: Model, stats: Statistics, latent: Latent) -> Callable[[Graphs, Theta], np.ndarray]:
    """Return `log f_j` of every column of some graphs as a function of graphs and parameters, in float64."""
    if not jax.tree.leaves(latent.theta):
        counts = model.count_table(stats)
        table: Any = model.evidence_table(stats) if counts is None else counts
        if table is None:
            raise InputError(f"the evidence of the model {model.name!r} has no compiled table")
        return lambda graphs, theta: evidences(table, graphs)
    # where every parameter has its prior, that does not depend on the graph and cancels from the ratio
    family = model.log_conditional if latent.whole_prior else model.log_family

    @jax.jit
    def batched(graphs: Any, theta: Any) -> Any:
        one = lambda graph: model.by_node(family, graph, theta, stats)  # noqa: E731
        return map_chunked(one, graphs, 256)

    def scored(graphs: Graphs, theta: Theta) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(batched(jnp.asarray(graphs, dtype=float), theta))

    return scored


def _draw(
    rng: np.random.Generator, log_odds: np.ndarray, theta: Theta, score: Callable[..., np.ndarray], samples: int
) -> Graphs:
    """Return graphs drawn from `p(G | z, D)` of one particle, column by column."""
    d = len(log_odds)
    if d <= MOST_COLUMNS:
        columns = all_columns(d)
        # log p(g_ij | z): -log(1 + exp(-l)) for an edge, -log(1 + exp(l)) for none
        each = -np.logaddexp(0.0, np.where(columns, -log_odds, log_odds))
        weights = each.sum(axis=1) + score(columns, theta)
    else:
        columns = rng.logistic(size=(samples, d, d)) < log_odds
        weights = score(columns, theta)
    shares = np.exp(log_softmax(weights, axis=0))
    out = np.zeros((samples, d, d), dtype=np.bool_)
    for j in range(d):
        out[:, :, j] = columns[rng.choice(len(columns), size=samples, p=shares[:, j] / shares[:, j].sum()), :, j]
    return out
