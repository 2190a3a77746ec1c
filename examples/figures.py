"""Draw the figures of the documentation, one call each.

    python examples/figures.py [FOLDER]

Pictures go to the folder, or to a temporary one.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib

import dagpost as dp

matplotlib.use("Agg")
TABLE = Path(__file__).parent / "tables" / "cells.csv"


def draw(folder: Path) -> None:
    """Infer the posteriors and write a picture of each kind."""
    sachs = dp.exact(dp.sachs(condition="anti-CD3/CD28").standardised(), model="bge")
    all_conditions = dp.exact(dp.sachs().standardised(), model="bge")
    cells = dp.read_table(TABLE).standardised()
    history = dp.History()
    dibs = dp.fit(cells, model="bge", method="dibs", steps=400, every=5, moves=1000, callback=history)
    sampled = dp.fit(cells, model="bge", precision=0.02)
    curved = dp.fit(cells, model="additive")
    strongest = curved.edge_table().iloc[0]
    figures = {
        "sachs.png": dp.plot.graph(sachs),
        "heat_map.png": dp.plot.heat_map(all_conditions),
        "edge_intervals.png": dp.plot.edge_intervals(dibs, top=15),
        "effects.png": dp.plot.effects(sampled, top=6),
        "mechanism.png": dp.plot.mechanism(curved, strongest.cause, strongest.effect),
        "evolution.png": dp.plot.evolution(history, names=dibs.names),
    }
    for name, ax in figures.items():
        ax.figure.savefig(folder / name, dpi=85)
        print(f"{name}: {ax.get_title().splitlines()[0]}")


def main() -> None:
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        draw(folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            draw(Path(folder))


if __name__ == "__main__":
    main()
