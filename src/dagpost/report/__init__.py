"""Reports of a finished run: an interactive HTML page, plain text and a PNG figure."""

from dagpost.plot.canvas import has_matplotlib
from dagpost.report.page import html_report, png_report, text_report, write_report

__all__ = ["has_matplotlib", "html_report", "png_report", "text_report", "write_report"]
