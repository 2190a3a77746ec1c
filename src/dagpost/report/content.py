"""What the page draws and looks up, as plain numbers: probabilities in ten-thousandths, places, graphs, effects."""

from __future__ import annotations

from typing import Any

import numpy as np

from dagpost.errors import InputError
from dagpost.models import Model
from dagpost.posterior import Posterior
from dagpost.report.layout import label, laid_out
from dagpost.typing import Graph, Matrix

UNIT = 10_000
"""Probabilities are rounded to 1 / UNIT."""
CLASSES, PARENT_SETS, LEAST_SET = 5, 5, 0.0005
"""At most so many of each, and parent sets at least this probable."""
LEAST_PATH = 0.01
"""Effects along paths less probable than this are left out."""
LARGEST_SIMULATED = 20
"""Effects in models that are not linear are simulated, up to so many nodes."""
LEVEL, DRAWS = 0.9, 1000
FEWEST, MOST = 0.5, 200
"""The first look shows at least so many edges for each node, and at most so many in all, if a threshold does."""


def content_of(post: Posterior) -> dict[str, Any]:
    """The data that the page carries; the same posterior gives the same data."""
    p = post.edge_marginals
    layout = laid_out(post.names, p)
    effects, without = effects_of(post)
    return {
        "names": list(post.names),
        "labels": [label(name) for name in post.names],
        "edges": scaled(p),
        "paths": scaled(post.ancestor_probabilities.to_numpy()),
        "x": layout.x.round(1).tolist(),
        "y": layout.y.round(1).tolist(),
        "widths": layout.width.round(1).tolist(),
        "order": layout.order,
        "start": first_threshold(p),
        "consensus": pairs(post.consensus_graph()),
        "classes": [_class(c.graph, c.probability) for c in post.essential_graphs(CLASSES)],
        "parentSets": _parent_sets(post),
        "effects": effects,
        "noEffects": without,
        **_known(post),
    }


def scaled(probabilities: Matrix) -> list[int]:
    """Row by row in ten-thousandths."""
    return np.rint(probabilities * UNIT).astype(int).reshape(-1).tolist()


def pairs(graph: Graph) -> list[list[int]]:
    return [[int(i), int(j)] for i, j in zip(*np.nonzero(graph))]


def first_threshold(p: Matrix) -> float:
    """The slider's first place: 1/2, unless that shows hardly any edge, or too many to read."""
    rounded = np.rint(p * UNIT) / UNIT

    def edges(threshold: float) -> int:
        return int((rounded >= threshold).sum())

    if edges(0.5) > MOST:
        return next((t for t in (0.7, 0.9, 0.95) if edges(t) <= MOST), 0.99)
    return next((t for t in (0.5, 0.3, 0.2) if edges(t) >= FEWEST * len(p)), 0.1)


def _class(graph: Graph, probability: float) -> dict[str, Any]:
    """Edges that all members share, and pairs whose direction the class leaves open."""
    return {
        "probability": round(probability, 4),
        "directed": pairs(graph & ~graph.T),
        "open": pairs(np.triu(graph & graph.T)),
    }


def _parent_sets(post: Posterior) -> list[list[Any]]:
    """Of each node: its most probable parent sets, as indices, with their probability."""
    place = {name: j for j, name in enumerate(post.names)}
    tops = [post.parents_of(j, top=PARENT_SETS).sets for j in range(post.nodes)]
    return [
        [[[place[n] for n in s.parents], round(s.probability, 4)] for s in top if s.probability >= LEAST_SET]
        for top in tops
    ]


def effects_of(post: Posterior) -> tuple[dict[str, Any] | None, str]:
    """Average causal effects in the units of the table, or None and the reason."""
    linear = type(post.model).linear_weights is not Model.linear_weights
    if not linear and post.nodes > LARGEST_SIMULATED:
        return None, (
            f"Effects in a model that is not linear are simulated; with more than {LARGEST_SIMULATED} columns this "
            "page leaves them out. In Python: post.effect(cause, effect)."
        )
    try:
        table = post.effect_table(level=LEVEL, draws=DRAWS)
    except InputError:
        return None, (
            "Effects need the data, which a saved posterior does not hold: `dagpost report run --data TABLE "
            "--overwrite` adds them; in Python, dp.write_report(post.with_data(TABLE), path)."
        )
    except NotImplementedError:
        return None, f"The model {post.model.name!r} does not say how to simulate an intervention."
    place = {name: j for j, name in enumerate(post.names)}
    columns = (table[name].tolist() for name in ("cause", "effect", "mean", "lower", "upper", "probability"))
    rows = [
        [place[cause], place[effect], *map(significant, numbers)]
        for cause, effect, *numbers, path in zip(*columns)
        if path >= LEAST_PATH
    ]
    return {"level": LEVEL, "linear": linear, "rows": sorted(rows)}, ""


def significant(value: float) -> float:
    """Four digits."""
    return float(f"{value:.4g}")


def _known(post: Posterior) -> dict[str, list[int]]:
    """Edges that prior knowledge requires or forbids, as row * d + column."""
    known = post.prior.constraints
    if known is None:
        return {"required": [], "forbidden": []}
    forbidden = ~known.allowed & ~np.eye(post.nodes, dtype=np.bool_)
    return {
        "required": np.flatnonzero(known.required).tolist(),
        "forbidden": np.flatnonzero(forbidden).tolist(),
    }
