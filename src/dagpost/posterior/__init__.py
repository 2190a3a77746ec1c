"""The posterior over graphs: weighted samples, the questions they answer, and its files."""

from dagpost.posterior.density import log_joint_of, log_prior_of
from dagpost.posterior.drawn import posterior_of_draws
from dagpost.posterior.effects import Effect
from dagpost.posterior.features import Expectation, Parents, ParentSet
from dagpost.posterior.files import load
from dagpost.posterior.posterior import Posterior, WeightedGraph

__all__ = [
    "Effect",
    "Expectation",
    "ParentSet",
    "Parents",
    "Posterior",
    "WeightedGraph",
    "load",
    "log_joint_of",
    "log_prior_of",
    "posterior_of_draws",
]
