"""`dibs-paper` and dibs-lib on the same networks of the studies, from the committed tables.

    python benchmarks/paired.py [--studies bge-20 linear-20 mlp-20]

Means over the networks that both have run on, and the mean of the differences in its standard errors: the table that
docs/results.md shows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dagpost.studies.comparisons import SIMULATED, agreement
from dagpost.studies.numbers import Tables

RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", default=SIMULATED)
    options = parser.parse_args()
    print(agreement(Tables(RESULTS), options.studies), end="")


if __name__ == "__main__":
    main()
