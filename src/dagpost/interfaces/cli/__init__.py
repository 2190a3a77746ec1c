"""The command line. Each command imports the library only when it runs, so that `dagpost --help` is quick."""

from dagpost.interfaces.cli.app import main

__all__ = ["main"]
