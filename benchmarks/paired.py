"""`dibs-paper` and dibs-lib on the same networks of the studies, from the committed tables.

    python benchmarks/paired.py [--studies bge-20 linear-20 mlp-20]

Means over the networks that both have run on, and the mean of the differences in its standard errors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from dagpost.studies.labels import shown

RESULTS = Path(__file__).parents[1] / "results"
METRICS = {"shd": ("E-SHD", 1), "auroc": ("AUROC", 3), "nll": ("neg. (M)LL", 0), "edges": ("edges", 1)}
OURS, THEIRS = "dibs-paper", "dibs-lib"
PAIR = ["graphs", "set"]


def final(study: str, model: str) -> pd.DataFrame:
    """The rows of a model that the study's table shows: how its runs ended."""
    table = pd.read_csv(RESULTS / study / "table.csv")
    table = table[table["model"] == model]
    return table[table["final"].isna() | table["final"].eq(True)] if "final" in table else table


def pairs(table: pd.DataFrame, plus: str) -> pd.DataFrame:
    """A row for each network that both have run on."""
    ours, theirs = (table[table["method"] == f"{method}{plus}"].set_index(PAIR) for method in (OURS, THEIRS))
    both = ours.index.intersection(theirs.index)
    return pd.concat({OURS: ours.loc[both], THEIRS: theirs.loc[both]}, axis=1)


def cells(found: pd.DataFrame) -> list[str]:
    out = []
    for metric, (_, digits) in METRICS.items():
        ours, theirs = found[OURS, metric], found[THEIRS, metric]
        difference = ours - theirs
        error = difference.std() / np.sqrt(len(difference))
        out.append(f"{ours.mean():,.{digits}f}, {theirs.mean():,.{digits}f} ({difference.mean() / error:+.1f})")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", default=["bge-20", "linear-20", "mlp-20"])
    options = parser.parse_args()
    headings = ["study", "graphs", "weights", *(heading for heading, _ in METRICS.values()), "networks"]
    print("| " + " | ".join(headings) + " |")
    print("| " + " | ".join("---" for _ in headings) + " |")
    for study in options.studies:
        table = final(study, model=study.partition("-")[0])
        for plus, weights in (("", "equal"), ("+", "posterior")):
            for graphs, found in pairs(table, plus).groupby("graphs"):
                line = [study, shown("graphs", graphs), weights, *cells(found), str(len(found))]
                print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main()
