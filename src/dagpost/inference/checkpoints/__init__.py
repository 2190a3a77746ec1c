"""Checkpoints of long runs: states saved between units of work, from which a run continues bit for bit."""

from dagpost._util.environment import describe, versions
from dagpost.inference.checkpoints.checkpoint import Checkpoint, State
from dagpost.inference.checkpoints.recorder import NULL_SECTION, Interrupted, Recorder, Section, recording, section_of

__all__ = [
    "NULL_SECTION",
    "Checkpoint",
    "Interrupted",
    "Recorder",
    "Section",
    "State",
    "describe",
    "recording",
    "section_of",
    "versions",
]
