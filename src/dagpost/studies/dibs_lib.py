"""The authors' own library (dibs-lib) as a method of the studies, where it is installed."""

from __future__ import annotations

from typing import Any

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

GRAPHS = {"erdos-renyi": "ErdosReniDAGDistribution", "scale-free": "ScaleFreeDAGDistribution"}


def fit_dibs_lib(
    data: Dataset, model: Model, prior: str, *, particles: int = 30, steps: int = 3000, seed: int = 0
) -> Posterior:
    """dibs-lib with the published settings. Its graphs and parameters are weighted as ours are: the `p(G)` that its own
    mixture leaves out is in the weights, and cycles are found exactly."""
    latent: list[np.ndarray] = []
    result = sampler(data, model, prior).sample(
        key=jax.random.PRNGKey(seed), n_particles=particles, steps=steps,
        callback=lambda *, zs, **_: latent.append(np.asarray(zs)),
    )  # fmt: skip
    if not np.isfinite(latent[-1]).all():  # its graphs are empty then
        raise RunError(
            "particles of dibs-lib are not finite: with five nodes its Erdős–Rényi prior takes the logarithm of zero"
        )
    graphs, theta = (result, ()) if model.name == "bge" else result
    return as_posterior(data, model, prior, np.asarray(graphs) > 0, theta)


def sampler(data: Dataset, model: Model, prior: str, beta: float = 1.0, shift: float = 0.5) -> Any:
    """dibs-lib's own object with the published settings; `beta` is the slope of beta.

    Linear particles start with weights from the prior that are moved away from zero by `shift`, its `min_edge`.
    """
    try:
        from dibs import inference  # pyright: ignore[reportMissingImports]
        from dibs.models import graph, linearGaussian, nonlinearGaussian  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InputError("dibs-lib is not installed: `make setup-bench` brings it") from error
    if prior not in GRAPHS:
        raise InputError(f"dibs-lib has no prior {prior!r}: use one of {', '.join(GRAPHS)}")
    d = data.nodes
    slope, bandwidth_z, bandwidth_theta = published(model.name, d)
    common = {
        "x": jax.numpy.asarray(data.values, dtype=jax.numpy.float32),
        "graph_model": getattr(graph, GRAPHS[prior])(d, n_edges_per_node=2),
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
    if model.noise_variance is None:
        raise InputError("dibs-lib has no unknown noise: give the model a noise_variance")
    return model.noise_variance


def as_posterior(data: Dataset, model: Model, prior: str, graphs: np.ndarray, theta: Any) -> Posterior:
    """Particles of dibs-lib as a posterior with equal weights; cyclic ones are dropped, as in the paper."""
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
