"""Why a figure is missed, by case, once several ways have been tried; shown under its table while it is."""

from __future__ import annotations

_SHARE = (
    "a step of a model this small is bound by launches on a GPU, and so was the penalty; score and gradient "
    "have been one recording since, and not timed beside a step"
)
_LAUNCHES = (
    "a batch of a layer is measured in many small launches, which take longer there than the model itself"
)
_MANY_LAUNCHES = (
    "it was then about a thousand launches of 7 to 20 µs and a hundred waits; two decompositions in cuSOLVER "
    "(3 and 4 ms at 384 dimensions, 7 and 8 at 768) run beside them. Since then steps of few points are "
    "recordings, which tests/engine/test_launches.py counts; not timed since"
)
_AROUND = (
    "a tenth of the time is tokenizing and planning before the model starts, a seventh is clusters, "
    "neighbours and r² after it, and sums take a tenth from the model beside which they run"
)
_WIDE = (
    "measured when 33 scatters in float64 took 4.4 GB, the states of two batches as much, and lifted states "
    "and their sums 2 GB; since then a triangle of each scatter is held, batches of large models come in "
    "parts of 512 MB, and a batch is added to the sums of a layer without merging"
)
_FIVE_ROWS = (
    "a label has five rows, so there is a sum for every five distances, and the nearest label is looked for "
    "among all sums; on shared cores each of these operations starts with cold caches"
)
_SHARED = "on cores that other processes shared, one case differs by several hundredths between runs"
REASONS: dict[str, str] = {
    "exact silhouette on the CPU, 10,662 × 384, K = 20": _SHARED,
    "exact silhouette on the CPU, 10,662 × 384, K = 100": _SHARED,
    "exact silhouette on the CPU, 10,662 × 384, K = 500": _SHARED,
    "exact silhouette on the CPU, 10,662 × 384, K = 2,000": _FIVE_ROWS,
    "exact silhouette on Dask": (
        "of 100,000 rows in one process, strips of 5,000 took 1.08 times memory's CPU time, and 1.20 times "
        "with MALLOC_TRIM_THRESHOLD_ as Dask sets it for its workers; what the rest is has not been "
        "profiled, and what is fixed weighs more at so few rows"
    ),
    "measure(X, labels=y), 2,000 × 384, K = 10": _MANY_LAUNCHES,
    "measure(X, labels=y), 20,000 × 768, K = 3": _MANY_LAUNCHES,
    "10,662 × 384, K = 2": "sums alone are not recorded: their launches take longer than the kernels",
    "11,462 × 300, K = 60": "sums alone are not recorded: their launches take longer than the kernels",
    "2,275 × 300, K = 750": "sums alone are not recorded: their launches take longer than the kernels",
    "penalty of 6,144 vectors, ζ = 0.2, in a step of MiniLM, 32 × 32": _SHARE,
    "penalty of 6,144 vectors, debiased, in a step of MiniLM, 32 × 32": _SHARE,
    "smollm2-135m, 199,680 tokens × 31 layers on cuda": _LAUNCHES,
    "smollm2-135m's shape, random weights, 199,680 tokens × 31 layers on cuda": _AROUND,
    "smollm2-135m's shape, random weights, sinks, 199,680 tokens × 31 layers on cuda": _AROUND,
    "7B shape, bfloat16, 199,680 tokens × 33 layers, sums over all tokens": _WIDE,
    "7B shape, bfloat16, 199,680 tokens × 33 layers, all quantities": (
        f"{_WIDE}; 33 sets of 4,096 eigenvalues take 0.1 s each"
    ),
}
