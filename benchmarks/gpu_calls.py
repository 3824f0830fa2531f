"""Public calls on CUDA tensors, timed as a user makes them: plain arguments, the result read back."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

import isoscope as iso
from benchmarks import on_gpu

# call, n, d, K, milliseconds wanted
_SILHOUETTES = (
    (10_662, 384, 2, 0.7),
    (2_000, 384, 10, 0.4),
    (10_662, 384, 500, 1.2),
    (100_000, 384, 10, 23.0),
)
_STRINGS = ((10_662, 384, 2, 5.0), (100_000, 384, 10, 45.0))
_ISOSCORES = ((10_662, 384, 0.25), (100_000, 384, 1.2))
_MEASURES = ((2_000, 384, 10, 8.0), (20_000, 768, 3, 20.0), (100_000, 384, 10, 60.0))


def labelled(n: int, d: int, K: int, *, spread: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points about K centres, and the centre of each as a plain tensor."""
    where: dict[str, Any] = {"device": on_gpu.device(), "generator": on_gpu.generator()}
    codes = torch.randint(0, K, (n,), **where)
    centers = torch.randn(K, d, **where) * 0.3
    return centers[codes] + spread * torch.randn(n, d, **where), codes


def milliseconds(call: Callable[[], Any], *, most_seconds: float = 2.0) -> dict[str, float]:
    """Return the best and the median time of a call; the device is waited for."""
    for _ in range(on_gpu.few(3)):
        call()
    times: list[float] = []
    while len(times) < on_gpu.few(3) or (
        not on_gpu.is_small() and sum(times) < most_seconds and len(times) < 50
    ):
        on_gpu.wait()
        began = time.perf_counter()
        call()
        on_gpu.wait()
        times.append(time.perf_counter() - began)
    return {"best_ms": 1e3 * min(times), "median_ms": 1e3 * float(np.median(times))}


def profile_of(call: Callable[[], Any]) -> dict[str, float]:
    """Return the launches of a call, its waits for the device, and how long its kernels run in all."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if not on_gpu.is_small():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profile:
        call()
        on_gpu.wait()
    averages = profile.key_averages()
    kernels = (one for one in averages if one.device_type == torch.autograd.DeviceType.CUDA)
    return {
        "launches": sum(one.count for one in averages if "Launch" in one.key),
        "waits": sum(one.count for one in averages if one.key == "cudaStreamSynchronize"),
        "device_ms": sum(one.self_device_time_total for one in kernels) / 1e3,
    }


def _with_other_labels(X: torch.Tensor, codes: torch.Tensor, K: int, turns: Iterator[int]) -> float:
    score: float = iso.silhouette_score(X, codes.roll(next(turns)).add_(1).remainder_(K))
    return score


def calls() -> Iterator[tuple[str, float, Callable[[], Any]]]:
    """Yield the name of each call, the milliseconds wanted, and the call itself."""
    for n, d, K, wanted in _SILHOUETTES:
        X, codes = labelled(on_gpu.rows(n), d, K)
        name = f"silhouette_score(X, labels), {n:,} × {d}, K = {K}"
        yield name, wanted, partial(iso.silhouette_score, X, codes)
    for n, d, K, wanted in _SILHOUETTES[:3]:
        X, codes = labelled(on_gpu.rows(n), d, K)
        name = f"silhouette_score(X, labels not seen before), {n:,} × {d}, K = {K}"
        yield name, wanted, partial(_with_other_labels, X, codes, K, itertools.count(1))
    for n, d, K, wanted in _STRINGS:
        X, codes = labelled(on_gpu.rows(n), d, K)
        names = [f"label {code}" for code in codes.tolist()]
        name = f"silhouette_score(X, strings), {n:,} × {d}, K = {K}"
        yield name, wanted, partial(iso.silhouette_score, X, names)
    for n, d, wanted in _ISOSCORES:
        X, _ = labelled(on_gpu.rows(n), d, 2)
        yield f"isoscore(X), {n:,} × {d}", wanted, partial(iso.isoscore, X)
    X, _ = labelled(on_gpu.rows(100_000), 384, 2)
    yield "mean_cosine(X), 100,000 × 384", 0.5, partial(iso.mean_cosine, X)
    for n, d, K, wanted in _MEASURES:
        X, codes = labelled(on_gpu.rows(n), d, K)
        name = f"measure(X, labels=y), {n:,} × {d}, K = {K}"
        yield name, wanted, partial(iso.measure, X, labels=codes)


def rows() -> Iterator[dict[str, Any]]:
    """Yield the time of every call, and print it."""
    for name, wanted, call in calls():
        row = {"call": name, "wanted_ms": wanted} | milliseconds(call)
        times = f"{row['best_ms']:9.3f} ms (median {row['median_ms']:.3f})"
        print(f"{name:<75}{times}, wanted {wanted}", flush=True)
        yield row


def profiles() -> Iterator[dict[str, Any]]:
    """Yield the profile of every call: after all times are taken, since launches are slower from then on."""
    for name, _, call in calls():
        for _ in range(on_gpu.few(4)):
            call()
        yield {"call": name} | profile_of(call)
