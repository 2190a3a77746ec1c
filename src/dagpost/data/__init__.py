"""Data: the immutable Dataset, reading tables from disk, checks, and the bundled Sachs data."""

from dagpost.data.checks import check_for_inference, kind_problems
from dagpost.data.dataset import Dataset, Scaling
from dagpost.data.lags import lagged
from dagpost.data.reading import read_table
from dagpost.data.sachs import sachs, sachs_conditions, sachs_graph
from dagpost.data.sources import as_dataset, read_conditions

__all__ = [
    "Dataset",
    "Scaling",
    "as_dataset",
    "check_for_inference",
    "kind_problems",
    "lagged",
    "read_conditions",
    "read_table",
    "sachs",
    "sachs_conditions",
    "sachs_graph",
]
