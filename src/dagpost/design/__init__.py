"""Which experiment to make next: expected information gain of interventions."""

from dagpost.design.experiment import NextExperiment, next_experiment

__all__ = ["NextExperiment", "next_experiment"]
