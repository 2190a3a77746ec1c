"""Settings of a run as plain sentences: model, prior, method and options. Objects of users keep their `repr`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from dagpost.models import Additive, BDeu, BGe, Copula, GaussianProcess, LinearGaussian, MlpGaussian, Perturbed
from dagpost.posterior.records import ChainDiagnostics, Diagnostics, ExactDiagnostics, ParticleDiagnostics
from dagpost.priors import ErdosRenyi, InformedPrior, ScaleFree, Uniform, UnknownDensity
from dagpost.priors.constraints import Constraints


def _noise(model: LinearGaussian | MlpGaussian) -> str:
    """Return how the noise variance is treated."""
    if model.noise_variance is not None:
        return f"noise variance of every node known, {model.noise_variance:g}"
    return (
        "noise variance of each node learnt (prior: inverse gamma with shape "
        f"{model.noise_shape:g} and rate {model.noise_rate:g})"
    )


def _linear(model: LinearGaussian) -> str:
    """Return the linear Gaussian model in words."""
    unit = "" if model.noise_variance is not None else ", in units of the noise standard deviation"
    scale = f"prior standard deviation of a weight {model.weight_scale:g}{unit}"
    return f"Linear Gaussian model; {_noise(model)}; {scale}"


def _mlp(model: MlpGaussian) -> str:
    """Return the neural network model in words."""
    layers = " and ".join(str(width) for width in model.hidden)
    units = f"{layers} hidden unit{'s' if model.hidden != (1,) else ''} ({model.activation})"
    bias = "" if model.bias else ", without biases"
    return (
        f"Nonlinear Gaussian model, a neural network for each node with {units}{bias}; {_noise(model)}; "
        f"prior standard deviation of a weight {model.weight_scale:g}"
    )


def _bge(model: BGe) -> str:
    """Return the BGe model in words."""
    freedom = "2 more than nodes" if model.alpha_w is None else f"{model.alpha_w:g}"
    given = [what for what, value in (("mean", model.mean), ("scale matrix", model.scale_matrix)) if value is not None]
    chosen = f"; prior {' and '.join(given)} chosen by the user" if given else ""
    return (
        "Linear Gaussian model, parameters integrated out (BGe score); prior mean with the weight of "
        f"{model.alpha_mu:g} row{'' if model.alpha_mu == 1 else 's'}; "
        f"degrees of freedom of the Wishart prior: {freedom}{chosen}"
    )


def _copula(model: Copula) -> str:
    """Return the copula in words."""
    freedom = "2 more than nodes" if model.alpha_w is None else f"{model.alpha_w:g}"
    return (
        "Gaussian copula: columns are monotone transforms of latent ones, known by their ranks alone; latent columns "
        f"follow a linear Gaussian model, parameters integrated out; degrees of freedom of the Wishart prior: {freedom}"
    )


def _bdeu(model: BDeu) -> str:
    """Return the categorical model in words."""
    weight = f"{model.equivalent_sample_size:g} row{'' if model.equivalent_sample_size == 1 else 's'}"
    prior = {
        "bdeu": f"the weight of {weight}, divided equally among the cells of a table (BDeu)",
        "k2": "the weight of one row in each cell (K2)",
        "bds": f"the weight of {weight}, divided among combinations of levels that occur (BDs)",
    }
    return f"Categorical network, tables of probabilities integrated out; Dirichlet prior with {prior[model.variant]}"


def _additive(model: Additive) -> str:
    """Return the additive model in words."""
    ratios = ", ".join(f"{ratio:g}" for ratio in model.signal_ratios)
    return (
        "Nonlinear Gaussian model, a sum of smooth functions of single parents, integrated out; length scale "
        f"{model.length_scale:g} standard deviations, signal-to-noise ratios of {ratios}, equally probable"
    )


def _gaussian_process(model: GaussianProcess) -> str:
    """Return the Gaussian-process model in words."""
    lengths, ratios = (", ".join(f"{value:g}" for value in grid) for grid in (model.lengths, model.ratios))
    shape = {
        "both": "of all parents or a sum over single parents (equally probable)",
        "joint": "of all parents",
        "sum": "that is a sum over single parents",
    }[model.kernel]
    return (
        f"Nonlinear Gaussian model, a Gaussian process {shape} for each node, integrated out; length scales of "
        f"{lengths} standard deviations and signal-to-noise ratios of {ratios}, equally probable"
    )


def _erdos_renyi(prior: ErdosRenyi) -> str:
    """Return the Erdős–Rényi prior in words."""
    if prior.probability is not None:
        return f"Edges with probability {prior.probability:g} each, independent but for acyclicity (Erdős–Rényi)"
    per_node = f"{prior.edges_per_node:g} edge{'' if prior.edges_per_node == 1 else 's'} per node"
    return f"About {per_node} expected, edges independent but for acyclicity (Erdős–Rényi)"


def _scale_free(prior: ScaleFree) -> str:
    """Return the scale-free prior in words."""
    return f"A few nodes with many parents, most with few: power law with exponent {prior.exponent:g} (scale-free)"


def _unknown_density(prior: UnknownDensity) -> str:
    """Return the mixture of densities in words."""
    first, last = min(prior.edges_per_node), max(prior.edges_per_node)
    count = len(prior.edges_per_node)
    return f"Number of edges learnt: {count} equally probable densities from {first:g} to {last:g} edges per node"


def _informed(prior: InformedPrior) -> str:
    """Return a prior with knowledge in words."""
    return f"{described(prior.base)}; restricted by the prior knowledge"


def _perturbed(model: Perturbed) -> str:
    """Return a model with conditions in words."""
    targets = model.targets
    what = "parents stay, parameters change" if targets.change == "soft" else "a changed node has no parents"
    prior = f"prior probability {targets.probability:g} each" if targets.probability else "known ones alone"
    return f"{described(model.base)}; conditions change mechanisms ({what}), targets: {prior}"


SENTENCES: dict[type, Callable[[Any], str]] = {
    LinearGaussian: _linear,
    MlpGaussian: _mlp,
    BGe: _bge,
    Copula: _copula,
    BDeu: _bdeu,
    Additive: _additive,
    GaussianProcess: _gaussian_process,
    Perturbed: _perturbed,
    ErdosRenyi: _erdos_renyi,
    ScaleFree: _scale_free,
    Uniform: lambda prior: "Every acyclic graph equally probable (uniform)",
    UnknownDensity: _unknown_density,
    InformedPrior: _informed,
}
"""Sentence for each shipped model and prior."""
METHODS = {
    "exact": "Exact: sums over all acyclic graphs",
    "dibs": "DiBS: particles on a continuous embedding of graphs",
    "dibs-paper": "DiBS as published: particles on a continuous embedding of graphs",
    "mc3": "Structure MCMC as published (MC³): one chain over graphs",
    "m-mc3": "Metropolis MCMC over graphs and parameters as published (M-MC³)",
    "g-mc3": "Metropolis within Gibbs over graphs and parameters as published (G-MC³)",
    "bootstrap-pc": "Bootstrap: the PC algorithm on resamples of the rows, weighted by the posterior",
    "bootstrap-ges": "Bootstrap: greedy equivalence search (GES) on resamples of the rows, weighted by the posterior",
}
"""Sentence for each shipped method other than "auto"."""
ORDERS = "Exact: independent draws of acyclic graphs, by way of sums over orders of the columns"
CHAINS = "Markov chains at several temperatures that judge their own agreement"
STARTS = {
    "empty": "chains start from the empty graph",
    "random": "chains start from draws of the prior",
    "ges": "chains start from the graphs of a greedy search",
    "dibs": "chains start from particles of DiBS",
}
OPTIONS: dict[str, str] = {
    "draws": "{} graphs kept",
    "particles": "{} graphs kept",
    "precision": "end when every edge probability has a standard error of at most {}",
    "max_moves": "at most {} moves of all chains",
    "ensembles": "{} independent ensembles of chains",
    "steps": "{} steps",
    "burn_in": "{} steps before the first graph is kept",
    "thin": "{} steps between graphs that are kept",
    "significance": "tests at a level of {}",
    "penalty": "{} times the penalty of BIC",
    "moves": "{} Metropolis moves of each particle at the end",
    "batch": "minibatches of {} rows",
    "scale": "random walk of the parameters with standard deviation {}",
    "time_limit": "time limit of {} seconds",
    "memory_limit": "memory limit of {} GiB",
    "seed": "seed {}",
}
"""Phrase for each option; others are shown as `name: value`."""
NOT_SHOWN = {"method", "learner", "variant", "published", "parameters", "dibs"}
"""Options that the sentence of the method covers."""
OF_CHAINS = {"precision", "max_moves", "ensembles", "start"}
"""Options of "auto" that mean nothing where no chains ran."""


def described(setting: Any) -> str:
    """Return a model or a prior as a sentence; the `repr` of an object that dagpost does not ship.

    Parameters
    ----------
    setting
        A model, a prior, or the `repr` of one.

    Returns
    -------
    str
        The sentence, without a full stop.

    Examples
    --------
    >>> import dagpost as dp
    >>> described(dp.Uniform())
    'Every acyclic graph equally probable (uniform)'
    >>> described("ErdosRenyi(edges_per_node=1.0, probability=None)")
    'About 1 edge per node expected, edges independent but for acyclicity (Erdős–Rényi)'
    """
    if isinstance(setting, str):
        try:
            return described(_built(ast.parse(setting, mode="eval").body))
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return setting
    sentence = SENTENCES.get(type(setting))
    return repr(setting) if sentence is None else sentence(setting)


def _built(node: ast.expr) -> Any:
    """Return the shipped model or prior that an expression stands for; ValueError for any other expression."""
    if not isinstance(node, ast.Call):
        raise ValueError("not the repr of a setting")
    kinds = {kind.__name__: kind for kind in (*SENTENCES, Constraints)}
    if not isinstance(node.func, ast.Name) or node.func.id not in kinds or node.args:
        raise ValueError("not a setting that comes with dagpost")
    fields = {
        str(part.arg): _built(part.value) if isinstance(part.value, ast.Call) else ast.literal_eval(part.value)
        for part in node.keywords
    }
    return kinds[node.func.id](**fields)


def method_sentence(method: str, diagnostics: Diagnostics | None = None) -> str:
    """Return the method as a sentence.

    Parameters
    ----------
    method
        Name of the method.
    diagnostics
        Diagnostics of the run, which say what "auto" chose.

    Returns
    -------
    str
        The sentence, without a full stop; the name itself for a method that dagpost does not ship.
    """
    if method != "auto":
        return METHODS.get(method, method)
    if isinstance(diagnostics, ExactDiagnostics) and diagnostics.algorithm == "orders":
        return f"{ORDERS} (chosen automatically)"
    if isinstance(diagnostics, ExactDiagnostics):
        return f"{METHODS['exact']} (chosen automatically)"
    if isinstance(diagnostics, ParticleDiagnostics):
        return f"{METHODS['dibs']} (chosen automatically)"
    return f"{CHAINS} (chosen automatically)" if isinstance(diagnostics, ChainDiagnostics) else "Chosen automatically"


def option_phrases(options: Mapping[str, Any], diagnostics: Diagnostics | None) -> str:
    """Return the options of a run that had a meaning, as phrases in one line.

    Parameters
    ----------
    options
        Options by name.
    diagnostics
        Diagnostics of the run: options of chains are left out where none ran.

    Returns
    -------
    str
        Phrases separated by semicolons; empty without options.
    """
    left_out = set(NOT_SHOWN)
    if options.get("method") == "auto":
        exact, particles = isinstance(diagnostics, ExactDiagnostics), isinstance(diagnostics, ParticleDiagnostics)
        left_out |= OF_CHAINS if exact or particles else set()
        left_out |= {"draws"} if particles else {"particles"}
    phrases = [_phrase(name, value) for name, value in options.items() if value is not None and name not in left_out]
    return "; ".join(phrases)


def _phrase(name: str, value: Any) -> str:
    """Return one option in words."""
    if name == "start" and value in STARTS:
        return STARTS[value]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in OPTIONS and number:
        text = str(value) if name == "seed" else f"{value:,}" if isinstance(value, int) else f"{value:g}"
        return OPTIONS[name].format(text)
    shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
    return f"{name.replace('_', ' ')}: {shown}"
