"""Names of columns: checked once on the way in, kept letter for letter on the way out."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from dagpost.errors import InputError, printable

UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that a name must not hold: control, formatting, surrogates, line and paragraph breaks."""


def check_names(names: Sequence[object], count: int) -> tuple[str, ...]:
    """The names as strings, or an error that says which one cannot be told apart or shown."""
    if isinstance(names, str):
        raise InputError(f"names={names!r}: give one name for each column, not a single string")
    names = tuple(names)
    texts = tuple("" if name is None or name != name else str(name) for name in names)
    if len(texts) != count:
        raise InputError(f"{len(texts)} names for {count} columns: give one name for each column")
    seen: dict[str, str] = {}
    for position, text in enumerate(texts):
        if not text.strip():
            raise InputError(f"column {position + 1} has an empty name: give it one")
        bad = next((c for c in text if unicodedata.category(c) in UNPRINTABLE), None)
        if bad is not None:
            kind = "control character" if unicodedata.category(bad) == "Cc" else "invisible character"
            raise InputError(
                f"the name of column {position + 1}, '{printable(text)}', holds the {kind} U+{ord(bad):04X}: rename it"
            )
        normal = unicodedata.normalize("NFKC", text).strip()
        if normal in seen:
            if seen[normal] == text:
                raise InputError(f"the name '{printable(text)}' stands for two columns: rename one")
            raise InputError(
                f"the names '{printable(seen[normal])}' and '{printable(text)}' look the same "
                "(they are equal after Unicode normalisation): rename one"
            )
        seen[normal] = text
    return texts
