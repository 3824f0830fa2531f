"""`isoscope report` of 100,000 × 384 with 20 labels: seconds, peak memory, the page's weight."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

N, D, K = 100_000, 384, 20
WANTED_SECONDS, WANTED_MB, WANTED_PAGE_MB = 90.0, 2048.0, 6.0

_MAKE = f"""
import numpy as np
rng = np.random.default_rng(0)
labels = rng.integers(0, {K}, {N})
X = rng.normal(size=({N}, {D})).astype(np.float32) * np.geomspace(3, 0.2, {D}, dtype=np.float32)
X += (0.8 * rng.normal(size=({K}, {D})) + 0.2).astype(np.float32)[labels]
np.save("vectors.npy", X)
open("labels.txt", "w").write("\\n".join(f"label {{k}}" for k in labels) + "\\n")
open("texts.txt", "w").write("\\n".join(f"the text of row {{i}}, some words" for i in range({N})) + "\\n")
"""
_CHILD = """
import resource, sys, time
began = time.perf_counter()
from isoscope.cli import app
options = ["-l", "labels.txt", "--texts", "texts.txt", "-o", "page.html"]
app(["report", "vectors.npy", *options], standalone_mode=False)
seconds = time.perf_counter() - began
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", _MAKE], cwd=folder, check=True)
        done = subprocess.run(
            [sys.executable, "-c", _CHILD], cwd=folder, capture_output=True, text=True, check=True
        )
        page_mb = (Path(folder) / "page.html").stat().st_size / 1e6
    seconds, peak_mb = map(float, done.stdout.splitlines()[-1].split())
    what = f"report {N:,} × {D}, {K} labels, with texts"
    return [
        {"what": what, "figure": seconds, "unit": " s", "sign": "≤", "wanted": WANTED_SECONDS},
        {"what": f"{what}: peak memory", "figure": peak_mb, "unit": " MB", "sign": "≤", "wanted": WANTED_MB},
        {"what": f"{what}: page", "figure": page_mb, "unit": " MB", "sign": "≤", "wanted": WANTED_PAGE_MB},
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
