"""Figures of a posterior, one call each: `dp.plot.graph(post)`.

Every function draws into `ax`, or into a new figure, and returns the matplotlib Axes; save with
`ax.figure.savefig("graph.pdf")`. Colours can be told apart with any kind of colour vision, and names are shown
literally: a dollar sign does not start a formula. Figures need matplotlib: `pip install 'dagpost[report]'`.
"""

from dagpost.plot.charts import edge_intervals, effects, evolution, experiments, heat_map, mechanism
from dagpost.plot.graph import graph

__all__ = ["edge_intervals", "effects", "evolution", "experiments", "graph", "heat_map", "mechanism"]
