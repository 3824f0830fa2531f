"""The exact silhouette side by side with every library that has one: time, error, memory.

`run` is for the CPU, in one run; `gpu_rows` for a CUDA device, where only torch has to be there.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import isoscope as iso
from benchmarks import on_gpu
from benchmarks.timing import take_turns

N, D = 10_662, 384
SLOW_S = 10.0  # from here on a contender has one turn, compilation included
LIMIT_S = 90.0  # and here it is stopped
WANTED_MB = 256.0
Score = Callable[[np.ndarray, np.ndarray], float]


def space(K: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping normal clusters in float32."""
    rng = np.random.default_rng(K)
    y = rng.integers(0, K, N)
    X = rng.normal(size=(N, D)) + 0.2 * rng.normal(size=(K, D))[y]
    return X.astype(np.float32), y


def _isoscope() -> Score:
    return lambda X, y: iso.silhouette_score(X, y)


def _scikit_learn() -> Score:
    from sklearn.metrics import silhouette_score

    return lambda X, y: float(silhouette_score(X, y))


def _torch_cdist() -> Score:
    return lambda X, y: naive_score(torch.from_numpy(X), torch.from_numpy(y))


def _torchdr() -> Score:
    from torchdr import silhouette_score

    return lambda X, y: float(silhouette_score(X, y))


def _scib_metrics() -> Score:
    """Its silhouette module alone: importing the package wants scanpy, igraph and umap."""
    for name in ("scib_metrics.utils", "scib_metrics"):
        sys.modules.pop(name, None)  # of an earlier call
    found = importlib.util.find_spec("scib_metrics")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'scib_metrics'")
    for name in ("scib_metrics", "scib_metrics.utils"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(found.origin).parent.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    samples = importlib.import_module("scib_metrics.utils._silhouette").silhouette_samples
    return lambda X, y: float(samples(X, y).mean())


def _silhouette_scalable() -> Score:
    from silhouette_scalable import compute_exact

    return lambda X, y: float(compute_exact(X, y)["global_silhouette"])


def _torchmetrics() -> Score:
    clustering = importlib.import_module("torchmetrics.clustering")
    if not any("silhouette" in name.lower() for name in dir(clustering)):
        raise NotImplementedError("has no silhouette")
    raise NotImplementedError("has a silhouette by now: enter it here")


# by distribution name; each makes a function of vectors and labels, or raises why it cannot
CONTENDERS: dict[str, Callable[[], Score]] = {
    "isoscope": _isoscope,
    "scikit-learn": _scikit_learn,
    "torch": _torch_cdist,
    "torchdr": _torchdr,
    "scib-metrics": _scib_metrics,
    "silhouette-scalable": _silhouette_scalable,
    "torchmetrics": _torchmetrics,
}
NOTES = {"torch": "cdist, n × n", "scib-metrics": "jax", "silhouette-scalable": "its exact form, one thread"}


def naive_score(X: torch.Tensor, y: torch.Tensor) -> float:
    """Compute the silhouette naively: all distances at once, and an indicator matrix for the sums."""
    counts = torch.bincount(y)
    sums = torch.cdist(X, X) @ torch.nn.functional.one_hot(y).to(X.dtype)
    own = y[:, None]
    a = sums.gather(1, own).squeeze(1) / (counts[y] - 1).clamp(min=1)
    b = (sums / counts).scatter(1, own, torch.inf).amin(dim=1)
    return float(torch.where(counts[y] > 1, (b - a) / torch.maximum(a, b), 0.0).mean())


def run() -> list[dict[str, Any]]:
    return [row for K in (2, 500) for row in _rows(K)]


def _rows(K: int) -> list[dict[str, Any]]:
    from sklearn.metrics import silhouette_score

    X, y = space(K)
    exact = float(silhouette_score(X.astype(np.float64), y))
    rows = {name: _alone(name, K) for name in CONTENDERS}
    quick = {
        name: partial(CONTENDERS[name](), X, y)
        for name, row in rows.items()
        if row.get("seconds", SLOW_S) < SLOW_S
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = take_turns(quick, rounds=3)
    for name, row in rows.items():
        if "score" in row:
            row |= {"seconds": seconds.get(name, row["seconds"]), "error": abs(row.pop("score") - exact)}
    return list(rows.values())


def _alone(name: str, K: int) -> dict[str, Any]:
    """One call in a process of its own: its time, score and peak memory; or why there is none."""
    row: dict[str, Any] = {"what": f"{N:,} × {D}, K = {K}", "peer": name, "version": _version(name)}
    row |= {"note": NOTES.get(name, "")} | ({"wanted_mb": WANTED_MB} if name == "isoscope" else {})
    command = [sys.executable, "-W", "ignore", "-c", f"import benchmarks.peers as p; p.call({name!r}, {K})"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return row | {"not_run": f"stopped after {LIMIT_S:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return row | {"not_run": lines[-1].partition(": ")[2] or lines[-1]}
    return row | json.loads(done.stdout.splitlines()[-1])


def call(name: str, K: int) -> None:
    """Run the work of a process of `_alone`."""
    X, y = space(K)
    score = CONTENDERS[name]()
    some = np.flatnonzero(y < 40)[:800]
    score(X[some], np.unique(y[some], return_inverse=True)[1])  # every import and thread pool is up
    Path("/proc/self/clear_refs").write_text("5")  # forget the high-water mark so far
    before, began = _status("VmRSS"), time.perf_counter()
    value = score(X, y)
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "score": value, "peak_mb": _status("VmHWM") - before}))


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def gpu_rows(milliseconds: Callable[[Callable[[], Any], int], float]) -> list[dict[str, Any]]:
    """Ours, torch.cdist and TorchDR on the device, scikit-learn on its processor; errors against float64.

    `milliseconds(run, rounds)` times a function with the device waited for.
    """
    rows = []
    for K in (2, 500):
        X, y = space(K)
        X, y = X[: on_gpu.rows(len(X))], y[: on_gpu.rows(len(X))]
        on_device, labels = on_gpu.put(X), on_gpu.put(y)
        exact = naive_score(on_device.double(), labels)
        contenders: dict[str, Callable[[], float]] = {
            "isoscope": partial(iso.silhouette_score, on_device, labels),
            "torch cdist, n × n": partial(naive_score, on_device, labels),
        }
        others = (("torchdr", _torchdr, (on_device, labels)), ("scikit-learn", _scikit_learn, (X, y)))
        for name, make, given in others:
            try:
                contenders[name] = partial(make(), *given)
            except ImportError as error:
                rows.append({"what": f"{N:,} × {D}, K = {K}", "peer": name, "not_run": str(error)})
        for name, score in contenders.items():
            ms = milliseconds(score, 1 if name == "scikit-learn" else 5)
            error = abs(score() - exact)
            rows.append({"what": f"{N:,} × {D}, K = {K}", "peer": name, "ms": ms, "error": error})
            print(rows[-1], flush=True)
    return rows
