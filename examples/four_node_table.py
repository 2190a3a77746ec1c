"""The four-node example of the paper: a v-structure that data identify, and a pair of edges that they cannot.

Prints the exact column of the paper's table "ground truth and inferred posterior marginals" for data
simulated from its model, beside the published numbers, and the scores of the three equivalent DAGs.
The data set of the paper is not published, so the numbers agree qualitatively, not to the digit.

    python examples/four_node_table.py [--seed 0]

With `--dibs 30` it also prints what DiBS and DiBS+ infer on one of the data sets, averaged over 30 random
initialisations, with our defaults and with the published settings (a few minutes).
"""

import argparse

import numpy as np

import dagpost as dp

TRUE_WEIGHTS = {(0, 1): 2.0, (0, 2): -2.0, (1, 3): 3.0, (2, 3): 1.0}

# (label, edges that must be present, published exact probability)
ROWS = [
    ("x1 -> x0, x0 -> x2", [(1, 0), (0, 2)], 0.298),
    ("x1 -> x0, x0 <- x2", [(1, 0), (2, 0)], 0.052),
    ("x1 <- x0, x0 -> x2", [(0, 1), (0, 2)], 0.311),
    ("x1 <- x0, x0 <- x2", [(0, 1), (2, 0)], 0.297),
    ("x1 -> x3, x3 -> x2", [(1, 3), (3, 2)], 0.017),
    ("x1 -> x3, x3 <- x2", [(1, 3), (2, 3)], 0.914),
    ("x1 <- x3, x3 -> x2", [(3, 1), (3, 2)], 0.043),
    ("x1 <- x3, x3 <- x2", [(3, 1), (2, 3)], 0.025),
]
# the published DiBS and DiBS+ columns, in the same order
PUBLISHED = [
    (0.134, 0.216), (0.201, 0.037), (0.223, 0.409), (0.103, 0.298),
    (0.157, 0.013), (0.338, 0.934), (0.275, 0.034), (0.154, 0.019),
]  # fmt: skip
EQUIVALENT = {
    "G0*": [(0, 1), (0, 2), (1, 3), (2, 3)],
    "G1*": [(1, 0), (0, 2), (1, 3), (2, 3)],
    "G2*": [(0, 1), (2, 0), (1, 3), (2, 3)],
}


def graph_of(edges) -> np.ndarray:
    """Return the adjacency matrix of these edges."""
    graph = np.zeros((4, 4), dtype=bool)
    for i, j in edges:
        graph[i, j] = True
    return graph


def simulate_data(observations: int, seed: int) -> dp.Dataset:
    """Return rows of the paper's model: unit noise and the weights above."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((observations, 4))
    for j in (1, 2, 3):
        for (i, target), weight in TRUE_WEIGHTS.items():
            if target == j:
                values[:, j] += weight * values[:, i]
    return dp.Dataset(values)


def probabilities(post: dp.Posterior) -> list[float]:
    """Return the probability of each row of the table."""
    return [post.probability(lambda g, e=edges: all(g[i, j] for i, j in e)) for _, edges, _ in ROWS]


def infer_probabilities(data: dp.Dataset, method: str, initialisations: int) -> np.ndarray:
    """Return mean probabilities over initialisations under DiBS (equal weights) and DiBS+ (weights by posterior).

    Runs end without Metropolis moves, which would make the particles draws of the posterior.
    """
    runs = []
    for seed in range(initialisations):
        post = dp.fit(data, model="bge", prior="uniform", method=method, seed=seed, moves=0)
        runs.append([probabilities(post), probabilities(post.weighted("posterior"))])
    return np.mean(runs, axis=0)


def print_dibs(data: dp.Dataset, initialisations: int) -> None:
    """Print the inferred probabilities beside the exact and the published ones."""
    exact = probabilities(dp.exact(data, model="bge", prior="uniform"))
    ours, paper = (infer_probabilities(data, method, initialisations) for method in ("dibs", "dibs-paper"))
    print(f"\none data set, means over {initialisations} initialisations of 30 particles")
    print(f"{'':22}{'exact':>8}{'dibs':>8}{'dibs+':>8}{'dibs-paper':>12}{'+':>8}{'paper: DiBS':>13}{'DiBS+':>8}")
    for (label, *_), truth, a, a_plus, b, b_plus, (published, plus) in zip(ROWS, exact, *ours, *paper, PUBLISHED):
        print(f"{label:22}{truth:8.3f}{a:8.3f}{a_plus:8.3f}{b:12.3f}{b_plus:8.3f}{published:13.3f}{plus:8.3f}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="the paper's four-node table, computed exactly")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-sets", type=int, default=30, help="number of data sets to average over")
    parser.add_argument("--dibs", type=int, default=0, metavar="N", help="also run DiBS from N initialisations")
    options = parser.parse_args(arguments)
    tables = np.array(
        [
            probabilities(dp.exact(simulate_data(100, options.seed + s), model="bge", prior="uniform"))
            for s in range(options.data_sets)
        ]
    )
    print(f"exact posterior, BGe, uniform prior, N = 100; {options.data_sets} data sets")
    print(f"{'':22}{'one set':>9}{'mean':>9}{'sd':>9}{'paper':>9}")
    for (label, _, published), one, mean, sd in zip(ROWS, tables[0], tables.mean(axis=0), tables.std(axis=0)):
        print(f"{label:22}{one:9.3f}{mean:9.3f}{sd:9.3f}{published:9.3f}")
    model = dp.BGe()
    stats = model.summarise(simulate_data(100, options.seed))
    scores = model.log_evidence_of(np.stack([graph_of(e) for e in EQUIVALENT.values()]), stats)
    print("log p(D | G) of the equivalent DAGs: " + ", ".join(f"{n} {s:.10f}" for n, s in zip(EQUIVALENT, scores)))
    if options.dibs:
        print_dibs(simulate_data(100, options.seed), options.dibs)


if __name__ == "__main__":
    main()
