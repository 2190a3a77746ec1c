"""Array types by shape: `d` nodes, `m` graphs, `n` rows, `k` latent dimensions; `adjacency[i, j]` means i -> j."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

AnyArray: TypeAlias = Array | np.ndarray

Graph: TypeAlias = Bool[np.ndarray, "d d"]
Graphs: TypeAlias = Bool[np.ndarray, "m d d"]
GraphBatch: TypeAlias = Bool[np.ndarray, "*batch d d"]
SoftGraph: TypeAlias = Float[AnyArray, "d d"] | Bool[AnyArray, "d d"]
SoftColumn: TypeAlias = Float[AnyArray, " d"]
Scalar: TypeAlias = Float[Array, ""]
Matrix: TypeAlias = Float[np.ndarray, "d d"]
Rows: TypeAlias = Float[np.ndarray, "n d"]
RowGroups: TypeAlias = Bool[np.ndarray, " g"]
Mask: TypeAlias = Bool[np.ndarray, "n d"]
Nodes: TypeAlias = Int[np.ndarray, " p"]
Key: TypeAlias = jax.Array
Theta: TypeAlias = Any
"""Pytree of model parameters; `()` for a model whose parameters are integrated out."""
