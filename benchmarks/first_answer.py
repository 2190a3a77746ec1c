"""Seconds until `dagpost fit` has its first answer, by number of columns, with every default.

    python benchmarks/first_answer.py [--columns 6 10 20 46] [--rows 200] [--fresh]

Tables of the paper's linear protocol in a file, each in a process of its own: from the start of the command to the line
that says where the results are. `--fresh` begins with an empty cache of compiled code, as a new installation does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dagpost as dp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, nargs="+", default=[6, 10, 20, 46])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--fresh", action="store_true", help="empty cache of compiled code before each run")
    options = parser.parse_args()
    print(f"{'columns':>8} {'seconds':>8}  last line of the verdict")
    with tempfile.TemporaryDirectory() as folder:
        for d in options.columns:
            sim = dp.simulate("linear", nodes=d, observations=options.rows, seed=1, interventional_sets=0)
            table, cache = Path(folder) / f"{d}.csv", Path(folder) / f"cache{d if options.fresh else ''}"
            sim.train.frame().to_csv(table, index=False)
            environment = os.environ | ({"XDG_CACHE_HOME": str(cache)} if options.fresh else {})
            began = time.perf_counter()
            command = [sys.executable, "-m", "dagpost", "fit", str(table), "--out", str(Path(folder) / f"run{d}")]
            ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
            seconds = time.perf_counter() - began
            told = [line for line in ended.stderr.splitlines() if "chains" in line or "exact:" in line]
            print(f"{d:8d} {seconds:8.1f}  {told[-1][:110] if told else ''}", flush=True)


if __name__ == "__main__":
    main()
