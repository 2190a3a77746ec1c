"""Scores of families by pgmpy, for tables that a seed or the bundled data fix.

`pgmpy_scores.csv` holds what `python -m tests.models.pgmpy_scores` prints where pgmpy is installed, and names its
version. Tests compare with the file, so that they need no pgmpy.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from tests.networks import asia, sachs_terciles

FILE = Path(__file__).with_suffix(".csv")
FAMILIES = {
    "made": ["x0", "x1", "x1 x0", "x2 x0", "x3 x1 x2", "x4 x0 x1", "x2 x0 x1 x4", "x0 x1 x2 x3", "x3 x0 x1 x2 x4"],
    "asia": ["asia", "tub asia", "lung smoke", "bronc smoke", "either tub lung", "xray either", "dysp bronc either",
             "smoke lung bronc", "dysp asia tub smoke lung bronc either xray"],
    "sachs": ["PKC", "pmek praf", "praf PKC PKA", "p44/42 pmek PKA", "PIP2 plcg PIP3", "pakts473 p44/42 PKA",
              "pjnk PKC PKA", "P38 PKC PKA pjnk", "pmek PKC PKA praf P38 pjnk"],
}  # fmt: skip
"""A node and its parents. Many combinations of levels do not occur in the last of each table."""
SIZES = (1.0, 3.0, 10.0)
DENSE = ("x1 x0", "x4 x0 x1", "lung smoke", "pmek praf", "pjnk PKC PKA")
"""Families in which every combination occurs; pgmpy's K2 and BDs count others as evidence."""


@cache
def tables() -> dict[str, pd.DataFrame]:
    """Frames of categories. Every level of a node occurs: pgmpy 1.1.2 leaves out log Γ(β) of those that do not."""
    rng = np.random.default_rng(7)
    x0 = rng.integers(3, size=150)
    x1 = np.where(rng.random(150) < 0.6, x0 % 2, rng.integers(2, size=150))
    x2, x3 = rng.integers(4, size=150), rng.integers(2, size=150)
    made = np.column_stack([x0, x1, x2, x3, (x0 + x3) % 3])
    levels = (3, 2, 4, 2, 3)
    columns = {
        f"x{j}": pd.Categorical.from_codes(made[:, j], [f"l{v}" for v in range(r)]) for j, r in enumerate(levels)
    }
    return {"made": pd.DataFrame(columns), "asia": asia().sample(500, seed=1), "sachs": sachs_terciles()}


def scores() -> pd.DataFrame:
    """Every score by pgmpy itself."""
    from pgmpy import structure_score

    rows = []
    for table, frame in tables().items():
        states = {name: list(frame[name].cat.categories) for name in frame}
        kinds = {("bdeu", size): {"equivalent_sample_size": size} for size in SIZES}
        kinds |= {("k2", np.nan): {}, ("bds", 2.5): {"equivalent_sample_size": 2.5}}
        for (variant, size), options in kinds.items():
            kind = getattr(structure_score, {"bdeu": "BDeu", "k2": "K2", "bds": "BDs"}[variant])
            own = kind(frame.astype(str), state_names=states, **options)
            for family in FAMILIES[table]:
                if variant == "bdeu" or family in DENSE:
                    node, *parents = family.split()
                    rows.append((table, variant, size, family, own.local_score(node, tuple(parents))))
    return pd.DataFrame(rows, columns=["table", "variant", "equivalent_sample_size", "family", "score"])


if __name__ == "__main__":
    import pgmpy

    print(
        f"# pgmpy {pgmpy.__version__}: structure_score.BDeu(frame, equivalent_sample_size).local_score(node, parents)"
    )
    print(scores().to_csv(index=False, float_format="%.17g"), end="")
