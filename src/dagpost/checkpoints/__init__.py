"""States of long runs on disk: saved at natural boundaries, continued bit for bit."""

from dagpost.checkpoints.checkpoint import Checkpoint
from dagpost.checkpoints.container import State
from dagpost.checkpoints.fingerprint import describe, versions
from dagpost.checkpoints.interruption import Interrupted
from dagpost.checkpoints.recorder import Recorder, recording
from dagpost.checkpoints.section import NOWHERE, Section, section_of

__all__ = [
    "NOWHERE",
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
