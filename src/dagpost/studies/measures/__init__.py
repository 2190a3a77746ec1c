"""What a task can measure, one file each: from a task to rows of the tidy table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dagpost.studies.measures.four_node import four_node
from dagpost.studies.measures.sachs import protein_signalling
from dagpost.studies.measures.synthetic import synthetic
from dagpost.studies.measures.wall_time import wall_time

MEASURES: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "synthetic": synthetic,
    "sachs": protein_signalling,
    "four-node": four_node,
    "wall-time": wall_time,
}

__all__ = ["MEASURES"]
