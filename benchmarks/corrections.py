"""`transform` beside the matrix product it is made of: what is lost to checks, centring and blocks.

Whitening multiplies by (d, d); all-but-the-top by two thin matrices, so it is set beside the same full
product to show what that saves. Wanted: whitening at 80 % of its product's speed or better.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA

import isoscope as iso
from benchmarks.timing import take_turns

N, N_DIMS = 100_000, 384
N_TOP = 3
PRODUCT, OURS = "torch, the product alone", "isoscope, Whiten"
WANTED = 0.8  # of the product's speed


def run() -> list[dict[str, Any]]:
    """Return one row per contender, with its speed relative to the matrix product."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(N_DIMS, N_DIMS)))[0].astype(np.float32)
    deviations = np.geomspace(1, 0.1, N_DIMS, dtype=np.float32)
    X = rng.normal(size=(N, N_DIMS)).astype(np.float32) * deviations @ axes
    seconds = take_turns(_contenders(X + np.float32(0.1)), rounds=5)
    return [
        {
            "what": f"transform {N:,} × {N_DIMS} float32",
            "peer": name,
            "seconds": taken,
            "speed_over_product": seconds[PRODUCT] / taken,
            "wanted": WANTED if name == OURS else None,
        }
        for name, taken in seconds.items()
    ]


def _contenders(X: np.ndarray) -> dict[str, Callable[[], object]]:
    rows = torch.from_numpy(X)
    few = X[:20_000]
    whiten, top = iso.Whiten().fit(few), iso.AllButTheTop(N_TOP).fit(few)
    chain = iso.Chain([iso.Whiten(), iso.Normalize()]).fit(few)
    matrix = torch.randn(N_DIMS, N_DIMS)
    theirs = PCA(whiten=True).fit(few)
    return {
        PRODUCT: lambda: rows @ matrix,
        OURS: lambda: whiten.transform(X),
        "isoscope, Whiten and Normalize": lambda: chain.transform(X),
        f"isoscope, AllButTheTop({N_TOP})": lambda: top.transform(X),
        "scikit-learn, PCA(whiten=True)": lambda: theirs.transform(X),
    }


if __name__ == "__main__":
    for row in run():
        print(row)
