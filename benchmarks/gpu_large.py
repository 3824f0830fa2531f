"""What takes a GPU longest: a file of vectors, an audit of a million rows, and the tests of CUDA."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import isoscope as iso
from benchmarks import on_gpu, scale
from benchmarks.gpu_calls import labelled

FILE_ROWS, FILE_DIMS, FILE_SHARDS = 20_000_000, 384, 40
_OF_ROOM = 0.8  # of the free room of the disk that the file may take
WANTED_OF_DISK = 0.8
AUDIT_ROWS, AUDIT_SECONDS = 1_000_000, 30.0
TESTS = Path(__file__).parents[1] / "tests" / "test_cuda.py"


def file_rows() -> list[dict[str, Any]]:
    """Measure a file of float16 from the disk beside reading it alone; a smaller one where room is short."""
    with tempfile.TemporaryDirectory() as folder:
        n_bytes = 2 * FILE_DIMS
        room = int(_OF_ROOM * shutil.disk_usage(folder).free)
        n = min(on_gpu.rows(FILE_ROWS), room // n_bytes)
        path = Path(folder) / "shards"
        scale.write_shards(path, n, FILE_DIMS, FILE_SHARDS, np.float16)
        size = sum(file.stat().st_size for file in path.iterdir())
        names = [metric.name for metric in scale.moment_metrics()]
        options: dict[str, Any] = {"metrics": names, "errors": False, "progress": False}
        iso.measure(next(path.iterdir()), device=on_gpu.device(), **options)  # kernels are loaded
        reading, measuring = [], []
        for _ in range(2):  # in turns
            scale.forget(path)
            reading.append(scale.seconds(lambda: [scale.drain(file) for file in sorted(path.iterdir())]))
            scale.forget(path)
            began = time.perf_counter()
            found = iso.measure(path, device=on_gpu.device(), **options)
            measuring.append(time.perf_counter() - began)
        row = {
            "what": f"{len(names)} metrics of moments and directions, {n:,} × {FILE_DIMS} float16 on disk",
            "seconds": min(measuring),
            "read_seconds": min(reading),
            "gb_per_s": size / min(measuring) / 1e9,
            "disk_gb_per_s": size / min(reading) / 1e9,
            "share": min(reading) / min(measuring),
            "wanted_share": WANTED_OF_DISK,
            "notes": list(found.notes),
        }
        print(row, flush=True)
        return [row]


def audit_rows() -> list[dict[str, Any]]:
    """Audit a million rows, all searched, beside a smaller audit that loads the kernels."""
    X, _ = labelled(on_gpu.rows(AUDIT_ROWS), 384, 100)
    iso.audit(X[:20_000], progress=False)
    on_gpu.fresh()
    on_gpu.wait()
    began = time.perf_counter()
    found = iso.audit(X, progress=False)
    on_gpu.wait()
    row = {
        "what": f"audit, {found.n:,} × {found.d}, {found.n_sampled:,} rows searched",
        "seconds": time.perf_counter() - began,
        "wanted_s": AUDIT_SECONDS,
        "peak_gb": on_gpu.peak_gb(),
    }
    print(row, flush=True)
    return [row]


def test_rows() -> list[dict[str, Any]]:
    """Run the tests of CUDA in a process of their own; they print what fails."""
    if not torch.cuda.is_available():
        return []
    began = time.perf_counter()
    failed = subprocess.run([sys.executable, str(TESTS)], check=False).returncode
    return [{"what": "tests/test_cuda.py", "failed": failed, "seconds": time.perf_counter() - began}]
