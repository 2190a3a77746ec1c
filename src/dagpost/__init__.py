"""dagpost: from a table of data to a posterior over causal graphs.

>>> import dagpost as dp
>>> sim = dp.simulate(model="linear", nodes=4, observations=100, seed=0)
>>> post = dp.exact(sim.train, model="linear")
>>> round(dp.metrics.auroc(post, sim.graph), 2)
1.0

Parts load when they are first used, so `import dagpost` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Dataset": "data",
    "read_conditions": "data",
    "read_table": "data",
    "sachs": "data",
    "sachs_conditions": "data",
    "sachs_graph": "data",
    "ErdosRenyi": "priors",
    "GraphPrior": "priors",
    "Knowledge": "priors",
    "ScaleFree": "priors",
    "Uniform": "priors",
    "UnknownDensity": "priors",
    "Additive": "models",
    "BDeu": "models",
    "BGe": "models",
    "Copula": "models",
    "GaussianProcess": "models",
    "LinearGaussian": "models",
    "MlpGaussian": "models",
    "Model": "models",
    "Targets": "models",
    "Curve": "posterior",
    "Effect": "posterior",
    "Posterior": "posterior",
    "load": "posterior",
    "Simulation": "simulation",
    "simulate": "simulation",
    "Auto": "inference.auto",
    "Bootstrap": "inference.bootstrap.resampling",
    "Dibs": "inference.dibs",
    "Exact": "inference.exact",
    "ExactPosterior": "inference.exact",
    "JointMc3": "inference.mcmc.joint",
    "Mc3": "inference.mcmc.mc3",
    "Method": "inference.method",
    "Problem": "inference.method",
    "exact": "inference.fit",
    "fit": "inference.fit",
    "History": "inference.history",
    "Checkpoint": "inference.checkpoints",
    "Interrupted": "inference.checkpoints",
    "Comparison": "comparison",
    "compare": "comparison",
    "NextExperiment": "design",
    "next_experiment": "design",
    "StructureLearner": "interfaces.libraries",
    "to_dowhy": "interfaces.libraries",
    "to_pgmpy": "interfaces.libraries",
    "write_report": "report",
    "InputError": "errors",
}
_MODULES = {
    "data": "data",
    "dibs": "inference.dibs",
    "graphs": "graphs",
    "metrics": "metrics",
    "models": "models",
    "plot": "plot",
    "priors": "priors",
}

__all__ = [
    "Additive",
    "Auto",
    "BDeu",
    "BGe",
    "Bootstrap",
    "Checkpoint",
    "Comparison",
    "Copula",
    "Curve",
    "Dataset",
    "Dibs",
    "Effect",
    "ErdosRenyi",
    "Exact",
    "ExactPosterior",
    "GaussianProcess",
    "GraphPrior",
    "History",
    "InputError",
    "Interrupted",
    "JointMc3",
    "Knowledge",
    "LinearGaussian",
    "Mc3",
    "Method",
    "MlpGaussian",
    "Model",
    "NextExperiment",
    "Posterior",
    "Problem",
    "ScaleFree",
    "Simulation",
    "StructureLearner",
    "Targets",
    "Uniform",
    "UnknownDensity",
    "__version__",
    "compare",
    "data",
    "dibs",
    "exact",
    "fit",
    "graphs",
    "load",
    "metrics",
    "models",
    "next_experiment",
    "plot",
    "priors",
    "read_conditions",
    "read_table",
    "sachs",
    "sachs_conditions",
    "sachs_graph",
    "simulate",
    "to_dowhy",
    "to_pgmpy",
    "write_report",
]

if TYPE_CHECKING:
    from dagpost import data, graphs, metrics, models, plot, priors
    from dagpost.comparison import Comparison, compare
    from dagpost.data import Dataset, read_conditions, read_table, sachs, sachs_conditions, sachs_graph
    from dagpost.design import NextExperiment, next_experiment
    from dagpost.errors import InputError
    from dagpost.inference import dibs
    from dagpost.inference.auto import Auto
    from dagpost.inference.bootstrap.resampling import Bootstrap
    from dagpost.inference.checkpoints import Checkpoint, Interrupted
    from dagpost.inference.dibs import Dibs
    from dagpost.inference.exact import Exact, ExactPosterior
    from dagpost.inference.fit import exact, fit
    from dagpost.inference.history import History
    from dagpost.inference.mcmc.joint import JointMc3
    from dagpost.inference.mcmc.mc3 import Mc3
    from dagpost.inference.method import Method, Problem
    from dagpost.interfaces.libraries import StructureLearner, to_dowhy, to_pgmpy
    from dagpost.models import Additive, BDeu, BGe, Copula, GaussianProcess, LinearGaussian, MlpGaussian, Model, Targets
    from dagpost.posterior import Curve, Effect, Posterior, load
    from dagpost.priors import ErdosRenyi, GraphPrior, Knowledge, ScaleFree, Uniform, UnknownDensity
    from dagpost.report import write_report
    from dagpost.simulation import Simulation, simulate


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"dagpost.{_MODULES[name]}")
    if name in _HOMES:
        value = getattr(import_module(f"dagpost.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'dagpost' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
