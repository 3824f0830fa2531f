"""`make bench-gpu`: public calls, the exact and the estimated silhouette, neighbours, on one CUDA device."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import isoscope as iso
from benchmarks import gpu_calls, losses
from benchmarks.peers import gpu_rows
from benchmarks.training import run_cuda
from isoscope.labels import Labels
from isoscope.metrics.silhouette_estimate import estimate_silhouette
from isoscope.metrics.silhouettes import silhouettes
from isoscope.statistics.fused import fused_sums
from isoscope.statistics.pairs import Separation

SAVED = Path(__file__).parent / "results" / "gpu.json"
# n, d, K, milliseconds wanted
CASES = (
    (10_662, 384, 2, 0.5),
    (11_462, 300, 60, 0.7),
    (2_275, 300, 750, 0.2),
    (20_000, 768, 3, 2.0),
    (100_000, 384, 10, 22.0),
    (1_000_000, 384, 100, 1800.0),
)


def space(n: int, d: int, K: int, *, spread: float = 1.0, offset: float = 0.0) -> tuple[torch.Tensor, Labels]:
    generator = torch.Generator("cuda").manual_seed(0)
    codes = torch.randint(0, K, (n,), device="cuda", generator=generator)
    centers = torch.randn(K, d, device="cuda", generator=generator) * 0.3
    X = centers[codes] + spread * torch.randn(n, d, device="cuda", generator=generator) + offset
    return X, Labels(codes, tuple(range(K)))


def milliseconds(run: Callable[[], Any], rounds: int) -> float:
    """Best of some rounds, the device waited for."""
    for _ in range(3):
        run()
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return 1e3 * best


def exact_mean(X: torch.Tensor, labels: Labels, rows: torch.Tensor) -> torch.Tensor:
    """Silhouettes of some rows in float64 by direct difference."""
    counts = labels.counts.double()
    parts = []
    wide = X.double()
    for some in rows.split(max(1, 2**26 // len(X))):
        distances = torch.cdist(wide[some], wide, compute_mode="donot_use_mm_for_euclid_dist")
        sums = distances.new_zeros(len(some), labels.n_labels).index_add_(1, labels.codes, distances)
        own = labels.codes[some, None]
        a = sums.gather(1, own).squeeze(1) / (counts[own.squeeze(1)] - 1).clamp(min=1)
        b = torch.where(counts > 0, sums / counts, torch.inf).scatter(1, own, torch.inf).amin(1)
        s = torch.where(counts[own.squeeze(1)] > 1, (b - a) / torch.maximum(a, b), 0.0)
        parts.append(s)
    return torch.cat(parts)


def silhouette_rows() -> list[dict[str, Any]]:
    found = []
    for case in CASES:
        found.append(_silhouette_row(*case))
        print(found[-1], flush=True)
        torch.cuda.empty_cache()
    return found


def _silhouette_row(n: int, d: int, K: int, wanted: float) -> dict[str, Any]:
    X, labels = space(n, d, K)
    rounds = 3 if n > 500_000 else 30
    sums = milliseconds(lambda: fused_sums(X, labels), rounds)
    rows = torch.randperm(n, device="cuda")[: min(n, 20_000 if n <= 100_000 else 2_000)]
    return {
        "what": f"{n:,} × {d}, K = {K}",
        "sums_ms": sums,
        "score_ms": milliseconds(lambda: iso.silhouette_score(X, labels), rounds),
        "wanted_ms": wanted,
        "tflops": n * n * d / sums / 1e9,
        "error": _error(X, labels, rows),
    }


def _error(X: torch.Tensor, labels: Labels, rows: torch.Tensor) -> float:
    """Of the mean silhouette of some rows, against float64."""
    ours = silhouettes(Separation.of(X, labels))[rows]
    return float((ours - exact_mean(X, labels, rows)).mean().abs())


def hard_rows() -> list[dict[str, Any]]:
    found = []
    for what, options in {"spread 1e-5": {"spread": 1e-5}, "offset 1e4": {"offset": 1e4}}.items():
        X, labels = space(20_000, 384, 10, **options)
        rows = torch.arange(0, 20_000, 4, device="cuda")
        error = float(
            (silhouettes(Separation.of(X, labels))[rows] - exact_mean(X, labels, rows)).mean().abs()
        )
        found.append({"what": f"20,000 × 384, K = 10, {what}", "error": error, "wanted": 1e-6})
        print(found[-1], flush=True)
    return found


def estimate_rows() -> list[dict[str, Any]]:
    X, labels = space(1_000_000, 384, 100)
    ms = milliseconds(lambda: estimate_silhouette(X, labels, tolerance=1e-4), 3)
    estimate = estimate_silhouette(X, labels, tolerance=1e-4)
    exact = iso.silhouette_score(X, labels)
    row = {
        "what": "1,000,000 × 384, K = 100, ± 1e-4",
        "ms": ms,
        "wanted_ms": 15.0,
        "n_anchors": estimate.n_anchors,
        "error": abs(estimate.value - exact),
        "half_width": (estimate.interval[1] - estimate.interval[0]) / 2,
    }
    print(row, flush=True)
    return [row]


def neighbor_rows() -> list[dict[str, Any]]:
    X, _ = space(100_000, 384, 10)
    row = {
        "what": "LID k = 100, 100,000 × 384",
        "ms": milliseconds(lambda: iso.lid(X), 2),
        "wanted_ms": 300.0,
    }
    print(row, flush=True)
    return [row]


SECTIONS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "calls": lambda: list(gpu_calls.rows()),
    "silhouette": silhouette_rows,
    "hard": hard_rows,
    "estimate": estimate_rows,
    "neighbors": neighbor_rows,
    "losses": lambda: losses.run("cuda"),
    "loss_share": lambda: losses.step_share("cuda"),
    "peers": lambda: gpu_rows(milliseconds),
    "training": lambda: run_cuda(steps=1000, n_seeds=5),
    "profiles": lambda: list(gpu_calls.profiles()),  # last: whatever is launched after it is slower
}


def main() -> None:
    """Run every section in turn, or those named; each is saved when it is done, the others are kept."""
    results: dict[str, Any] = json.loads(SAVED.read_text()) if SAVED.exists() else {}
    results |= {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    path = Path(os.environ.get("OUT", SAVED.parent)) / SAVED.name
    for name in sys.argv[1:] or SECTIONS:
        print(f"… {name}", flush=True)
        results[name] = SECTIONS[name]()
        path.write_text(json.dumps(results, indent=2) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
