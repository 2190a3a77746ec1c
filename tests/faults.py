"""What can go wrong with files: calls that fail, and bytes that change."""

import errno
import os

import numpy as np

CALLS = ("write", "fsync", "close", "replace", "link", "open")
OF_ONE_WRITE = 8  # open, write, fsync, close, replace; open, fsync, close of the folder


class Failing:
    """The `os` module, except that its n-th call of those in CALLS fails; with `onwards`, so do all after it."""

    def __init__(self, at: int, onwards: bool = False):
        self.at, self.onwards, self.calls = at, onwards, 0

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in CALLS and not (self.onwards and name == "unlink" and self.calls > self.at):
            return real

        def call(*arguments):
            self.calls += 1
            if self.calls - 1 == self.at or (self.onwards and self.calls > self.at):
                if name == "write":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])  # what fits on a full disk
                if name == "close":  # the file is closed, but was not brought to disk
                    real(*arguments)
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments)

        return call


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    """With one bit changed somewhere."""
    out = bytearray(content)
    out[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def truncated(content: bytes, rng: np.random.Generator) -> bytes:
    """Without its end."""
    return content[: rng.integers(len(content))]
