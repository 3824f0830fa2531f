"""docs/benchmarks.md, written from the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import scale, stamps
from benchmarks.call_page import call_lines
from benchmarks.gpu_page import GPU, gpu_lines
from benchmarks.tables import Row, penalty_table, share_table, table, too_slow
from benchmarks.timing import on_machine

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
RESULTS = Path(__file__).parent / "results"
LAYERS = RESULTS / "layers.json"
LARGE_MODEL = RESULTS / "large-model.json"


def write_page() -> Path:
    """Write the page from all results that are saved, those of each machine in a part of their own."""
    machines = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("cpu-*.json"))]
    lines = ["<!-- written by `make bench`; do not edit -->", "# Benchmarks"]
    for results in machines:  # a part of the page each, whose sections are one level down
        lines += [f"#{line}" if line.startswith(("# ", "## ")) else line for line in _lines(results)]
    lines += [*scale.page_lines(), *_layer_lines(), *gpu_lines()]
    PAGE.write_text("\n".join(lines) + "\n")
    return PAGE


def _lines(results: dict[str, Any]) -> list[str]:
    return [
        *_machine_lines(results["machine"]),
        *call_lines(results),
        *_isoscore_lines(results.get("isoscore", [])),
        *_silhouette_lines(results.get("silhouette", [])),
        *_limit_lines(results.get("limits", [])),
        *_clustering_lines(results.get("clustering", [])),
        *_training_lines(results.get("training", [])),
        *_loss_lines(results.get("losses", []), results.get("loss_share", [])),
        *_tracker_lines(results.get("tracker", [])),
        *_peer_lines(results.get("peers", [])),
        *_memory_lines(results.get("memory", []), results.get("peers", [])),
        *_correction_lines(results.get("corrections", [])),
        *_report_lines(results.get("report", [])),
        *_streaming_lines(results.get("streaming", [])),
        *_startup_lines(results.get("startup", [])),
    ]


def _machine_lines(machine: Row) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return [
        "",
        f"# On {on_machine(machine)}",
        "",
        f"{machine['threads']} threads. Python {machine['python']}, {versions}.",
        "The contenders of a table take turns of at least a tenth of a second in one run; the best counts.",
        *_load_lines(machine),
    ]


def _load_lines(machine: Row) -> list[str]:
    """Return how busy the machine was when the latest suite began, where other processes shared its cores."""
    if machine.get("load", 0) <= machine["cores"] / 2:
        return []
    return [
        f"The machine was busy when the latest suite began: {machine['load']:g} processes wanted its "
        f"{machine['cores']} cores."
    ]


def _isoscore_lines(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        "## IsoScore against the published package",
        "",
        *table(
            "case | theirs, ms | ours, ms | times faster | wanted | difference",
            rows,
            lambda row: (
                f"{row['what']} | {row['peer_ms']:.2f} | {row['ours_ms']:.3f} | {row['times_faster']:.1f} "
                f"| ≥ {row['wanted']:g} | {row['difference']:.1e}"
            ),
            missed=too_slow,
        ),
    ]


def _silhouette_lines(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        "## Silhouette and neighbours against scikit-learn",
        "",
        *table(
            "case | scikit-learn, ms | ours, ms | times faster | wanted | error",
            rows,
            lambda row: (
                f"{row['what']} | {row['peer_ms']:.0f} | {row['ours_ms']:.1f} | {row['times_faster']:.1f} "
                f"| ≥ {row['wanted']:g} | {row['error']:.1e}"
            ),
            missed=too_slow,
        ),
    ]


def _memory_lines(rows: list[Row], peers: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        "## Memory",
        "",
        *table(
            "case | peak beyond the input, MB | wanted | seconds",
            [*rows, *_silhouette_memory(peers)],
            lambda row: (
                f"{row['what']} | {row['peak_mb_beyond_input']:.0f} | < {row['wanted_mb']:.0f} "
                f"| {row['seconds']:.1f}"
            ),
            missed=lambda row: row["peak_mb_beyond_input"] >= row["wanted_mb"],
        ),
    ]


def _streaming_lines(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    return [
        "",
        "## Moments of a memory-mapped file",
        "",
        "What binds is the slower of reading the file and of the general products XᵀX alone. The scatter is",
        "symmetric and its upper triangle suffices, so the share can exceed 1.",
        "",
        *table(
            "case | seconds | products alone | reading alone | share of what binds | wanted",
            rows,
            lambda row: (
                f"{row['what']} | {row['seconds']:.3f} | {row['product_seconds']:.3f} s "
                f"({row['product_gflops']:.0f} GFLOP/s) | {row['read_seconds']:.3f} s "
                f"({row['read_gb_per_s']:.1f} GB/s) | {row['share_of_what_binds']:.2f} | ≥ {row['wanted']:g}"
            ),
            missed=lambda row: row["share_of_what_binds"] < row["wanted"],
        ),
    ]


def _startup_lines(rows: list[Row]) -> list[str]:
    """Return the times of processes that compute nothing."""
    if not rows:
        return []
    return [
        "",
        "## Start-up",
        "",
        "Each in a process of its own. torch, NumPy and pyarrow are imported when something is computed.",
        "",
        *table(
            "process | seconds | wanted",
            rows,
            lambda row: (
                f"`{row['what']}` | {row['seconds']:.2f} "
                f"| {'' if row['wanted'] is None else '< {:g}'.format(row['wanted'])}"
            ),
            missed=lambda row: row["wanted"] is not None and row["seconds"] >= row["wanted"],
        ),
    ]


def _limit_lines(rows: list[Row]) -> list[str]:
    """Figures with a limit of their own and no peer."""
    if not rows:
        return []
    return [
        "",
        *table(
            "case | figure | wanted",
            rows,
            lambda row: (
                f"{row['what']} | {row['figure']:.3g} {row['unit']} | {row['sign']} {row['wanted']:g}"
            ),
            missed=lambda row: (
                row["figure"] > row["wanted"] if row["sign"] == "≤" else row["figure"] < row["wanted"]
            ),
        ),
    ]


def _correction_lines(rows: list[Row]) -> list[str]:
    """`transform` beside the product it is made of."""
    if not rows:
        return []
    return [
        "",
        "## Corrections",
        "",
        "Speed as a share of one product with a (d, d) matrix, which whitening is made of; all-but-the-top",
        "needs two thin ones instead.",
        "",
        *table(
            "case | what | seconds | speed, the product = 1 | wanted",
            rows,
            lambda row: (
                f"{row['what']} | {row['peer']} | {row['seconds']:.3f} | {row['speed_over_product']:.2f} "
                f"| {'' if row['wanted'] is None else '≥ {:g}'.format(row['wanted'])}"
            ),
            missed=lambda row: row["wanted"] is not None and row["speed_over_product"] < row["wanted"],
        ),
    ]


def _report_lines(rows: list[Row]) -> list[str]:
    """Return the cost of one report on a large space."""
    if not rows:
        return []
    return [
        "",
        "## A report",
        "",
        *table(
            "case | figure | wanted",
            rows,
            lambda row: f"{row['what']} | {row['figure']:.3g}{row['unit']} | {row['sign']} {row['wanted']:g}",
            missed=lambda row: row["figure"] > row["wanted"],
        ),
    ]


def _clustering_lines(rows: list[Row]) -> list[str]:
    """k-means of every library, with what it costs in inertia."""
    if not rows:
        return []
    return [
        "",
        "## k-means",
        "",
        "One start each, from its own choice of centres to its end. Inertia as a share of ours, the mean of",
        "three starts: less is better.",
        "",
        *table(
            "case | library | seconds | inertia, ours = 1",
            rows,
            lambda row: (
                f"{row['what']} | {row['peer']} | {row['seconds']:.2f} | {row['inertia_over_ours']:.4f}"
            ),
        ),
    ]


def _training_lines(rows: list[Row]) -> list[str]:
    """One update of the classifier experiment with both metrics."""
    if not rows:
        return []
    return [
        "",
        "## An update of the classifier experiment",
        "",
        "Loss, gradient, Adam, IsoScore and silhouette; 20 updates, contenders in turns. Against a plain",
        "torch loop with PyPI IsoScore and scikit-learn. Differences: the largest at any update.",
        "",
        *table(
            "case | theirs, ms | ours, ms | times faster | wanted | silhouette's difference",
            rows,
            lambda row: (
                f"{row['what']} | {row['peer_ms']:.0f} | {row['ours_ms']:.0f} | {row['times_faster']:.1f} "
                f"| ≥ {row['wanted']:g} | {row['silhouette_difference']:.1e}"
            ),
            missed=too_slow,
        ),
    ]


def _loss_lines(rows: list[Row], shares: list[Row]) -> list[str]:
    """Compare the I-STAR penalty with its authors' module and with a training step."""
    if not rows:
        return []
    return [
        "",
        "## The penalty of I-STAR",
        "",
        "`IStarLoss`, forward and backward, against the module of the published package with the same ζ; the",
        "debiased score, which it has not, against its plain one. Difference: of the gradients, relative.",
        "",
        *penalty_table(rows),
        "",
        "Over all layers but the embedding layer, beside forward, backward and AdamW of the model:",
        "",
        *share_table(shares),
    ]


