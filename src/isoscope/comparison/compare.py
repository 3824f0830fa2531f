"""`compare`: two spaces of the same items, measured side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from isoscope.comparison.changes import Change, Correspondence, Interval, MovedRow
from isoscope.comparison.moved import Moved, find_moved
from isoscope.comparison.resampling import CrossLeftOut, Figures, Groups, LeftOut
from isoscope.comparison.result import Comparison
from isoscope.engine.kept import rows_of, shelf_of
from isoscope.engine.measure import measure, values
from isoscope.errors import InputError, ShapeError, UndefinedError, check_seed
from isoscope.labels import Labels, as_labels
from isoscope.metrics.correspondence import linear_cka, procrustes_distance
from isoscope.printable import printable, quoted
from isoscope.progress import Bar
from isoscope.space import Space, unchecked
from isoscope.statistics.cross import CrossMoments
from isoscope.statistics.gathered import Statistics

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
    texts: Any = None,
    ids: Any = None,
    metrics: str | Iterable[str] | None = None,
    k: int | None = None,
    metric: str = "cosine",
    n_moved: int = 10,
    errors: bool = True,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | tuple[str | None, str | None] | None = None,
    device: Any = None,
) -> Comparison:
    """Compare two snapshots or models of the same items: what changed, by how much, and for which items.

    Every metric of the registry on both, with the 95 % interval of the difference (a jackknife that leaves
    groups of rows out of both spaces at once); linear CKA, Procrustes distance and the overlap of
    neighbours; the rows and labels whose neighbours changed most.

    Args:
        A, B: (n, d) and (n, e) vectors in any array, paths, data frames, Spaces, opened files, or
            Measurements, whose statistics are used again; row i is the same item in both.
        labels: one a row of A, or the name of a column of A or of a file; by default those of A, else of B.
        texts: one a row of A, to show what moved, or a name, as labels; by default those of A, else of B.
        ids: a column that A and B have, or a pair of columns, files or values: rows are matched by them, and
            those of one side left out.
        metrics: names or families, as `measure` takes them; None for the default set.
        k: neighbours looked at; None for 10, or half of the others where rows are few.
        metric: of the neighbours: "cosine" or "euclidean".
        n_moved: how many rows and labels to name.
        errors: also find intervals.
        seed: of everything sampled.
        progress: show a progress bar; None shows it on a terminal when work takes over a second.
        vectors: the column of a table that holds the vectors, where it has several; a pair for A and B.
        device: where to compute, such as "cuda"; by default where the vectors are.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(200, 6))
    >>> found = compare(A, A * [3, 1, 1, 1, 1, 1], metrics="isoscore")
    >>> found["isoscore"].differs, round(found.correspondence("cka"), 2)
    (True, 0.61)
    """
    began = time.perf_counter()
    check_seed(seed)
    both = (ids, ids) if isinstance(ids, str) else ids or (None, None)
    columns = vectors if isinstance(vectors, tuple) else (vectors, vectors)
    first_shelf, second_shelf = (
        _shelf(
            X, side, seed, vectors=column, device=device, apart=[own] if isinstance(own, str) else [], **known
        )
        for X, side, own, column, known in zip(
            (A, B), "AB", both, columns, ({"labels": labels, "texts": texts}, {}), strict=True
        )
    )
    matched = _match(
        first_shelf,
        second_shelf,
        None
        if ids is None
        else tuple(
            rows_of(X, own, "ids", vectors=column)
            for X, own, column in zip((A, B), both, columns, strict=True)
        ),
    )
    shelves = matched.first, matched.second
    first, second = matched.first.space, matched.second.space
    n = len(first)
    # of few rows at most half of the others, as all others would be neighbours in any space
    n_neighbors = max(1, min(_N_NEIGHBORS, (n - 1) // 2)) if k is None else k
    a, b = (measure(one, metrics=metrics, errors=False, seed=seed, progress=progress) for one in shelves)
    notes = [matched.note] if matched.note else []
    for note in dict.fromkeys((*a.notes, *b.notes)):  # what is so of one space alone says of which
        sides = [side for side, one in (("A", a), ("B", b)) if note in one.notes]
        notes.append(note if len(sides) == 2 else f"{sides[0]}: {note}")
    with Bar(show=progress) as bar:
        bar.step("correspondence", at_once=n > _MANY)
        sums = CrossMoments.of(first.vectors, second.vectors)
        moved = find_moved(
            first, second, sums, k=n_neighbors, metric=metric, n_moved=n_moved, seed=seed, errors=errors
        )
        notes += [*matched.zero_notes(moved), *moved.notes]
        if n_neighbors < _N_NEIGHBORS and k is None:
            notes.append(f"overlap of {n_neighbors} nearest, not {_N_NEIGHBORS}: {n} rows are few")
        bar.step("intervals")
        half_widths: dict[str, float] = {}
        if errors and n >= _MIN_ROWS:
            groups = Groups.dealt(n, None if first.labels is None else first.labels.codes, seed=seed)
            half_widths = _half_widths(first, second, groups, tuple(a), seed, bar)
            m = len(groups.rows)
            part = f" over a random {m:,} of the {n:,} rows" if m < n else ""
            notes.append(
                "intervals: 95 %, of each metric by itself, rows left out of both spaces in "
                f"{groups.n_groups} groups{part} (seed {seed})"
            )

    def interval(name: str, value: float | None) -> Interval | None:
        half, (low, high) = half_widths.get(name), _BOUNDS.get(name, (-math.inf, math.inf))
        if value is None or half is None or not math.isfinite(value):
            return None
        return max(value - half, low), min(value + half, high)

    changes = (
        Change(before.name, before.value, after.value, None, after.meaning)
        for before, after in zip(a.readings, b.readings, strict=True)
    )
    overlap = moved.reason or f"share of the {moved.k} nearest neighbours ({metric}) that both have"
    return Comparison(
        a=a,
        b=b,
        changes=tuple(replace(one, interval=interval(one.name, one.difference)) for one in changes),
        correspondences=(
            *(
                Correspondence(name, value, interval(name, value), _MEANINGS[name])
                for name, value in _correspondences(sums).items()
            ),
            Correspondence("overlap", moved.overlap, moved.interval, overlap),
        ),
        moved_rows=tuple(matched.named(one) for one in moved.rows),
        moved_labels=moved.labels,
        k=n_neighbors,
        notes=tuple(map(printable, notes)),
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def _shelf(X: Any, side: str, seed: int, **given: Any) -> Statistics:
    shelf = shelf_of(X, seed=seed, **given)
    if shelf.space.weights is not None:
        raise InputError(f"{side} has weights; wanted rows that count once each: leave the weights out")
    return shelf


def _with(space: Space, side: str, labels: Labels | None, texts: Sequence[str] | None) -> Space:
    """Return the vectors with these labels and texts, and nothing else that was known of them."""
    known = {"vectors": space.vectors, "labels": labels, "texts": texts, "name": space.name or side}
    return unchecked({**dict.fromkeys(vars(space)), **known})


@dataclass(frozen=True)
class _Matched:
    """Both spaces with row i the same item, its row in A and in B, its id, and what was left out."""

    first: Statistics
    second: Statistics
    rows: Sequence[Sequence[int]]
    ids: Sequence[str] | None
    note: str

    def named(self, one: MovedRow) -> MovedRow:
        """Return a row that moved by its number in A as it came, and its id."""
        return replace(
            one, row=int(self.rows[0][one.row]), id=None if self.ids is None else self.ids[one.row]
        )

    def zero_notes(self, moved: Moved) -> Iterable[str]:
        """Say of each space which rows have no direction, by their numbers as they came."""
        shelves = self.first, self.second
        for side, shelf, rows, zero in zip("AB", shelves, self.rows, moved.zero, strict=True):
            if len(zero):
                places = sorted(int(rows[row]) for row in zero.tolist())
                listed = ", ".join(map(str, places[:_LISTED])) + (", …" if len(places) > _LISTED else "")
                name = side if shelf.space.name in (side, None) else f"{side} ({shelf.space.name})"
                yield (
                    f"overlap leaves out the zero rows of {name}, {len(places):,}: {listed}, counting from 0"
                )


def _match(first: Statistics, second: Statistics, ids: tuple[Any, Any] | None) -> _Matched:
    """Match rows, and give both spaces the labels and texts of A, else of B."""
    sizes = len(first.space), len(second.space)
    rows: list[Sequence[int]] = [range(sizes[0])] * 2
    shared: list[str] | None = None
    note = ""
    if ids is not None:
        at = [
            _places(entries, shelf.space, side)
            for entries, shelf, side in zip(ids, (first, second), "AB", strict=True)
        ]
        shared = [name for name in at[0] if name in at[1]]
        if not shared:
            raise InputError("ids: no item is in both A and B; are they of the same kind?")
        rows = [[places[name] for name in shared] for places in at]
        first, second = (
            Statistics(shelf.space.take(torch.tensor(some)), seed=shelf.seed)
            for shelf, some in zip((first, second), rows, strict=True)
        )
        n_left = [n - len(shared) for n in sizes]
        if any(n_left):
            note = f"{n_left[0]:,} rows of A and {n_left[1]:,} of B have no partner and are left out"
    elif sizes[0] != sizes[1]:
        raise ShapeError(
            f"A has {sizes[0]:,} rows and B {sizes[1]:,}; wanted the same items in the same order: "
            "pass ids of both to match them"
        )
    a, b = first.space, second.space
    labels = b.labels if a.labels is None else a.labels
    texts = b.texts if a.texts is None else a.texts
    first = first.over(_with(a, "A", labels, texts))
    told = _with(b, "B", labels, texts)
    # statistics by label are of other labels where B came with its own
    second = (
        second.over(told) if b.labels is None or b.labels is labels else Statistics(told, seed=second.seed)
    )
    return _Matched(first, second, rows, shared, note)


def _places(entries: Any, space: Space, side: str) -> dict[str, int]:
    coded = as_labels(entries, n=len(space), name=f"ids of {side}")
    twice = (coded.counts > 1).nonzero().flatten()
    if len(twice):
        raise InputError(
            f"ids of {side}: {quoted(coded.names[int(twice[0])])} occurs "
            f"{int(coded.counts[twice[0]])} times; wanted each id once"
        )
    return {str(coded.names[code]): row for row, code in enumerate(coded.codes.tolist())}


def _half_widths(
    first: Space, second: Space, groups: Groups, names: tuple[str, ...], seed: int, bar: Bar
) -> dict[str, float]:
    """Return half the 95 % interval of each difference, by leaving each group of rows out of both spaces."""
    some = [space.take(groups.rows) for space in (first, second)]
    sides = [LeftOut(space, groups, names, seed) for space in some]
    cross = CrossLeftOut(some[0].vectors, some[1].vectors, groups)

    def figures(group: int) -> Figures:
        found = _correspondences(cross.without(group))
        before, after = (values(side.without(group), names) for side in sides)
        for name in names:
            old, new = before[name], after[name]
            found[name] = None if old is None or new is None else new - old
        return found

    errors = groups.jackknife(figures, progress=bar.share)
    without = _NO_ERROR if len(groups.rows) == len(first) else _NO_ERROR | _GROWS
    return {
        name: groups.half_width(error)
        for name, error in errors.items()
        if error is not None and name not in without
    }


_MEANINGS = {
    "cka": "linear CKA: 1 is the same space rotated and scaled",
    "cka_debiased": "linear CKA without its bias: 0 is nothing in common",
    "procrustes": "Procrustes distance after scaling: 0 is the same, √2 nothing in common",
}
_BOUNDS = {"cka": (0.0, 1.0), "cka_debiased": (-1.0, 1.0), "procrustes": (0.0, math.sqrt(2))}
_FORMULAS: dict[str, Callable[[CrossMoments], float]] = {
    "cka": linear_cka,
    "cka_debiased": lambda sums: linear_cka(sums, debias=True),
    "procrustes": procrustes_distance,
}


def _correspondences(sums: CrossMoments) -> Figures:
    found: Figures = {}
    for name, formula in _FORMULAS.items():
        try:
            found[name] = formula(sums)
        except UndefinedError:
            found[name] = None
    return found
