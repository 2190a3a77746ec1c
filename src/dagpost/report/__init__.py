"""A finished run for people to look at: an interactive page from its posterior, text and a figure from its summary."""

from dagpost.report.figure import drawn, has_matplotlib
from dagpost.report.page import html_report, text_report, write_report

__all__ = ["drawn", "has_matplotlib", "html_report", "text_report", "write_report"]
