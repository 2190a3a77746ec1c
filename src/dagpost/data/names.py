"""Names of columns: texts that are there, can be printed, and are told apart."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from dagpost.data.values import raise_problems
from dagpost.errors import InputError, printable

UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that names must not contain: control, formatting, surrogates, line and paragraph breaks."""

MOST_PROBLEMS = 4
"""Number of bad names that one message lists."""


def check_names(names: Sequence[object], count: int) -> tuple[str, ...]:
    """Return the names as strings, or raise an error that names those that are empty, unprintable or ambiguous."""
    texts = as_texts(names, count)
    raise_problems(name_problems(texts))
    return texts


def as_texts(names: Sequence[object], count: int) -> tuple[str, ...]:
    """Return the names as strings, or raise an error if there is not one for each column."""
    if isinstance(names, str):
        raise InputError(f"names={names!r}: give one name for each column, not a single string")
    texts = tuple("" if name is None or name != name else str(name) for name in names)
    if len(texts) != count:
        raise InputError(f"{len(texts)} names for {count} columns: give one name for each column")
    return texts


def name_problems(texts: Sequence[str]) -> list[str]:
    """Return a problem for each name that is empty, unprintable or ambiguous."""
    problems = []
    seen: dict[str, str] = {}
    for position, text in enumerate(texts):
        if not text.strip():
            problems.append(f"column {position + 1} has an empty name: give it one")
            continue
        bad = next((c for c in text if unicodedata.category(c) in UNPRINTABLE), None)
        if bad is not None:
            kind = "control character" if unicodedata.category(bad) == "Cc" else "invisible character"
            problems.append(
                f"the name of column {position + 1}, '{printable(text)}', holds the {kind} U+{ord(bad):04X}: rename it"
            )
        normal = unicodedata.normalize("NFKC", text).strip()
        if seen.get(normal) == text:
            problems.append(f"the name '{printable(text)}' stands for two columns: rename one")
        elif normal in seen:
            problems.append(
                f"the names '{printable(seen[normal])}' and '{printable(text)}' look the same "
                "(they are equal after Unicode normalisation): rename one"
            )
        seen[normal] = text
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS:] = [f"{len(problems) - MOST_PROBLEMS} more names have such problems: rename them"]
    return problems
