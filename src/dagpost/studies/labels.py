"""Names of methods, models and graphs as tables and figures print them."""

from __future__ import annotations

AS_PUBLISHED = "cdt, file order (as published)"
"""The permuted consensus graph that the paper's Sachs tables rest on; see `measures/sachs.py`."""

METHODS = {
    "mc3": "MC³",
    "m-mc3": "M-MC³",
    "g-mc3": "G-MC³",
    "bootstrap-pc": "BPC",
    "bootstrap-ges": "BGES",
    "bootstrap-pc*": "BPC*",
    "bootstrap-ges*": "BGES*",
    "dibs-lib": "DiBS (dibs-lib)",
    "dibs-lib+": "DiBS+ (dibs-lib)",
    "dibs-paper": "DiBS (dibs-paper)",
    "dibs-paper+": "DiBS+ (dibs-paper)",
    "dibs": "dibs",
    "dibs+": "dibs+",
    "auto": "auto",
    "exact": "exact",
}
"""In the order in which they are listed. `dibs-paper` is our run with everything as published."""

SCORED = ", cyclic runs scored as published"
"""Ends the name of a method in rows whose means contain the runs without a DAG."""

VALUES = {
    "erdos-renyi": "Erdős–Rényi",
    "scale-free": "scale-free",
    "bge": "BGe",
    "linear": "linear",
    "mlp": "MLP",
    "inner product": "inner product (k = d)",
}

HEADINGS = {
    "method": "method",
    "graphs": "graphs",
    "model": "model",
    "nodes": "d",
    "particles": "M",
    "latent": "k",
    "truth": "scored against",
    "feature": "edges",
    "noise": "noise",
}


def shown(column: str, value: object) -> str:
    """A value of a column as a person reads it."""
    if column == "method":
        name = str(value).removesuffix(SCORED)
        return METHODS.get(name, name) + str(value)[len(name) :]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return VALUES.get(str(value), str(value))


def place(column: str, value: object) -> float:
    """Where a value comes in its column: methods in the order above, numbers by size, the rest as it came."""
    if column == "method":
        name = str(value).removesuffix(SCORED)
        return list(METHODS).index(name) if name in METHODS else len(METHODS)
    return float(value) if isinstance(value, int | float) else 0.0
