"""Columns of lists of numbers: as arrays, and as they are written in text, such as "[0.5, 1]"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isoscope.errors import InputError, NotFiniteError, ShapeError
from isoscope.printable import some_rows
from isoscope.unchecked import is_unchecked


def is_list(cell: str) -> bool:
    """Return whether a cell is a list of numbers in brackets, as JSON and NumPy write it.

    >>> is_list("[0.5, 1]"), is_list("[0.5 1.]"), is_list("[sic]")
    (True, True, False)
    """
    if cell[:1] != "[" or cell[-1:] != "]":
        return False
    first = cell[1:200].strip(" \n]").replace(",", " ").split(maxsplit=1)
    try:
        return bool(first) and "_" not in first[0] and isinstance(float(first[0]), float)
    except ValueError:
        return False


def are_lists(cells: Sequence[Any]) -> bool:
    """Return whether most of the cells that are not missing are lists of numbers."""
    present = [cell for cell in cells if isinstance(cell, str)]
    return 2 * sum(is_list(cell.strip()) for cell in present) > len(present)


def parsed_lists(column: Any, name: object, *, start: int = 0, error: type[InputError] = InputError) -> Any:
    """Parse an Arrow column of lists in brackets into lists of numbers; empty cells are null.

    Args:
        column: strings.
        name: what has the column, for messages.
        start: the number of the first row, for messages.
        error: the class of the error over a cell that is not a list.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pc.utf8_trim_whitespace(column)
    cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)
    whole = pc.and_(pc.starts_with(cells, "["), pc.ends_with(cells, "]"))
    bad = pc.index(pc.fill_null(whole, True), False).as_py()
    if bad >= 0:
        got = f"has {str(column[bad])[:40]!r} in row {start + bad}"
        raise error(got, argument=name, wanted="a list of numbers in brackets")
    inside = pc.replace_substring(pc.utf8_trim(cells, "[]"), ",", " ")
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(inside))
    try:
        numbers = words.flatten().cast(pa.float64())
    except pa.ArrowInvalid as reason:
        raise error(
            f"has a list with a word that is no number ({reason})",
            argument=name,
            wanted="numbers only",
        ) from reason
    return pa.ListArray.from_arrays(
        words.offsets, numbers, mask=words.is_null() if words.null_count else None
    )


def no_vectors(
    rows: Sequence[int], n_rows: int, name: object, hint: str = "drop the rows without one"
) -> NotFiniteError:
    """Return the error over rows without a vector: how many there are, and the first of them."""
    return NotFiniteError(
        f"has no vector in {some_rows(rows, len(rows), n_rows)}",
        argument=name,
        wanted="a vector in every row",
        hint=hint,
    )


def lists_array(column: Any, name: object, n_dims: int | None = None, start: int = 0) -> np.ndarray:
    """Return an Arrow column of equally long lists as an (n, d) array, without a Python object per row.

    Args:
        column: lists of numbers.
        name: what has the column, for messages.
        n_dims: how many numbers each must have; by default as many as the first.
        start: the number of the first row, for messages.
    """
    import pyarrow.compute as pc

    if len(column) == 0:
        return np.empty((0, n_dims or 0), dtype=np.float32)
    if column.null_count and is_unchecked():
        present = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        given = lists_array(column.drop_null(), name, n_dims)
        vectors = np.full((len(column), given.shape[1]), np.nan, dtype=np.result_type(given, np.float32))
        vectors[present] = given
        return vectors
    if column.null_count:
        rows = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)) + start
        raise no_vectors(rows.tolist(), len(column), name)
    lengths = pc.list_value_length(column)
    n_dims = lengths[0].as_py() if n_dims is None else n_dims
    ragged = pc.not_equal(lengths, n_dims).index(True).as_py()
    if ragged >= 0:
        raise ShapeError(
            f"has a vector of length {lengths[ragged]} in row {start + ragged}, where the first has {n_dims}",
            argument=name,
            wanted="rows of one length",
        )
    values = column.flatten()
    if values.null_count and not is_unchecked():
        row = start + values.is_null().index(True).as_py() // n_dims
        raise NotFiniteError(
            f"has missing numbers, the first in row {row}", argument=name, hint="drop or fill those rows"
        )
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), n_dims)


def check_vectors(rows: Sequence[Any] | np.ndarray, name: str) -> None:
    """Raise NotFiniteError where None stands among vectors."""
    missing = [row for row, vector in enumerate(rows) if vector is None]
    if missing and any(hasattr(vector, "__len__") for vector in rows):
        raise no_vectors(missing, len(rows), name)


def ragged(X: Any, name: str, error: ValueError) -> ShapeError:
    """Return the error over rows of several lengths, with the first that differs."""
    lengths = [len(row) if hasattr(row, "__len__") else 0 for row in X]
    row = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    if row is None:
        return ShapeError(f"has ragged rows ({error})", argument=name, wanted="rows of one length")
    return ShapeError(
        f"has a vector of length {lengths[row]} in row {row}, where the first has {lengths[0]}",
        argument=name,
        wanted="rows of one length",
    )
