"""Directed graphs as boolean matrices: acyclicity, Markov equivalence, enumeration, distances, random DAGs."""

from dagpost.graphs.acyclicity import (
    cyclicity,
    cyclicity_gradient,
    descendants,
    find_cycle,
    is_acyclic,
    topological_order,
    with_few_parents,
    without_cycles,
)
from dagpost.graphs.dags import all_columns, all_dags
from dagpost.graphs.essential import (
    consistent_extension,
    equivalent,
    essential_graph,
    essential_hamming_distance,
    in_class,
    literal_essential_graph,
    structural_hamming_distance,
)

__all__ = [
    "all_columns",
    "all_dags",
    "consistent_extension",
    "cyclicity",
    "cyclicity_gradient",
    "descendants",
    "equivalent",
    "essential_graph",
    "essential_hamming_distance",
    "find_cycle",
    "in_class",
    "is_acyclic",
    "literal_essential_graph",
    "structural_hamming_distance",
    "topological_order",
    "with_few_parents",
    "without_cycles",
]
