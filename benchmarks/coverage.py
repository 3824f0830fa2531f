"""How often the estimated silhouette's interval holds the exact value: the table of docs/silhouette.md.

ISOSCOPE_DATA=<folder> .venv/bin/python -m benchmarks.coverage          about ten minutes on two cores
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import isoscope as iso
from benchmarks.spaces import Case, cases

N_SEEDS = 500
WANTED = (0.93, 0.98)
PAGE = Path(__file__).parent.parent / "docs" / "silhouette-coverage.md"


@dataclass(frozen=True)
class Row:
    """What 500 seeds gave on one space."""

    case: str
    average: str
    exact: str
    tolerance: float
    n_anchors: int
    held: float
    worst: float
    ms: float

    def __str__(self) -> str:
        return (
            f"| {self.case} | {self.average} | {self.exact} | {self.tolerance:g} | {self.n_anchors} "
            f"| {self.held:.3f} | {self.worst:.1e} | {self.ms:.0f} |"
        )


def one_mean(case: Case, average: str) -> Row:
    """Return the mean over points, or over clusters."""
    X, y, tolerance = case.X, case.y, case.tolerance
    exact = iso.silhouette_score(X, y, average=average)
    began = time.perf_counter()
    found = [
        iso.silhouette_score(X, y, tolerance=tolerance, average=average, seed=seed) for seed in range(N_SEEDS)
    ]
    ms = 1e3 * (time.perf_counter() - began) / N_SEEDS
    held = np.mean([one.interval[0] <= exact <= one.interval[1] for one in found])
    worst = max(abs(one.value - exact) for one in found)
    n_anchors = int(np.median([one.n_anchors for one in found]))
    return Row(case.name, average, f"{exact:.4f}", tolerance, n_anchors, float(held), worst, ms)


def each_cluster(case: Case) -> Row:
    """Every cluster by itself, ten times the tolerance; clusters that were taken whole do not count."""
    X, y, tolerance = case.X, case.y, 10 * case.tolerance
    exact = iso.metrics.silhouette_by_cluster(X, y)
    began = time.perf_counter()
    found = [
        iso.metrics.silhouette_by_cluster(X, y, tolerance=tolerance, seed=seed) for seed in range(N_SEEDS)
    ]
    ms = 1e3 * (time.perf_counter() - began) / N_SEEDS
    pairs = [(exact[k], one) for row in found for k, one in row.items() if one.method != "exact"]
    held = np.mean([one.interval[0] <= value <= one.interval[1] for value, one in pairs])
    worst = max(abs(one.value - value) for value, one in pairs)
    n_anchors = int(np.median([sum(one.n_anchors for one in row.values()) for row in found]))
    return Row(case.name, "by cluster", "", tolerance, n_anchors, float(held), worst, ms)


def main() -> int:
    lines = [
        "<!-- written by `python -m benchmarks.coverage`; do not edit -->",
        f"| space | mean | exact | tolerance | anchors | holds, {N_SEEDS} seeds | worst error | ms each |",
        "|---|---|---|---|---|---|---|---|",
    ]
    outside = []
    for case in cases():
        case = Case(case.name, case.X.astype(np.float32), case.y, case.tolerance, case.averages)
        for average in case.averages:
            row = each_cluster(case) if average == "by cluster" else one_mean(case, average)
            lines.append(str(row))
            print(lines[-1], flush=True)
            if not WANTED[0] <= row.held <= WANTED[1]:
                outside.append(f"{row.case}, {average}: {row.held:.3f}")
    PAGE.write_text("\n".join(lines) + "\n")
    print(f"wrote {PAGE}", *(f"outside {WANTED}: {one}" for one in outside), sep="\n")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
