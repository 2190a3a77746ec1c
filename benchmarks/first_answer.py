"""Seconds until `dagpost fit` has its first answer, by number of columns, with every default.

    python benchmarks/first_answer.py [--columns 6 10 20 46] [--rows 200] [--fresh]

Tables of the paper's linear protocol in a file, each in a process of its own: from the start of the command to the line
that says where the results are. `--fresh` begins with an empty cache of compiled code, as a new installation does.
"load" is the mean number of busy processes in the minute before. Writes `benchmarks/results/first_answer.csv`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

import dagpost as dp

RESULTS = Path(__file__).parent / "results" / "first_answer.csv"
KEPT = ("compiling", "algorithm", "ended_by", "trusted", "rhat", "error")
"""What the summary of a run says of how it went."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, nargs="+", default=[6, 10, 20, 46])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--fresh", action="store_true", help="empty cache of compiled code before each run")
    parser.add_argument("--out", default=RESULTS)
    options = parser.parse_args()
    rows = []
    print(f"{'columns':>8} {'seconds':>8} {'load':>5}  verdict")
    with tempfile.TemporaryDirectory() as folder:
        for d in options.columns:
            sim = dp.simulate("linear", nodes=d, observations=options.rows, seed=1, interventional_sets=0)
            table, out = Path(folder) / f"{d}.csv", Path(folder) / f"run{d}"
            sim.train.frame().to_csv(table, index=False)
            environment = os.environ | ({"XDG_CACHE_HOME": str(Path(folder) / f"cache{d}")} if options.fresh else {})
            load, began = os.getloadavg()[0], time.perf_counter()
            command = [sys.executable, "-m", "dagpost", "fit", str(table), "--out", str(out)]
            subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
            seconds = time.perf_counter() - began
            info = json.loads((out / "summary.json").read_text(encoding="utf-8"))["info"]
            run = {"columns": d, "rows": options.rows, "fresh": options.fresh, "load": load, "seconds": seconds}
            rows.append(run | {name: info.get(name) for name in KEPT})
            print(f"{d:8d} {seconds:8.1f} {load:5.1f}  {info.get('verdict', '')[:110]}", flush=True)
            pd.DataFrame(rows).round(4).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