def _tracker_lines(rows: list[Row]) -> list[str]:
    """Return the cost of tracking a run."""
    if not rows:
        return []
    return [
        "",
        "## Following a training",
        "",
        "A measurement of `GeometryTracker` beside the training steps of MiniLM (32 sentences) between two.",
        "",
        *table(
            "case | step, ms | measurement, ms | share of the time",
            rows,
            lambda row: (
                f"{row['what']} | {row['step_ms']:.0f} | {row['measure_ms']:.0f} "
                f"| {row['share_percent']:.1f} %"
            ),
        ),
    ]


def _peer_lines(rows: list[Row]) -> list[str]:
    """Every library that has an exact silhouette, in one run."""
    if not rows:
        return []
    return [
        "",
        "## The exact silhouette against its peers",
        "",
        "float32 in, euclidean. Errors of the mean, against float64. Peak memory beyond the input, in a",
        "process of its own. What takes over ten seconds has one turn, compilation included.",
        "",
        *table(
            "case | library | seconds | error | peak, MB",
            rows,
            _peer,
        ),
    ]


def _peer(row: Row) -> str:
    note = f" ({row['note']})" if row["note"] else ""
    case = f"{row['what']} | {row['peer']} {row['version']}{note}"
    if "not_run" in row:
        return f"{case} | not run: {row['not_run']} | | "
    return f"{case} | {row['seconds']:.2f} | {row['error']:.1e} | {row['peak_mb']:.0f}"


