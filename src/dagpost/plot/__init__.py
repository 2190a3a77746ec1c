"""Figures for papers, one call each: `dp.plot.graph(post)`.

Every function draws into `ax`, or into a figure of its own, and returns the matplotlib Axes; save with
`ax.figure.savefig("graph.pdf")`. Colours can be told apart with any kind of colour vision, and names are shown as they
are: a dollar sign in one starts no formula. They need matplotlib, which `pip install 'dagpost[report]'` brings.
"""

from dagpost.plot.edges import edge_intervals, heat_map
from dagpost.plot.effects import effects
from dagpost.plot.evolution import evolution
from dagpost.plot.graph import graph

__all__ = ["edge_intervals", "effects", "evolution", "graph", "heat_map"]
