"""Fair timing on a noisy machine: contenders take turns, and the best of each counts."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

_TURN_S = 0.1
PEERS = ("isoscope", "torch", "numpy", "scikit-learn", "IsoScore")


def take_turns(contenders: Mapping[str, Callable[[], object]], *, rounds: int = 7) -> dict[str, float]:
    """Seconds a call of each contender, in turns of at least a tenth of a second; the best turn counts."""
    calls = {name: _calls_per_turn(run) for name, run in contenders.items()}
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            best[name] = min(best[name], _seconds(run, calls[name]) / calls[name])
    return best


def _calls_per_turn(run: Callable[[], object]) -> int:
    run()
    return max(1, round(_TURN_S / _seconds(run, 1)))


def _seconds(run: Callable[[], object], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        run()
    return time.perf_counter() - began


def machine() -> dict[str, object]:
    """Return a description of the machine."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PEERS},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
