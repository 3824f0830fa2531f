"""The silhouette, exact and estimated, and neighbours, against scikit-learn on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import isoscope as iso
from benchmarks.timing import take_turns


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
        return iso.Neighbors.of(X, k=100).distances.numpy()

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
