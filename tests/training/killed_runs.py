"""A program that has runs killed with SIGKILL at all sorts of moments, and continues them.

Python and torch are started once: every run is a fork of this process, before torch has threads of its own.

    python killed_runs.py KIND MODEL FOLDER

prints one JSON object: what an uninterrupted run found, and what each killed and resumed run found.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers.trainer  # noqa: F401 - before the forks

from isoscope.training import encoder_result, encoder_trainer  # noqa: F401
from isoscope.training.contrast import contrast
from isoscope.training.finetune import finetune

WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")
rng = random.Random(0)
TEXTS = [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(48)]


def run(kind: str, model: str, folder: Path) -> dict[str, Any]:
    """One run to its end, or on from where it was killed."""
    options: dict[str, Any] = {
        "probe": TEXTS[:12], "every": 3, "batch_size": 8, "epochs": 3, "learning_rate": 1e-3, "save_every": 2,
        "device": "cpu", "run": folder, "resume": True, "progress": False,
    }  # fmt: skip
    if kind == "contrast":
        found: Any = contrast(model, list(zip(TEXTS[:24], TEXTS[24:], strict=True)), **options)
        extra: list[Any] = []
    else:
        labels = ["cat" if "cat" in text else "none" for text in TEXTS]
        found = finetune(model, TEXTS, labels, regularizer="istar", strength=2.0, **options)
        extra = [list(found.epochs), list(found.geometry), found.losses["penalty"].tolist()]
    columns = {name: values.tolist() for name, values in found.trajectory.columns.items()}
    weights = (folder / "model" / "model.safetensors").read_bytes()
    return {
        "loss": found.loss.tolist(), "rows": columns, "extra": extra, "weights": hash_of(weights),
        "left": sorted(path.name for path in folder.iterdir()),
    }  # fmt: skip


def hash_of(content: bytes) -> str:
    """A digest."""
    import hashlib

    return hashlib.sha256(content).hexdigest()


def forked(work: Callable[[], None]) -> int:
    """Run in a child; its process id."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:  # a child must never return into the parent's code
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return child


def ended(child: int) -> int:
    """How it ended: 0, or minus the signal, or the exit code."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def kill_at(owner: Any, name: str, call: int, *, after: bool = False) -> None:
    """The process dies at the n-th call of a function, before it does anything or right after."""
    real, n = getattr(owner, name), 0

    def wrapped(*args: Any, **options: Any) -> Any:
        nonlocal n
        n += 1
        if n == call and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = real(*args, **options)
        if n == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, wrapped)


def moments() -> dict[str, Callable[[], None]]:
    """Where a run dies by itself: within updates, within a checkpoint, as one is moved or removed."""
    from isoscope.training.journal import Journal
    from isoscope.training.trajectory import Trajectory

    return {
        "first update": lambda: kill_at(Journal, "add", 1),
        "update 5": lambda: kill_at(Journal, "add", 5),
        "an epoch just ended": lambda: kill_at(Journal, "add", 11),
        "optimiser state": lambda: kill_at(torch, "save", 4),
        "half a checkpoint": lambda: kill_at(Journal, "write", 3),
        "a checkpoint just moved": lambda: kill_at(os, "replace", 4, after=True),
        "a checkpoint being removed": lambda: kill_at(shutil, "rmtree", 6),
        "the model being written": lambda: kill_at(encoder_result, "quiet_loading", 1),
        "no result yet": lambda: kill_at(Trajectory, "save", 1),
    }


def main(kind: str, model: str, folder: Path) -> None:
    """All of it."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}

    def told(name: str) -> None:
        result = run(kind, model, folder / name.replace(" ", "-"))
        (folder / f"{name}.json").write_text(json.dumps(result))

    began = time.perf_counter()
    assert ended(forked(lambda: told("whole"))) == 0
    whole_s = time.perf_counter() - began
    found["whole"] = json.loads((folder / "whole.json").read_text())
    chosen = moments()
    for name in chosen if kind == "finetune" else ("update 5", "half a checkpoint", "no result yet"):

        def die(name: str = name, arm: Callable[[], None] = chosen[name]) -> None:
            arm()
            told(name)

        found[f"died: {name}"] = ended(forked(die))
        assert ended(forked(lambda name=name: told(name))) == 0
        found[name] = json.loads((folder / f"{name}.json").read_text())
    # from outside, again and again, at moments of chance, until it is through
    name, deaths, code = "by chance", 0, -1
    delays = random.Random(1)
    while code != 0:
        child = forked(lambda: told(name))
        if deaths < 6:
            time.sleep(delays.uniform(0.1, 0.6) * whole_s)
            os.kill(child, signal.SIGKILL)
        code = ended(child)
        deaths += code == -signal.SIGKILL
        assert code in (0, -signal.SIGKILL)
    found[name], found["deaths"] = json.loads((folder / f"{name}.json").read_text()), deaths
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
