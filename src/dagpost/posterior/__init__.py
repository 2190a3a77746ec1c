"""The posterior over graphs: weighted samples and the questions they answer."""

from dagpost.posterior.density import log_joint_of, log_prior_of
from dagpost.posterior.drawn import posterior_of_draws
from dagpost.posterior.posterior import Posterior, WeightedGraph

__all__ = ["Posterior", "WeightedGraph", "log_joint_of", "log_prior_of", "posterior_of_draws"]
