"""Measure and score every space of a setup; each space is saved as soon as it is done."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

import isoscope as iso
from isoscope.errors import IsoscopeError
from isoscope.io import read_json, write_json
from isoscope.progress import Bar
from isoscope_papers.predicts import setups
from isoscope_papers.predicts.options import Options
from isoscope_papers.predicts.scores import scores
from isoscope_papers.predicts.setups import LABEL_METRICS, LABELS, METRICS, PAIR_METRICS, SEARCH, Setup
from isoscope_papers.predicts.spaces import Source, Space, digest
from isoscope_papers.predicts.table import Spaces, table_of
from isoscope_papers.predicts.texts import Items, load_all
from isoscope_papers.study import Place

METRIC, LABEL_METRIC, TASK = "metric", "label metric", "task"
Row = dict[str, Any]


def run_setup(setup: Setup, _options: Options, place: Place, *, progress: bool | None = None) -> list[Spaces]:
    """Run one setup; spaces that were measured before are read."""
    texts = load_all(place)
    source = Source(setup, texts, place, progress=progress)
    spaces = list(source.spaces())
    rows: list[Row] = []
    with Bar(show=progress) as bar:
        bar.step(f"{setup.title}: {len(spaces)} spaces")
        for number, space in enumerate(spaces):
            rows += _kept(source, space)
            bar.share((number + 1) / len(spaces))
    return [Spaces(table_of(pd.DataFrame(rows)))]


def _kept(source: Source, space: Space) -> list[Row]:
    """Return the rows of a space, from the cache if they are there."""
    path = source.folder / f"results-{_recipe()}" / f"{space.name.replace('/', '--')}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"rows": list(rows_of(source, space))}, indent=None)
    return [
        row | {name: _number(row[name]) for name in ("value", "standard_error")}
        for row in read_json(path, sealed=False)["rows"]
    ]


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _recipe() -> str:
    """Return a digest of what is measured."""
    parts = (setups.MATERIALS, METRICS, LABEL_METRICS, PAIR_METRICS, setups.MAX_ROWS, setups.PENALTIES)
    return digest(parts)


def rows_of(source: Source, space: Space) -> Iterator[Row]:
    """Yield every number of a space: metrics, metrics with labels, scores of tasks."""
    texts, about = source.texts, asdict(space) | {"space": space.name}
    vectors = {domain: source.vectors(space, domain) for domain in texts.by_domain}
    for name, items in texts.items.items():
        rows, known = vectors[items.material.domain]
        place = texts.places[name]
        own, has = rows[place], known[place]
        shared = about | {"n_dims": own.shape[1], "corpus": name}
        for kind, label, value, error, n in (
            *((METRIC, *one) for one in _metrics(own[has])),
            *((LABEL_METRIC, *one) for one in _label_metrics(items, own, has)),
            *((TASK, one.task, one.value, one.standard_error, one.n) for one in scores(items, own, has)),
        ):
            yield shared | {
                "kind": kind, "name": label, "value": _plain(value), "standard_error": _plain(error), "n": n
            }  # fmt: skip


def _plain(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _metrics(X: np.ndarray) -> Iterator[tuple[str, float | None, float | None, int]]:
    """Yield every metric without labels, on at most `MAX_ROWS` rows, drawn at random."""
    some = np.random.default_rng(setups.SEED).permutation(len(X))[: setups.MAX_ROWS]
    yield from _measured(X[np.sort(some)], tuple(METRICS))


def _label_metrics(
    items: Items, X: np.ndarray, has: np.ndarray
) -> Iterator[tuple[str, float | None, float | None, int]]:
    kept = items.known(has)
    rows, targets = items.rows[kept], items.targets[kept]
    if items.material.kind == LABELS:
        yield from _measured(X[rows[:, 0]], LABEL_METRICS, labels=targets.tolist())
    elif items.material.kind == SEARCH:
        yield from _measured(X[rows[:, 0]], PAIR_METRICS, partners=X[rows[:, 1]])


def _measured(
    X: np.ndarray, metrics: tuple[str, ...], **known: Any
) -> Iterator[tuple[str, float | None, float | None, int]]:
    try:
        found = iso.measure(X, metrics=metrics, errors=False, seed=setups.SEED, **known)
    except IsoscopeError:  # such as rows that are all equal, before training
        yield from ((name, None, None, len(X)) for name in metrics)
        return
    values = dict(found.items())
    yield from ((name, values.get(name), None, len(X)) for name in metrics)
