"""A finished run for people to look at: text and figures, made from its summary."""

from dagpost.report.figure import drawn, has_matplotlib
from dagpost.report.text import text_report

__all__ = ["drawn", "has_matplotlib", "text_report"]
