"""Why a figure is missed, by case, once several ways have been tried; shown under its table while it is."""

from __future__ import annotations

_SHARE = "a step of a model this small is bound by launches on a GPU, and so is the penalty"
_LAUNCHES = (
    "a batch of a layer is measured in many small launches, which take longer there than the model itself"
)
_UNSEEN = "labels that were not seen before are counted, sorted and planned first, in some forty launches"
_SMALL_CLUSTERS = (
    "the kernel over small clusters takes 1.0 to 1.2 ms of it; of ten shapes tried, that is the best"
)
_EIGENVALUES = "two decompositions take 3 to 9 ms each in cuSOLVER, and hundreds of launches the rest"
_SHORT = "its kernels take less than half of it: the rest is launches before and after a recorded graph"
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
        "timed once, on shared cores, before a block was sorted and centred once for all strips; since then "
        "strips of 5,000 rows take 1.08 times memory's CPU time in one process, and 1.20 times with "
        "MALLOC_TRIM_THRESHOLD_ as Dask sets it for its workers"
    ),
    **{
        f"silhouette_score(X, labels not seen before), {case}": _UNSEEN
        for case in ("10,662 × 384, K = 2", "2,000 × 384, K = 10", "10,662 × 384, K = 500")
    },
    "silhouette_score(X, labels), 10,662 × 384, K = 500": _SMALL_CLUSTERS,
    "silhouette_score(X, labels), 2,000 × 384, K = 10": _SHORT,
    "isoscore(X), 10,662 × 384": _SHORT,
    "isoscore(X), 100,000 × 384": "three products in float32, which keeps the digits, take 0.6 ms of it",
    "measure(X, labels=y), 2,000 × 384, K = 10": _EIGENVALUES,
    "measure(X, labels=y), 20,000 × 768, K = 3": _EIGENVALUES,
    "measure(X, labels=y), 100,000 × 384, K = 10": _EIGENVALUES,
    "penalty of 6,144 vectors, ζ = 0.2, in a step of MiniLM, 32 × 32": _SHARE,
    "penalty of 6,144 vectors, debiased, in a step of MiniLM, 32 × 32": _SHARE,
    "smollm2-135m, 199,680 tokens × 31 layers on cuda": _LAUNCHES,
}
