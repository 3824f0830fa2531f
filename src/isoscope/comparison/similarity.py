"""`similarity_matrix`: how alike any number of spaces of the same items are, two at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.comparison.moved import first_remaining
from isoscope.comparison.resampling import N_GROUPS, Groups
from isoscope.engine.kept import shelf_of
from isoscope.engine.readings import Reading, Readings, View
from isoscope.errors import InputError, ShapeError, UndefinedError, check_seed
from isoscope.metrics.correspondence import shared_counts
from isoscope.metrics.dissimilarity import correlate, dissimilarities
from isoscope.printable import printable, shortened
from isoscope.statistics.cross import rotated_residual
from isoscope.statistics.directions import has_direction
from isoscope.statistics.kernel_alignment import MIN_ROWS, KernelAlignment
from isoscope.statistics.neighbors import Neighbors
from isoscope.tables import Cell, Grid, shown

MEASURES: dict[str, tuple[tuple[float, float], str]] = {
    "cka_debiased": ((-1.0, 1.0), "linear CKA without bias: 1 for the same space, 0 for unrelated spaces"),
    "cka": ((0.0, 1.0), "linear CKA: 1 for the same space; too high where rows are few"),
    "rsa": ((-1.0, 1.0), "rank correlation of distances: 1 for the same order, 0 for unrelated spaces"),
    "procrustes": ((0.0, math.sqrt(2)), "Procrustes distance: 0 for the same space, √2 for unrelated spaces"),
    "overlap": ((0.0, 1.0), "share of the nearest neighbours that are the same in both spaces"),
}
SAMPLE = 2500
_MAX_COLUMNS = 12  # that a terminal has room for
_Pairs = tuple[Tensor, Tensor]  # (L, L) values and standard errors; NaN where undefined


@dataclass(frozen=True, repr=False)
class SimilarityMatrix(View):
    """A measure of how alike spaces are, for every pair, as `similarity_matrix` returns it.

    Attributes:
        measure: "cka_debiased", "cka", "rsa", "procrustes" or "overlap".
        rows, columns: the names of the spaces.
        values: the measure of each space of `rows` with each of `columns`; None where it is undefined.
        standard_errors: of the values.
        n: the number of items.
        name: what the spaces are, such as the model whose layers they are.
        notes: notes for the reader.
    """

    measure: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    standard_errors: tuple[tuple[float | None, ...], ...]
    n: int
    name: str = ""
    notes: tuple[str, ...] = ()

    def value(self, a: str, b: str) -> float | None:
        """Return the measure of a space of `rows` with one of `columns`."""
        return self.values[_place(self.rows, a)][_place(self.columns, b)]

    @cached_property
    def readings(self) -> Readings:
        """Every value, by the names of the two spaces, `a` and `b`."""
        limits, meaning = MEASURES[self.measure]
        return Readings(
            [
                Reading(self.measure, value, error, meaning=meaning, range=limits, group={"a": a, "b": b})
                for a, values, errors in zip(self.rows, self.values, self.standard_errors, strict=True)
                for b, value, error in zip(self.columns, values, errors, strict=True)
            ]
        )

    @property
    def title(self) -> str:
        """The measure, the spaces and the number of items."""
        of = f" of {self.name}" if self.name else ""
        return f"{self.measure}{of}: {len(self.rows)} × {len(self.columns)} spaces, {self.n:,} items"

    @property
    def _shown(self) -> list[int]:
        """The columns that are printed: all, or some at equal steps, the last one among them."""
        n = len(self.columns)
        if n <= _MAX_COLUMNS:
            return list(range(n))
        return [round(i * (n - 1) / (_MAX_COLUMNS - 1)) for i in range(_MAX_COLUMNS)]

    def grids(self) -> Iterable[Grid]:
        """Return the matrix; where there are many columns, some of them."""
        heads = ["", *(shortened(self.columns[column], 10) for column in self._shown)]
        rows: list[Sequence[Cell]] = [
            [name, *(_shown(values[column]) for column in self._shown)]
            for name, values in zip(self.rows, self.values, strict=True)
        ]
        yield Grid("", heads, rows, heads[1:])

    def lines(self) -> list[str]:
        """Return the meaning of the measure, the largest standard error, and the notes."""
        lines = [f"{self.measure}: {MEASURES[self.measure][1]}"]
        errors = [error for row in self.standard_errors for error in row if error is not None]
        if errors:
            lines.append(f"the standard errors are at most {max(errors):.2g}")
        if len(self._shown) < len(self.columns):
            lines.append(f"{len(self._shown)} of {len(self.columns)} columns are shown; to_pandas has all")
        return [*lines, *(f"note: {note}" for note in self.notes)]


def similarity_matrix(
    spaces: Mapping[str, Any] | Sequence[Any],
    *,
    against: Mapping[str, Any] | Sequence[Any] | None = None,
    measure: str = "cka_debiased",
    k: int = 10,
    metric: str = "cosine",
    sample: int | None = SAMPLE,
    seed: int = 0,
    name: str = "",
) -> SimilarityMatrix:
    """Measure how alike spaces of the same items are, for every pair, with standard errors.

    Args:
        spaces: the spaces by name, or a list of them: vectors in any array, paths, data frames or Spaces. Row
            i is the same item in all; the numbers of dimensions may differ.
        against: the spaces of the columns; by default the same spaces.
        measure: "cka_debiased", "cka", "rsa", "procrustes" or "overlap".
        k: the number of nearest neighbours, for "overlap".
        metric: the distance of "overlap" and "rsa", "cosine" or "euclidean".
        sample: compare so many random items; None for all. Only "cka_debiased" takes many rows in blocks;
            the others hold a table of all pairs of rows or of dimensions.
        seed: the seed of the sample.
        name: what the spaces are, for the title.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> matrix = similarity_matrix({"whole": X, "turned": -X[:, ::-1], "half": X[:, :4]})
    >>> [round(value, 2) for value in matrix.values[0]]
    [1.0, 1.0, 0.65]
    """
    check_seed(seed)
    if measure not in MEASURES:
        raise InputError(argument="measure", got=measure, wanted=f"one of {', '.join(map(repr, MEASURES))}")
    rows, columns = _named(spaces, "spaces"), None if against is None else _named(against, "against")
    held = [*rows.values(), *(columns or {}).values()]
    n_all = len(held[0])
    for one_name, one in zip([*rows, *(columns or {})], held, strict=True):
        if len(one) != n_all:
            raise ShapeError(
                f"the space {one_name!r} has {len(one):,} rows and the first {n_all:,}",
                wanted="the same items in the same order",
            )
    chosen, notes = _chosen(held, measure, metric, sample, seed)
    held = [one[chosen.to(one.device)] for one in held]
    n = len(chosen)
    if n < MIN_ROWS:
        raise UndefinedError(f"a similarity matrix needs at least {MIN_ROWS} items; there are {n}")
    values, errors = _pairs(held, measure, k=k, metric=metric, seed=seed)
    first = len(rows)
    part = slice(0, first), slice(0, first) if columns is None else slice(first, None)
    return SimilarityMatrix(
        measure,
        tuple(rows),
        tuple(columns or rows),
        _table(values[part]),
        _table(errors[part]),
        n,
        name,
        notes,
    )


def _shown(value: float | None) -> str:
    return shown(None if value is None else round(value, 2) + 0.0, 2)  # no −0.00


def _place(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise KeyError(f"{name!r} is none of {', '.join(names)}")
    return names.index(name)


def _table(values: Tensor) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(None if math.isnan(v) else v for v in row) for row in values.tolist())


def _named(spaces: Any, argument: str) -> dict[str, Tensor]:
    named = spaces if isinstance(spaces, Mapping) else dict(enumerate(spaces))
    if not named:
        raise InputError("is empty", argument=argument, wanted="at least one space")
    return {printable(str(name)): shelf_of(X).space.vectors.detach() for name, X in named.items()}


def _chosen(
    held: Sequence[Tensor], measure: str, metric: str, sample: int | None, seed: int
) -> tuple[Tensor, tuple[str, ...]]:
    """Return the rows that are compared, and notes on those that are not."""
    n = len(held[0])
    rows, notes = torch.arange(n), []
    if measure in ("rsa", "overlap") and metric == "cosine":
        rows = rows[torch.stack([has_direction(one).cpu() for one in held]).all(dim=0)]
        if len(rows) < n:
            notes.append(f"{n - len(rows):,} items are left out: they are zero vectors in some space")
    if sample is not None:
        if sample < MIN_ROWS:
            raise InputError(argument="sample", got=sample, wanted=f"at least {MIN_ROWS} items")
        if sample < len(rows):
            order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
            notes.append(f"a random {sample:,} of {len(rows):,} items are compared (seed {seed})")
            rows = rows[order[:sample].sort().values]
    return rows, tuple(notes)


def _pairs(held: Sequence[Tensor], measure: str, *, k: int, metric: str, seed: int) -> _Pairs:
    if measure in ("cka", "cka_debiased"):
        return KernelAlignment.of(held, debias=measure == "cka_debiased", seed=seed).cka()
    if measure == "overlap":
        return _overlaps(held, k, metric, seed)
    if measure == "rsa":
        tables = [dissimilarities(one, metric=metric, correlation="spearman") for one in held]
        return _of_each(len(held), lambda i, j: correlate(tables[i], tables[j].to(tables[i].device)), 1.0)
    centred = [one.double() - one.double().mean(dim=0) for one in held]
    return _of_each(len(held), lambda i, j: _procrustes(centred[i], centred[j].to(centred[i].device)), 0.0)


def _of_each(n_spaces: int, compute: Any, same: float) -> _Pairs:
    """Return a symmetric measure of all pairs; `same` is that of a space with itself."""
    values, errors = torch.full((2, n_spaces, n_spaces), math.nan, dtype=torch.float64)
    for i in range(n_spaces):
        values[i, i], errors[i, i] = same, 0.0
        for j in range(i):
            try:
                value, error = compute(i, j)
            except UndefinedError:
                continue
            values[i, j] = values[j, i] = value
            errors[i, j] = errors[j, i] = error
    return values, errors


def _procrustes(u: Tensor, v: Tensor) -> tuple[float, float]:
    """Return the Procrustes distance of centred rows, and its standard error by the delta method."""
    p, q = u.square().sum(dim=1), v.square().sum(dim=1)
    a, b = p.sum(), q.sum()
    if not bool((a > 0) & (b > 0)):
        raise UndefinedError("procrustes is undefined: all points are equal")
    left, singular, right = torch.linalg.svd(u.T @ v, full_matrices=False)
    share = singular.sum() / (a * b).sqrt()
    value = rotated_residual([(u / a.sqrt(), v / b.sqrt())], u.T @ v).sqrt()
    if not bool(value > 0):
        return 0.0, 0.0
    products = ((u @ left) * (v @ right.T)).sum(dim=1) / (
        a * b
    ).sqrt()  # of each row, after the best rotation
    influence = products - share / 2 * (p / a + q / b)
    return float(value), float(influence.std() * math.sqrt(len(u)) / value)


def _overlaps(held: Sequence[Tensor], k: int, metric: str, seed: int) -> _Pairs:
    """Return shared neighbours, and errors by a jackknife that leaves groups of rows out everywhere."""
    n = len(held[0])
    wide = min(2 * k + N_GROUPS, n - 1)
    neighbors = [Neighbors.of(one, k=max(wide, k), metric=metric).indices.cpu() for one in held]

    def shares(lists: Sequence[Tensor]) -> Tensor:
        table = torch.ones(len(lists), len(lists), dtype=torch.float64)
        for i in range(len(lists)):
            for j in range(i):
                table[i, j] = table[j, i] = shared_counts(lists[i], lists[j]).mean() / k
        return table

    values = shares([one[:, :k] for one in neighbors])
    if wide < 2 * k + N_GROUPS:
        return values, torch.full_like(values, math.nan)
    groups = Groups.dealt(n, max_rows=n, seed=seed)
    left_out = []
    for group in range(groups.n_groups):
        remains = groups.codes != group
        left_out.append(shares([first_remaining(one[remains], remains, k) for one in neighbors]))
    spread = torch.stack(left_out) - torch.stack(left_out).mean(dim=0)
    return values, ((groups.n_groups - 1) / groups.n_groups * spread.square().sum(dim=0)).sqrt()
