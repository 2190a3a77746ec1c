"""Section of the HTML report on conditions: a heat map of the probability that each of them changes each node."""

from __future__ import annotations

from html import escape

import numpy as np

from dagpost.posterior import Posterior

MOST_NODES = 40
"""Nodes up to which all are shown; beyond, those that are most probably a target of some condition."""
SHADES = (0.1, 0.5, 0.9)
"""Probabilities from which on a cell is darker."""
WORDS = {
    "soft": "A changed node keeps its parents and gets new parameters.",
    "hard": "A changed node no longer depends on its parents.",
}


def targets_section(post: Posterior) -> str:
    """Return the section, or nothing for data without conditions."""
    found = post.record.targets
    if found is None:
        return ""
    probability, prior = np.array(found.probability), np.array(found.prior)
    shown = np.arange(post.nodes)
    if post.nodes > MOST_NODES:
        shown = np.sort(np.argsort(-probability.max(axis=0), kind="stable")[:MOST_NODES])
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("condition", *(post.names[j] for j in shown)))
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>'
        + "".join(_cell(probability[k, j], prior[k, j]) for j in shown)
        + "</tr>"
        for k, label in enumerate(found.conditions)
    )
    left = (
        f" The {MOST_NODES} most probable targets of {post.nodes} nodes are shown." if post.nodes > MOST_NODES else ""
    )
    known = " “known” marks targets that were given." if (prior == 1).any() else ""
    return (
        '<section id="targets" aria-labelledby="targets-title"><h2 id="targets-title">Targets of conditions</h2>'
        '<p class="small">Probability that a condition changes the mechanism of a node. '
        f"{WORDS[found.change]}{known}{left}</p>"
        f'<div class="scroll"><table class="targets"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        "</section>"
    )


def _cell(probability: float, prior: float) -> str:
    """Return the cell of one condition and node, darker if it is more probable."""
    if prior == 1:
        return '<td class="p3">known</td>'
    shade = int(np.searchsorted(SHADES, probability, side="right"))
    return f'<td class="p{shade}">{probability:.2f}</td>'
