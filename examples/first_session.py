"""A first session: a CSV with awkward names, prior knowledge, queries, and a run that is stopped and resumed.

    python examples/first_session.py [FOLDER]

Everything is written to the folder, or to a temporary one.
"""

import sys
import tempfile
from pathlib import Path

import dagpost as dp
from dagpost.interfaces.cli import main as dagpost

NAMES = ["dose (mg/kg)", "β-catenin", "p44/42", "=survival", "age at onset", "body weight, kg"]
KNOWN = """\
required = ["dose (mg/kg) -> β-catenin"]
roots = ["age at onset"]
leaves = ["=survival"]
max_parents = 3
"""


def interrupt_after(steps: int):
    """Return a callback that raises what Ctrl-C would."""

    def callback(snapshot) -> None:
        if snapshot.step >= steps:
            raise KeyboardInterrupt

    return callback


def session(folder: Path) -> None:
    """Run the session in a folder."""
    sim = dp.simulate("linear", nodes=6, observations=150, seed=3, interventional_sets=0)
    table = sim.train.frame().set_axis(NAMES, axis=1)
    table.to_csv(folder / "cells.csv", index=False)
    (folder / "known.toml").write_text(KNOWN, encoding="utf-8")

    print("$ dagpost fit cells.csv --knowledge known.toml --out run")
    cells, known, run = str(folder / "cells.csv"), str(folder / "known.toml"), str(folder / "run")
    assert dagpost(["fit", cells, "--knowledge", known, "--out", run, "--precision", "0.01", "--quiet"]) == 0
    print("$ dagpost show run --top 5")
    assert dagpost(["show", run, "--top", "5"]) == 0

    post = dp.load(folder / "run" / "posterior.nc")
    assert post.graphs[:, 0, 1].all() and not post.graphs[:, :, 4].any() and not post.graphs[:, 3].any()
    print("\nconsensus:", ", ".join(post.edges_of(post.consensus_graph())))
    effect = post.with_data(dp.Dataset(table)).effect("dose (mg/kg)", "=survival")
    low, high = effect.interval
    print(
        f"effect of one unit of dose on survival: {effect.mean:.2f} ({low:.2f} to {high:.2f}), "
        f"probability of no effect {effect.zero:.2f}"
    )

    options = {"model": "bge", "method": "dibs", "steps": 60, "particles": 8, "every": 10, "moves": 100, "seed": 1}
    uninterrupted = dp.fit(table, **options)
    state = folder / "state"
    try:
        dp.fit(table, checkpoint=state, callback=interrupt_after(30), **options)
    except KeyboardInterrupt:
        print("\nstopped after 30 steps; resuming")
    resumed = dp.fit(table, checkpoint=state, resume=True, **options)
    same = bool((resumed.graphs == uninterrupted.graphs).all())
    print("the resumed run gives the result of an uninterrupted one, bit for bit:", same)
    assert same


def main() -> None:
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True)
        session(folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            session(Path(folder))


if __name__ == "__main__":
    main()
