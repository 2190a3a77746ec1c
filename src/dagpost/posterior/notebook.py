"""How results look in a notebook: small HTML tables, with every name escaped."""

from __future__ import annotations

from html import escape

import pandas as pd

from dagpost.posterior.sample import GraphSample

ROWS = 10
"""Most rows of a table."""


def titled_table(title: str, table: pd.DataFrame, note: str = "") -> str:
    """Return a table under its title as HTML, with at most `ROWS` rows and numbers to three digits.

    Parameters
    ----------
    title, note
        Plain text above and below the table; a note about rows left out comes before `note`.
    table
        The rows; cells are escaped.
    """
    left = len(table) - ROWS
    notes = ([f"{left:,} more rows are not shown."] if left > 0 else []) + ([note] if note else [])
    body = table.head(ROWS).to_html(index=False, border=0, escape=True, float_format="{:.3g}".format)
    below = f"<p><small>{escape(' '.join(notes))}</small></p>" if notes else ""
    return f"<div><p><b>{escape(title)}</b></p>{body}{below}</div>"


def posterior_html(post: GraphSample) -> str:
    """Return the most probable pairs of nodes: each in its more probable direction."""
    method = post.record.method or "posterior"
    title = f"{method}: {len(post):,} graphs on {post.nodes:,} nodes, {post.expected_edges:.1f} edges expected"
    table = post.pair_table().drop(columns="probability")
    note = "adjacent: probability of an edge either way; direction: share of cause -> effect in it."
    return titled_table(title, table, note)
