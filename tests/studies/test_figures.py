"""Figures of studies: values that span orders of magnitude stay readable."""

import pytest

from dagpost.studies.collect import draw_boxes
from dagpost.studies.experiments import STUDIES
from dagpost.studies.tables import Line

matplotlib_figure = pytest.importorskip("matplotlib.figure")


@pytest.mark.parametrize(
    ("values", "scale"),
    [([1.0, 50.0], "linear"), ([10.0, 2e6], "log"), ([-10.0, 2e6], "linear"), ([0.0, 1.0], "linear")],
)
def test_boxes_over_orders_of_magnitude_have_a_logarithmic_axis(values, scale):
    panel = matplotlib_figure.Figure().subplots()
    lines = [Line({"method": "auto"}, "nll", [value], (None, None)) for value in values]
    draw_boxes(panel, STUDIES["mlp-50"].layout, lines, labelled=True)
    assert panel.get_xscale() == scale
