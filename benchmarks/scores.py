"""Cost of scores after `summarise`: the same for a hundred and for a million rows.

python benchmarks/scores.py
"""

import platform
import time

import numpy as np

import dagpost as dp
from dagpost.graphs import essential_graph
from dagpost.graphs.dags import erdos_renyi_dag


def seconds(call, repeat: int = 5) -> float:
    call()
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def main() -> None:
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    rng = np.random.default_rng(0)
    d = 20
    graphs = np.stack([erdos_renyi_dag(rng, d, 4 / 19) for _ in range(1000)])
    mixing = np.eye(d) + np.triu(rng.normal(size=(d, d)), 1) / 3
    print(f"\nlog evidence of 1,000 graphs with d = {d} (median of 5), and the one-off summary")
    print(f"{'model':14}{'N':>10}{'summarise':>14}{'1,000 graphs':>16}{'ratio to N=100':>17}")
    for model in (dp.BGe(), dp.LinearGaussian(), dp.LinearGaussian(None)):
        label = model.name + (" (noise)" if getattr(model, "noise_variance", 0) is None else "")
        first = None
        for n in (100, 10_000, 1_000_000):
            data = dp.Dataset(rng.normal(size=(n, d)) @ mixing)
            stats = model.summarise(data)
            summary = seconds(lambda m=model, x=data: m.summarise(x), 1)
            score = seconds(lambda m=model, s=stats: m.log_evidence_of(graphs, s))
            first = first or score
            print(f"{label:14}{n:>10,}{summary * 1e3:>11.1f} ms{score * 1e3:>13.2f} ms{score / first:>17.2f}")

    print("\nessential graphs of 1,000 DAGs with d = 50")
    for label, probability in (("100 edges", 4 / 49), ("612 edges", 0.5), ("1,225 edges", 1.0)):
        many = np.stack([erdos_renyi_dag(rng, 50, probability) for _ in range(1000)])
        print(f"  {label:12} {seconds(lambda g=many: essential_graph(g)) * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
