"""Cases of labels, weights, texts and ids in files beside the vectors."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.fuzz.case import METRICS, Builder, Case, named
from tests.fuzz.containers import copy, mutate_file
from tests.fuzz.mutations import STRINGS
from tests.fuzz.vector_seeds import N

_FEW = ["-t", "knn", "-c", "center", "--folds", "2", "--repeats", "1"]


def row_file(stem: str) -> Builder:
    """Cases of a damaged file of `stem`, or of one whose labels are hostile."""

    def builder(rng: random.Random, seeds: Path, folder: Path) -> Case:
        copy(seeds / "vectors" / "a.npy", folder / "a.npy")
        source = rng.choice(sorted((seeds / "rows").glob(f"{stem}.*")))
        name = named(rng, source.name)
        what = f"{source.name}: {mutate_file(copy(source, folder / name), rng)}"
        if stem == "labels" and rng.random() < 0.25:
            name, what = "hostile.json", "hostile labels"
            chosen = rng.sample(STRINGS, 3)
            (folder / name).write_text(json.dumps([chosen[i % 3] for i in range(N)]))
        where = name if rng.random() < 0.7 else f"{name}:{rng.choice((stem, 'x', '', '0'))}"
        if stem == "weights":
            argv = ["measure", "a.npy", f"--weights={where}", "-m", METRICS, "--json"]
        else:
            argv = _label_call(rng, where)
        whole = argv[0] == "measure" and argv[-1] == "--json" and where == name
        return Case(f"{stem} beside vectors", argv, what, "rows" if whole else "any", name)

    return builder


def _label_call(rng: random.Random, where: str) -> list[str]:
    """A command that takes labels, or texts or ids in their place."""
    labels = f"--labels={where}"
    calls = (
        (8, ["measure", "a.npy", labels, "-m", "silhouette,between_share", "--json"]),
        (2, ["measure", "a.npy", labels]),
        (1, ["frontier", "a.npy", labels, "--json"]),
        (1, ["frontier", "a.npy", labels, "-o", "f.png"]),
        (1, ["report", "a.npy", labels, "--json"]),
        (1, ["report", "a.npy", labels, "--figures", "figures"]),
        (1, ["report", "a.npy", f"--texts={where}", "--title", where]),
        (1, ["train", "a.npy", labels, "--steps", "2", "--seeds", "1", "--json"]),
        (1, ["train", "a.npy", labels, "--steps", "2", "--seeds", "1", "-o", "run"]),
        (1, ["advise", "a.npy", labels, *_FEW]),
        (1, ["compare", "a.npy", "a.npy", labels]),
        (1, ["compare", "a.npy", "a.npy", f"--ids={where}"]),
        (1, ["compare", "a.npy", "a.npy", f"--texts={where}"]),
        (1, ["correct", "a.npy", "--method", "cluster-center", labels, "-o", "out.npy"]),
    )
    weights, argvs = zip(*calls, strict=True)
    return list(rng.choices(argvs, weights)[0])
