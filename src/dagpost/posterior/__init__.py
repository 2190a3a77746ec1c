"""The posterior over graphs: weighted samples, the questions they answer, and its files."""

from dagpost.posterior.draws import posterior_of_cells, posterior_of_draws
from dagpost.posterior.effects import Effect
from dagpost.posterior.features import Expectation, Parents, ParentSet
from dagpost.posterior.mechanisms import Curve
from dagpost.posterior.parameters import log_joint_of, log_prior_of
from dagpost.posterior.posterior import Posterior, WeightedGraph, load

__all__ = [
    "Curve",
    "Effect",
    "Expectation",
    "ParentSet",
    "Parents",
    "Posterior",
    "WeightedGraph",
    "load",
    "log_joint_of",
    "log_prior_of",
    "posterior_of_cells",
    "posterior_of_draws",
]
