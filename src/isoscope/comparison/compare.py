"""`compare`: two spaces of the same items."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from isoscope.comparison.changes import Change, Correspondence, Interval, MovedRow, SliceChange
from isoscope.comparison.moved import Moved, find_moved
from isoscope.comparison.resampling import MIN_ROWS, Figures, Groups, difference_errors
from isoscope.comparison.result import Comparison
from isoscope.comparison.row_order import KEEP_ORDER, order_note, reordered_column
from isoscope.comparison.search import both_sides, queries_of_b, retrieval_changes, search_overlap
from isoscope.comparison.slices import slice_changes
from isoscope.engine.kept import rows_of, shelf_of, sliced_shelf_of
from isoscope.engine.measure import measure
from isoscope.errors import InputError, Setting, ShapeError, UndefinedError, check_seed
from isoscope.labels import Labels, as_labels
from isoscope.metrics.correspondence import linear_cka, procrustes_of
from isoscope.printable import counted, printable, quoted
from isoscope.progress import Bar
from isoscope.queries.opened import queries_beside
from isoscope.space import Space, unchecked
from isoscope.statistics.cross import CrossMoments
from isoscope.statistics.gathered import Statistics

_N_NEIGHBORS = 10
_LISTED = 5  # row numbers in a note
_MANY = 20_000  # with more rows than this, the progress bar is shown immediately


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
    by: Any = None,
    queries: Any = None,
    relevance: Any = None,
) -> Comparison:
    """Compare two spaces of the same items: what changed, by how much, and for which items.

    The comparison has the metrics of both spaces with the 95 % interval of the difference. The intervals come
    from a jackknife: the difference is recomputed with one group of rows left out of both spaces at a time.
    It also has linear CKA, the Procrustes distance, the overlap of nearest neighbours, and the rows and
    labels whose neighbours changed most.

    Args:
        A, B: (n, d) and (n, e) vectors in any array, paths, data frames, Spaces, opened files, or
            Measurements (their statistics are reused). Row i is the same item in both.
        labels: one label for each row of A, or the name of a column of A or of a file; by default those of A,
            else those of B.
        texts: one text for each row of A, or a name as for labels, shown for rows that moved; by default
            those of A, else those of B.
        ids: a column that A and B have, or a pair of columns, files or values. Rows are matched by id; rows
            without a match are left out. By default rows are matched by a column named id, ids, _id, key or
            uuid that has the same unique values in another order in B; "none" keeps the order.
        metrics: names or families, as for `measure`; None for the default set.
        k: the number of nearest neighbours; by default 10, or half the number of other rows if that is
            smaller.
        metric: the distance between neighbours, "cosine" or "euclidean".
        n_moved: how many rows and labels to list.
        errors: also compute intervals.
        seed: the seed of everything that is sampled.
        progress: show a progress bar; None shows it on a terminal when the work takes over a second.
        vectors: the column of a table that holds the vectors, where it has several; a pair for A and B.
        device: the device to compute on, such as "cuda", or several, as in `measure`; by default that of the
            vectors.
        by: also compare slices of the rows. Give a column of A, several columns, one value per row, or a
            mapping of names to values, as for `measure`. Each slice has its changes, with intervals and
            p-values (Holm-adjusted for the number of tests), and its neighbour overlap; the worst slice
            comes first.
        queries: (m, d) vectors that search the rows, or a pair for A and B where two models encode them. The
            share of the k nearest rows that both spaces have in common is then compared too, query by query.
        relevance: which rows of A are relevant to a query, as for `advise`: the figures of retrieval are then
            compared too, with intervals over queries.

    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(200, 6))
    >>> comparison = compare(A, A * [3, 1, 1, 1, 1, 1], metrics="isoscore")
    >>> comparison["isoscore"].differs, round(comparison.correspondence("cka"), 2)
    (True, 0.61)
    """
    began = time.perf_counter()
    check_seed(seed)
    columns = vectors if isinstance(vectors, tuple) else (vectors, vectors)
    is_kept = isinstance(ids, str) and ids == KEEP_ORDER
    named = _named(labels, texts)  # these columns are not dimensions, in B too
    sliced = by if isinstance(by, tuple) else (by,)
    reordered = (
        reordered_column(A, B, vectors=columns, apart=_named(labels, texts, *sliced)) if ids is None else None
    )
    if is_kept or reordered is not None:
        ids = reordered.values if reordered is not None and reordered.is_id else None
    id_pair = (ids, ids) if ids is None or isinstance(ids, str) else ids
    if len(id_pair) != 2:
        raise InputError(
            f"has {len(id_pair)} entries",
            argument="ids",
            hint="pass a column, or a pair of columns, files or values",
        )
    of_a, of_b = (
        {"seed": seed, "vectors": column, "device": device, "apart": [*named, *_named(side_ids)]}
        for column, side_ids in zip(columns, id_pair, strict=True)
    )
    first_shelf, slices, columns_by = sliced_shelf_of(A, by, labels=labels, texts=texts, **of_a)
    second_shelf = shelf_of(B, **{**of_b, "apart": [*of_b["apart"], *columns_by]})
    for shelf, side in zip((first_shelf, second_shelf), "AB", strict=True):
        _refuse_weights(shelf, side)
    matched = _match(
        first_shelf,
        second_shelf,
        None
        if ids is None
        else tuple(
            rows_of(X, side_ids, "ids", vectors=column, apart=[*named, *columns_by])
            for X, side_ids, column in zip((A, B), id_pair, columns, strict=True)
        ),
    )
    shelves = matched.first, matched.second
    first, second = matched.first.space, matched.second.space
    if slices is not None and ids is not None:
        slices = Labels(slices.codes[torch.tensor(matched.rows[0])], slices.names).seen()
    n = len(first)
    asked_a, asked_b = both_sides(queries)
    asked = queries_beside(
        A, asked_a, first_shelf.space, relevance=relevance, vectors=columns[0], apart=[*named, *columns_by]
    )
    # at most half of the other rows: with k near n, all spaces would share their neighbours
    n_neighbors = max(1, min(_N_NEIGHBORS, (n - 1) // 2)) if k is None else k
    a, b = (measure(one, metrics=metrics, errors=False, seed=seed, progress=progress) for one in shelves)
    notes = [] if reordered is None else [reordered.note]
    notes.append(order_note(first.vectors, second.vectors) if ids is None else matched.note)
    notes = [note for note in notes if note]
    for note in dict.fromkeys((*a.notes, *b.notes)):  # a note on one space alone names it
        sides = [side for side, one in (("A", a), ("B", b)) if note in one.notes]
        notes.append(note if len(sides) == 2 else f"{sides[0]}: {note}")
    with Bar(show=progress) as bar:
        bar.step("correspondence", at_once=n > _MANY)
        sums = CrossMoments.of(first.vectors, second.vectors)
        moved = find_moved(
            first, second, sums, k=n_neighbors, metric=metric, n_moved=n_moved, seed=seed, errors=errors,
            slices=slices,
        )  # fmt: skip
        notes += [*matched.zero_notes(moved), *moved.notes]
        if n_neighbors < _N_NEIGHBORS and k is None:
            notes.append(
                f"the overlap uses {counted(n_neighbors, 'neighbour')} instead of {_N_NEIGHBORS}, because "
                f"there are only {n} rows"
            )
        bar.step("intervals")
        half_widths: dict[str, float] = {}
        if errors and n >= MIN_ROWS:
            groups = Groups.dealt(n, None if first.labels is None else first.labels.codes, seed=seed)
            standard_errors = difference_errors(
                first,
                second,
                groups,
                tuple(a),
                seed=seed,
                correspondences=_correspondences,
                progress=bar.share,
            )
            half_widths = {name: groups.half_width(error) for name, error in standard_errors.items()}
            m = len(groups.rows)
            part = f" over a random {m:,} of the {n:,} rows" if m < n else ""
            notes.append(
                f"the 95 % intervals are from a jackknife with {groups.n_groups} groups of rows{part} "
                f"(seed {seed}); the intervals are not adjusted for the number of metrics"
            )
        changed: list[SliceChange] = []
        if slices is not None:
            bar.step("slices")
            changed = slice_changes(
                first, second, slices, tuple(a), errors=errors, seed=seed, progress=bar.share
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
    searched, found = [], []
    if asked is not None:
        if asked.relevance is not None:
            asked = replace(asked, relevance=asked.relevance.among(torch.tensor(list(matched.rows[0]))))
        both = asked, queries_of_b(asked_b, asked, second)
        how: dict[str, Any] = {"k": n_neighbors, "metric": metric}
        searched = [search_overlap((first, second), both, **how)]
        found = list(retrieval_changes((first, second), both, **how))
    overlap = moved.reason or f"share of the {moved.k} nearest neighbours ({metric}) that are the same"
    return Comparison(
        a=a,
        b=b,
        changes=(
            *(replace(one, interval=interval(one.name, one.difference)) for one in changes),
            *found,
        ),
        correspondences=(
            *(
                Correspondence(name, value, interval(name, value), _MEANINGS[name])
                for name, value in _correspondences(sums, (first.vectors, second.vectors)).items()
            ),
            Correspondence("overlap", moved.overlap, moved.interval, overlap),
            *searched,
        ),
        moved_rows=tuple(matched.named(one) for one in moved.rows),
        moved_labels=moved.labels,
        k=n_neighbors,
        notes=tuple(map(printable, notes)),
        seed=seed,
        seconds=time.perf_counter() - began,
        by=columns_by,
        slices=tuple(changed),
        slice_overlaps=moved.slices,
    )


def _named(*given: Any) -> list[str]:
    return [name for name in given if isinstance(name, str)]


def _refuse_weights(shelf: Statistics, side: str) -> None:
    if shelf.space.weights is not None:
        raise InputError(
            "has weights, but `compare` counts every row once", argument=side, hint="leave the weights out"
        )


def _with(space: Space, side: str, labels: Labels | None, texts: Sequence[str] | None) -> Space:
    """Return the space with these labels and texts, and without its other columns."""
    known = {"vectors": space.vectors, "labels": labels, "texts": texts, "name": space.name or side}
    return unchecked({**dict.fromkeys(vars(space)), **known})


@dataclass(frozen=True)
class _Matched:
    """Both spaces with matched rows, the row numbers in A and B, the ids, and a note on rows left out."""

    first: Statistics
    second: Statistics
    rows: Sequence[Sequence[int]]
    ids: Sequence[str] | None
    note: str

    def named(self, one: MovedRow) -> MovedRow:
        """Return a moved row with its number in A and its id."""
        return replace(
            one, row=int(self.rows[0][one.row]), id=None if self.ids is None else self.ids[one.row]
        )

    def zero_notes(self, moved: Moved) -> Iterable[str]:
        """Yield notes on zero vectors in A alone, in B alone, in both, by their ids or row numbers in A."""
        a, b = (
            side if shelf.space.name in (side, None) else f"{side} ({shelf.space.name})"
            for side, shelf in zip("AB", (self.first, self.second), strict=True)
        )
        for where, zero in zip((f"{a} alone", f"{b} alone", "both"), moved.zero, strict=True):
            if not len(zero):
                continue
            places = sorted(zero.tolist(), key=lambda row: self.rows[0][row])[:_LISTED]
            names = [str(self.rows[0][row]) if self.ids is None else self.ids[row] for row in places]
            listed = ", ".join(names) + (", …" if len(zero) > _LISTED else "")
            listed = f"{listed}, counted from 0" if self.ids is None else f"ids {listed}"
            counts = (
                "they are left out of the overlap" if where == "both" else "they count as an overlap of 0"
            )
            yield f"zero vectors in {where}: {counted(len(zero), 'row')} ({listed}); {counts}"


def _match(first: Statistics, second: Statistics, ids: tuple[Any, Any] | None) -> _Matched:
    """Return both spaces with matched rows, and with the labels and texts of A, else of B."""
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
            raise InputError(
                "must have entries that are in both A and B",
                argument="ids",
                hint="are they ids of the same kind?",
            )
        rows = [[places[name] for name in shared] for places in at]
        first, second = (
            Statistics(shelf.space.take(torch.tensor(some)), seed=shelf.seed)
            for shelf, some in zip((first, second), rows, strict=True)
        )
        n_left = [n - len(shared) for n in sizes]
        if any(n_left):
            note = f"{counted(n_left[0], 'row')} of A and {n_left[1]:,} of B have no match and are left out"
    elif sizes[0] != sizes[1]:
        raise ShapeError(
            f"A and B must have the same items in the same order, got {sizes[0]:,} and {sizes[1]:,} rows",
            hint=Setting("ids", to="match the rows of both"),
        )
    a, b = first.space, second.space
    labels = b.labels if a.labels is None else a.labels
    texts = b.texts if a.texts is None else a.texts
    first = first.over(_with(a, "A", labels, texts))
    space = _with(b, "B", labels, texts)
    # B may have had other labels: statistics by label are computed again then
    is_same = b.labels is None or b.labels is labels
    second = second.over(space) if is_same else Statistics(space, seed=second.seed)
    return _Matched(first, second, rows, shared, note)


def _places(entries: Any, space: Space, side: str) -> dict[str, int]:
    coded = as_labels(entries, n=len(space), name=f"ids of {side}")
    repeated = (coded.counts > 1).nonzero().flatten()
    if len(repeated):
        raise InputError(
            f"ids of {side} must be unique, but {quoted(coded.names[int(repeated[0])])} occurs "
            f"{int(coded.counts[repeated[0]])} times"
        )
    return {str(coded.names[code]): row for row, code in enumerate(coded.codes.tolist())}


_MEANINGS = {
    "cka": "linear CKA: 1 for the same space, rotated and scaled",
    "cka_debiased": "linear CKA without bias: 0 for unrelated spaces",
    "procrustes": "Procrustes distance after scaling: 0 for the same space, √2 for unrelated spaces",
}
_BOUNDS = {"cka": (0.0, 1.0), "cka_debiased": (-1.0, 1.0), "procrustes": (0.0, math.sqrt(2))}
_FORMULAS: dict[str, Callable[[CrossMoments, tuple[Any, Any] | None], float]] = {
    "cka": lambda sums, _: linear_cka(sums),
    "cka_debiased": lambda sums, _: linear_cka(sums, debias=True),
    "procrustes": procrustes_of,
}


def _correspondences(sums: CrossMoments, rows: tuple[Any, Any] | None = None) -> Figures:
    results: Figures = {}
    for name, formula in _FORMULAS.items():
        try:
            results[name] = formula(sums, rows)
        except UndefinedError:
            results[name] = None
    return results
