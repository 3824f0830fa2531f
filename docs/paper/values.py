"""The values that the paper states: computed here, or read from what the other commands recorded."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import law
import numpy as np
import studies

import isoscope as iso
from isoscope_papers.catalogue import OURS

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_name("computed.json")
Values = dict[str, Any]


# ---------------------------------------------------------------- computed


def compute() -> Values:
    """Compute what no other command records; write.py keeps it in computed.json."""
    return {
        "closed_form": closed_form(),
        "frontier": frontier(),
        "law": law.law(),
        "silhouettes": law.silhouettes(),
    }


def closed_form(n_spaces: int = 300, seed: int = 0) -> Values:
    """Return the largest difference between the closed form and the published steps."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(n_spaces):
        n, d = (int(size) for size in rng.integers(3, 80, size=2))
        X = rng.normal(size=(n, d)) * rng.lognormal(sigma=rng.uniform(0, 3), size=d) + rng.normal(size=d)
        worst = max(worst, abs(iso.isoscore(X) - published_steps(X)))
    return {"n_spaces": n_spaces, "largest_difference": worst}


def published_steps(X: np.ndarray) -> float:
    """Compute IsoScore as Rudman et al. define it, step by step."""
    d = X.shape[1]
    spread = np.linalg.svd(X - X.mean(0), compute_uv=False) ** 2
    variances = np.concatenate([spread, np.zeros(d - len(spread))])
    defect = np.linalg.norm(np.sqrt(d) * variances / np.linalg.norm(variances) - 1)
    defect /= np.sqrt(2 * (d - np.sqrt(d)))
    used = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return float((d * used - 1) / (d - 1))


def frontier(n_spaces: int = 20_000, seed: int = 0) -> Values:
    """Return how many random labelled spaces lie above the frontier, and how far off constructed ones are."""
    rng = np.random.default_rng(seed)
    above, nearest = 0, 1.0
    for _ in range(n_spaces):
        X, y = random_space(rng)
        score, between = score_and_share(X, y)
        gap = ceiling(len(set(y.tolist())), X.shape[1], between) - score
        above += gap < -1e-9
        nearest = min(nearest, gap)
    gaps = []
    for between in np.linspace(0.02, 0.98, 25):
        for K, d in ((2, 8), (5, 12), (9, 8)):
            sizes = [int(size) for size in rng.integers(2 * d, 4 * d, size=K)]
            space = iso.metrics.frontier_space(sizes, d, between=float(between))
            X, y = np.asarray(space.X), np.asarray(space.labels)
            gaps.append(abs(ceiling(K, d, float(between)) - score_and_share(X, y)[0]))
    return {
        "n_spaces": n_spaces,
        "above": int(above),
        "nearest": nearest,
        "n_constructed": len(gaps),
        "largest_gap": max(gaps),
    }


def random_space(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a space of 2 to 7 labels in 2 to 9 dimensions, between no clusters and collapsed ones."""
    K, d = int(rng.integers(2, 8)), int(rng.integers(2, 10))
    n = int(rng.integers(K + 2, 60))
    y = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    means = rng.normal(size=(K, d)) * rng.lognormal(sigma=1, size=d)
    spread = np.exp(rng.uniform(-4, 2)) * rng.lognormal(sigma=rng.uniform(0, 1.5), size=d)
    return means[y] + spread * rng.normal(size=(n, d)), y


def score_and_share(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return IsoScore and the share of variance between labels, from the definitions."""
    centred = X - X.mean(0)
    total = centred.T @ centred
    means = np.zeros_like(centred)
    for label in np.unique(y):
        means[y == label] = centred[y == label].mean(0)
    ratio = np.trace(total) ** 2 / (total**2).sum()
    return float((ratio - 1) / (X.shape[1] - 1)), float((means**2).sum() / np.trace(total))


def ceiling(K: int, d: int, between: float) -> float:
    """Compute the frontier for any number of points."""
    if between <= (K - 1) / d:
        return 1.0
    return float((1 / (between**2 / (K - 1) + (1 - between) ** 2 / (d - K + 1)) - 1) / (d - 1))


# ---------------------------------------------------------------- recorded


def values() -> Values:
    """Return every value of the paper."""
    return {
        **json.loads(KEPT.read_text(encoding="utf-8")),
        "bias": markdown_table(ROOT / "docs/concepts/bias-table.md"),
        "coverage": coverage(),
        "speed": speed(),
        "runs": classifier_runs(),
        "claims": claims(),
        "collapse": studies.collapse(),
        "predicts": studies.predicts(),
    }


def markdown_table(path: Path) -> list[list[str]]:
    """Return the rows of the table of a page, its head first."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


def coverage() -> Values:
    """Return how often the intervals of the silhouette's estimate hold."""
    head, *rows = markdown_table(ROOT / "docs/silhouette-coverage.md")
    column = next(i for i, name in enumerate(head) if name.startswith("holds"))
    found = re.search(r"(\d+) seeds", head[column])
    assert found is not None
    shares = [float(row[column]) for row in rows]
    return {"spaces": len(shares), "seeds": int(found[1]), "least": min(shares), "most": max(shares)}


def speed() -> Values:
    """Return the times of the silhouette by machine."""
    gpu = _record("benchmarks/results/gpu.json")
    cpu = _record("benchmarks/results/cpu-intel-avx512-2.json")
    exact, estimated = (
        _named(cpu["silhouette"], name) for name in ("silhouette 10,662", "estimated silhouette")
    )
    return {
        "device": gpu["device"],
        "gpu": {row["what"]: row["score_ms"] for row in gpu["silhouette"]},
        "gpu_error": max(row["error"] for row in gpu["silhouette"]),
        "gpu_estimate_ms": gpu["estimate"][0]["ms"],
        "gpu_estimate_error": gpu["estimate"][0]["error"],
        "processor": cpu["machine"]["processor"].replace("(R)", ""),
        "cores": cpu["machine"]["cores"],
        "exact": exact,
        "estimated": estimated,
        "million_s": _named(cpu["limits"], "estimated silhouette 1,000,000")["figure"],
    }


def classifier_runs() -> Values:
    """Return {setup: {quantity: (ours, published)}} of the first paper's runs."""
    runs: Values = {}
    for row in _record("docs/reproduction/classifiers.json")["rows"]:
        runs.setdefault(row["setup"], {})[row["quantity"]] = (row["ours"], row["published"])
    return runs


def claims() -> Values:
    """Return how many claims of the four papers have each verdict."""
    every = _record("docs/reproduction/index.json")["claims"]
    counts = Counter(claim["verdict"] for claim in every if claim["kind"] != OURS)
    return {"all": sum(counts.values()), **counts}


def _record(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def _named(rows: list[Values], start: str) -> Values:
    return next(row for row in rows if row["what"].startswith(start))
