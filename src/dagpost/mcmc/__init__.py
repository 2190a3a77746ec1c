"""Structure MCMC, in the making: an editable DAG with its ancestors, and a cache of family scores."""
