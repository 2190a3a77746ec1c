"""The paper's experiments: what varies, what is measured, and the layout of the result.

To add one, write a file, add its studies to `STUDIES` and its measure to `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dagpost.errors import InputError, nearest
from dagpost.studies.experiments.sachs import SACHS, protein_signalling
from dagpost.studies.experiments.synthetic import ABLATIONS, FOUR_NODE, SYNTHETIC, four_node, synthetic
from dagpost.studies.experiments.wall_times import WALL_TIMES, wall_time
from dagpost.studies.study import Study

STUDIES: dict[str, Study] = {study.name: study for study in (*SYNTHETIC, *SACHS, *FOUR_NODE, *ABLATIONS, *WALL_TIMES)}

MEASURES: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "synthetic": synthetic,
    "sachs": protein_signalling,
    "four-node": four_node,
    "wall-time": wall_time,
}
"""Functions from a task to rows of the tidy table, by `Task.kind`."""


def study_by_name(name: str) -> Study:
    """Return the study of this name, or raise an error that suggests the nearest."""
    if name not in STUDIES:
        raise InputError(f"unknown study {name!r}: {nearest(name, STUDIES)}")
    return STUDIES[name]


__all__ = ["MEASURES", "STUDIES", "study_by_name"]
