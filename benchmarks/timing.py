"""Fair timing on a noisy machine: contenders take turns, and the best of each counts."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

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


def interleaved(
    first: Callable[[], object], second: Callable[[], object], *, rounds: int
) -> tuple[float, float, float]:
    """Best seconds of both, and the median over the rounds of first over second, in CPU time.

    CPU time does not count what other processes take of the cores.
    """
    first(), second()
    turns = [(_both_clocks(first), _both_clocks(second)) for _ in range(rounds)]
    ratios = [one[1] / other[1] for one, other in turns]
    return min(one[0] for one, _ in turns), min(other[0] for _, other in turns), median(ratios)


def _both_clocks(run: Callable[[], object]) -> tuple[float, float]:
    began = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began[0], time.process_time() - began[1]


def machine() -> dict[str, object]:
    """Return a description of the machine, with the instructions that torch uses."""
    return {
        "processor": _cpu_info("model name") or platform.processor() or platform.machine(),
        "vendor": _cpu_info("vendor_id") or platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[1], 1),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PEERS},
    }


def short_name(described: Mapping[str, object]) -> str:
    """Return a name for files and headings: vendor, instructions and cores.

    >>> short_name({"vendor": "AuthenticAMD", "instructions": "AVX2", "cores": 2})
    'amd-avx2-2'
    """
    vendor = str(described["vendor"]).removeprefix("Genuine").removeprefix("Authentic")
    return f"{vendor}-{described['instructions']}-{described['cores']}".lower()


def on_machine(described: Mapping[str, object]) -> str:
    """Return how the page names a machine."""
    parts = ("processor", "vendor", "instructions")
    return ", ".join(str(described[part]) for part in parts if part in described) + (
        f", {described['cores']} cores"
    )


def _cpu_info(field: str) -> str | None:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), None)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
