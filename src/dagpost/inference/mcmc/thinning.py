"""How the paper keeps samples of a single chain: a burn-in, then one sample every so many steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dagpost.errors import InputError, nearest, whole_number

RATIOS = ("approximate", "exact")


@dataclass(frozen=True)
class Thinning:
    """The published numbers of steps; `neighbourhood` says whether the ratio of neighbourhood sizes is taken to be one,
    as published, or computed."""

    burn_in: int = 100_000
    thin: int = 10_000
    neighbourhood: Literal["approximate", "exact"] = "approximate"

    def __post_init__(self):
        whole_number("burn_in", self.burn_in, least=0)
        whole_number("thin", self.thin, least=1)
        if self.neighbourhood not in RATIOS:
            raise InputError(f"neighbourhood={self.neighbourhood!r}: {nearest(str(self.neighbourhood), RATIOS)}")

    def steps(self, samples: int) -> int:
        """Total steps."""
        return self.burn_in + samples * self.thin

    def warm_up(self) -> list[int]:
        """The burn-in in parts of at most `thin` steps, so that progress can be shown."""
        return [min(self.thin, self.burn_in - done) for done in range(0, self.burn_in, self.thin)]

    @property
    def info(self) -> dict[str, Any]:
        """What a posterior says of it."""
        return {"burn_in": self.burn_in, "thin": self.thin, "neighbourhood": self.neighbourhood}

    def ended(self, kept: int, wanted: int) -> dict[str, Any]:
        """What a posterior says of a chain that its time limit has ended; nothing of one that kept all samples."""
        if kept == wanted:
            return {}
        text = f"The time limit ended the chain with {kept} of {wanted} samples: do not trust it, give it more time."
        return {"ended_by": "limit", "verdict": text}
