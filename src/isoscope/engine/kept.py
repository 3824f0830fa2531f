"""`Kept`: the statistics behind a measurement, so that what comes after it does not compute them again."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from isoscope.engine.checksums import checksums
from isoscope.engine.inputs import Input, as_input, slices_by
from isoscope.engine.on_device import devices_of
from isoscope.engine.slice_names import slices_of
from isoscope.engine.source import Source, is_source
from isoscope.errors import InputError
from isoscope.io.sources import open_vectors, row_values
from isoscope.labels import Labels
from isoscope.measurement import Measurement
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics

_NOT_COMPUTED_FROM = {"texts"}  # what no statistic depends on


class Kept:
    """Statistics without the vectors they were computed from.

    The vectors are found again while the caller has them, and files are opened again: a measurement that held
    its vectors would keep them in memory.
    """

    def __init__(self, shelf: Statistics, X: Any, source: Source, how: Mapping[str, Any]) -> None:
        """Take the vectors off a shelf.

        Args:
            shelf: the statistics.
            X: what the caller gave.
            source: what was measured.
            how: the options of `as_input` that read X again.
        """
        self._shelf = shelf.over(None)
        self._find: Callable[[], Any] = lambda: source  # a file: little more than its name
        self._how: Mapping[str, Any] = {}
        self._columns: dict[str, Any] = {}
        self._checksums: dict[str, Any] = {}
        self._identity = X._kept._identity if isinstance(X, Measurement) else _identity(source)
        if isinstance(source, Space):
            self._find = X._kept._find if isinstance(X, Measurement) else _reference(X)
            self._how = X._kept._how if isinstance(X, Measurement) else how
            self._columns = _columns(source)
            self._checksums = checksums(source)

    @property
    def n_zero(self) -> int:
        """The number of zero vectors."""
        return int(self._shelf.directions.n_zero)

    def vectors(self) -> Any:
        """Return what the caller gave, or the opened file."""
        X = self._find()
        if X is None:
            raise InputError(
                "is a measurement whose vectors are no longer in memory",
                argument="X",
                hint="pass the vectors themselves",
            )
        return X

    def shelf(self) -> Statistics:
        """Return the statistics over their vectors again."""
        X = self.vectors()
        if _identity(X) != self._identity:  # before a file that has changed is read
            raise _changed()
        space, notes = _loaded(as_input(X, **self._how))
        space = replace(space, **self._columns)
        if self._checksums and checksums(space) != self._checksums:
            raise _changed()
        shelf = self._shelf.over(space)
        shelf.notes[:0] = notes
        return shelf


def shelf_of(
    X: Any,
    *,
    seed: int = 0,
    vectors: str | None = None,
    device: Any = None,
    apart: Sequence[str] = (),
    **rows: Any,
) -> Statistics:
    """Return the statistics of what `report`, `compare` or `advise` was given, none computed twice.

    Args:
        X: what `measure` takes; the statistics that a Measurement has computed are used again.
        seed: of everything sampled; a measurement with another one is measured again.
        vectors, device: as `measure` takes them.
        apart: other columns of a table that are no dimensions.
        rows: what else is known of the rows: labels, weights, token_types, sentences, partners, texts. All
            but texts change the statistics: a measurement is measured again with them.
    """
    return sliced_shelf_of(X, None, seed=seed, vectors=vectors, device=device, apart=apart, **rows)[0]


def sliced_shelf_of(
    X: Any,
    by: Any,
    *,
    seed: int = 0,
    vectors: str | None = None,
    device: Any = None,
    apart: Sequence[str] = (),
    **rows: Any,
) -> tuple[Statistics, Labels | None, tuple[str, ...]]:
    """Return what `shelf_of` does, the slice of every row, and the columns that name the slices.

    Args:
        X: what `measure` takes.
        by: as `measure` takes it; None for no slices.
        seed, vectors, device, apart, rows: as `shelf_of` takes them.
    """
    rows = {name: value for name, value in rows.items() if value is not None}
    if not isinstance(X, Measurement):
        opened = as_input(X, rows, by=by, vectors=vectors, device=device, apart=apart)
        space, notes = _loaded(opened)
        shelf = Statistics(space, seed=seed, devices=devices_of(opened.source))
        shelf.notes += notes
        return shelf, *_slices(opened)
    if X._kept is None:
        raise InputError("is a measurement without its vectors", argument="X", hint="pass the vectors")
    for name, option in (("vectors", vectors), ("device", device)):
        if option is not None:
            raise InputError("goes with vectors; X is a measurement of them", argument=name)
    shelf = X._kept.shelf()
    slices: tuple[Labels | None, tuple[str, ...]] = None, ()
    if by is not None:
        slices = _slices(as_input(X._kept.vectors(), by=by, **X._kept._how))
    if not rows and seed == X.seed:
        return shelf, *slices
    space = replace(shelf.space, **{name: rows_of(X, value, name) for name, value in rows.items()})
    if seed == X.seed and set(rows) <= _NOT_COMPUTED_FROM:
        return shelf.over(space), *slices
    return Statistics(space, seed=seed), *slices


def rows_of(
    X: Any, value: Any, argument: str, *, vectors: str | None = None, apart: Sequence[str] = ()
) -> Any:
    """Return one value a row, as `row_values` does; X may be a Measurement. `apart` is as for `shelf_of`."""
    X = X._kept.vectors() if isinstance(X, Measurement) and X._kept else X
    if apart and isinstance(X, str | os.PathLike) and isinstance(value, str | os.PathLike):
        X = open_vectors(X, by=(os.fspath(value), *apart), vectors=vectors)
    return row_values(X, value, argument, vectors=vectors)


def _loaded(opened: Input) -> tuple[Space, list[str]]:
    """Return the vectors in memory or mapped, without a gradient, and notes on how they were read."""
    space = opened.source.load()
    if space.vectors.requires_grad:
        space = space.with_vectors(space.vectors.detach())
    return space, [*opened.notes, *opened.source.notes]


def _slices(opened: Input) -> tuple[Labels | None, tuple[str, ...]]:
    """Return the slice of every row and the columns that name it; None without `by`."""
    if opened.by is None:
        return None, ()
    slices, names = slices_by(opened.by, opened.source, skip_bad=False)
    return slices if isinstance(slices, Labels) else slices_of(opened.source, slices), names


def _identity(X: Any) -> list[Any] | None:
    """Return what tells a file, states or chunks from others; None of vectors that are in memory."""
    return None if isinstance(X, Space) or not is_source(X) else X.identity


def _changed() -> InputError:
    return InputError(
        "is a measurement whose vectors have changed since", argument="X", hint="measure them again"
    )


def _columns(space: Space) -> dict[str, Any]:
    return {name: value for name, value in vars(space).items() if name != "vectors" and value is not None}


def _reference(X: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(X.space if isinstance(X, Statistics) else X)
    except TypeError:  # a list
        return lambda: X
