"""The command line: parse, call, print. One file for each command; heavy parts load inside them."""

from dagpost.interfaces.cli.app import main

__all__ = ["main"]
