"""What an update of `finetune` takes with each penalty, on MiniLM or another model.

    python -m benchmarks.finetune --model all-MiniLM-L6-v2 --device cuda

Every penalty trains the same texts, in turns; the figure is the median time from one update to the next.
Waits of the host for a CUDA device are counted too, over the same updates.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import warnings
from typing import Any

import numpy as np
import torch

import isoscope as iso
from isoscope.training.journal import Journal

PENALTIES = (None, "istar", "istar-debiased", "cosreg")
_WARM_UP = 5  # updates at the start of a run that are not counted


def run(
    model: str = "all-MiniLM-L6-v2", device: str = "cpu", *, batch_size: int = 32, steps: int = 30,
    rounds: int = 3, precision: str = "float32", words: int = 24,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return one row per penalty: milliseconds per update, overhead, and device waits per update."""
    source = random.Random(0)
    vocabulary = ("the", "of", "and", "a", "in", "film", "story", "is", "its", "that", "this", "with", "for")
    texts = [" ".join(source.choices(vocabulary, k=words)) for _ in range(batch_size * steps)]
    labels = [source.randrange(2) for _ in texts]
    options: dict[str, Any] = {
        "test": (texts[:64], labels[:64]), "epochs": 1, "batch_size": batch_size, "device": device,
        "precision": precision, "max_vectors": 20_000, "progress": False,
    }  # fmt: skip
    taken: dict[str | None, list[float]] = {penalty: [] for penalty in PENALTIES}
    waits: dict[str | None, float] = {}
    for _ in range(rounds):
        for penalty in PENALTIES:
            with _Stopwatch(device) as watch:
                iso.finetune(model, texts, labels, regularizer=penalty, strength=0.01, **options)
            taken[penalty] += watch.gaps
            waits[penalty] = watch.waits
    plain = float(np.median(taken[None]))
    return [
        {
            "model": model, "device": device, "precision": precision, "penalty": penalty or "none",
            "ms": 1e3 * float(np.median(taken[penalty])),
            "share": float(np.median(taken[penalty])) / plain - 1, "waits": waits[penalty],
        }
        for penalty in PENALTIES
    ]  # fmt: skip


class _Stopwatch:
    """Times between updates, taken where the journal notes a loss, and warnings of waits in between."""

    def __init__(self, device: str) -> None:
        self._on_cuda = device.startswith("cuda")
        self.gaps: list[float] = []
        self.waits = 0.0

    def __enter__(self) -> _Stopwatch:
        self._add, times, counts = Journal.add, [], []
        self._times = times
        self._caught = warnings.catch_warnings(record=True)
        found = self._caught.__enter__()
        warnings.simplefilter("always")
        self._counts = counts
        if self._on_cuda:
            torch.cuda.set_sync_debug_mode("warn")
        add = self._add

        def timed(journal: Journal, parts: dict[str, torch.Tensor]) -> None:
            add(journal, parts)
            times.append(time.perf_counter())
            counts.append(sum("synchroniz" in str(warning.message) for warning in found))

        Journal.add = timed  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Journal.add = self._add  # type: ignore[method-assign]
        if self._on_cuda:
            torch.cuda.set_sync_debug_mode("default")
        self._caught.__exit__(None, None, None)
        self.gaps = np.diff(self._times[_WARM_UP:]).tolist()
        n = len(self._counts) - _WARM_UP - 1
        self.waits = (self._counts[-1] - self._counts[_WARM_UP]) / n


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--words", type=int, default=24)
    parser.add_argument("--precision", default="float32")
    for row in run(**vars(parser.parse_args())):
        print(json.dumps(row))
