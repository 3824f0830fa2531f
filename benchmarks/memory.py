"""Peak memory of `measure` on 100,000 × 384 with 20 labels, beyond the input itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

N, D, K = 100_000, 384, 20
WANTED_MB = 1000.0

_CHILD = f"""
import time
import torch
import isoscope as iso
labels = torch.arange({N}) % {K}
X = torch.randn({N}, {D}, generator=torch.Generator().manual_seed(0))
X += 0.3 * torch.randn({K}, {D}, generator=torch.Generator().manual_seed(1))[labels]
iso.measure(X[:2000], labels=labels[:2000], metrics="default")  # every import and thread pool is up
def status(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))
open("/proc/self/clear_refs", "w").write("5")  # forget the high-water mark of making the data
before = status("VmRSS")
began = time.perf_counter()
measured = iso.measure(X, labels=labels)
seconds = time.perf_counter() - began
after = status("VmHWM")
print(after - before, seconds, measured["silhouette"], measured["isoscore"])
"""


def run() -> list[dict[str, Any]]:
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, check=True)
    megabytes, seconds, _, _ = map(float, done.stdout.split())
    return [
        {
            "what": f"measure {N:,} × {D}, {K} labels, default metrics with exact silhouette",
            "peak_mb_beyond_input": megabytes,
            "wanted_mb": WANTED_MB,
            "seconds": seconds,
        }
    ]