def _silhouette_memory(rows: list[Row]) -> list[Row]:
    """Return the time of the exact silhouette in the comparison with other libraries."""
    return [
        {
            "what": f"exact silhouette {row['what']}",
            "peak_mb_beyond_input": row["peak_mb"],
            "wanted_mb": row["wanted_mb"],
            "seconds": row["seconds"],
        }
        for row in rows
        if "wanted_mb" in row
    ]


def _layer_lines() -> list[str]:
    """Return the last saved results of `python -m benchmarks.layers` on each device."""
    if not LAYERS.exists():
        return []
    rows = json.loads(LAYERS.read_text())
    return [
        "",
        "## Every layer of a model",
        "",
        "`measure_layers` of SmolLM2 on WikiText-2 in windows of 512, all measures, with and without",
        "attention sinks. Added: what the sums over all tokens take beside the model's own pass, and what",
        "clusters, neighbours and r² on 2,500 of them take. Peak: of the process, model and all.",
        "",
        *table(
            "case | tokens/s, model | measured | added by sums | by the sample | wanted | peak, MB | wanted",
            rows,
            lambda row: (
                f"{row['what']} | {row['model_tokens_per_second']:,.0f} | {row['tokens_per_second']:,.0f} "
                f"| {row['streamed_share']:.0%} | {row['sampled_share']:.0%} "
                f"| ≤ {row['wanted_share']:.0%} in all "
                f"| {_peaks(row)} | < {row['wanted_mb']:,.0f}"
            ),
            missed=_layers_missed,
        ),
        *(
            line
            for row in rows
            if row["device_mb"]
            for line in stamps.lines("layers", row.get("measured"), what=f"{row['what']}: ")
        ),
        "",
        "What the sums of all layers take is known before the first token goes through the model:",
        "",
        *table(
            "tokens | types | types seen twice | held at once | sums, MB | passes | a pass, MB",
            rows[0]["plan"],
            lambda row: (
                f"{row['tokens']:,} | {row['types']:,} | {row['repeated_types']:,} "
                f"| {row['types_held_at_once']:,} | {row['sums_mb']:,.0f} | {row['passes']} "
                f"| {row['pass_mb']:,.0f}"
            ),
        ),
        *_large_model_lines(),
    ]


def _large_model_lines() -> list[str]:
    """Return the last saved rows of decoders with random weights on CUDA, those of `make bench-gpu` first."""
    gpu = json.loads(GPU.read_text()) if GPU.exists() else {}
    stamped = gpu.get("measured", {})
    sections = ("layers", "large_model")
    rows = [row | {"measured": stamped[name]} for name in sections for row in gpu.get(name, [])]
    if not gpu.get("large_model") and LARGE_MODEL.exists():
        rows += json.loads(LARGE_MODEL.read_text())
    if not rows:
        return []
    return [
        "",
        "Decoders in bfloat16 with random weights, in batches of 8,192 tokens. The model's rate and memory",
        "are those of the same passes without states:",
        "",
        *table(
            "case | device | tokens/s, model | measured | share | wanted | GB, model | added | wanted",
            rows,
            lambda row: (
                f"{row['what']} | {row['device']} | {row['model_tokens_per_second']:,.0f} "
                f"| {row['tokens_per_second']:,.0f} | {row['share']:.2f} | ≥ {row['wanted_share']:.2f} "
                f"| {row['model_gb']:.1f} | {row['more_gb']:.2f} | ≤ {row['wanted_gb']:.0f}"
            ),
            missed=lambda row: row["share"] < row["wanted_share"] or row["more_gb"] > row["wanted_gb"],
        ),
        "",
        *dict.fromkeys(
            line for row in rows for line in stamps.lines("large_model", row.get("measured")) if line
        ),
    ]


def _peaks(row: Row) -> str:
    device = f" (and {row['device_mb']:,.0f} on the device)" if row["device_mb"] else ""
    return f"{row['peak_mb']:,.0f}{device}"


def _layers_missed(row: Row) -> bool:
    added = row["streamed_share"] + row["sampled_share"]
    return bool(added > row["wanted_share"] or row["peak_mb"] >= row["wanted_mb"])
