"""dibs-lib, the library of the paper's authors, as a method of the studies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from dagpost.data import Dataset
from dagpost.errors import AllCyclic, InputError, RunError
from dagpost.graphs import is_acyclic
from dagpost.inference.dibs.settings import published
from dagpost.models import BGe, LinearGaussian, MlpGaussian, MlpTheta, Model
from dagpost.posterior import Posterior, log_joint_of
from dagpost.posterior.records import ParticleDiagnostics, RunRecord
from dagpost.priors import as_prior

PRIORS = {"erdos-renyi": "ErdosReniDAGDistribution", "scale-free": "ScaleFreeDAGDistribution"}
"""Classes of dibs-lib by name of our prior."""


def fit_dibs_lib(
    data: Dataset, model: Model, prior: str, *, particles: int = 30, steps: int = 3000, seed: int = 0
) -> Posterior:
    """Run dibs-lib with the published settings.

    Particles are weighted as ours are: weights contain the `p(G)` that the mixture of dibs-lib leaves out, and cycles
    are detected exactly.

    Parameters
    ----------
    data, model, prior
        As in `dagpost.fit`; the model is BGe, linear or MLP, with known noise.
    particles, steps, seed
        Settings of the run.

    Returns
    -------
    Posterior
        With equal weights, without cyclic particles.

    Raises
    ------
    AllCyclic
        If every particle has a cycle.
    RunError
        If particles are not finite.
    """
    found = transported(data.values, jax.random.PRNGKey(seed), model, prior, particles, steps)
    return _checked(data, model, prior, found)


def fit_dibs_lib_batched(
    data: Sequence[Dataset], model: Model, prior: str, *, seeds: Sequence[int], particles: int = 30, steps: int = 3000
) -> list[Posterior | AllCyclic | RunError]:
    """Run dibs-lib on data sets of equal size at once, as its own code under `jax.vmap`, to fill a GPU.

    Parameters
    ----------
    data, model, prior, particles, steps
        As in `fit_dibs_lib`.
    seeds
        One for each data set.

    Returns
    -------
    list
        For each data set what `fit_dibs_lib` returns or raises.
    """
    values = np.stack([one.values for one in data]).astype(np.float32)
    keys = jax.numpy.stack([jax.random.PRNGKey(seed) for seed in seeds])
    found = jax.vmap(lambda x, key: transported(x, key, model, prior, particles, steps))(values, keys)
    found = jax.tree.map(np.asarray, found)
    outcomes = []
    for number, one in enumerate(data):
        try:
            outcomes.append(_checked(one, model, prior, jax.tree.map(lambda leaf, n=number: leaf[n], found)))
        except (AllCyclic, RunError) as error:
            outcomes.append(error)
    return outcomes


class Transported(NamedTuple):
    """Particles at the end of a run: latent variables, graphs, and parameters where the model has them."""

    latent: Any
    graphs: Any
    theta: Any


def transported(values: Any, key: Any, model: Model, prior: str, particles: int, steps: int) -> Transported:
    """Return the particles of dibs-lib after its last step; it can be traced by `jax.vmap`."""
    latent: list[Any] = []
    result = sampler(values, model, prior).sample(
        key=key, n_particles=particles, steps=steps, callback=lambda *, zs, **_: latent.append(zs)
    )
    graphs, theta = (result, ()) if model.name == "bge" else result
    return Transported(latent[-1], graphs, theta)


def _checked(data: Dataset, model: Model, prior: str, found: Transported) -> Posterior:
    """Return particles as a posterior; raise an error if they are not finite or all cyclic."""
    if not np.isfinite(found.latent).all():  # dibs-lib would return empty graphs
        raise RunError(
            "particles of dibs-lib are not finite: with five nodes its Erdős–Rényi prior takes the logarithm of zero"
        )
    return as_posterior(data, model, prior, np.asarray(found.graphs) > 0, found.theta)


def sampler(values: Any, model: Model, prior: str, beta: float = 1.0, shift: float = 0.5) -> Any:
    """Return the sampler object of dibs-lib with the published settings.

    Parameters
    ----------
    values
        Data, rows by nodes.
    model, prior
        As in `fit_dibs_lib`.
    beta
        Slope of the linear schedule of beta.
    shift
        `min_edge` of dibs-lib: initial weights of linear particles come from the prior, moved away from zero by this.
    """
    try:
        from dibs import inference  # pyright: ignore[reportMissingImports]
        from dibs.models import graph, linearGaussian, nonlinearGaussian  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError("dibs-lib is not installed: run `make setup-bench`") from error
    if prior not in PRIORS:
        raise InputError(f"dibs-lib has no prior {prior!r}: use one of {', '.join(PRIORS)}")
    d = values.shape[1]
    slope, bandwidth_z, bandwidth_theta = published(model.name, d)
    common = {
        "x": jax.numpy.asarray(values, dtype=jax.numpy.float32),
        "graph_model": getattr(graph, PRIORS[prior])(d, n_edges_per_node=2),
        "alpha_linear": slope,
        "beta_linear": beta,
    }
    if isinstance(model, BGe):
        likelihood = linearGaussian.BGe(n_vars=d, alpha_mu=model.alpha_mu)
        return inference.MarginalDiBS(
            likelihood_model=likelihood, kernel_param={"h": bandwidth_z}, grad_estimator_z="score", **common
        )
    if isinstance(model, LinearGaussian):
        likelihood = linearGaussian.LinearGaussian(n_vars=d, obs_noise=known_noise(model), min_edge=shift)
    elif isinstance(model, MlpGaussian):
        dense = nonlinearGaussian.DenseNonlinearGaussian
        likelihood = dense(n_vars=d, hidden_layers=(5,), obs_noise=known_noise(model))
    else:
        raise InputError(f"dibs-lib has no model {model.name!r}: use bge, linear or mlp")
    kernel = {"h_latent": bandwidth_z, "h_theta": bandwidth_theta}
    return inference.JointDiBS(likelihood_model=likelihood, kernel_param=kernel, **common)


def known_noise(model: LinearGaussian | MlpGaussian) -> float:
    """Return the noise variance of a model; raise an error if it is to be learnt."""
    if model.noise_variance is None:
        raise InputError("dibs-lib cannot learn unknown noise: give the model a noise_variance")
    return model.noise_variance


def as_posterior(data: Dataset, model: Model, prior: str, graphs: np.ndarray, theta: Any) -> Posterior:
    """Return particles of dibs-lib as a posterior with equal weights; cyclic ones are dropped, as in the paper."""
    if model.name == "mlp":
        layers = [layer for layer in theta if len(layer)]
        theta = MlpTheta(tuple(np.asarray(w) for w, _ in layers), tuple(np.asarray(b) for _, b in layers), None)
    kept = np.flatnonzero(is_acyclic(graphs))
    if len(kept) == 0:
        raise AllCyclic(f"all {len(graphs)} particles of dibs-lib have a cycle: run more steps")
    theta = jax.tree.map(lambda leaf: np.asarray(leaf)[kept], theta)
    graph_prior = as_prior(prior)
    joint = log_joint_of(graphs[kept], theta, model, graph_prior, model.summarise(data))
    return Posterior(
        graphs[kept], np.zeros(len(kept)), data.names, model, graph_prior, theta=theta, log_joint=joint,
        record=RunRecord("dibs-lib", diagnostics=ParticleDiagnostics(len(graphs), len(graphs) - len(kept))),
    )  # fmt: skip
