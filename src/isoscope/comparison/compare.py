"""`compare`: two spaces of the same items, measured side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from isoscope.comparison.changes import Change, Correspondence, MovedRow
from isoscope.comparison.moved import Moved, find_moved
from isoscope.comparison.resampling import Figures, Resampled, differences, half_width, jackknife
from isoscope.comparison.result import Comparison
from isoscope.engine.measure import measure
from isoscope.engine.source import is_source
from isoscope.errors import InputError, ShapeError, UndefinedError, check_seed
from isoscope.labels import as_labels
from isoscope.measurement import Measurement
from isoscope.metrics.correspondence import linear_cka, procrustes_distance
from isoscope.printable import printable, quoted
from isoscope.progress import Bar
from isoscope.space import Space
from isoscope.statistics.cross import CrossMoments

_N_NEIGHBORS = 10
_LISTED = 5  # row numbers in a note
_MANY = 20_000  # rows whose neighbours take a while to find
_MIN_ROWS = 40  # fewer leave groups of one, from which no error can be told
# whole numbers and extremes do not move with a few rows: leaving some out tells nothing of their error
_NO_ERROR = frozenset({"dimensions_for_variance", "dimensions_for_half", "dunn_index"})
_GROWS = frozenset({"calinski_harabasz"})  # with the number of rows: a part tells nothing of the whole


def compare(
    A: Any,
    B: Any,
    *,
    labels: Any = None,
    texts: Sequence[str] | None = None,
    ids: tuple[Any, Any] | None = None,
    metrics: str | Iterable[str] | None = None,
    k: int | None = None,
    metric: str = "cosine",
    n_moved: int = 10,
    errors: bool = True,
    seed: int = 0,
    progress: bool | None = None,
) -> Comparison:
    """Two snapshots or models of the same items: what changed, by how much, how surely, and for which items.

    Every metric of the registry on both, with the 95 % interval of the difference (a jackknife that leaves
    groups of rows out of both spaces at once); linear CKA, Procrustes distance and the overlap of
    neighbours; the rows and labels whose neighbours changed most.

    Args:
        A, B: (n, d) and (n, e) vectors in any array, Spaces, or opened files; row i is the same item in both.
        labels: one a row of A; by default those of A, else of B.
        texts: one a row of A, to show what moved; by default those of A, else of B.
        ids: one entry for each row of A, and of B: rows are matched by them, and those of one side left out.
        metrics: names or families, as `measure` takes them; None for the default set.
        k: neighbours looked at; None for 10, or half of the others where rows are few.
        metric: of the neighbours: "cosine" or "euclidean".
        n_moved: how many rows and labels to name.
        errors: also find intervals.
        seed: of everything sampled.
        progress: show a progress bar; None shows it on a terminal when work takes over a second.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(200, 6))
    >>> found = compare(A, A * [3, 1, 1, 1, 1, 1], metrics="isoscore")
    >>> found["isoscore"].differs, round(found.correspondence("cka"), 2)
    (True, 0.61)
    """
    began = time.perf_counter()
    check_seed(seed)
    matched = _matched(_space(A, "A", labels, texts), _space(B, "B"), ids)
    first, second = _told(matched.first, matched.second)
    n_neighbors = _n_neighbors(len(first)) if k is None else k
    measured, other = (
        measure(space, metrics=metrics, errors=False, seed=seed, progress=progress)
        for space in (first, second)
    )
    with Bar(show=progress) as bar:
        bar.step("correspondence", at_once=len(first) > _MANY)
        sums = CrossMoments.of(first.vectors, second.vectors)
        found = _correspondences(sums)
        moved = find_moved(
            first, second, sums, k=n_neighbors, metric=metric, n_moved=n_moved, seed=seed, errors=errors
        )
        bar.step("intervals")
        resampled = _errors(first, second, measured, seed, bar) if errors else None
    return Comparison(
        a=measured,
        b=other,
        changes=tuple(_changes(measured, other, resampled)),
        correspondences=tuple(_alike(found, moved, resampled, metric)),
        moved_rows=tuple(matched.named(one) for one in moved.rows),
        moved_labels=moved.labels,
        k=n_neighbors,
        notes=tuple(map(printable, _notes(matched, measured, other, moved, resampled, was_chosen=k is None))),
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def _n_neighbors(n: int) -> int:
    """10; of few rows at most half of the others, as all others would be neighbours in any space."""
    return max(1, min(_N_NEIGHBORS, (n - 1) // 2))


def _space(X: Any, name: str, labels: Any = None, texts: Sequence[str] | None = None) -> Space:
    """The space, with labels and texts as given or as it has them."""
    space = X.load() if is_source(X) else Space(X)
    if space.weights is not None:
        raise InputError(f"{name} has weights; wanted rows that count once each: leave the weights out")
    return Space(
        space.vectors,
        labels=space.labels if labels is None else labels,
        texts=space.texts if texts is None else texts,
        name=space.name or name,
    )


@dataclass(frozen=True)
class _Matched:
    """Both spaces with row i the same item, where it stood in A and in B, its id, and what was left out."""

    first: Space
    second: Space
    rows: Sequence[int]
    partners: Sequence[int]
    ids: Sequence[str] | None = None
    note: str = ""

    def named(self, one: MovedRow) -> MovedRow:
        """A row that moved, by its place in A as it came, and its id."""
        return replace(one, row=int(self.rows[one.row]), id=None if self.ids is None else self.ids[one.row])

    def zero_notes(self, moved: Moved) -> Iterable[str]:
        """Say of each space which rows have no direction, by their places as they came."""
        sides = (("A", self.first, self.rows), ("B", self.second, self.partners))
        for (side, space, rows), zero in zip(sides, moved.zero, strict=True):
            if len(zero):
                places = sorted(int(rows[row]) for row in zero.tolist())
                listed = ", ".join(map(str, places[:_LISTED])) + (", …" if len(places) > _LISTED else "")
                name = side if space.name in (side, None) else f"{side} ({space.name})"
                yield (
                    f"overlap leaves out the zero rows of {name}, {len(places):,}: {listed}, counting from 0"
                )


def _matched(first: Space, second: Space, ids: tuple[Any, Any] | None) -> _Matched:
    if ids is None:
        if len(first) != len(second):
            raise ShapeError(
                f"A has {len(first):,} rows and B {len(second):,}; wanted the same items in the same order: "
                "pass ids of both to match them"
            )
        return _Matched(first, second, range(len(first)), range(len(first)))
    at = [
        _places(values, space, side) for values, space, side in zip(ids, (first, second), "AB", strict=True)
    ]
    shared = [name for name in at[0] if name in at[1]]
    if not shared:
        raise InputError("ids: no item is in both A and B; are they of the same kind?")
    rows = [[places[name] for name in shared] for places in at]
    n_left = len(first) - len(shared), len(second) - len(shared)
    note = f"{n_left[0]:,} rows of A and {n_left[1]:,} of B have no partner and are left out"
    first, second = _rows(first, torch.tensor(rows[0])), _rows(second, torch.tensor(rows[1]))
    return _Matched(first, second, rows[0], rows[1], shared, note if any(n_left) else "")


def _places(values: Any, space: Space, side: str) -> dict[str, int]:
    coded = as_labels(values, n=len(space), name=f"ids of {side}")
    twice = (coded.counts > 1).nonzero().flatten()
    if len(twice):
        raise InputError(
            f"ids of {side}: {quoted(coded.names[int(twice[0])])} occurs "
            f"{int(coded.counts[twice[0]])} times; wanted each id once"
        )
    return {str(coded.names[code]): row for row, code in enumerate(coded.codes.tolist())}


def _rows(space: Space, rows: Tensor) -> Space:
    labels = space.labels and replace(
        space.labels, codes=space.labels.codes[rows.to(space.labels.codes.device)]
    )
    texts = None if space.texts is None else [space.texts[row] for row in rows.tolist()]
    return Space(space.vectors[rows.to(space.device)], labels=labels, texts=texts, name=space.name)


def _told(first: Space, second: Space) -> tuple[Space, Space]:
    """Both with the same labels and texts: those of A, else of B."""
    labels = second.labels if first.labels is None else first.labels
    texts = second.texts if first.texts is None else first.texts
    spaces = [Space(one.vectors, labels=labels, texts=texts, name=one.name) for one in (first, second)]
    return spaces[0], spaces[1]


@dataclass(frozen=True)
class _Paired:
    """The figures of both spaces on some of their rows."""

    first: Space
    second: Space
    metrics: tuple[str, ...]
    seed: int

    def __call__(self, rows: Tensor) -> Figures:
        some = _rows(self.first, rows), _rows(self.second, rows)
        first, second = map(self._measured, some)
        sums = CrossMoments.of(some[0].vectors, some[1].vectors)
        return differences(first, second, self.metrics) | _correspondences(sums)

    def _measured(self, space: Space) -> Figures:
        return dict(measure(space, metrics=self.metrics, errors=False, seed=self.seed, progress=False))


def _errors(first: Space, second: Space, measured: Measurement, seed: int, bar: Bar) -> Resampled | None:
    if len(first) < _MIN_ROWS:
        return None
    strata = None if first.labels is None else first.labels.codes
    paired = _Paired(first, second, tuple(measured), seed)
    found = jackknife(paired, len(first), strata=strata, seed=seed, progress=bar.share)
    without = _NO_ERROR if found.n_rows == len(first) else _NO_ERROR | _GROWS
    return replace(found, errors={n: None if n in without else e for n, e in found.errors.items()})


def _correspondences(sums: CrossMoments) -> Figures:
    found: Figures = {}
    formulas: dict[str, Callable[[], float]] = {
        "cka": lambda: linear_cka(sums),
        "cka_debiased": lambda: linear_cka(sums, debias=True),
        "procrustes": lambda: procrustes_distance(sums),
    }
    for name, formula in formulas.items():
        try:
            found[name] = formula()
        except UndefinedError:
            found[name] = None
    return found


def _changes(measured: Measurement, other: Measurement, resampled: Resampled | None) -> Iterable[Change]:
    for before, after in zip(measured.readings, other.readings, strict=True):
        change = Change(before.name, before.value, after.value, None, after.meaning)
        yield replace(change, interval=_interval(before.name, change.difference, resampled))


def _interval(
    name: str,
    value: float | None,
    resampled: Resampled | None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float] | None:
    error = None if resampled is None else resampled.errors.get(name)
    if resampled is None or value is None or error is None or not math.isfinite(value):
        return None
    half = half_width(error, resampled.n_groups)
    return max(value - half, bounds[0]), min(value + half, bounds[1])


_MEANINGS = {
    "cka": "linear CKA: 1 is the same space rotated and scaled",
    "cka_debiased": "linear CKA without its bias: 0 is nothing in common",
    "procrustes": "Procrustes distance after scaling: 0 is the same, √2 nothing in common",
}
_BOUNDS = {"cka": (0.0, 1.0), "cka_debiased": (-1.0, 1.0), "procrustes": (0.0, math.sqrt(2))}


def _alike(
    found: Figures, moved: Moved, resampled: Resampled | None, metric: str
) -> Iterable[Correspondence]:
    for name, value in found.items():
        yield Correspondence(name, value, _interval(name, value, resampled, _BOUNDS[name]), _MEANINGS[name])
    meaning = moved.reason or f"share of the {moved.k} nearest neighbours ({metric}) that both have"
    yield Correspondence("overlap", moved.overlap, moved.interval, meaning)


def _notes(
    matched: _Matched,
    measured: Measurement,
    other: Measurement,
    moved: Moved,
    resampled: Resampled | None,
    *,
    was_chosen: bool,
) -> Iterable[str]:
    """What the reader should know; what is so of one space alone says of which."""
    if matched.note:
        yield matched.note
    for note in dict.fromkeys((*measured.notes, *other.notes)):
        sides = [side for side, one in (("A", measured), ("B", other)) if note in one.notes]
        yield note if len(sides) == 2 else f"{sides[0]}: {note}"
    yield from matched.zero_notes(moved)
    yield from moved.notes
    if was_chosen and moved.k < _N_NEIGHBORS:
        yield f"overlap of {moved.k} nearest, not {_N_NEIGHBORS}: {measured.n} rows are few"
    if resampled is not None:
        n = measured.n
        part = f" over a random {resampled.n_rows:,} of the {n:,} rows" if resampled.n_rows < n else ""
        yield (
            "intervals: 95 %, of each metric by itself, rows left out of both spaces in "
            f"{resampled.n_groups} groups{part} (seed {measured.seed})"
        )
