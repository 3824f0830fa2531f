"""Texts of the data folder, and their vectors, which can be kept."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import isoscope as iso


def columns(files: Sequence[str], names: Sequence[str]) -> list[list[Any]]:
    """Return columns of some .jsonl.gz files of the data folder, one file after another."""
    items: list[dict[str, Any]] = []
    for file in files:
        with gzip.open(Path(os.environ["ISOSCOPE_DATA"]) / file, "rt", encoding="utf-8") as lines:
            items += map(json.loads, lines)
    return [[item[name] for item in items] for name in names]


def vectors(texts: Sequence[str], model: str, kept: Path | None, name: str) -> np.ndarray:
    """Return the vectors of texts by a model; those of an earlier run where a folder keeps them."""
    place = None if kept is None else kept / f"{name}-{model}-{len(texts)}.npy"
    if place is not None and place.exists():
        return np.asarray(np.load(place))
    X = np.asarray(iso.encode(list(texts), model=model, progress=False))
    if place is not None:
        np.save(place, X)
    return X
