"""How long the estimated silhouette takes: against scikit-learn, and at a million points.

.venv/bin/python -m benchmarks.anchors [--million]          the million wants 4 GB and a minute to make
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import isoscope as iso
from benchmarks.timing import take_turns

TOLERANCE = 1e-4


def run(*, million: bool = False) -> list[dict[str, Any]]:
    """A row a case: seconds, how many times faster than scikit-learn or which bound is wanted, the error."""
    rows = [_against_scikit_learn()]
    return [*rows, *_million()] if million else rows


def clustered(n: int, K: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(n, 384) float32 points in K weak clusters, and their labels, made block by block."""
    rng = np.random.default_rng(seed)
    centers = (0.2 * rng.normal(size=(K, 384))).astype(np.float32)
    y = rng.integers(0, K, n)
    X = np.empty((n, 384), dtype=np.float32)
    for start in range(0, n, 50_000):
        rows = slice(start, min(start + 50_000, n))
        X[rows] = rng.standard_normal(size=(rows.stop - start, 384), dtype=np.float32)
        X[rows] += centers[y[rows]]
    return X, y


def _against_scikit_learn() -> dict[str, Any]:
    from sklearn.metrics import silhouette_score

    X, y = clustered(10_662, 2)
    found = iso.silhouette_score(X, y, tolerance=TOLERANCE)
    contenders: dict[str, Callable[[], object]] = {
        "theirs": lambda: silhouette_score(X, y),
        "ours": lambda: iso.silhouette_score(X, y, tolerance=TOLERANCE),
    }
    seconds = take_turns(contenders, rounds=7)
    return {
        "what": "10,662 × 384, K = 2, ± 1e-4",
        "seconds": seconds["ours"],
        "peer_seconds": seconds["theirs"],
        "times_faster": seconds["theirs"] / seconds["ours"],
        "wanted": 100.0,
        "n_anchors": found.n_anchors,
        "error": abs(found.value - iso.silhouette_score(X, y)),
    }


def _million() -> list[dict[str, Any]]:
    X, y = clustered(1_000_000, 100)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.npy"
        np.save(path, X)
        ways: dict[str, Callable[[], Any]] = {
            "in memory": lambda: iso.silhouette_score(X, y, tolerance=TOLERANCE),
            "in memory, macro": lambda: iso.silhouette_score(X, y, tolerance=TOLERANCE, average="macro"),
            "from a file": lambda: iso.silhouette_score(iso.open_vectors(path), y, tolerance=TOLERANCE),
        }
        return [_timed(f"1,000,000 × 384, K = 100, ± 1e-4, {name}", way) for name, way in ways.items()]


def _timed(what: str, way: Callable[[], Any]) -> dict[str, Any]:
    """The best of three, as the machine may be at something else."""
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        found = way()
        best = min(best, time.perf_counter() - began)
    half_width = (found.interval[1] - found.interval[0]) / 2
    return {
        "what": what,
        "seconds": best,
        "wanted_seconds": 4.0,
        "n_anchors": found.n_anchors,
        "half_width": half_width,
    }


if __name__ == "__main__":
    for row in run(million="--million" in sys.argv[1:]):
        print(
            "  ".join(
                f"{key} {value:.4g}" if isinstance(value, float) else str(value) for key, value in row.items()
            )
        )
