"""A finished run for people to look at: text and figures, made from its summary."""

from dagpost.report.figure import draw_figure, has_matplotlib
from dagpost.report.text import text_report

__all__ = ["draw_figure", "has_matplotlib", "text_report"]
