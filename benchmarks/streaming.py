"""Moments of a memory-mapped file against what this machine's products and reads allow."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import isoscope as iso

N, D = 400_000, 384
WANTED = 0.7


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        _write(path)
        bytes_read = path.stat().st_size
        read, product, moments = [], [], []
        for _ in range(5):
            read.append(_seconds(lambda: _read(path)))
            product.append(_seconds(_products))
            moments.append(_seconds(lambda: iso.Moments.of(np.load(path, mmap_mode="r"))))
    floor = max(min(read), min(product))
    return [
        {
            "what": f"Moments of a mapped file, {N:,} × {D} float32",
            "seconds": min(moments),
            "product_seconds": min(product),
            "product_gflops": 2 * N * D * D / min(product) / 1e9,
            "read_seconds": min(read),
            "read_gb_per_s": bytes_read / min(read) / 1e9,
            "share_of_what_binds": floor / min(moments),
            "wanted": WANTED,
        }
    ]


def _write(path: Path) -> None:
    rng = np.random.default_rng(0)
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(N, D))
    for start in range(0, N, 20_000):
        mapped[start : start + 20_000] = rng.normal(size=(20_000, D))
    mapped.flush()


def _read(path: Path) -> None:
    with path.open("rb") as file:
        while file.read(2**24):
            pass


def _products() -> None:
    """Time only the general products, on a block in memory."""
    block = torch.ones(10_000, D)
    for _ in range(N // 10_000):
        _ = block.T @ block


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
