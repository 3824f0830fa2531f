"""What the benchmarks page says of a CUDA device."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.tables import Row, penalty_table, share_table, table

GPU = Path(__file__).parent / "results" / "gpu.json"
CALLS = GPU.with_name("gpu-calls.json")  # of `python -m benchmarks.gpu_calls` alone


def gpu_lines() -> list[str]:
    """Return the results of the last saved `make bench-gpu`."""
    if not GPU.exists():
        return []
    found = json.loads(GPU.read_text())
    estimate, neighbors = found["estimate"][0], found["neighbors"][0]
    single = [estimate | {"what": f"estimated silhouette, {estimate['what']}"}, neighbors]
    return [
        "",
        f"## On one {found['device']} (torch {found['torch']})",
        "",
        "Sums: summed distances of every point to every cluster, labels planned before.",
        "Score: `silhouette_score`, checks and all. TFLOP/s count n²d. Errors of the mean, against float64.",
        "",
        *table(
            "case | sums, ms | wanted | score, ms | TFLOP/s | error",
            found["silhouette"],
            lambda row: (
                f"{row['what']} | {row['sums_ms']:.2f} | ≤ {row['wanted_ms']:g} | {row['score_ms']:.2f} "
                f"| {row['tflops']:.0f} | {row['error']:.1e}"
            ),
            missed=lambda row: row["sums_ms"] > row["wanted_ms"],
        ),
        "",
        *table(
            "case | error | wanted",
            found["hard"],
            lambda row: f"{row['what']} | {row['error']:.1e} | ≤ {row['wanted']:g}",
            missed=lambda row: row["error"] > row["wanted"],
        ),
        "",
        *table(
            "case | ms | wanted",
            single,
            lambda row: f"{row['what']} | {row['ms']:.0f} | ≤ {row['wanted_ms']:g}",
            missed=lambda row: row["ms"] > row["wanted_ms"],
        ),
        *_call_lines(found),
        *_gpu_training_lines(found.get("training", [])),
        *_gpu_loss_lines(found.get("losses", []), found.get("loss_share", [])),
        *_gpu_peer_lines(found.get("peers", [])),
    ]


def _call_lines(found: Row) -> list[str]:
    """Return the times of public calls, which come with `make bench-gpu`, or from gpu-calls.json."""
    if "calls" not in found and CALLS.exists():
        found = json.loads(CALLS.read_text())
    profiles = {row["call"]: row for row in found.get("profiles", [])}
    rows = [profiles.get(row["call"], {}) | row for row in found.get("calls", [])]
    if not rows:
        return ["", "Public calls as users make them: not measured yet (`make bench-gpu`)."]
    return [
        "",
        "Public calls as users make them, plain arguments and the result read back. A launch takes the host",
        "10 to 20 µs, so a call with many is bound by them, whatever its kernels take:",
        "",
        *table(
            "call | best, ms | median, ms | wanted | launches | waits | in kernels, ms",
            [row | {"what": row["call"]} for row in rows],
            lambda row: (
                f"`{row['call'].split('), ')[0]})`, {row['call'].split('), ')[1]} | {row['best_ms']:.2f} "
                f"| {row['median_ms']:.2f} | ≤ {row['wanted_ms']:g} | {row.get('launches', '—')} "
                f"| {row.get('waits', '—')} | {_milliseconds(row.get('device_ms'))}"
            ),
            missed=lambda row: row["best_ms"] > row["wanted_ms"],
        ),
    ]


def _milliseconds(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"


def _gpu_training_lines(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        *table(
            "classifier experiment | seconds | wanted | ms an update | difference to the CPU's silhouette",
            rows,
            lambda row: (
                f"{row['what']} | {row['seconds']:.1f} | ≤ {row['wanted_s']:g} | {row['ms_per_update']:.2f} "
                f"| {row['cpu_silhouette_difference']:.1e}"
            ),
            missed=lambda row: row["seconds"] > row["wanted_s"],
        ),
    ]


def _gpu_peer_lines(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        "Against others, float32, with the labels given anew at every call:",
        "",
        *table("case | library | ms | error", rows, _gpu_peer),
    ]


def _gpu_peer(row: Row) -> str:
    case = f"{row['what']} | {row['peer']}"
    if "not_run" in row:
        return f"{case} | not run: {row['not_run']} | "
    return f"{case} | {row['ms']:.2f} | {row['error']:.1e}"


def _gpu_loss_lines(rows: list[Row], shares: list[Row]) -> list[str]:
    if not rows:
        return []
    heading = "The penalty of I-STAR, forward and backward, and beside a training step of MiniLM:"
    return ["", heading, "", *penalty_table(rows), "", *share_table(shares)]
