"""The numbers of the public interface, recorded before a change and compared after it.

    python -m tests.guard record build/guard.json            every part; --part names some
    python -m tests.guard compare build/guard.json           what moved, and by how much; exit code 1

A number agrees to 1e-12 of itself. Parts: every metric on twelve spaces in memory, streamed from files, on
Dask and with weights; the layers of three models with and without sinks; a tracker's run; a report's
contents; a comparison; advice. Each number has one name, `part/space/metric`, whatever shape the result has.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the order of sums is then the same in every run

import numpy as np
import torch

import isoscope as iso

Numbers = dict[str, float | str | None]
CLOSE = 1e-12
TEXTS = (
    "The river rose over the old stone bridge in the night.",
    "She plays the piano better than anyone in the village.",
    "Prices fell again after the bank had raised its rate.",
    "A dog ran across the field and barked at the train.",
    "He could not read the letter without his glasses.",
    "The museum keeps the first map of the northern coast.",
    "Rain is expected in the west by Friday evening.",
    "They painted the kitchen yellow and the door green.",
)
MODELS = ("all-MiniLM-L6-v2", "all-mpnet-base-v2", "smollm2-135m")


def spaces() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return twelve spaces with labels: even, narrow, far, tiny, huge, few rows, zeros, copies, real ones."""
    rng = np.random.default_rng(7)
    even = rng.normal(size=(400, 16))
    decay = rng.normal(size=(500, 24)) * np.arange(1, 25) ** -0.8
    one = even * np.r_[50.0, np.ones(15)]
    blobs = rng.normal(size=(450, 12)) + 4 * rng.normal(size=(9, 12))[np.arange(450) % 9]
    zeros = even[:120].copy()
    zeros[::17] = 0
    words, _ = iso.models.static_vectors(sorted(set(" ".join(TEXTS).lower().replace(".", "").split())))
    sentences = np.asarray(iso.encode(list(TEXTS) * 6, progress=False)) + 0.01 * rng.normal(size=(48, 384))
    found = {
        "even": even,
        "decay": decay,
        "one direction": one,
        "blobs": blobs,
        "far from 0": even + 1e6,
        "tiny": even * 1e-150,
        "float32": decay.astype(np.float32),
        "few rows": rng.normal(size=(9, 64)),
        "zero rows": zeros,
        "copies": np.repeat(even[:40], 3, axis=0),
        "sentences": sentences,
        "words": np.asarray(words),
    }
    return {name: (X, np.arange(len(X)) % (9 if name == "blobs" else 3)) for name, X in found.items()}


