"""Data embedded in the HTML report: probabilities, node positions, graphs and effects, as plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dagpost.errors import InputError
from dagpost.models import Model
from dagpost.plot.canvas import GraphLayout, has_slices, label, layered, two_slices, with_conditions
from dagpost.posterior import Posterior
from dagpost.posterior.effect_tables import EffectDraws, draw_effects, table_of_effects
from dagpost.posterior.features import consensus
from dagpost.posterior.pairs import LEAST_SHARE, adjacency, settled_directions
from dagpost.posterior.targets import conditions_of, target_matrix
from dagpost.report.wide import (
    DRAWN,
    WIDE,
    is_wide,
    listed_pairs,
    parent_sets_of_all,
    sparse_integers,
    wide_layout,
)
from dagpost.typing import Graph, Matrix

UNIT = 10_000
"""Probabilities are stored as integers in units of 1 / UNIT."""
LAYOUT_THRESHOLD = 0.2
"""Edges above this probability take part in the layout, most probable first, unless they close a cycle."""
CLASSES, LEAST_CLASS = 5, 0.03
"""Most equivalence classes that are shown, and their least probability."""
PARENT_SETS, LEAST_SET = 5, 0.0005
"""Most parent sets per node, and their least probability."""
LEAST_PAIR = 0.005
"""Pairs less probably adjacent than this are never drawn."""
DECIDED_SIGN = 0.95
"""Least probability of a sign, given the edge, that settles it."""
LEAST_PATH = 0.01
"""Effects whose paths are less probable than this are left out."""
LARGEST_SIMULATED = 20
"""Most nodes for which effects of a nonlinear model are simulated."""
LEVEL, DRAWS, ROWS = 0.9, 1000, 200
"""Probability of the effects' intervals, draws they are computed from, and rows simulated for each nonlinear one."""
ENTRIES, FEWEST_DRAWS = 25_000_000, 200
"""Most entries of all drawn matrices of effects, which leaves fewer draws to wide tables; and the fewest of use."""
FEWEST_PAIRS, MOST_PAIRS = 0.5, 200
"""Fewest pairs per node and most pairs in total that the initial threshold should show."""


def content_of(post: Posterior) -> dict[str, Any]:
    """Return the data of the page; the same posterior gives the same data."""
    p = post.edge_marginals
    wide = is_wide(post)
    listed = listed_pairs(p) if wide else ~np.eye(post.nodes, dtype=np.bool_)
    layout = layout_of(post.names, p)
    drawn, reason = effect_draws(post)
    classes = [] if wide else post.essential_graphs(CLASSES)
    paths = post.ancestor_probabilities.to_numpy()
    return {
        "names": list(post.names),
        "labels": [label(name) for name in post.names],
        "wide": DRAWN if wide else 0,
        "edges": sparse_integers(p, listed, UNIT) if wide else as_integers(p),
        "arrows": np.flatnonzero(settled_directions(p) & (adjacency(p) >= LEAST_PAIR) & listed).tolist(),
        "share": LEAST_SHARE,
        "signLevel": DECIDED_SIGN,
        "paths": sparse_integers(paths, listed, UNIT) if wide else as_integers(paths),
        "x": layout.x.round(1).tolist(),
        "y": layout.y.round(1).tolist(),
        "widths": layout.width.round(1).tolist(),
        "order": layout.order,
        "start": first_threshold(p),
        "consensus": index_pairs(post.consensus_graph()),
        "bestClass": round(classes[0].probability, 4) if classes else None,
        "classes": [_class(c.graph, c.probability) for c in classes if c.probability >= LEAST_CLASS],
        "parentSets": parent_sets_of_all(post, PARENT_SETS, LEAST_SET) if wide else _parent_sets(post),
        "effects": None if drawn is None else effects_of(post, drawn),
        "signs": None if drawn is None or any(len(levels) > 2 for levels in post.levels) else signs_of(p, drawn),
        "noEffects": reason,
        **_constraints(post, listed),
        **({} if wide else _conditions(post, layout)),
    }


def layout_of(names: Sequence[str], probabilities: Matrix) -> GraphLayout:
    """Return the layered layout of the likely edges, of those drawn first on a wide page; time slices side by side."""
    if len(names) > WIDE:
        return wide_layout(probabilities, [label(name) for name in names], LAYOUT_THRESHOLD)
    if has_slices(names):
        return two_slices(consensus(probabilities, LAYOUT_THRESHOLD), names)
    return layered(consensus(probabilities, LAYOUT_THRESHOLD), [label(name) for name in names])


def _conditions(post: Posterior, layout: GraphLayout) -> dict[str, Any]:
    """Return the conditions with their places in the graph, and the probability that each changes each node."""
    conditions, probability = conditions_of(post), target_matrix(post)
    if not conditions:
        return {}
    shown = [label(name) for name in conditions]
    placed = with_conditions(layout, shown, np.where(probability >= LAYOUT_THRESHOLD, probability, 0.0))
    x, y, width = (np.round(values[post.nodes :], 1).tolist() for values in placed[:3])
    targets = as_integers(probability)
    return {"conditions": {"names": conditions, "labels": shown, "x": x, "y": y, "widths": width, "targets": targets}}


def as_integers(probabilities: Matrix) -> list[int]:
    """Return probabilities row by row, in units of 1 / UNIT."""
    return np.rint(probabilities * UNIT).astype(int).reshape(-1).tolist()


def index_pairs(graph: Graph) -> list[list[int]]:
    """Return the edges of a graph as pairs of node indices."""
    return [[int(i), int(j)] for i, j in zip(*np.nonzero(graph))]


