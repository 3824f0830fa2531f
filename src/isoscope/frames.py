"""Data frames and Arrow tables as arrays; a column that is no dimension is an error that names it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from isoscope.errors import InputError, NotFiniteError, ShapeError
from isoscope.table_columns import N_JUDGED, Column, judge, whole_numbers


def from_frame(X: Any, name: str) -> np.ndarray:
    """The numbers of a pandas or polars frame, or of one column of vectors."""
    if len(getattr(X, "columns", ())) > 1:
        _refuse_no_dimensions(_pandas(X) if hasattr(X, "iloc") else _polars(X), name)
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


def _refuse_no_dimensions(columns: list[tuple[Column, str]], name: str) -> None:
    """Raise InputError over columns that are no dimensions, or may be none; each comes with its type."""
    verdict = judge([column for column, _ in columns])
    if verdict.others:
        types = [columns[place][1] for place in verdict.others]
        shown = _shown(columns[place][0].name for place in verdict.others)
        if "vectors" in types:
            shown = repr(columns[verdict.others[types.index("vectors")]][0].name)
            raise InputError(
                f"{name} has vectors in column {shown} beside other columns; pass {name}[{shown}]"
            )
        raise InputError(
            f"{name} has {' and '.join(dict.fromkeys(types))} in column{shown}; wanted numbers in each: "
            f"pass {name}.drop(columns=[…]), and texts that are labels as labels=…"
        )
    unlikely = verdict.named or verdict.doubtful
    if unlikely:
        shown = _shown(columns[place][0].name for place in unlikely)
        why = "by name" if verdict.named else "whole numbers among other columns"
        raise InputError(
            f"{name} has identifiers, labels or times in column{shown}, so it seems ({why}); "
            f"wanted dimensions only: pass {name}.drop(columns=[…]), or {name}.to_numpy() where all are some"
        )


def _shown(names: Iterable[str]) -> str:
    listed = [repr(name) for name in names]
    return ("s " if len(listed) > 1 else " ") + ", ".join(listed[:4]) + (", …" if len(listed) > 4 else "")


def _pandas(X: Any) -> list[tuple[Column, str]]:
    kinds = [
        _object_kind(X.iloc[:N_JUDGED, place], dtype) if dtype.kind == "O" else dtype.kind
        for place, dtype in enumerate(X.dtypes)
    ]
    kinds = _numeric(kinds)
    fractions = [place for place, kind in enumerate(kinds) if kind == "f"]
    numbers = X.iloc[:N_JUDGED, fractions].to_numpy(dtype=float, na_value=np.nan)
    head = dict(zip(fractions, numbers.T, strict=True)) | {
        place: whole_numbers(X.iloc[:N_JUDGED, place].dropna())
        for place, kind in enumerate(kinds)
        if kind in ("i", "u")
    }
    types = [kind if len(kind) > 1 else str(dtype) for kind, dtype in zip(kinds, X.dtypes, strict=True)]
    return _columns([str(column) for column in X.columns], kinds, types, head)


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


def _polars(X: Any) -> list[tuple[Column, str]]:
    kinds = []
    for dtype in X.dtypes:
        if dtype.is_numeric():
            kinds.append("i" if dtype.is_integer() else "f")
        elif dtype.is_nested():
            kinds.append("vectors")
        else:
            kinds.append({"String": "texts", "Boolean": "b"}.get(str(dtype), "O"))
    kinds = _numeric(kinds)
    head = {
        place: whole_numbers(column.drop_nulls()) if kind in ("i", "u") else column.cast(float).to_numpy()
        for place, (kind, column) in enumerate(zip(kinds, X.head(N_JUDGED).get_columns(), strict=True))
        if kind in ("f", "i", "u")
    }
    types = [kind if len(kind) > 1 else str(dtype) for kind, dtype in zip(kinds, X.dtypes, strict=True)]
    return _columns(X.columns, kinds, types, head)


def _arrow(X: Any) -> list[tuple[Column, str]]:
    fields = list(X.schema)
    kinds = _numeric([arrow_kind(field.type) for field in fields])
    head = {
        place: first_numbers(X.column(place).slice(0, N_JUDGED), is_integer=kind in ("i", "u"))
        for place, kind in enumerate(kinds)
        if kind in ("f", "i", "u")
    }
    types = [kind if len(kind) > 1 else str(field.type) for kind, field in zip(kinds, fields, strict=True)]
    return _columns([field.name for field in fields], kinds, types, head)


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


def first_numbers(column: Any, *, is_integer: bool) -> np.ndarray:
    """The numbers of a short Arrow column, missing ones left out; integers exactly."""
    cells = column.drop_null().to_pylist()
    return whole_numbers(cells) if is_integer else np.array(cells, dtype=float)


def _numeric(kinds: list[str]) -> list[str]:
    """Truth values alone are vectors of 0 and 1; beside numbers they are none."""
    return ["u"] * len(kinds) if set(kinds) == {"b"} else kinds


def _columns(
    names: Sequence[str], kinds: list[str], types: list[str], head: dict[int, np.ndarray]
) -> list[tuple[Column, str]]:
    empty = np.empty(0)
    return [
        (
            Column(name, kind in ("f", "i", "u", "c"), kind in ("i", "u"), _present(head.get(place, empty))),
            of,
        )
        for place, (name, kind, of) in enumerate(zip(names, kinds, types, strict=True))
    ]


def _present(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _arrow_lists(column: Any, name: str) -> np.ndarray:
    """An Arrow column of equally long lists as an (n, d) array, without a Python object per row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if len(column) == 0:
        return np.empty((0, 0), dtype=np.float32)
    if column.null_count:
        first = column.is_null().index(True).as_py()
        raise InputError(
            f"{name} has {column.null_count} missing vectors, the first in row {first}; drop those rows"
        )
    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) > 1:
        raise ShapeError(
            f"{name} has ragged rows of lengths {sorted(lengths)[:4]}; wanted rows of one length"
        )
    values = column.flatten()
    if values.null_count:
        row = values.is_null().index(True).as_py() // lengths[0]
        raise NotFiniteError(
            f"{name} has {values.null_count} missing numbers, the first in row {row}; drop those rows"
        )
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), -1)
