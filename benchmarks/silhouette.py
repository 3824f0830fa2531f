"""The silhouette, exact and estimated, and neighbours on the CPU: against scikit-learn and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import isoscope as iso
from benchmarks.timing import take_turns
from isoscope.labels import as_labels


def run() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_662, 384)).astype(np.float32)
    rows = []
    for K, wanted in ((2, 5.5), (500, 4.5)):
        y = rng.integers(0, K, len(X))
        clustered = X + np.float32(0.2) * rng.normal(size=(K, 384)).astype(np.float32)[y]
        rows.append(_exact(clustered, y, f"silhouette 10,662 × 384, K = {K}", wanted))
        if K == 2:
            rows.append(_estimate(clustered, y))
    rows.append(_neighbors(rng.normal(size=(20_000, 384)).astype(np.float32)))
    return rows


def _exact(X: np.ndarray, y: np.ndarray, what: str, wanted: float) -> dict[str, Any]:
    from sklearn.metrics import silhouette_score

    exact = silhouette_score(X.astype(np.float64), y)
    found = {"theirs": lambda: silhouette_score(X, y), "ours": lambda: iso.silhouette_score(X, y)}
    return _row(what, found, wanted, abs(iso.silhouette_score(X, y) - exact))


def _estimate(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    from sklearn.metrics import silhouette_score

    exact = silhouette_score(X.astype(np.float64), y)
    found = {
        "theirs": lambda: silhouette_score(X, y),
        "ours": lambda: iso.silhouette_score(X, y, tolerance=1e-4),
    }
    error = abs(float(iso.silhouette_score(X, y, tolerance=1e-4)) - exact)
    return _row("estimated silhouette 10,662 × 384, K = 2, ± 1e-4", found, 100.0, error)


def _neighbors(X: np.ndarray) -> dict[str, Any]:
    from sklearn.neighbors import NearestNeighbors

    def theirs() -> np.ndarray:
        search = NearestNeighbors(n_neighbors=100, algorithm="brute").fit(X)
        return search.kneighbors()[0]

    def ours() -> np.ndarray:
        return iso.statistics.Neighbors.of(X, k=100).distances.numpy()

    error = float(np.abs(theirs() - ours()).max())
    return _row(
        "100 nearest neighbours of 20,000 × 384", {"theirs": theirs, "ours": ours}, 2.0, error, rounds=2
    )


def _row(
    what: str, contenders: dict[str, Callable[[], object]], wanted: float, error: float, *, rounds: int = 5
) -> dict[str, Any]:
    seconds = take_turns(contenders, rounds=rounds)
    return {
        "what": what,
        "peer_ms": 1e3 * seconds["theirs"],
        "ours_ms": 1e3 * seconds["ours"],
        "times_faster": seconds["theirs"] / seconds["ours"],
        "wanted": wanted,
        "error": error,
    }


def limits() -> list[dict[str, Any]]:
    """Figures with a limit of their own: a million points."""
    return [_million()]


def _million() -> dict[str, Any]:
    n, d, K, tolerance = 1_000_000, 384, 100, 1e-4
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, K, (n,), generator=g)
    X, centers = torch.randn(n, d, generator=g), 0.3 * torch.randn(K, d, generator=g)
    for some in torch.arange(n).split(100_000):  # never two copies of the points
        X[some] += centers[y[some]]
    labels = as_labels(y)
    seconds = take_turns(
        {"ours": lambda: iso.metrics.estimate_silhouette(X, labels, tolerance=tolerance)}, rounds=1
    )
    estimate = iso.metrics.estimate_silhouette(X, labels, tolerance=tolerance)
    return {
        "what": f"estimated silhouette {n:,} × {d}, K = {K}, ± {tolerance:g}",
        "figure": seconds["ours"],
        "unit": " s",
        "sign": "≤",
        "wanted": 4.0,
        "half_width": (estimate.interval[1] - estimate.interval[0]) / 2,
    }
