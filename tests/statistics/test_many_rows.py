"""Sums of 10⁷ rows in float32 keep the digits they promise, whichever instructions add them up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

# torch and MKL choose their kernels once, when they are loaded: each setting needs a process of its own
SETTINGS = {
    "native": {},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    },
    "default": {"ATEN_CPU_CAPABILITY": "default"},
    "row after row": {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"},
}
N_ROWS, N_REPEATS, N_DIMS = 200_000, 50, 20
# relative to deviations. A sum of r rows that are added up one by one is off by about √r/3 · 2⁻²⁴ in float32:
# 2e-6 for one run of products, of which 10⁷ rows have hundreds whose errors cancel
PROMISED = 1e-6


def table() -> np.ndarray:
    """(n, d) whole numbers that float32 holds: a mean of up to 30 deviations, deviations from 10 to 3,000.

    In the first dimension a few rows are so large that the squares of the others vanish beside their sum,
    where rows are added up one by one.
    """
    rng = np.random.default_rng(7)
    deviations = np.geomspace(10, 3000, N_DIMS)
    numbers = np.round((rng.normal(size=(N_ROWS, N_DIMS)) + np.linspace(0, 30, N_DIMS)) * deviations)
    numbers = numbers.astype(np.int64)
    numbers[::1600, 0] = rng.integers(-400_000, 400_000, size=N_ROWS // 1600)
    return numbers


def exact_scatter(numbers: np.ndarray) -> list[list[Fraction]]:
    """Σ(x − mean)(x − mean)ᵀ over all repeats, by whole numbers."""
    sums = [int(total) for total in numbers.sum(axis=0)]
    products = numbers.T @ numbers
    return [
        [
            N_REPEATS * (int(products[i, j]) - Fraction(sums[i] * sums[j], len(numbers)))
            for j in range(len(sums))
        ]
        for i in range(len(sums))
    ]


def measured() -> dict[str, object]:
    """The moments of 10⁷ rows, a block at a time."""
    import torch

    from isoscope import Moments

    rows = torch.from_numpy(table()).float()
    moments = Moments.of(rows)
    for _ in range(N_REPEATS - 1):
        moments = moments.update(rows)
    return {"count": moments.count, "mean": moments.mean.tolist(), "scatter": moments.scatter.tolist()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [pytest.param(name, marks=[pytest.mark.nightly] if SETTINGS[name] else []) for name in SETTINGS],
)
def test_sums_of_ten_million_rows(setting: str) -> None:
    done = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | SETTINGS[setting],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    moments, numbers = json.loads(done.stdout), table()
    exact = exact_scatter(numbers)
    deviations = [float(exact[j][j] / 10**7) ** 0.5 for j in range(N_DIMS)]
    assert moments["count"] == 10**7
    for i in range(N_DIMS):
        mean = Fraction(int(numbers[:, i].sum()), len(numbers))
        assert abs(float(Fraction(moments["mean"][i]) - mean)) < PROMISED * deviations[i]
        for j in range(N_DIMS):
            error = float(Fraction(moments["scatter"][i][j]) - exact[i][j])
            assert abs(error) < PROMISED * 10**7 * deviations[i] * deviations[j], (i, j)


if __name__ == "__main__":
    print(json.dumps(measured()))
