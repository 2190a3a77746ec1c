"""Structure MCMC: chains over DAGs for models with evidence and priors that decompose, and joint chains over
graphs and parameters."""

from dagpost.inference.mcmc.final_moves import equilibrate

__all__ = ["equilibrate"]
