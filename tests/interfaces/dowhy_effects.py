"""Effects by DoWhy on fixed graphs and data, for graphs as `dp.to_dowhy` gives them.

`dowhy_effects.csv` holds what `python -m tests.interfaces.dowhy_effects` prints where DoWhy is installed, and names its
version. Tests compare with the file, so that they need no DoWhy.
"""

from pathlib import Path

import numpy as np
import pandas as pd

import dagpost as dp

FILE = Path(__file__).with_suffix(".csv")
ROWS = 2000
NAMES = ("season", "dose", "marker a", "marker b", "outcome")
GRAPHS = {
    "confounded": [("season", "dose", 0.8), ("season", "outcome", -1.2), ("dose", "outcome", 0.5)],
    "mediated": [("dose", "marker a", 0.9), ("marker a", "outcome", 1.1), ("season", "outcome", 0.7)],
    "both": [("season", "dose", 0.6), ("season", "outcome", 1.0), ("dose", "marker a", -0.7),
             ("marker a", "outcome", 0.8), ("dose", "outcome", 0.4), ("season", "marker b", 0.5)],
    "collider": [("dose", "marker a", 1.0), ("outcome", "marker a", 1.0), ("dose", "marker b", 0.3),
                 ("marker b", "outcome", 0.6)],
    "reversed": [("outcome", "dose", 0.9), ("season", "outcome", 0.4)],
}  # fmt: skip
"""Edges with their weights; the effect is that of dose on outcome."""


def table(name: str) -> pd.DataFrame:
    """Rows of the linear network with standard normal noise."""
    rng = np.random.default_rng(list(GRAPHS).index(name))
    weights = pd.DataFrame(0.0, index=NAMES, columns=NAMES)
    for cause, effect, weight in GRAPHS[name]:
        weights.loc[cause, effect] = weight
    # x = x W + noise
    rows = rng.normal(size=(ROWS, len(NAMES))) @ np.linalg.inv(np.eye(len(NAMES)) - weights.to_numpy())
    return pd.DataFrame(rows, columns=list(NAMES))


def posterior(name: str) -> dp.Posterior:
    """The posterior given the graph."""
    graph = np.zeros((1, len(NAMES), len(NAMES)), dtype=bool)
    for cause, effect, _ in GRAPHS[name]:
        graph[0, NAMES.index(cause), NAMES.index(effect)] = True
    data = dp.Dataset(table(name).to_numpy(), names=NAMES)
    return dp.Posterior(graph, np.zeros(1), NAMES, dp.BGe(), dp.Uniform(), data=data)


def effects() -> pd.DataFrame:
    """The effect of dose on outcome in every graph, by DoWhy itself."""
    from dowhy import CausalModel

    rows = []
    for name in GRAPHS:
        given = dp.to_dowhy(posterior(name))
        for kind, graph in (("gml", given.gml), ("networkx", given.graph)):
            model = CausalModel(table(name), treatment="dose", outcome="outcome", graph=graph)
            estimand = model.identify_effect(proceed_when_unidentifiable=True)
            estimate = model.estimate_effect(estimand, method_name="backdoor.linear_regression")
            rows.append((name, kind, 0.0 if estimate.value is None else float(estimate.value)))
    return pd.DataFrame(rows, columns=["graph", "given", "effect"])


if __name__ == "__main__":
    from importlib.metadata import version

    found = effects().to_csv(index=False, float_format="%.12g")
    print(f"# dowhy {version('dowhy')}: CausalModel(...).estimate_effect(..., 'backdoor.linear_regression')")
    print(found, end="")
