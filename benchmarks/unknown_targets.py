"""Are the targets of experiments found, and are their probabilities calibrated? Simulated data, and proteins.

    python benchmarks/unknown_targets.py simulated [--sets 100] [--nodes 6 8 10] [--rows 50]
    python benchmarks/unknown_targets.py proteins [--rows 100 all]

`simulated`: graph, mechanisms, targets and rows are drawn from the model and the priors that inference uses (BGe,
Erdős–Rényi, target probability 0.2; three conditions besides one in which nothing was done), and the posterior is the
exact sum over all graphs and targets. Of targets with probability p, a share p should be there. The graph is also
inferred with the targets known, and with all rows taken as if nothing had been done.

`proteins`: the posterior of the targets of the eight conditions of Sachs et al. (2005), relative to anti-CD3/CD28,
beside the published ones. Values are logarithms, standardised; `--rows` takes so many of each condition, at random.

Tables are printed, and written to unknown_targets.csv, protein_targets.csv and protein_edges.csv in results/.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from scipy.special import log_softmax, logsumexp
from sklearn.metrics import roc_auc_score

import dagpost as dp
from dagpost.data.sachs import CONDITIONS
from dagpost.errors import DataWarning
from dagpost.models import Perturbed

RESULTS = Path(__file__).parent / "results"
CONTROL = "anti-CD3/CD28"
EXPERIMENTS, PROBABILITY = 3, 0.2


def simulated(change: str, d: int, rows: int, seed: int) -> tuple[dp.Dataset, list[str], np.ndarray, np.ndarray]:
    """Return rows, their conditions, the graph and the targets (k, d), all drawn from the model."""
    rng, model = np.random.default_rng(seed), dp.BGe(alpha_w=d + 4)
    keys = iter(jax.random.split(jax.random.key(seed), 3 * EXPERIMENTS + 5))
    graph = np.asarray(dp.ErdosRenyi().sample_density(next(keys), d), dtype=bool)
    theta = model.sample_parameters(next(keys), graph)
    hit = rng.random((EXPERIMENTS, d)) < PROBABILITY
    parts, labels = [model.sample_rows(next(keys), graph, theta, rows).values], ["none"] * rows
    for k in range(EXPERIMENTS):
        changed = graph & ~hit[k] if change == "hard" else graph
        new = model.sample_parameters(next(keys), changed)
        both = type(theta)(*(np.where(hit[k], there, here) for there, here in zip(new, theta)))
        parts.append(model.sample_rows(next(keys), changed, both, rows).values)
        labels += [f"experiment {k}"] * rows
    return dp.Dataset(np.concatenate(parts)), labels, graph, hit


def run_simulated(sets: int, nodes: list[int], rows: int) -> None:
    """Print and write reliability by tenths, and recovery of targets and graphs."""
    found = []
    for change in ("soft", "hard"):
        began = time.perf_counter()
        for seed in range(sets):
            d = nodes[seed % len(nodes)]
            data, labels, graph, hit = simulated(change, d, rows, seed)
            common: dict[str, Any] = {"model": dp.BGe(alpha_w=d + 4), "prior": "erdos-renyi", "draws": 200}
            post = dp.exact(data, conditions=labels, targets=dp.Targets(change, PROBABILITY), **common)
            assert post.record.targets is not None
            mask = np.concatenate([np.zeros((rows, d), dtype=bool), np.repeat(hit, rows, axis=0)])
            known = dp.exact(
                data, conditions=labels, interventions=mask, targets=dp.Targets(change, probability=0.0), **common
            )
            shd = [dp.metrics.expected_shd(one, graph) for one in (known, post, dp.exact(data, **common))]
            for k, j in np.ndindex(*hit.shape):
                p = post.record.targets.probability[k][j]
                found.append((change, d, seed, k, j, bool(hit[k, j]), p, *shd))
        print(f"{change}: {sets} data sets in {time.perf_counter() - began:.0f} s", flush=True)
    columns = ["change", "d", "set", "condition", "node", "target", "probability", "shd_known", "shd", "shd_ignored"]
    table = pd.DataFrame(found, columns=columns)
    print(f"\nreliability: {sets} data sets of {', '.join(map(str, nodes))} nodes, {rows} rows in each of 4 conditions")
    table["tenth"] = np.minimum((10 * table.probability).astype(int), 9)
    rows_out = []
    for (change, tenth), part in table.groupby(["change", "tenth"], sort=False):
        by_set = part.groupby("set")[["probability", "target"]].sum()
        gap = by_set.target - by_set.probability
        error = np.sqrt((gap**2).sum()) / len(part)  # data sets are independent, targets of one are not
        rows_out.append((change, tenth / 10, len(part), part.probability.mean(), part.target.mean(), error))
    names = ["change", "from", "targets", "probability", "share", "error"]
    tenths = pd.DataFrame(rows_out, columns=names).sort_values(["change", "from"], ascending=[False, True])
    print(tenths.round(3).to_string(index=False))
    print("\nrecovery")
    for change, part in table.groupby("change", sort=False):
        by_set = part.groupby("set")[["shd_known", "shd", "shd_ignored"]].first().mean()
        likely, there = part.probability >= 0.5, part.target
        print(
            f"{change}: {there.sum()} targets of {len(part)}; above 0.5: {(likely & there).sum()} right, "
            f"{(likely & ~there).sum()} wrong; AUROC {roc_auc_score(there, part.probability):.3f}; expected SHD "
            f"{by_set.shd_known:.2f} with known targets, {by_set.shd:.2f} with unknown ones, {by_set.shd_ignored:.2f} "
            "with conditions ignored"
        )
    tenths.round(5).to_csv(RESULTS / "unknown_targets.csv", index=False)


def run_proteins(sizes: list[str]) -> None:
    """Print and write the posterior of the targets of each condition beside the published ones."""
    raw, labels = dp.sachs(), dp.sachs_conditions().to_numpy()
    published = {name: target for name, _, target in CONDITIONS}
    truth = dp.sachs_graph("sachs20").to_numpy()
    off = ~np.eye(len(truth), dtype=bool)
    out, edges = [], []
    for size in sizes:
        rng, rows = np.random.default_rng(0), np.arange(raw.observations)
        if size != "all":
            rows = np.concatenate([rng.permutation(np.flatnonzero(labels == c))[: int(size)] for c in published])
        data = dp.Dataset(np.log(raw.values[rows]), raw.names).standardised()
        inferred = {}
        for change in ("soft", "hard"):
            began = time.perf_counter()
            targets = dp.Targets(change, observational=CONTROL)
            post = dp.exact(data, model="bge", prior="unknown-density", conditions=labels[rows], targets=targets)
            assert post.record.targets is not None
            table, log_odds = post.targets(), odds_of_targets(post)
            print(
                f"\n{change}, {size} rows of each condition ({len(rows)}): exact in {time.perf_counter() - began:.0f} s"
            )
            for condition, target in published.items():
                if condition == CONTROL:
                    continue
                of = table[table.condition == condition].reset_index(drop=True)
                odds = log_odds[:, post.record.targets.conditions.index(condition)]
                ranks = {name: int((odds > one).sum()) + 1 for name, one in zip(data.names, odds)}
                likely = [f"{n} {p:.2f}" for n, p in zip(of.node, of.probability) if p >= 0.5]
                told = "none measured"
                if target:
                    p = float(of.probability[of.node == target].iloc[0])
                    told = f"{target} {p:.3f} (rank {ranks[target]} of 11 by odds)"
                print(f"  {condition:16} published: {told:39} above 0.5: {len(likely)}: {', '.join(likely)}")
                for n, q in zip(of.node, of.probability):
                    out.append((change, size, condition, n, n == target, round(float(q), 4), ranks[n]))
            inferred[f"unknown {change} targets"] = post
        for name, one in (
            ("conditions ignored", data),
            ("published targets known, perfect", _known(data, labels[rows])),
        ):
            inferred[name] = dp.exact(one, model="bge", prior="unknown-density")
        print(f"\n{size} rows of each condition: expected edges, AUROC against the 20 published ones")
        for name, post in inferred.items():
            area = roc_auc_score(truth[off], post.edge_marginals[off])
            print(f"  {name}: {post.expected_edges:.1f}, {area:.3f}")
            edges.append((name, size, round(post.expected_edges, 2), round(area, 4)))
    names = ["change", "rows", "condition", "node", "published", "probability", "rank"]
    pd.DataFrame(out, columns=names).to_csv(RESULTS / "protein_targets.csv", index=False)
    names = ["targets", "rows", "edges", "auroc"]
    pd.DataFrame(edges, columns=names).to_csv(RESULTS / "protein_edges.csv", index=False)


def odds_of_targets(post: dp.ExactPosterior) -> np.ndarray:
    """Return the log posterior odds of every target, (d, k): probabilities of many are 1 up to rounding."""
    model, exact = post.model, post.parent_probabilities
    assert isinstance(model, Perturbed) and exact is not None and post.data is not None
    stats, d = model.summarise(post.data), post.nodes
    out = []
    for j in range(d):
        codes = np.flatnonzero(exact[j] > 1e-10)
        parents = (codes[:, None] >> np.arange(d) & 1).astype(bool)
        log_terms = np.log(exact[j, codes])[:, None] + log_softmax(
            model.set_terms(np.full(len(codes), j), parents, stats), axis=1
        )
        of_set, members = logsumexp(log_terms, axis=0), stats.shared.members
        out.append([logsumexp(of_set[hit]) - logsumexp(of_set[~hit]) if hit.any() else -np.inf for hit in members.T])
    return np.array(out)


def _known(data: dp.Dataset, labels: np.ndarray) -> dp.Dataset:
    """Return the data with the published targets as perfect interventions."""
    by_name = {name: target or "" for name, _, target in CONDITIONS}
    return data.with_interventions([by_name[label] for label in labels])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulated", "proteins"])
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--nodes", type=int, nargs="+", default=[6, 8, 10])
    parser.add_argument("--rows", nargs="+", default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DataWarning)
    if options.what == "simulated":
        run_simulated(options.sets, options.nodes, int((options.rows or ["50"])[0]))
    else:
        run_proteins(options.rows or ["100", "all"])


if __name__ == "__main__":
    main()
