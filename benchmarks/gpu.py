"""`make bench-gpu`: what is measured on one CUDA device, section by section.

python -m benchmarks.gpu                     all sections that are not yet in the results, the shortest first
python -m benchmarks.gpu calls loss_share    some of them, again
python -m benchmarks.gpu --plan              what would run, and how long each is expected to take
python -m benchmarks.gpu --small             everything tiny on the CPU, into a temporary folder: does it run?

--out FOLDER (or $OUT) takes the results, and says what is done: each section is saved when it is finished,
and a run that was stopped goes on from there. --seconds is what all may take: a section that is expected to
take longer than what is left is passed over. What fails is told at the end, and the other sections are run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import isoscope as iso
from benchmarks import gpu_calls, gpu_large, large_model, losses, on_gpu
from benchmarks.peers import gpu_rows
from benchmarks.stamps import stamp
from benchmarks.training import run_cuda
from isoscope.labels import Labels
from isoscope.metrics.silhouette_estimate import estimate_silhouette
from isoscope.metrics.silhouettes import silhouettes
from isoscope.statistics.fused import fused_sums
from isoscope.statistics.pairs import Separation

SAVED = Path(__file__).parent / "results" / "gpu.json"
SECONDS = 480.0  # for all sections
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
    X, codes = gpu_calls.labelled(on_gpu.rows(n), d, K, spread=spread)
    X += offset
    return X, Labels(codes, tuple(range(K)))


def milliseconds(run: Callable[[], Any], rounds: int) -> float:
    """Best of some rounds, the device waited for."""
    for _ in range(on_gpu.few(3)):
        run()
    best = float("inf")
    for _ in range(on_gpu.few(rounds)):
        on_gpu.wait()
        began = time.perf_counter()
        run()
        on_gpu.wait()
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
        on_gpu.fresh()
    return found


def _silhouette_row(n: int, d: int, K: int, wanted: float) -> dict[str, Any]:
    X, labels = space(n, d, K)
    rounds = 3 if n > 500_000 else 30
    sums = milliseconds(lambda: fused_sums(X, labels), rounds)
    rows = torch.randperm(len(X), device=X.device)[: 20_000 if n <= 100_000 else 2_000]
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
        rows = torch.arange(0, len(X), 4, device=X.device)
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


def decoder_rows(shape: str) -> list[dict[str, Any]]:
    small = on_gpu.is_small()
    return large_model.run(1024 if small else 200_000, on_gpu.device(), "tiny" if small else shape)


Section = tuple[float, Callable[[], list[dict[str, Any]]]]
# expected seconds, and what measures; the order is that of a run
SECTIONS: dict[str, Section] = {
    "calls": (40, lambda: list(gpu_calls.rows())),
    "loss_share": (15, lambda: losses.step_share(on_gpu.device())),
    "layers": (35, lambda: decoder_rows("SmolLM2-135M's shape")),
    "hard": (5, hard_rows),
    "estimate": (10, estimate_rows),
    "neighbors": (5, neighbor_rows),
    "losses": (15, lambda: losses.run(on_gpu.device())),
    "audit": (40, gpu_large.audit_rows),
    "tests": (60, gpu_large.test_rows),
    "large_model": (70, lambda: decoder_rows("7B shape")),
    "file": (80, gpu_large.file_rows),
    "silhouette": (40, silhouette_rows),
    "peers": (15, lambda: gpu_rows(milliseconds)),
    "training": (25, lambda: run_cuda(steps=on_gpu.steps(1000), n_seeds=5)),
    "profiles": (15, lambda: list(gpu_calls.profiles())),  # last: whatever is launched after it is slower
}


def main() -> int:
    """Run the sections; return how many failed."""
    parser = argparse.ArgumentParser(description="Benchmarks on one CUDA device.")
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="which to run, again if done")
    parser.add_argument("--plan", action="store_true", help="run nothing: show what would run")
    parser.add_argument("--out", type=Path, default=os.environ.get("OUT", SAVED.parent), help="a folder")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that all may take")
    parser.add_argument("--small", action="store_true", help="tiny sizes on the CPU")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.small:
            on_gpu.try_on_cpu()
        path = Path(folder if asked.small else asked.out) / SAVED.name
        return _run(path, asked.sections, seconds=asked.seconds, only_plan=asked.plan)


def _run(path: Path, named: list[str], *, seconds: float, only_plan: bool) -> int:
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    commit = stamp(0)["commit"]
    measured = results.setdefault("measured", {})
    done = {name for name, one in measured.items() if one.get("commit") == commit and commit is not None}
    if path != SAVED:  # a folder of this session: what is there was measured in it
        done = set(measured)
    wanted = named or [name for name in SECTIONS if name not in done]
    for name, (expected, _) in SECTIONS.items():
        state = f"{expected:4.0f} s" if name in wanted else "  done" if name in done else "  left out"
        print(f"{name:12} {state}")
    print(f"expected: {sum(SECTIONS[name][0] for name in wanted):.0f} s of {seconds:.0f}", flush=True)
    if only_plan:
        return 0
    results |= {"device": on_gpu.name(), "torch": torch.__version__}
    began, failed = time.monotonic(), []
    for name in wanted:
        expected, measure = SECTIONS[name]
        if expected > seconds - (time.monotonic() - began):
            print(f"… {name}: passed over, {expected:.0f} s are not left", flush=True)
            continue
        print(f"… {name}", flush=True)
        section_began = time.monotonic()
        try:
            results[name] = measure()
        except Exception:  # the others are worth having
            traceback.print_exc()
            failed.append(name)
        else:
            measured[name] = stamp(time.monotonic() - section_began)
            path.write_text(json.dumps(results, indent=2) + "\n")
        on_gpu.fresh()
    print(f"wrote {path} in {time.monotonic() - began:.0f} s" + (f"; failed: {failed}" if failed else ""))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
