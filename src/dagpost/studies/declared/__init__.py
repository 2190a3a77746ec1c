"""The studies, one file for each kind; adding one is adding a file and a line here."""

from __future__ import annotations

from dagpost.errors import InputError, nearest
from dagpost.studies.declared.ablations import ABLATIONS
from dagpost.studies.declared.four_node import FOUR_NODE
from dagpost.studies.declared.sachs import SACHS
from dagpost.studies.declared.synthetic import SYNTHETIC
from dagpost.studies.declared.wall_times import WALL_TIMES
from dagpost.studies.study import Study

STUDIES: dict[str, Study] = {study.name: study for study in (*SYNTHETIC, *SACHS, *FOUR_NODE, *ABLATIONS, *WALL_TIMES)}


def study_by_name(name: str) -> Study:
    if name not in STUDIES:
        raise InputError(f"unknown study {name!r}: {nearest(name, STUDIES)}")
    return STUDIES[name]


__all__ = ["STUDIES", "study_by_name"]
