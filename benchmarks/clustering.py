"""k-means from its own start to its end, seconds and inertia: scikit-learn, mini-batches, faiss and ours.

States of a language model lie on a GPU, so k-means is written in torch. Whether scikit-learn should take
over on the CPU, or faiss be one more thing to install, is what these figures are for: it should where it is
clearly faster at the same inertia.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

import isoscope as iso
from benchmarks.timing import take_turns

CASES = ((20_000, 10), (100_000, 10), (100_000, 50))
N_DIMS = 384
N_SEEDS = 3  # that the inertia is the mean of: one start may be lucky
N_LUMPS = 30  # that the points are drawn about: other than either K, so no start is right by luck


def run() -> list[dict[str, Any]]:
    """Return one row per case and library, with the inertia relative to ours."""
    return [row for n, K in CASES for row in _case(n, K)]


def _case(n: int, K: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(n + K)
    lumps = rng.normal(size=(N_LUMPS, N_DIMS)).astype(np.float32)
    X = lumps[rng.integers(0, N_LUMPS, n)] + 1.5 * rng.normal(size=(n, N_DIMS)).astype(np.float32)
    contenders = _contenders(X, K)
    seconds = take_turns({name: partial(fit, 0) for name, fit in contenders.items()}, rounds=2)
    inertias = {
        name: np.mean([_inertia(X, fit(seed)) for seed in range(N_SEEDS)]) for name, fit in contenders.items()
    }
    return [
        {
            "what": f"k-means {n:,} × {N_DIMS}, K = {K}",
            "peer": name,
            "seconds": seconds[name],
            "inertia_over_ours": float(inertias[name] / inertias[_OURS]),
        }
        for name in contenders
    ]


_OURS = "isoscope, kmeans"


def _contenders(X: np.ndarray, K: int) -> dict[str, Callable[[int], np.ndarray]]:
    """Centres from a seed, by each library."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    found: dict[str, Callable[[int], np.ndarray]] = {
        _OURS: lambda seed: iso.kmeans(X, K, seed=seed).centers.numpy(),
        "scikit-learn, KMeans": lambda seed: KMeans(K, n_init=1, random_state=seed).fit(X).cluster_centers_,
        "scikit-learn, MiniBatchKMeans": lambda seed: (
            MiniBatchKMeans(K, n_init=1, random_state=seed).fit(X).cluster_centers_
        ),
    }
    if find_spec("faiss"):
        found[f"faiss {version('faiss-cpu')}, 25 rounds, all points"] = lambda seed: _faiss(X, K, seed)
    return found


def _faiss(X: np.ndarray, K: int, seed: int) -> np.ndarray:
    import faiss

    search = faiss.Kmeans(X.shape[1], K, seed=seed, max_points_per_centroid=len(X))
    search.train(X)
    return search.centroids


def _inertia(X: np.ndarray, centers: np.ndarray) -> float:
    """Of all points to the nearest centre: mini-batches report that of a batch."""
    squared = (X * X).sum(1)[:, None] - 2 * X @ centers.T + (centers * centers).sum(1)
    return float(squared.min(axis=1).sum(dtype=np.float64))


if __name__ == "__main__":
    for row in run():
        print(row)
