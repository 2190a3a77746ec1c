"""States of long runs on disk: saved at natural boundaries, continued bit for bit."""

from dagpost.inference.checkpoints.checkpoint import Checkpoint
from dagpost.inference.checkpoints.container import State
from dagpost.inference.checkpoints.fingerprint import describe, versions
from dagpost.inference.checkpoints.interruption import Interrupted
from dagpost.inference.checkpoints.recorder import Recorder, recording
from dagpost.inference.checkpoints.section import NOWHERE, Section, section_of

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
