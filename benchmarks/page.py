"""docs/benchmarks.md, written from the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
GPU = Path(__file__).parent / "results" / "gpu.json"


def write_page(results: dict[str, Any]) -> Path:
    PAGE.write_text("\n".join(_lines(results)) + "\n")
    return PAGE


def _lines(results: dict[str, Any]) -> list[str]:
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return [
        "<!-- written by `make bench`; do not edit -->",
        "# Benchmarks",
        "",
        f"Measured in one run on {machine['processor']}, {machine['cores']} cores,",
        f"{machine['threads']} threads. Python {machine['python']}, {versions}.",
        "Contenders take turns of at least a tenth of a second; the best of seven turns counts.",
        "",
        "## IsoScore against the published package",
        "",
        "| case | theirs, ms | ours, ms | times faster | wanted | difference |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row['what']} | {row['peer_ms']:.2f} | {row['ours_ms']:.3f} | {row['times_faster']:.1f} "
            f"| ≥ {row['wanted']:g} | {row['difference']:.1e} |"
            for row in results["isoscore"]
        ),
        "",
        "## Silhouette and neighbours against scikit-learn",
        "",
        "| case | scikit-learn, ms | ours, ms | times faster | wanted | error |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row['what']} | {row['peer_ms']:.0f} | {row['ours_ms']:.1f} | {row['times_faster']:.1f} "
            f"| ≥ {row['wanted']:g} | {row['error']:.1e} |"
            for row in results["silhouette"]
        ),
        "",
        "## Memory of `measure`",
        "",
        "| case | peak beyond the input, MB | wanted | seconds |",
        "|---|---|---|---|",
        *(
            f"| {row['what']} | {row['peak_mb_beyond_input']:.0f} | < {row['wanted_mb']:.0f} "
            f"| {row['seconds']:.1f} |"
            for row in results["memory"]
        ),
        "",
        "## Moments of a memory-mapped file",
        "",
        "What binds is the slower of reading the file and of the general products XᵀX alone. The scatter is",
        "symmetric and its upper triangle suffices, so the share can exceed 1.",
        "",
        "| case | seconds | products alone | reading alone | share of what binds | wanted |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row['what']} | {row['seconds']:.3f} | {row['product_seconds']:.3f} s "
            f"({row['product_gflops']:.0f} GFLOP/s) | {row['read_seconds']:.3f} s "
            f"({row['read_gb_per_s']:.1f} GB/s) | {row['share_of_what_binds']:.2f} | ≥ {row['wanted']:g} |"
            for row in results["streaming"]
        ),
        *_gpu_lines(),
    ]


def _gpu_lines() -> list[str]:
    """The figures of the last `make bench-gpu` whose results were kept."""
    if not GPU.exists():
        return []
    found = json.loads(GPU.read_text())
    estimate, neighbors = found["estimate"][0], found["neighbors"][0]
    return [
        "",
        f"## On one {found['device']} (torch {found['torch']})",
        "",
        "Sums: summed distances of every point to every cluster, labels planned before, launches replayed.",
        "Score: `silhouette_score`, checks and all. TFLOP/s count n²d. Errors of the mean, against float64.",
        "",
        "| case | sums, ms | wanted | score, ms | TFLOP/s | error |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row['what']} | {row['sums_ms']:.2f} | ≤ {row['wanted_ms']:g} | {row['score_ms']:.2f} "
            f"| {row['tflops']:.0f} | {row['error']:.1e} |"
            for row in found["silhouette"]
        ),
        "",
        "| case | error | wanted |",
        "|---|---|---|",
        *(f"| {row['what']} | {row['error']:.1e} | ≤ {row['wanted']:g} |" for row in found["hard"]),
        "",
        "| case | ms | wanted |",
        "|---|---|---|",
        f"| estimated silhouette, {estimate['what']} | {estimate['ms']:.0f} | ≤ {estimate['wanted_ms']:g} |",
        f"| {neighbors['what']} | {neighbors['ms']:.0f} | ≤ {neighbors['wanted_ms']:g} |",
    ]
