"""Public calls on the CPU as users make them, and what the exact silhouette spends beside its products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

import isoscope as iso
from benchmarks.timing import interleaved, take_turns
from isoscope.kernels.tiles import Arranged
from isoscope.kernels.workers import Room, in_order
from isoscope.labels import as_labels

LABELS = (2, 20, 100, 500, 2000)
SHARE = 0.8


def run() -> list[dict[str, Any]]:
    """Time calls with NumPy arrays and labels given anew."""
    X, two = _space(10_662, 384, 2)
    large, three = _space(20_000, 768, 3)
    names = np.array([f"label {label}" for label in range(2)])[two].tolist()
    calls: dict[str, Callable[[], object]] = {
        "silhouette_score(X, labels), 2,000 × 384, K = 2": lambda: iso.silhouette_score(X[:2000], two[:2000]),
        "silhouette_score(X, labels), 10,662 × 384, K = 2": lambda: iso.silhouette_score(X, two),
        "the same, labels as a list of texts": lambda: iso.silhouette_score(X, names),
        "isoscore(X), 10,662 × 384": lambda: iso.isoscore(X),
        "mean_cosine(X), 10,662 × 384": lambda: iso.mean_cosine(X),
        "measure(X, labels=y), 2,000 × 384": lambda: iso.measure(X[:2000], labels=two[:2000], progress=False),
        "measure(X, labels=y), 20,000 × 768": lambda: iso.measure(large, labels=three, progress=False),
    }
    seconds = take_turns(calls, rounds=3)
    return [{"what": name, "ms": 1e3 * seconds[name]} for name in calls]


def silhouette_share(n: int = 10_662, d: int = 384, rounds: int = 5) -> list[dict[str, Any]]:
    """Time the products of the exact silhouette alone, and the whole call."""
    rows = []
    for K in LABELS:
        X, y = _space(n, d, K)
        whole = partial(iso.silhouette_score, X, y)
        products, score, share = interleaved(_products(X, y), whole, rounds=rounds)
        what = f"exact silhouette on the CPU, {n:,} × {d}, K = {K:,}"
        times = {"ms": 1e3 * score, "products_ms": 1e3 * products}
        rows.append({"what": what, **times, "share": share, "wanted": SHARE})
    return rows


def silhouette_share_large() -> list[dict[str, Any]]:
    return silhouette_share(20_000, 768, rounds=2)


def silhouette_profile() -> list[dict[str, Any]]:
    """Return the share of CPU time that each operation has, on one core."""
    rows = []
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    for K in (2, 2000):
        X, y = _space(10_662, 384, K)
        iso.silhouette_score(X, y)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            iso.silhouette_score(X, y)
        spent = {event.key: event.self_cpu_time_total for event in profile.key_averages()}
        total = sum(spent.values())
        most = sorted(spent, key=lambda name: -spent[name])[:8]
        shares = {name.removeprefix("aten::"): spent[name] / total for name in most}
        rows.append({"what": f"10,662 × 384, K = {K:,}", "shares": shares})
    torch.set_num_threads(before)
    return rows


def _space(n: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(K)
    y = rng.integers(0, K, n)
    centers = 0.2 * rng.normal(size=(K, d)).astype(np.float32)
    return rng.normal(size=(n, d)).astype(np.float32) + centers[y], y


def _products(X: np.ndarray, y: np.ndarray) -> Callable[[], None]:
    """Return what multiplies the same tiles and does nothing else, on the same threads."""
    arranged = Arranged.of(torch.from_numpy(X), as_labels(y))
    parts = [arranged.augmented[tile.rows] for tile in arranged.tiles]
    pairs = [(a, b) for place, a in enumerate(parts) for b in parts[place:]]
    room = Room()

    def product(a: torch.Tensor, b: torch.Tensor) -> None:
        torch.mm(a, b.T, out=room.of(len(a), len(b), a))

    def products() -> None:
        for _ in in_order((partial(product, a, b) for a, b in pairs), n_workers=torch.get_num_threads()):
            pass

    return products
