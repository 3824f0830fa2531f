"""`isoscope audit` on planted faults: what is found, and what else is called one.

python -m benchmarks.audit      writes the table of docs/audit.md
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import isoscope as iso

N, D = 10_000, 128
SEEDS = 5
_TOPICS = 60
BEGIN, END = "<!-- planted: written by python -m benchmarks.audit -->", "<!-- end of planted -->"


def clean(seed: int) -> np.ndarray:
    """Unit vectors around 60 centres with variances that decay, float32."""
    rng = np.random.default_rng(seed)
    scales = np.exp(-np.arange(D) / 30)
    centers = rng.normal(size=(_TOPICS, D))
    X = (0.5 * centers[rng.integers(0, _TOPICS, N)] + rng.normal(size=(N, D))) * scales
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def planted(seed: int) -> tuple[np.ndarray, dict[str, set[int]]]:
    """Return vectors with faults, and the rows of each fault."""
    rng = np.random.default_rng(1000 + seed)
    X = clean(seed)
    rows = rng.permutation(N)
    parts = {}
    for name, size in (
        ("not_finite", 5), ("zero_vectors", 20), ("duplicates", 200), ("near_duplicates", 200),
        ("outliers", 50), ("odd_lengths", 20), ("padded_rows", 100),
    ):  # fmt: skip
        parts[name], rows = rows[:size], rows[size:]
    X[parts["not_finite"], 3] = np.nan
    X[parts["zero_vectors"]] = 0
    half = len(parts["duplicates"]) // 2
    X[parts["duplicates"][:half]] = X[parts["duplicates"][half:]]
    noise = rng.normal(size=(half, D)) * 0.03 / np.sqrt(D)
    X[parts["near_duplicates"][:half]] = X[parts["near_duplicates"][half:]] + noise
    odd = rng.normal(size=(len(parts["outliers"]), D))
    X[parts["outliers"]] = odd / np.linalg.norm(odd, axis=1, keepdims=True)
    X[parts["odd_lengths"]] *= 3
    X[parts["padded_rows"], D // 2 :] = 0
    return X, {name: set(which.tolist()) for name, which in parts.items()}


def listed(found: iso.Audit, name: str) -> set[int]:
    """Return the rows of a finding."""
    content = found[name].listed
    return (
        {row for group in content["groups"] for row in group} if "groups" in content else set(content["rows"])
    )


def run() -> list[dict[str, Any]]:
    """Return for each fault how many were planted and found, and how many other rows are called one."""
    counts: dict[str, list[int]] = {}
    for seed in range(SEEDS):
        X, truth = planted(seed)
        found, untouched = iso.audit(X), iso.audit(clean(seed))
        for name, rows in truth.items():
            seen = listed(found, name)
            others = seen - set().union(*truth.values())
            row = counts.setdefault(name, [0, 0, 0, 0])
            for place, value in enumerate(
                (len(rows), len(rows & seen), len(others), len(listed(untouched, name)))
            ):
                row[place] += value
    hubs = hub_rows()
    return [
        {"what": name, "planted": a, "found": b, "others": c, "in_clean": d}
        for name, (a, b, c, d) in [*counts.items(), ("hubs", hubs)]
    ]


def hub_rows() -> tuple[int, int, int, int]:
    """Return planted and found hubs: rows at the centre of a cone, which are near everything."""
    n_planted, n_found, n_others, n_clean = 10 * SEEDS, 0, 0, 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(2000 + seed)
        X = rng.normal(size=(N, D)) + 1.5 * np.ones(D) / np.sqrt(D) * 4
        n_clean += iso.audit(X.astype(np.float32))["hubs"].count or 0
        X[:10] = X[10:].mean(axis=0) + 0.1 * rng.normal(size=(10, D))
        rows = set(iso.audit(X.astype(np.float32))["hubs"].listed["rows"])
        n_found += len(rows & set(range(10)))
        n_others += len(rows - set(range(10)))
    return n_planted, n_found, n_others, n_clean


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table in Markdown."""
    heads = ("finding", "planted", "found", "recall", "other rows", "rows, nothing planted")
    lines = ["| " + " | ".join(heads) + " |", "|---|---|---|---|---|---|"]
    for one in rows:
        cells = (
            f"`{one['what']}`", one["planted"], one["found"], f"{one['found'] / one['planted']:.3f}",
            one["others"], one["in_clean"],
        )  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    page = Path(__file__).parents[1] / "docs" / "audit.md"
    head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n\n{table(run())}\n\n{END}{tail}", encoding="utf-8")


def timed(path: str) -> dict[str, Any]:
    """Return the seconds and the peak memory of an audit of a file, in this process."""
    import resource

    began, before = time.perf_counter(), time.process_time()
    found = iso.audit(path)
    return {
        "what": f"{found.n:,} × {found.d}",
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - before,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "findings": {one.name: one.reading.value for one in found.findings},
    }


if __name__ == "__main__":
    main()
