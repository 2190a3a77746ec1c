"""Structure MCMC: chains over DAGs for models with closed-form evidence and priors that decompose."""

from dagpost.inference.mcmc.mc3 import equilibrate

__all__ = ["equilibrate"]