def first_threshold(p: Matrix) -> float:
    """Return the initial position of the slider: 1/2, unless that shows hardly any pairs or too many to read."""
    rounded = np.rint(np.triu(adjacency(p), 1) * UNIT) / UNIT

    def pairs(threshold: float) -> int:
        """Return the number of pairs shown at this threshold."""
        return int((rounded >= threshold).sum())

    if pairs(0.5) > MOST_PAIRS:
        return next((t for t in (0.7, 0.9, 0.95) if pairs(t) <= MOST_PAIRS), 0.99)
    return next((t for t in (0.5, 0.3, 0.2) if pairs(t) >= FEWEST_PAIRS * len(p)), 0.1)


def _class(graph: Graph, probability: float) -> dict[str, Any]:
    """Return an equivalence class as directed edges and pairs whose direction is open."""
    return {
        "probability": round(probability, 4),
        "directed": index_pairs(graph & ~graph.T),
        "open": index_pairs(np.triu(graph & graph.T)),
    }


def _parent_sets(post: Posterior) -> list[list[Any]]:
    """Return for each node its most probable parent sets, as indices, with their probabilities."""
    place = {name: j for j, name in enumerate(post.names)}
    tops = [post.parents_of(j, top=PARENT_SETS).sets for j in range(post.nodes)]
    return [
        [[[place[n] for n in s.parents], round(s.probability, 4)] for s in top if s.probability >= LEAST_SET]
        for top in tops
    ]


def effect_draws(post: Posterior) -> tuple[EffectDraws | None, str]:
    """Return draws of all effects in the units of the table, or None and the reason why there are none."""
    linear = type(post.model).linear_weights is not Model.linear_weights
    if not linear and post.nodes > LARGEST_SIMULATED:
        return None, (
            f"Effects in a nonlinear model are simulated, which this page does only for up to {LARGEST_SIMULATED} "
            "columns. In Python: post.effect(cause, effect)."
        )
    draws = min(DRAWS, ENTRIES // post.nodes**2)
    if draws < FEWEST_DRAWS:
        return None, (
            f"All effects among {post.nodes} columns take more memory than this page uses. "
            "In Python: post.effect(cause, effect)."
        )
    try:
        return draw_effects(post, draws, 0, "raw", ROWS), ""
    except InputError:
        return None, (
            "Effects need the data, which a saved posterior does not contain. Add them with `dagpost report run --data "
            "TABLE --overwrite`, or in Python with dp.write_report(post.with_data(TABLE), path)."
        )
    except NotImplementedError:
        return None, f"The model {post.model.name!r} cannot simulate interventions: it does not define sample_node."


def effects_of(post: Posterior, drawn: EffectDraws) -> dict[str, Any]:
    """Return the effects with a path: cause, effect, mean, bounds of the interval, and mean given a path."""
    table = table_of_effects(post, drawn, LEVEL)
    place = {name: j for j, name in enumerate(post.names)}
    columns = ("cause", "effect", "mean", "lower", "upper", "mean_given_path", "probability")
    rows: list[list[Any]] = [
        [place[cause], place[effect], *map(round_to_four, numbers)]
        for cause, effect, *numbers, path in zip(*(table[name].tolist() for name in columns))
        if path >= LEAST_PATH and np.isfinite(numbers).all()
    ]
    if post.model.categorical:  # the levels compared, and the one whose probability changes
        for row in rows:
            cause, effect = (post.levels[k] for k in row[:2])
            row.append(f"{cause[0]} → {cause[-1]}: {effect[-1]}")
    return {
        "level": LEVEL, "linear": drawn.direct is not None, "categorical": post.model.categorical, "rows": sorted(rows)
    }  # fmt: skip


def signs_of(p: Matrix, drawn: EffectDraws) -> dict[str, list[int]]:
    """Return the pairs whose sign is known, as row * d + column with row < column: plus, minus and undecided.

    The sign of a pair is that of its direct effect, whichever direction it has: the two directions are averaged with
    their probabilities.
    """
    positive = drawn.positive_given_edge()
    known = np.where(np.isnan(positive), 0.0, p)
    total = known + known.T
    either = np.nan_to_num(positive) * known
    share = np.divide(either + either.T, total, out=np.full_like(total, np.nan), where=total > 0)
    pairs = np.triu(adjacency(p) >= LEAST_PAIR, 1) & ~np.isnan(share)
    groups = {
        "plus": share >= DECIDED_SIGN,
        "minus": share <= 1 - DECIDED_SIGN,
        "undecided": (share > 1 - DECIDED_SIGN) & (share < DECIDED_SIGN),
    }
    return {name: np.flatnonzero(pairs & group).tolist() for name, group in groups.items()}


def sign_of_pairs(post: Posterior) -> dict[tuple[str, str], str]:
    """Return "+", "-" or "±" by the names of a pair, in either order, for a linear model, where the sign is known."""
    drawn = effect_draws(post)[0] if post.model.linear else None
    if drawn is None:
        return {}
    out, words = {}, {"plus": "+", "minus": "-", "undecided": "±"}
    for kind, places in signs_of(post.edge_marginals, drawn).items():
        for place in places:
            i, j = divmod(place, post.nodes)
            out[post.names[i], post.names[j]] = out[post.names[j], post.names[i]] = words[kind]
    return out


def round_to_four(value: float) -> float:
    """Return the value rounded to four significant digits."""
    return float(f"{value:.4g}")


def _constraints(post: Posterior, listed: Graph) -> dict[str, list[int]]:
    """Return the edges that prior knowledge requires, or forbids among those on the page, as row * d + column."""
    known = post.prior.constraints
    if known is None:
        return {"required": [], "forbidden": []}
    forbidden = ~known.allowed & listed
    return {
        "required": np.flatnonzero(known.required).tolist(),
        "forbidden": np.flatnonzero(forbidden).tolist(),
    }
