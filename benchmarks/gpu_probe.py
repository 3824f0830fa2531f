"""Time and check the CUDA cluster sums on one GPU: PYTHONPATH=src python benchmarks/gpu_probe.py

Every line is one configuration of one case: milliseconds of the preparation, the kernels and the whole
(best and median), TFLOP/s of the kernels counting n²·d, and the error of the mean silhouette against
float64. Configurations that fail say why, and the rest go on. The short table comes last.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from isoscope.kernels.cluster_sums import ClusterPlan, Tuning, prepare
from isoscope.kernels.triton_clusters import cluster_sums, pair_sums

BUDGET_S = float(sys.argv[1]) if len(sys.argv) > 1 else 330.0
BEGAN = time.perf_counter()
CASES = [
    (10_662, 384, 2), (11_462, 300, 60), (2_275, 300, 750), (20_000, 768, 3),
    (100_000, 384, 10), (1_000_000, 384, 100),
]  # fmt: skip
BASE = Tuning()
SHAPES = {  # rows, columns, dims, warps, stages of the kernel over large clusters
    f"{rows}x{columns}x{dims} w{warps} s{stages}": replace(
        BASE, rows=rows, columns=columns, dims=dims, warps=warps, stages=stages
    )
    for rows, columns, dims, warps, stages in [
        (128, 128, 32, 4, 3), (128, 128, 32, 4, 2), (128, 128, 32, 8, 3), (128, 128, 64, 4, 3),
        (128, 128, 64, 8, 3), (256, 128, 32, 8, 3), (256, 128, 32, 8, 4), (256, 128, 64, 8, 2),
        (128, 64, 64, 4, 2), (128, 64, 64, 4, 3), (64, 64, 64, 4, 3), (256, 64, 32, 4, 3),
        (256, 64, 64, 8, 2),
    ]
}  # fmt: skip
MIXED = {
    f"mixed {side} w{warps} s{stages} k{dims}": replace(
        BASE, mixed=side, dims=dims, mixed_warps=warps, mixed_stages=stages
    )
    for side, dims, warps, stages in [
        (64, 32, 4, 3), (64, 64, 4, 3), (64, 64, 4, 2), (64, 64, 8, 3), (32, 64, 4, 3), (128, 32, 8, 3),
    ]
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One way to compute the sums."""

    name: str
    tuning: Tuning
    precision: str = "fp16x3"
    deterministic: bool = False


def runs(n: int, n_clusters: int) -> list[Run]:
    """Which configurations a case is worth: the shapes where they are quick, the options everywhere."""
    if n >= 1_000_000:
        names = ["128x128x32 w4 s3", "256x128x32 w8 s4"]
        return [Run(name, SHAPES[name]) for name in names]
    made = [Run(name, tuning) for name, tuning in (MIXED if n_clusters >= 60 else SHAPES).items()]
    if n_clusters >= 60:
        made += [Run(name, SHAPES[name]) for name in ("128x64x64 w4 s2", "64x64x64 w4 s3")]
    wide = replace(BASE, sums=torch.float64)
    made += [Run("float64 sums", wide), Run("no mending", replace(BASE, near=-1.0))]
    made += [Run("group 4", replace(BASE, group=4)), Run("group 16", replace(BASE, group=16))]
    made += [
        Run("tf32x3", replace(BASE, warps=8), "tf32x3"),
        Run("tf32x3 s2", replace(BASE, stages=2), "tf32x3"),
    ]
    if n <= 20_000:
        made += [Run("ieee", replace(BASE, warps=8), "ieee"), Run("deterministic", BASE, deterministic=True)]
    return made


def clusters(n: int, d: int, n_clusters: int, *, spread: float = 1.0) -> tuple[Tensor, Tensor]:
    """Normal clusters of uneven sizes, as a trained space has them; every code occurs."""
    g = torch.Generator("cuda").manual_seed(n)
    weights = torch.rand(n_clusters, generator=g, device="cuda") + 0.2
    drawn = torch.multinomial(weights, n - n_clusters, replacement=True, generator=g)
    codes = torch.cat([torch.arange(n_clusters, device="cuda"), drawn])
    codes = codes[torch.randperm(n, generator=g, device="cuda")]
    centers = torch.randn(n_clusters, d, generator=g, device="cuda")
    X = centers[codes]
    return X.add_(torch.randn(n, d, generator=g, device="cuda"), alpha=spread), codes


def silhouettes(sums: Tensor, codes: Tensor, counts: Tensor) -> Tensor:
    """(m,) float64 silhouettes from (m, K) sums; rows in blocks to spare memory."""
    parts = []
    for block, own in zip(sums.split(100_000), codes.split(100_000), strict=True):
        wide = block.double()
        inside = wide.gather(1, own[:, None])[:, 0] / (counts[own] - 1).clamp(min=1)
        outside = (wide / counts).scatter(1, own[:, None], torch.inf).min(1).values
        score = (outside - inside) / torch.maximum(inside, outside).clamp(min=1e-300)
        parts.append(torch.where(counts[own] > 1, score, 0.0))
    return torch.cat(parts)


