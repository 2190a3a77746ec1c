"""The protein-signalling network of Sachs et al. (2005): DiBS, `auto` and the exact posterior side by side.

    python examples/sachs_demo.py [FOLDER]

11 proteins, 7,466 cells. With a folder, results are written there: posterior, table, interactive report and a figure.
"""

import sys
import time
from pathlib import Path

import numpy as np

import dagpost as dp
from dagpost.report import has_matplotlib

WAYS = {
    "exact": {"method": "exact"},
    "auto": {"method": "auto"},
    "DiBS alone": {"method": "dibs", "moves": 0},
}
"""`auto` sums exactly on 11 columns, and draws graphs with parameters; DiBS without the Metropolis moves at its end."""


def main() -> None:
    data = dp.sachs()
    print(data)
    posts: dict[str, dp.Posterior] = {}
    for name, options in WAYS.items():
        began = time.perf_counter()
        posts[name] = dp.fit(data, **options)
        print(f"{name:11} {time.perf_counter() - began:5.1f} s, {posts[name].expected_edges:.1f} edges expected")
    exact = posts["exact"]
    print("\nprobability that two proteins are joined, and of the arrow's direction:")
    print(f"  {'':24}" + "".join(f"{name:>14}" for name in posts))
    others = {name: post.edge_probabilities for name, post in posts.items()}
    for pair in exact.pair_table().head(22).itertuples():
        cells = []
        for table in others.values():
            forth, back = table.loc[pair.cause, pair.effect], table.loc[pair.effect, pair.cause]
            cells.append(f"{forth + back:7.2f} ({forth / max(forth + back, 1e-9):.2f})")
        print(f"  {pair.cause + ' -> ' + pair.effect:24}" + "".join(f"{cell:>14}" for cell in cells))
    print("\nlargest difference from the exact probability of an edge:")
    for name in ("auto", "DiBS alone"):
        print(f"  {name:11} {np.abs(posts[name].edge_marginals - exact.edge_marginals).max():.3f}")
    print("\nagainst the consensus graph of the field:")
    truth = dp.sachs_graph("bnlearn")
    for name, post in posts.items():
        shd, auroc = dp.metrics.expected_shd(post, truth), dp.metrics.auroc(post, truth)
        print(f"  {name:11} E-SHD {shd:.1f}, AUROC {auroc:.3f}")
    if exact.record.verdict is not None and exact.record.verdict.model_fit:
        print(f"\ndoes the model fit? {exact.record.verdict.model_fit}")
    if len(sys.argv) > 1:
        write(posts, Path(sys.argv[1]))


def write(posts: dict[str, dp.Posterior], folder: Path) -> None:
    """Write the posterior of `auto`, its edges and report and, with matplotlib, one figure of all three."""
    folder.mkdir(parents=True, exist_ok=True)
    post = posts["auto"]
    post.export(folder / "edges.csv", overwrite=True)
    post.save(folder / "posterior.nc", overwrite=True)
    dp.write_report(post, folder / "report.html", title="Protein signalling (Sachs et al., 2005)", overwrite=True)
    if has_matplotlib():
        figure(posts).savefig(folder / "side_by_side.png", dpi=120)
    print(f"\nwritten to {folder}: {', '.join(sorted(p.name for p in folder.iterdir()))}")


def figure(posts: dict[str, dp.Posterior]):
    """Return heat maps of the edge probabilities, one for each way."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(4.2 * len(posts), 4.6), layout="constrained")
    axes = canvas.subplots(1, len(posts), sharey=True)
    for ax, (name, post) in zip(axes, posts.items()):
        image = ax.imshow(post.edge_marginals, vmin=0, vmax=1, cmap="Blues")
        ax.set_title(name)
        ax.set_xlabel("effect")
        ax.set_xticks(range(post.nodes), post.names, rotation=90)
    axes[0].set_yticks(range(posts["exact"].nodes), posts["exact"].names)
    axes[0].set_ylabel("cause")
    canvas.colorbar(image, ax=axes, label="probability of the edge", shrink=0.8)
    return canvas


if __name__ == "__main__":
    main()
