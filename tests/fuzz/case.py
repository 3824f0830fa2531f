"""What a case is, and names that no terminal and no pattern should obey."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.containers import copy
from tests.fuzz.mutations import ESCAPE

METRICS = "isoscore,mean_cosine,mean_norm"
_NAMES = (
    f"v{ESCAPE}", "v\u202ev", "v\nv", "1²2", "-v", "v v", "é", "v'\"", "v%s{}", "*", "[a]", "$(x)", "v\x07", "v\x9b1m",
    "٣", "v" * 200, "[red]v", "v\udcff",
)  # fmt: skip


@dataclass
class Case:
    """What is called, and what is known of the answer.

    family: a row of the table.
    what: what was done to the input.
    expect: "file", the readings of what `path` holds by its own library; "accept", likewise, and it must not be
        refused; "same", the scenario's undisturbed answer; "rows", the readings that labels or
        weights in `path` lead to; "any", only what every answer keeps.
    """

    family: str
    argv: list[str]
    what: str = "as it is"
    expect: str = "any"
    path: str = ""
    scenario: str = ""
    may_fail: bool = False


Builder = Callable[[random.Random, Path, Path], Case]


def named(rng: random.Random, name: str, share: float = 0.12) -> str:
    """A name for a file, now and then one that no terminal and no pattern should obey."""
    if rng.random() >= share:
        return name
    _stem, dot, suffix = name.partition(".")
    return f"{rng.choice(_NAMES)}{dot}{suffix}"


def labels_beside(seeds: Path, folder: Path) -> str:
    """Copy good labels into the folder; their file's name."""
    copy(seeds / "rows" / "labels.txt", folder / "labels.txt")
    return "labels.txt"
