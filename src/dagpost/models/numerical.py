"""Evidence of families by numerical integration, for models without a closed form.

`Z = ∫ p(x_j | x_P, theta_j) p(theta_j) dtheta_j` is one number for each family, whatever the model. It is estimated by
optimisation from many starts and importance sampling with a mixture of t densities at the modes that were found: a
consistent estimate, with a standard error.

`LaplaceEvidence` does this for any model, in JAX; a model may bring a faster version of its own
(`Model.numerical_evidence`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float, Int

from dagpost.models.family_evidence import CAREFUL, LARGEST, QUICK, Estimate, FamilyEvidence, Wanted
from dagpost.typing import Theta

STARTS = (16, 64, 64, 64, 64)
"""Draws of the prior that are optimised, by effort."""
SAMPLES = (512, 4096, 16384, 65536, 131072)
"""Importance samples, by effort."""
MODES = 4
"""Modes in the proposal."""
BATCH = 64
"""Families estimated in one call on an accelerator. On a CPU batches gain nothing."""
DEGREES = 6.0
"""Degrees of freedom of the proposal."""
STEPS, RATE = 200, 0.1
"""Steps of an optimisation, and their first size."""
ROUNDS, ROUND_DRAWS, ROUND_SHARE = 10, 256, 0.3
"""Rounds in which a proposal is fitted to its mode, draws of each, and share of them that must count."""


class LaplaceEvidence(FamilyEvidence):
    """Numerical evidence for any model that has `log_conditional`, `log_parameter_prior` and `sample_theta`.

    Parameters of absent edges have no density. They are those on which the score of the family does not depend, and get
    a standard normal one: it integrates to 1, so that families of all sizes share one compiled function.

    Parameters
    ----------
    model
        The model.
    stats
        Its statistics of the data.
    seed
        Seed of starts and samples.
    """

    def __init__(self, model: Any, stats: Any, seed: int = 0):
        self.model, self.seed = model, seed
        d = len(np.asarray(jax.tree.leaves(stats.node)[0]))
        super().__init__(d)
        self.stats = jax.tree.map(np.asarray, stats)
        with jax.enable_x64(True):
            theta = jax.tree.map(np.asarray, model.sample_theta(jax.random.key(0), d))
            axes = jax.tree.broadcast(model.theta_axes, theta)
            one = jax.tree.map(lambda leaf, axis: np.take(leaf, 0, axis=axis), theta, axes)
            flat, self.unravel = ravel_pytree(one)
        self.size = len(flat)
        self._axes = axes
        self._programs: dict[int, Any] = {}
        self.batch = 1 if jax.default_backend() == "cpu" else BATCH

    def _program(self, effort: int) -> Any:
        if effort not in self._programs:
            self._programs[effort] = jax.jit(jax.vmap(self._one(effort), in_axes=(0, 0, None)))
        return self._programs[effort]

    def _one(self, effort: int):
        """Return the function that estimates one family: `(node, column, key) -> log Z, error, draws, log weights`."""
        model, size = self.model, self.size

        def log_family(u, node, column):
            shared = jax.tree.map(jnp.asarray, self.stats.shared)
            own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[node], self.stats.node)
            stats_j = type(self.stats)(shared, own)
            return model.log_family(column, self.unravel(u), stats_j)

        def prior_draws(key, node, count):
            theta = jax.vmap(lambda k: model.sample_theta(k, self.d))(jax.random.split(key, count))

            def of_node(leaf, axis):
                return jnp.take(leaf, node, axis=axis + 1)

            ones = jax.tree.map(of_node, theta, self._axes)
            return jax.vmap(lambda t: ravel_pytree(t)[0])(ones)

        def one(node, column, key):
            key_starts, key_rounds, key_samples = jax.random.split(key, 3)
            starts = prior_draws(key_starts, node, STARTS[effort])
            slopes = jax.vmap(jax.grad(log_family), in_axes=(0, None, None))(starts, node, column)
            active = (slopes != 0).any(axis=0)

            def log_joint(u):
                rest = jnp.where(active, 0.0, -0.5 * (u**2 + jnp.log(2 * jnp.pi)))
                return log_family(u, node, column) + jnp.sum(rest)

            points = jax.vmap(lambda u: ascend(log_joint, u))(jnp.where(active, starts, 0.0))
            values = jax.vmap(log_joint)(points)
            values = jnp.where(jnp.isfinite(values), values, -jnp.inf)
            best = jnp.argsort(-values)[:MODES]
            hessians = -jax.vmap(jax.hessian(log_joint))(points[best])
            eigenvalues, vectors = jnp.linalg.eigh(jnp.where(jnp.isfinite(hessians), hessians, jnp.eye(size)))
            roots = vectors / jnp.sqrt(jnp.maximum(jnp.abs(eigenvalues), 1e-3))[:, None, :]
            covariances = roots @ jnp.swapaxes(roots, 1, 2)
            keys = jax.random.split(key_rounds, MODES)
            modes, factors = jax.vmap(lambda k, m, c: adapted(log_joint, k, m, c))(keys, points[best], covariances)
            half_logs = -jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)), axis=1)
            masses = jax.vmap(log_joint)(modes) - half_logs
            shares = 0.9 * jax.nn.softmax(jnp.where(jnp.isfinite(masses), masses, -jnp.inf)) + 0.1 / MODES
            count = SAMPLES[effort]
            places = (jnp.arange(count) + 0.5) / count
            chosen = jnp.minimum(jnp.searchsorted(jnp.cumsum(shares), places), MODES - 1)
            draws = modes[chosen] + t_draws(key_samples, factors[chosen])
            logs = jax.vmap(lambda m, f: log_t(draws, m, f), out_axes=1)(modes, factors)
            log_proposal = jax.scipy.special.logsumexp(jnp.log(shares) + logs, axis=1)
            log_target = jax.lax.map(log_joint, draws, batch_size=64)
            log_weights = jnp.where(jnp.isfinite(log_target), log_target, -jnp.inf) - log_proposal
            total = jax.scipy.special.logsumexp(log_weights)
            squares = jax.scipy.special.logsumexp(2 * log_weights)
            error = jnp.sqrt(jnp.maximum(jnp.exp(squares - 2 * total) - 1 / count, 0.0))
            return total - jnp.log(count), error, jnp.where(active, draws, 0.0), log_weights

        return one

    def _run(self, nodes: list[int], columns: Bool[np.ndarray, "n d"], effort: int) -> tuple[np.ndarray, ...]:
        """Return the results of `_one` for up to `batch` families."""
        fill = self.batch - len(nodes) if effort == QUICK else 0
        at = np.array([*nodes, *nodes[:1] * fill])
        rows = np.concatenate([columns, np.repeat(columns[:1], fill, axis=0)]).astype(float)
        with jax.enable_x64(True):
            key = jax.random.key(self.seed)
            if effort > LARGEST:
                key = jax.random.fold_in(key, effort)
            found = self._program(min(effort, LARGEST))(jnp.asarray(at), jnp.asarray(rows), key)
            return tuple(np.asarray(part)[: len(nodes)] for part in found)

    def compute(self, node: int, parents: Bool[np.ndarray, " d"], effort: int) -> Estimate:
        if self.size == 0:
            return Estimate(self._without_parameters(node, parents), 0.0, CAREFUL)
        values, errors, *_ = self._run([node], parents[None], effort)
        return Estimate(float(values[0]), float(errors[0]), effort)

    def fill(self, families: Sequence[Wanted]) -> None:
        if self.batch > 1 and self.size > 0:
            quick = [(node, row) for node, row, effort in families if effort == QUICK and self._lacks(node, row, QUICK)]
            for at in range(0, len(quick), self.batch):
                nodes, rows = zip(*quick[at : at + self.batch])
                values, errors, *_ = self._run(list(nodes), np.stack(rows), QUICK)
                for node, row, value, error in zip(nodes, rows, values, errors):
                    self.known[node, row.tobytes()] = Estimate(float(value), float(error), QUICK)
        super().fill(families)

    def _without_parameters(self, node: int, parents: Bool[np.ndarray, " d"]) -> float:
        """Return the score of a model without parameters, which is its evidence."""
        stats_j = type(self.stats)(self.stats.shared, jax.tree.map(lambda leaf: leaf[node], self.stats.node))
        with jax.enable_x64(True):
            return float(self.model.log_family(jnp.asarray(parents, dtype=float), (), stats_j))

    def draw(self, node: int, parents: Bool[np.ndarray, " d"], count: int, seed: int) -> Theta:
        _, _, draws, logs = (part[0] for part in self._run([node], parents[None], CAREFUL))
        chosen = resample(logs, count, np.random.default_rng([seed, node]))
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, jax.vmap(self.unravel)(jnp.asarray(draws[chosen])))


def ascend(log_joint, start):
    """Return the best point that Adam reaches from this start (Kingma and Ba, 2015), with a rate that decays to 0."""

    def step(state, t):
        u, mean, square, best, most = state
        value, slope = jax.value_and_grad(log_joint)(u)
        better = value > most
        best, most = jnp.where(better, u, best), jnp.where(better, value, most)
        slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        unbiased = (mean / (1 - 0.9 ** (t + 1))) / (jnp.sqrt(square / (1 - 0.99 ** (t + 1))) + 1e-12)
        return (u + RATE * (1 - t / STEPS) ** 2 * unbiased, mean, square, best, most), None

    zero = jnp.zeros_like(start)
    state = (start, zero, zero, start, jnp.asarray(-jnp.inf, start.dtype))
    return jax.lax.scan(step, state, jnp.arange(STEPS, dtype=start.dtype))[0][3]


def t_draws(key, factors):
    """Return one draw of the multivariate t distribution around 0 for each Cholesky factor of its scale matrix."""
    key_normals, key_chi = jax.random.split(key)
    count, size = factors.shape[:2]
    normals = jax.random.normal(key_normals, (count, size, 1))
    return (factors @ normals)[..., 0] / jnp.sqrt(jax.random.chisquare(key_chi, DEGREES, (count, 1)) / DEGREES)


def log_t(draws, centre, factor):
    """Return the log density of the multivariate t distribution with this centre and factor at every draw."""
    size = len(centre)
    solved = jax.scipy.linalg.solve_triangular(factor, (draws - centre).T, lower=True)
    log_gamma = jax.scipy.special.gammaln
    return (
        log_gamma((DEGREES + size) / 2) - log_gamma(DEGREES / 2) - 0.5 * size * jnp.log(DEGREES * jnp.pi)
        - jnp.sum(jnp.log(jnp.diagonal(factor)))
        - 0.5 * (DEGREES + size) * jnp.log1p(jnp.sum(solved**2, axis=0) / DEGREES)
    )  # fmt: skip


def adapted(log_joint, key, centre, covariance):
    """Return centre and Cholesky factor of a t proposal near a mode, fitted to the moments of weighted draws.

    Where the curvature at the mode is not that of its surroundings (densities with kinks), the first proposal is far
    too wide or narrow. Weights are flattened to a power at which the effective sample size is sufficient, so that every
    round goes part of the way.
    """

    def one_round(state, key):
        centre, covariance = state
        factor = jnp.linalg.cholesky(covariance)
        draws = centre + t_draws(key, jnp.broadcast_to(factor, (ROUND_DRAWS, *factor.shape)))
        logs = jax.lax.map(log_joint, draws, batch_size=64) - log_t(draws, centre, factor)
        logs = jnp.where(jnp.isfinite(logs), logs, -jnp.inf)
        powers = 0.5 ** jnp.arange(16)
        weights = jax.nn.softmax(powers[:, None] * logs, axis=1)
        enough = 1 / jnp.sum(weights**2, axis=1) >= ROUND_SHARE * ROUND_DRAWS
        used = weights[jnp.where(enough.any(), jnp.argmax(enough), len(powers) - 1)]
        mean = used @ draws
        centred = draws - mean
        moments = jnp.einsum("s,si,sj->ij", used, centred, centred)
        # moments of few draws are shrunk towards their diagonal, and kept positive definite
        moments = 0.9 * moments + 0.1 * jnp.diag(jnp.diagonal(moments)) + 1e-9 * jnp.diag(jnp.diagonal(covariance))
        fine = jnp.isfinite(moments).all() & jnp.isfinite(mean).all()
        return (jnp.where(fine, mean, centre), jnp.where(fine, moments, covariance)), None

    (centre, covariance), _ = jax.lax.scan(one_round, (centre, covariance), jax.random.split(key, ROUNDS))
    return centre, jnp.linalg.cholesky(covariance)


def resample(log_weights: Float[np.ndarray, " n"], count: int, rng: np.random.Generator) -> Int[np.ndarray, " count"]:
    """Return indices drawn by weight, in random order (systematic resampling)."""
    weights = np.exp(log_weights - log_weights.max())
    places = (np.arange(count) + rng.random()) / count * weights.sum()
    return rng.permutation(np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1))
