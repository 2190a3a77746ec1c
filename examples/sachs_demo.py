"""The exact posterior of the protein-signalling network of Sachs et al.: 11 proteins, 7,466 cells, no sampling error.

    python examples/sachs_demo.py [FOLDER]

With a folder, results are written there.
"""

import sys
import time
from pathlib import Path

import dagpost as dp
from dagpost.report import has_matplotlib, png_report


def main() -> None:
    data = dp.sachs().standardised()
    print(data)
    started = time.perf_counter()
    post = dp.exact(data, model="bge", prior="erdos-renyi")
    print(f"exact posterior over all DAGs on {data.nodes} nodes in {time.perf_counter() - started:.1f} s")
    print(f"log evidence {post.log_evidence:.1f}, expected number of edges {post.expected_edges:.1f}\n")
    table = post.edge_table()
    certain = table[table.probability > 0.99]
    print(f"{len(certain)} edges with probability above 0.99:")
    print("  " + "\n  ".join(f"{cause} -> {effect}" for cause, effect in zip(certain.cause, certain.effect)))
    print("undecided edges:")
    undecided = table[(table.probability > 0.1) & (table.probability <= 0.99)]
    for row in undecided.head(12).itertuples():
        print(f"  {row.cause} -> {row.effect}: {row.probability:.2f}")
    print("\nagainst the consensus graphs (aligned by name):")
    for name in ("sachs20", "bnlearn"):
        truth = dp.sachs_graph(name)
        shd, auroc = dp.metrics.expected_shd(post, truth), dp.metrics.auroc(post, truth)
        print(f"  {name:8} E-SHD {shd:.1f}, AUROC {auroc:.3f}")
    interventional = dp.exact(dp.sachs(interventions=True).standardised(), model="bge")
    print("with the conditions taken as interventions:")
    for name in ("sachs20", "bnlearn"):
        truth = dp.sachs_graph(name)
        shd, auroc = dp.metrics.expected_shd(interventional, truth), dp.metrics.auroc(interventional, truth)
        print(f"  {name:8} E-SHD {shd:.1f}, AUROC {auroc:.3f}")
    if len(sys.argv) > 1:
        write(post, Path(sys.argv[1]))


def write(post: dp.Posterior, folder: Path) -> None:
    """Write the edge table, the posterior, the interactive report and, with matplotlib, a figure."""
    folder.mkdir(parents=True, exist_ok=True)
    table = post.edge_table()
    post.export(folder / "edges.csv", overwrite=True)
    post.save(folder / "posterior.nc", overwrite=True)
    dp.write_report(post, folder / "report.html", title="Protein signalling (Sachs et al., 2005)", overwrite=True)
    if has_matplotlib():
        (folder / "edges.png").write_bytes(png_report({"names": post.names, "edges": table.to_dict("records")}))
    print(f"\nwritten to {folder}: {', '.join(sorted(p.name for p in folder.iterdir()))}")


if __name__ == "__main__":
    main()
