"""Which posterior do the published tables of the protein data hold: that of all 7,466 cells, or that of a minibatch?

    python benchmarks/minibatch.py [--noise 0.01 0.1 1]

Runs the published method, linear model, on 100 made-up rows with exactly the covariances of the data: what gradients
from minibatches of 100 rows follow on average if the likelihood is not scaled up to all rows. Scored in file order, as
the published tables are.
"""

from __future__ import annotations

import argparse

import numpy as np

import dagpost as dp
from dagpost.metrics import auroc
from dagpost.studies.experiments.sachs import distance, measurements, references
from dagpost.studies.tables import AS_PUBLISHED

ROWS = 100


def few_rows_alike(data: dp.Dataset) -> dp.Dataset:
    """So many rows with the same second moments."""
    moments = data.values.T @ data.values / data.observations
    drawn = np.random.default_rng(0).standard_normal((ROWS, data.nodes))
    orthogonal, _ = np.linalg.qr(drawn - drawn.mean(axis=0))
    return dp.Dataset(np.sqrt(ROWS) * orthogonal @ np.linalg.cholesky(moments).T, names=data.names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.01, 0.1, 1.0])
    options = parser.parse_args()
    data, truth = few_rows_alike(measurements()), references()[AS_PUBLISHED]
    for noise in options.noise:
        model = dp.LinearGaussian(noise_variance=noise)
        post = dp.fit(data, model, "erdos-renyi", "dibs-paper", particles=30, seed=1)
        for name, which in (("DiBS", post), ("DiBS+", post.weighted("posterior"))):
            print(
                f"noise {noise:g} {name}: E-SHD {distance(which, truth):.1f}, AUROC {auroc(which, truth):.3f}, "
                f"edges {which.expected_edges:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