def flat(content: Any, path: str) -> Iterator[tuple[str, float | str | None]]:
    """Yield every number of a JSON-like value by its path; times and versions are not numbers of a space."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key not in ("seconds", "isoscope", "checksum", "created"):
                yield from flat(value, f"{path}/{key}")
    elif isinstance(content, list | tuple):
        for place, value in enumerate(content):
            yield from flat(value, f"{path}/{place}")
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield path, float(content)


def readings(measurement: Any, path: str) -> Numbers:
    """Return value, standard error and interval of every metric; None where it is undefined."""
    found: Numbers = {}
    for name, reading in measurement.to_dict()["metrics"].items():
        found[f"{path}/{name}"] = reading["value"]
        found |= dict(
            flat({key: reading.get(key) for key in ("standard_error", "interval")}, f"{path}/{name}")
        )
    return found


def memory() -> Numbers:
    """Return every metric on every space."""
    found: Numbers = {}
    for name, (X, y) in spaces().items():
        context = {"token_types": y % 2, "sentences": np.arange(len(X)) // 4}
        found |= readings(iso.measure(X, labels=y, metrics="all", progress=False, **context), name)
    return found


def weighted() -> Numbers:
    """Return what takes weights, with weights."""
    found: Numbers = {}
    for name, (X, _) in spaces().items():
        weights = 1.0 + np.arange(len(X)) % 4
        found |= readings(iso.measure(X, weights=weights, progress=False), name)
    return found


def streamed() -> Numbers:
    """Return what is measured in one pass over files: one file, and a folder of shards."""
    found: Numbers = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (X, _) in spaces().items():
            one, parts = Path(folder) / f"{name}.npy", Path(folder) / f"{name} parts"
            np.save(one, X)
            parts.mkdir()
            for place, rows in enumerate(np.array_split(X, 3)):
                np.save(parts / f"{place}.npy", rows)
            for kind, source in (("file", one), ("shards", parts)):
                measurement = iso.measure(iso.open_vectors(source), progress=False)
                found |= readings(measurement, f"{name}/{kind}")
    return found


def dask() -> Numbers:
    """Return the same of Dask arrays."""
    import dask.array as da

    found: Numbers = {}
    for name, (X, y) in spaces().items():
        rows = da.from_array(X, chunks=(math.ceil(len(X) / 3), X.shape[1]))
        found |= readings(iso.measure(rows, labels=y, progress=False), name)
    return found


def layers() -> Numbers:
    """Return every quantity of every layer of three models, with sinks and without."""
    found: Numbers = {}
    for model in MODELS:
        profile = iso.models.measure_layers(list(TEXTS) * 4, model=model, sample=200, progress=False)
        found |= dict(flat(profile.to_dict(), model))
    return found


def tracker() -> Numbers:
    """Return the trajectory of a training of vectors, and of one tracked network."""
    X, y = spaces()["blobs"]
    trained = iso.train_embeddings(X, y, steps=30, seeds=2, every=5, metrics="all", progress=False)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 9))
    inputs, wanted = torch.from_numpy(X).float(), torch.from_numpy(y)
    followed = iso.GeometryTracker(inputs, layers=("0", "2"), labels=wanted, every=5, metrics="all")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    for step in range(21):
        followed(network, step)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs), wanted).backward()
        optimizer.step()
    return dict(flat(trained.to_dict(), "train")) | dict(flat(followed.trajectory.to_dict(), "network"))


def report() -> Numbers:
    """Return the contents of a report, which its page shows."""
    found: Numbers = {}
    for name in ("blobs", "decay", "zero rows"):
        X, y = spaces()[name]
        found |= dict(flat(iso.report(X, labels=y, progress=False).contents, name))
    return found


def two_spaces() -> Numbers:
    """Return a comparison of a space with a bent copy."""
    X, y = spaces()["blobs"]
    bent = X + 0.3 * np.random.default_rng(1).normal(size=X.shape)
    return dict(flat(iso.compare(X, bent, labels=y, progress=False).to_dict(), "compare"))


def advice() -> Numbers:
    """Return what `advise` tried on a space with labels."""
    X, y = spaces()["blobs"]
    return dict(flat(iso.advise(X[:180], labels=y[:180], repeats=1, progress=False).to_dict(), "advise"))


PARTS: dict[str, Callable[[], Numbers]] = {
    "memory": memory,
    "weighted": weighted,
    "streamed": streamed,
    "dask": dask,
    "layers": layers,
    "tracker": tracker,
    "report": report,
    "compare": two_spaces,
    "advise": advice,
}


def differences(before: Numbers, now: Numbers) -> Iterator[tuple[float, str, Any, Any]]:
    """Yield the size, name and both values of what does not agree; lost and new ones are infinitely far."""
    for name in sorted(before.keys() | now.keys()):
        was, found = before.get(name, "missing"), now.get(name, "missing")
        if isinstance(was, float) and isinstance(found, float):
            if was == found or (math.isnan(was) and math.isnan(found)):
                continue
            size = abs(found - was) / max(abs(was), abs(found))
            if not size <= CLOSE:
                yield size, name, was, found
        elif was != found:
            yield math.inf, name, was, found


def taken(names: list[str]) -> Numbers:
    """Return the numbers of these parts, and say how long each took."""
    found: Numbers = {}
    for part in names:
        began = time.monotonic()
        numbers = PARTS[part]()
        found |= {f"{part}/{name}": value for name, value in numbers.items()}
        print(
            f"{part}: {len(numbers):,} numbers, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True
        )
    return found


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--show", type=int, default=40, help="how many differences are printed")
    asked = parser.parse_args()
    now = taken(asked.part or list(PARTS))
    if asked.action == "record":
        kept = json.loads(asked.file.read_text()) if asked.file.exists() and asked.part else {}
        kept = {name: value for name, value in kept.items() if name.partition("/")[0] not in asked.part}
        asked.file.parent.mkdir(parents=True, exist_ok=True)
        asked.file.write_text(json.dumps(kept | now, indent=0))
        return
    before = json.loads(asked.file.read_text())
    chosen = {
        name: value for name, value in before.items() if name.partition("/")[0] in (asked.part or PARTS)
    }
    moved = sorted(differences(chosen, now), key=lambda one: (-one[0], one[1]))
    for size, name, was, found in moved[: asked.show]:
        print(f"{size:8.1e}  {name}: {was} -> {found}")
    print(f"{len(moved):,} of {len(chosen):,} numbers moved")
    sys.exit(1 if moved else 0)


if __name__ == "__main__":
    main()
