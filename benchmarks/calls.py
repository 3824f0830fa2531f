"""Public calls of this tree against those of another one, such as a worktree of an earlier commit.

git worktree add /tmp/earlier COMMIT
python -m benchmarks.calls /tmp/earlier

Each tree has a process of its own; they take turns, call by call, so that the load of the machine falls on
both alike. CPU time on one thread, the best of the turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TURNS = 15
MOST_S = 20.0  # for one call, however long its turns take
ROOT = Path(__file__).parents[1]


def calls() -> dict[str, Callable[[], Any]]:
    """Return the calls by name; names and arguments that both trees have."""
    import dask
    import dask.array as da
    import numpy as np
    import torch

    import isoscope as iso

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_662, 384)).astype(np.float32)
    two, many = rng.integers(0, 2, len(X)), rng.integers(0, 500, len(X))
    small, medium = X[:300, :16].copy(), X[:2000]
    moved = medium + 0.1 * np.roll(medium, 1, axis=1)
    chunks = da.from_array(X, chunks=(4000, 384))
    dask.config.set(scheduler="synchronous")
    return {
        "measure(X), 300 × 16": lambda: [iso.measure(small, progress=False) for _ in range(5)],
        "measure(X, labels=y), 2,000 × 384": lambda: iso.measure(medium, labels=two[:2000], progress=False),
        "measure(dask array), 10,662 × 384": lambda: iso.measure(chunks, progress=False),
        "isoscore(X), 10,662 × 384": lambda: iso.isoscore(X),
        "isoscore(X), 300 × 16": lambda: [iso.isoscore(small) for _ in range(50)],
        "mean_cosine(X), 10,662 × 384": lambda: iso.mean_cosine(X),
        "mean_cosine(X), 2,000 × 384": lambda: [iso.mean_cosine(medium) for _ in range(10)],
        "silhouette_score(X, y), 2,000 × 384, K = 2": lambda: iso.silhouette_score(medium, two[:2000]),
        "silhouette_score(X, y), 4,000 × 384, K = 500": lambda: iso.silhouette_score(X[:4000], many[:4000]),
        "compare(X, Y), 600 × 384": lambda: iso.compare(medium[:600], moved[:600], labels=two[:600]),
        "report(X), 600 × 384": lambda: iso.report(medium[:600], labels=two[:600]),
        "advise(X), 300 × 32": lambda: iso.advise(medium[:300, :32], labels=two[:300]),
    }


def serve() -> None:
    """Run the calls whose names come in, and answer each with the CPU seconds it took."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a call prints is no answer
    known = calls()
    print(json.dumps(list(known)), file=answers, flush=True)
    for line in sys.stdin:
        began = time.process_time()
        known[line.rstrip("\n")]()
        print(time.process_time() - began, file=answers, flush=True)


class Tree:
    """A process that makes the calls with the code of one tree."""

    def __init__(self, root: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
        words = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--serve"]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.names: list[str] = json.loads(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def seconds(self, name: str) -> float:
        """Return the CPU time of one call."""
        assert self._process.stdin is not None
        print(name, file=self._process.stdin, flush=True)
        return float(self._answer())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    """Print a line a call: the time of the other tree, that of this one, and their ratio."""
    if sys.argv[1:] == ["--serve"]:
        serve()
        return
    other, this = Tree(Path(sys.argv[1])), Tree(ROOT)
    for name in this.names:
        best, began = {other: float("inf"), this: float("inf")}, time.monotonic()
        for turn in range(TURNS + 1):
            for tree in (other, this) if turn % 2 else (this, other):
                seconds = tree.seconds(name)
                best[tree] = min(best[tree], seconds if turn else float("inf"))  # the first one warms up
            if turn > 2 and time.monotonic() - began > MOST_S:
                break
        before, after = best[other], best[this]
        print(
            f"{name:<46}{1e3 * before:10.2f} ms {1e3 * after:10.2f} ms   × {after / before:.2f}", flush=True
        )
    other.close()
    this.close()


if __name__ == "__main__":
    main()
