"""A posterior in one line, to compare runs bit for bit."""

import hashlib

import jax
import numpy as np

from dagpost.posterior import Posterior

TIMES = ("seconds", "total_seconds", "compiling")


def digest(post: Posterior) -> str:
    """Of everything in a posterior but the time it took."""
    arrays = (post.graphs, post.log_weights, post.edge_marginals, post.log_joint, *jax.tree.leaves(post.theta))
    info = {name: value for name, value in post.info.items() if name not in TIMES}
    parts = [*(np.ascontiguousarray(a).tobytes() for a in arrays), repr(info).encode()]
    return hashlib.sha256(b"".join(parts)).hexdigest()
