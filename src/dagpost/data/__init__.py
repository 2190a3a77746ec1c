"""Tables in: the immutable Dataset, reading from disk, checks, and the bundled Sachs data."""

from dagpost.data.checks import check_for_inference
from dagpost.data.conditions import read_conditions
from dagpost.data.dataset import Dataset, Scaling, as_dataset
from dagpost.data.reading import read_table
from dagpost.data.sachs import sachs, sachs_conditions, sachs_graph

__all__ = [
    "Dataset",
    "Scaling",
    "as_dataset",
    "check_for_inference",
    "read_conditions",
    "read_table",
    "sachs",
    "sachs_conditions",
    "sachs_graph",
]