def exact_sums(X: Tensor, codes: Tensor, n_clusters: int, rows: Tensor) -> Tensor:
    """(m, K) float64 sums of some rows: centred float64 products, a row against itself set to zero."""
    indicator = torch.nn.functional.one_hot(codes, n_clusters).double()
    wide = X.double()
    wide -= wide.mean(0)
    squares = wide.square().sum(1)
    out = []
    for place in rows.split(max(1, 2**28 // len(X))):
        squared = torch.addmm(squares[None, :], wide[place], wide.T, alpha=-2).add_(squares[place, None])
        squared[torch.arange(len(place), device=place.device), place] = 0.0
        out.append(squared.clamp_(min=0).sqrt_() @ indicator)
    return torch.cat(out)


def milliseconds(call: Callable[[], object], *, most: int = 20) -> tuple[float, float]:
    """Best and median of at least ten calls after a warm-up; fewer where one takes long."""
    call()
    torch.cuda.synchronize()
    taken: list[float] = []
    while len(taken) < most and not (sum(taken) > 3_000 and len(taken) >= 2):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        taken.append(start.elapsed_time(stop))
    return min(taken), statistics.median(taken)


def measure(X: Tensor, codes: Tensor, n_clusters: int, run: Run, truth: Tensor, rows: Tensor) -> str:
    """One line of the table."""
    n, d = X.shape
    plan = ClusterPlan.of(codes, n_clusters, tuning=run.tuning)
    options = {"precision": run.precision, "deterministic": run.deterministic}
    sums = cluster_sums(X, codes, n_clusters, plan=plan, **options)
    counts = torch.bincount(codes).double()
    found = silhouettes(sums, codes, counts)[rows]
    error = abs(float(found.mean() - truth.mean()))
    largest = float((found - truth).abs().max())
    del sums
    prepared = prepare(X[None], plan, precision=run.precision)
    kernel = milliseconds(lambda: pair_sums(prepared, plan, **options))
    preparation = milliseconds(lambda: prepare(X[None], plan, precision=run.precision))
    if n >= 1_000_000:
        whole = (preparation[0] + kernel[0],) * 2
    else:
        whole = milliseconds(lambda: cluster_sums(X, codes, n_clusters, plan=plan, **options))
    rate = n * n * d / kernel[0] / 1e9
    return (
        f"{preparation[0]:8.3f} {kernel[0]:9.3f} {kernel[1]:9.3f} {whole[0]:9.3f} {whole[1]:9.3f} "
        f"{rate:7.1f} {error:9.1e} {largest:9.1e}"
    )


def extras() -> list[str]:
    """Collapsed, duplicated and batched spaces: right on the device, and what mending costs."""
    lines = []
    X, codes = clusters(20_000, 384, 10, spread=1e-5)
    copies = X[torch.randint(0, 4_000, (20_000,), device="cuda")]
    apart, _ = clusters(20_000, 384, 10)
    for name, points in {"collapsed 1e-5": X, "duplicates": copies, "offset 1e4": apart + 1e4}.items():
        try:
            rows = torch.arange(len(points), device="cuda")
            counts = torch.bincount(codes).double()
            truth = silhouettes(exact_sums(points, codes, 10, rows), codes, counts)
            line = measure(points, codes, 10, Run(name, BASE), truth, rows)
            lines.append(f"20000x384 K=10     {name:24s} {line}")
        except Exception as failure:
            lines.append(f"{name}: {type(failure).__name__} {str(failure)[:120]}")
    try:
        stack, codes = torch.randn(16, 2_000, 384, device="cuda"), torch.arange(2_000, device="cuda") % 6
        plan = ClusterPlan.of(codes, 6)
        together = milliseconds(lambda: cluster_sums(stack, codes, 6, plan=plan))
        alone = milliseconds(lambda: cluster_sums(stack[0], codes, 6, plan=plan))
        planned = milliseconds(lambda: ClusterPlan.of(codes, 6))
        times = f"one space {alone[0]:.3f} ms, 16 at once {together[0]:.3f} ms, plan {planned[0]:.3f} ms"
        lines.append(f"2000x384 K=6: {times}")
    except Exception as failure:
        lines.append(f"batched: {type(failure).__name__} {str(failure)[:120]}")
    return lines


HEADER = f"{'case':18s} {'configuration':24s} {'prep':>8s} {'kernel':>9s} {'median':>9s} {'whole':>9s} " + (
    f"{'median':>9s} {'TFLOP/s':>7s} {'mean err':>9s} {'worst':>9s}"
)


def probe(n: int, d: int, n_clusters: int) -> list[str]:
    """All configurations of one case, within the time that is left."""
    lines = []
    X, codes = clusters(n, d, n_clusters)
    g = torch.Generator("cuda").manual_seed(0)
    rows = torch.randperm(n, generator=g, device="cuda")[: n if n <= 100_000 else 2_000]
    counts = torch.bincount(codes).double()
    truth = silhouettes(exact_sums(X, codes, n_clusters, rows), codes[rows], counts)
    for run in runs(n, n_clusters):
        if time.perf_counter() - BEGAN > BUDGET_S:
            lines.append(f"{n}x{d} K={n_clusters}: out of time before {run.name}")
            break
        try:
            line = measure(X, codes, n_clusters, run, truth, rows)
        except Exception as failure:
            line = f"{type(failure).__name__}: {' '.join(str(failure).split())[:90]}"
        lines.append(f"{f'{n}x{d} K={n_clusters}':18s} {run.name:24s} {line}")
        print(lines[-1], f" [{time.perf_counter() - BEGAN:.0f} s]", flush=True)
    return lines


def main() -> None:
    import triton

    print(torch.cuda.get_device_name(), "torch", torch.__version__, "triton", triton.__version__, flush=True)
    print(HEADER, flush=True)
    order = [CASES[k] for k in (0, 2, 1, 5, 3, 4)]  # the largest before the budget is spent
    table: list[str] = []
    for number, case in enumerate(order):
        try:
            table += probe(*case)
        except Exception as failure:
            table.append(f"{case}: {type(failure).__name__}: {str(failure)[:200]}")
        torch.cuda.empty_cache()
        if number == 2:
            table += extras()
    print("\n" + HEADER)
    print("\n".join(table))


if __name__ == "__main__":
    main()
