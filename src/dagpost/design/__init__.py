"""Which experiment to make next: expected information gain of interventions."""

from dagpost.design.experiment import next_experiment
from dagpost.design.ranking import NextExperiment

__all__ = ["NextExperiment", "next_experiment"]
