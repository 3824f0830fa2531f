"""What the benchmarks page says of a CUDA device."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import stamps
from benchmarks.tables import Row, penalty_table, share_table, table

GPU = Path(__file__).parent / "results" / "gpu.json"


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
        *_measured(found, "silhouette"),
        "",
        *table(
            "case | error | wanted",
            found["hard"],
            lambda row: f"{row['what']} | {row['error']:.1e} | ≤ {row['wanted']:g}",
            missed=lambda row: row["error"] > row["wanted"],
        ),
        *_measured(found, "hard"),
        "",
        *table(
            "case | ms | wanted",
            single,
            lambda row: f"{row['what']} | {row['ms']:.0f} | ≤ {row['wanted_ms']:g}",
            missed=lambda row: row["ms"] > row["wanted_ms"],
        ),
        *_measured(found, "estimate"),
        *_call_lines(found),
        *_file_lines(found),
        *_audit_lines(found),
        *_gpu_training_lines(found),
        *_gpu_loss_lines(found),
        *_gpu_peer_lines(found),
        *_test_lines(found),
    ]


def _measured(found: Row, section: str) -> list[str]:
    """Return when a section was measured, and before which changes."""
    return stamps.lines(section, found.get("measured", {}).get(section))


def _not_yet(what: str, section: str) -> list[str]:
    return ["", f"{what}: not measured yet (`make bench-gpu SECTIONS={section}`)."]


def _call_lines(found: Row) -> list[str]:
    """Return the times of public calls."""
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
        *_measured(found, "calls"),
    ]


def _file_lines(found: Row) -> list[str]:
    rows = found.get("file", [])
    if not rows:
        return _not_yet("A file of vectors from the disk", "file")
    return [
        "",
        *table(
            "case | seconds | reading alone | GB/s | share of the disk's rate | wanted",
            rows,
            lambda row: (
                f"{row['what']} | {row['seconds']:.1f} | {row['read_seconds']:.1f} | {row['gb_per_s']:.2f} "
                f"| {row['share']:.2f} | ≥ {row['wanted_share']:g}"
            ),
            missed=lambda row: row["share"] < row["wanted_share"],
        ),
        *_measured(found, "file"),
    ]


def _audit_lines(found: Row) -> list[str]:
    rows = found.get("audit", [])
    if not rows:
        return _not_yet("An audit of 1,000,000 × 384, all rows searched", "audit")
    return [
        "",
        *table(
            "case | seconds | wanted | GB held",
            rows,
            lambda row: (
                f"{row['what']} | {row['seconds']:.1f} | ≤ {row['wanted_s']:g} | {row['peak_gb']:.1f}"
            ),
            missed=lambda row: row["seconds"] > row["wanted_s"],
        ),
        *_measured(found, "audit"),
    ]


def _test_lines(found: Row) -> list[str]:
    rows = found.get("tests", [])
    if not rows:
        return []
    return ["", f"{rows[0]['what']}: {rows[0]['failed']} failed.", *_measured(found, "tests")]


def _milliseconds(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"


def _gpu_training_lines(found: Row) -> list[str]:
    rows = found.get("training", [])
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
        *_measured(found, "training"),
    ]


def _gpu_peer_lines(found: Row) -> list[str]:
    rows = found.get("peers", [])
    if not rows:
        return []
    return [
        "",
        "Against others, float32, with the labels given anew at every call:",
        "",
        *table("case | library | ms | error", rows, _gpu_peer),
        *_measured(found, "peers"),
    ]


def _gpu_peer(row: Row) -> str:
    case = f"{row['what']} | {row['peer']}"
    if "not_run" in row:
        return f"{case} | not run: {row['not_run']} | "
    return f"{case} | {row['ms']:.2f} | {row['error']:.1e}"


def _gpu_loss_lines(found: Row) -> list[str]:
    rows, shares = found.get("losses", []), found.get("loss_share", [])
    if not rows:
        return []
    heading = "The penalty of I-STAR, forward and backward, and beside a training step of MiniLM:"
    return [
        "", heading, "", *penalty_table(rows), *_measured(found, "losses"), "", *share_table(shares),
        *_measured(found, "loss_share"),
    ]  # fmt: skip
