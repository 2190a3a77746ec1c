"""Do experiments chosen by information gain teach more than others? Simulated networks, five experiments each.

    python benchmarks/next_experiment.py [--networks 20] [--nodes 10] [--rows 10] [--experiments 5]
        [--observations 50] [--out benchmarks/results/next_experiment.csv]

Every network is linear with noise 0.1, as in the paper. The posterior is exact (model "bge", 1,000 draws for the gain)
and is computed again after each experiment, which adds rows of the true network under do(node = mean + one standard
deviation). Policies: the largest expected information gain about the graph; a random node; the most uncertain node,
whose pairs with other nodes have the largest sum of entropies of (->, <-, none). The same experiment at the same step
has the same outcome under every policy. "e-shd" is the expected structural Hamming distance between DAGs, "resolved"
the number of pairs, out of all, whose true state (->, <-, none) has a probability of 0.95 or more.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from scipy.special import xlogy
from scipy.stats import binomtest

import dagpost as dp
from dagpost.models import LinearGaussian

RESOLVED = 0.95
POLICIES = ("gain", "random", "uncertain")


def pair_states(post: dp.Posterior) -> np.ndarray:
    """Probabilities of i -> j, i <- j and no edge, for every pair i < j."""
    p = post.edge_marginals
    i, j = np.triu_indices(post.nodes, 1)
    return np.clip(np.stack([p[i, j], p[j, i], 1 - p[i, j] - p[j, i]], axis=1), 0.0, 1.0)


def measures(post: dp.Posterior, graph: np.ndarray) -> dict[str, float]:
    i, j = np.triu_indices(post.nodes, 1)
    true = np.where(graph[i, j], 0, np.where(graph[j, i], 1, 2))
    found = pair_states(post)[np.arange(len(true)), true]
    shd = dp.metrics.expected_shd(post, graph, essential=False)
    return {"e-shd": shd, "resolved": int((found >= RESOLVED).sum())}


def choose(policy: str, post: dp.Posterior, rows: int, seed: int) -> int:
    if policy == "random":
        return int(np.random.default_rng(seed).integers(post.nodes))
    if policy == "uncertain":
        states = pair_states(post)
        entropy = np.zeros((post.nodes, post.nodes))
        entropy[np.triu_indices(post.nodes, 1)] = -xlogy(states, states).sum(axis=1)
        return int((entropy + entropy.T).sum(axis=1).argmax())
    found = dp.next_experiment(post, rows=rows, outcomes=128, seed=seed, progress=False)
    return post.index(found.best[0])


def run(network: int, options: argparse.Namespace) -> list[dict]:
    sim = dp.simulate(nodes=options.nodes, observations=options.observations, seed=network)
    spread = sim.train.values.mean(axis=0) + sim.train.values.std(axis=0)
    first = dp.exact(sim.train, model="bge")
    out = []
    for policy in POLICIES:
        post, data, chosen = first, sim.train, ""
        for step in range(options.experiments + 1):
            out.append({"network": network, "policy": policy, "experiments": step, "node": chosen})
            out[-1] |= measures(post, sim.graph)
            if step == options.experiments:
                break
            seed = 1000 * network + step
            node = choose(policy, post, options.rows, seed)
            key = jax.random.fold_in(jax.random.key(seed), node)
            new = LinearGaussian().sample_rows(key, sim.graph, sim.theta, options.rows, {node: float(spread[node])})
            data, chosen = data.followed_by(new), data.names[node]
            post = dp.exact(data, model="bge")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"networks": 20, "nodes": 10, "rows": 10, "experiments": 5, "observations": 50}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    began, rows = time.perf_counter(), []
    for network in range(options.networks):
        rows += run(network, options)
        print(f"network {network + 1} of {options.networks}, {time.perf_counter() - began:.0f} s", flush=True)
    table = pd.DataFrame(rows)
    groups = table.groupby(["policy", "experiments"])[["e-shd", "resolved"]]
    print(groups.mean().unstack("policy").round(2).to_string())
    last = table[table["experiments"] == options.experiments].set_index(["network", "policy"])
    for other in ("random", "uncertain"):
        for measure, sign in (("e-shd", -1), ("resolved", 1)):
            wide = last[measure].unstack("policy")
            lead = sign * (wide["gain"] - wide[other])
            better, worse = int((lead > 0).sum()), int((lead < 0).sum())
            p = binomtest(better, better + worse).pvalue if better + worse else 1.0
            print(
                f"{measure} after {options.experiments} experiments, gain against {other}: better {better}, worse "
                f"{worse}, equal {int((lead == 0).sum())}; mean lead {lead.mean():.2f} ± {lead.sem():.2f}; "
                f"two-sided sign test p = {p:.3g}"
            )
    print(f"{time.perf_counter() - began:.0f} s")
    if options.out is not None:
        table.round(4).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
