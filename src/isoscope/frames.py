"""Data frames and Arrow tables as arrays; a column that is no dimension is an error that names it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from isoscope.errors import InputError, NotFiniteError, ShapeError
from isoscope.table_columns import N_JUDGED, Column, are_truth_values, judge, whole_numbers


def from_frame(X: Any, name: str) -> np.ndarray:
    """The numbers of a pandas or polars frame, or of one column of vectors."""
    if len(getattr(X, "columns", ())) > 1:
        _refuse_no_dimensions(_pandas(X) if hasattr(X, "iloc") else _arrow(X.head(N_JUDGED).to_arrow()), name)
    array = np.asarray(X.to_numpy())
    if array.dtype.kind == "O" and array.ndim == 2 and hasattr(X, "iloc"):
        try:  # pandas' nullable numbers
            return np.asarray(X.to_numpy(dtype=float, na_value=np.nan))
        except (TypeError, ValueError):
            pass
    return array[:, 0] if array.dtype.kind == "O" and array.ndim == 2 and array.shape[1] == 1 else array


def from_arrow(X: Any, name: str) -> np.ndarray:
    """The numbers of an Arrow table, or of one column of (fixed-size) lists."""
    import pyarrow as pa

    if isinstance(X, pa.Table | pa.RecordBatch):
        if X.num_columns == 1 and _is_list(X.column(0).type):
            return _arrow_lists(X.column(0), name)
        _refuse_no_dimensions(_arrow(X), name)
        return np.column_stack([column.to_numpy() for column in X.columns])
    return _arrow_lists(X, name) if _is_list(X.type) else np.asarray(X)


def _refuse_no_dimensions(columns: list[Column], name: str) -> None:
    """Raise InputError over columns that are no dimensions, or may be none."""
    verdict = judge(columns)
    others = [columns[place] for place in verdict.others]
    for column in others:
        if column.holds == "vectors":
            raise InputError(
                f"has vectors in column {column.name!r} beside other columns; pass {name}[{column.name!r}]",
                argument=name,
            )
    if others:
        held = " and ".join(dict.fromkeys(column.holds for column in others))
        raise InputError(
            f"has {held} in column{_shown(column.name for column in others)}; wanted numbers in "
            f"each: pass {name}.drop(columns=[…]), and texts that are labels as labels=…",
            argument=name,
        )
    unlikely = verdict.named or verdict.doubtful
    if unlikely:
        shown = _shown(columns[place].name for place in unlikely)
        why = "by name" if verdict.named else "whole numbers among other columns"
        raise InputError(
            f"has identifiers, labels or times in column{shown}, so it seems ({why}); "
            f"wanted dimensions only: pass {name}.drop(columns=[…]), or {name}.to_numpy() where all are some",
            argument=name,
        )


def _shown(names: Iterable[str]) -> str:
    listed = [repr(name) for name in names]
    return ("s " if len(listed) > 1 else " ") + ", ".join(listed[:4]) + (", …" if len(listed) > 4 else "")


def _pandas(X: Any) -> list[Column]:
    names = [str(column) for column in X.columns]
    kinds = [
        _object_kind(X.iloc[:N_JUDGED, place], dtype) if dtype.kind == "O" else dtype.kind
        for place, dtype in enumerate(X.dtypes)
    ]
    numbers = ("b",) if are_truth_values(names, [kind == "b" for kind in kinds]) else ("f", "i", "u", "c")
    columns = []
    for place, (name, kind, dtype) in enumerate(zip(names, kinds, X.dtypes, strict=True)):
        if kind not in numbers:
            columns.append(Column(name, False, holds=kind if len(kind) > 1 else str(dtype)))
            continue
        whole, head = kind in ("b", "i", "u"), X.iloc[:N_JUDGED, place].dropna()
        values = whole_numbers(head) if whole else head.to_numpy(dtype=float, na_value=np.nan)
        columns.append(Column(name, True, whole, _present(values)))
    return columns


def _object_kind(column: Any, dtype: Any) -> str:
    """What the Python objects of a column are, missing ones aside."""
    missing = ("NoneType", "NAType", "NaTType")
    cells = [cell for cell in column if type(cell).__name__ not in missing]
    if any(isinstance(cell, list | tuple | np.ndarray) for cell in cells):
        return "vectors"
    if any(isinstance(cell, str) for cell in cells):
        return "texts"
    if dtype.name == "category":
        return "categories"
    are_numbers = all(isinstance(cell, float | int | Decimal | np.number) for cell in cells)
    has_truths = any(isinstance(cell, bool) for cell in cells)
    return "f" if cells and are_numbers and not has_truths else "objects"


def _arrow(X: Any) -> list[Column]:
    return arrow_columns(X.schema, lambda places: X.select(places).slice(0, N_JUDGED))


def arrow_columns(schema: Any, read: Callable[[list[int]], Any]) -> list[Column]:
    """Every column of an Arrow table with its first numbers; `read` gives the first rows of some columns."""
    kinds = [arrow_kind(field.type) for field in schema]
    truths = are_truth_values(schema.names, [kind == "b" for kind in kinds])
    taken = [place for place, kind in enumerate(kinds) if kind in (("b",) if truths else ("f", "i"))]
    first = read(taken) if taken else None
    columns = [
        Column(field.name, False, holds=kind if len(kind) > 1 else str(field.type))
        for field, kind in zip(schema, kinds, strict=True)
    ]
    for at, place in enumerate(taken):
        whole, cells = kinds[place] != "f", [] if first is None else first.column(at).drop_null().to_pylist()
        values = whole_numbers(cells) if whole else np.array(cells, dtype=float)
        columns[place] = Column(schema[place].name, True, whole, _present(values))
    return columns


def arrow_kind(of: Any) -> str:
    """What an Arrow type is: NumPy's letter for numbers and truth values, "texts", "vectors" or "O"."""
    import pyarrow as pa

    if pa.types.is_floating(of) or pa.types.is_decimal(of):
        return "f"
    if _is_list(of):
        return "vectors"
    if pa.types.is_boolean(of):
        return "b"
    # polars writes views
    texts = pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of)
    return "i" if pa.types.is_integer(of) else "texts" if texts else "O"


def _present(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _arrow_lists(column: Any, name: str) -> np.ndarray:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return lists_array(column, name)


def lists_array(column: Any, name: object, n_dims: int | None = None, start: int = 0) -> np.ndarray:
    """An Arrow column of equally long lists as an (n, d) array, without a Python object per row.

    Args:
        column: lists of numbers.
        name: what has the column, for messages.
        n_dims: how many numbers each must have; by default as many as the first.
        start: the number of the first row, for messages.
    """
    import pyarrow.compute as pc

    if len(column) == 0:
        return np.empty((0, n_dims or 0), dtype=np.float32)
    if column.null_count:
        row = start + column.is_null().index(True).as_py()
        raise NotFiniteError(f"has no vector in row {row} (null); drop the rows without one", argument=name)
    lengths = pc.list_value_length(column)
    n_dims = lengths[0].as_py() if n_dims is None else n_dims
    ragged = pc.not_equal(lengths, n_dims).index(True).as_py()
    if ragged >= 0:
        raise ShapeError(
            f"has a vector of length {lengths[ragged]} in row {start + ragged}, "
            f"where the first has {n_dims}; wanted rows of one length",
            argument=name,
        )
    values = column.flatten()
    if values.null_count:
        row = start + values.is_null().index(True).as_py() // n_dims
        raise NotFiniteError(
            f"has missing numbers, the first in row {row}; drop or fill those rows", argument=name
        )
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), n_dims)
