"""Data frames and Arrow tables as arrays; a column that is no dimension is an error that names it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from isoscope.errors import InputError, Setting
from isoscope.list_columns import are_lists, lists_array, no_vectors, parsed_lists
from isoscope.printable import listed
from isoscope.table_columns import (
    LISTS,
    N_JUDGED,
    TEXTS,
    VECTORS,
    Column,
    are_truth_values,
    dimensions_among,
    judge,
    left_out,
    no_column,
    whole_numbers,
)

_MIXED = "objects"  # Python objects of several types


class Frame:
    """The columns of a data frame or an Arrow table, by name.

    Attributes:
        table: the pandas data frame or Arrow table.
        name: the argument it came as, for messages.
        names: the names of its columns.
    """

    def __init__(self, table: Any, name: str) -> None:
        self.table, self.name = table, name
        self._is_pandas = hasattr(table, "iloc")
        self.names = [str(column) for column in (table.columns if self._is_pandas else table.column_names)]

    @cached_property
    def columns(self) -> list[Column]:
        """The columns, with what their first rows hold."""
        return _pandas(self.table) if self._is_pandas else _arrow(self.table)

    def values(self, column: str, argument: str = "column") -> Any:
        """Return one value a row of a column, which was given as this argument."""
        place = self._place(column, argument)
        return self.table.iloc[:, place] if self._is_pandas else column_values(self.table.column(place))

    def vectors(
        self, column: str | None = None, *, apart: Collection[str] = (), strict: bool = False
    ) -> tuple[np.ndarray, list[str]]:
        """Return the vectors, and notes on columns that were left out.

        Args:
            column: the column that holds the vectors. By default the only column of lists; without one,
                every column of numbers is a dimension.
            apart: columns that hold labels or the like, and are no dimensions.
            strict: raise an error over numbers that are no dimensions by their name or values, rather than
                leave them out.
        """
        places, is_list, notes = self._chosen(column, apart, strict=strict)
        return self._lists(places[0]) if is_list else self._matrix(places), notes

    def beside(self, column: str | None = None) -> dict[str, Any]:
        """Return the columns that are not the vectors, as Arrow arrays; `column` is that of `vectors`."""
        places, _, _ = self._chosen(column, ())
        return {name: self._arrow(at) for at, name in enumerate(self.names) if at not in set(places)}

    def _chosen(
        self, column: str | None, apart: Collection[str], *, strict: bool = False
    ) -> tuple[list[int], bool, list[str]]:
        """Return the places of the vectors, whether that is one column of lists, and notes."""
        if column is not None:
            place = self._place(column, "vectors")
            if (holds := self.columns[place].holds or "numbers") not in (VECTORS, LISTS):
                raise InputError(
                    argument="vectors", got=column, wanted=f"a column of lists of numbers (it holds {holds})"
                )
            return [place], True, []
        rest = [place for place, name in enumerate(self.names) if name not in apart]
        # beside a column of float vectors, lists of integers are token ids or the like
        lists = self._holding(VECTORS, rest) or self._holding(LISTS, rest)
        if len(lists) > 1:
            raise InputError(
                f"has {len(lists)} columns of vectors: {listed(repr(self.names[place]) for place in lists)}",
                argument=self.name,
                hint=Setting("vectors", self.names[lists[0]], to="choose one"),
            )
        if lists:
            return lists, True, []
        if strict:  # a column of numbers may be meant; one without any cannot be
            columns = self.columns
            plain = [place for place in rest if columns[place].is_number or columns[place].holds == _MIXED]
            _refuse_no_dimensions([self.columns[place] for place in plain or rest], self.name)
            names = [self.names[place] for place in rest if place not in set(plain)]
            return plain, False, left_out(names)
        taken, doubtful, notes = dimensions_among(self.columns, rest)
        if doubtful or not taken:
            places = sorted([*taken, *doubtful]) or rest
            _refuse_no_dimensions([self.columns[place] for place in places], self.name)
        return taken, False, notes

    def holds(self, column: str, what: str) -> bool:
        """Return whether there is such a column, and it holds TEXTS, VECTORS or LISTS."""
        return column in self.names and self.columns[self.names.index(column)].holds == what

    def _holding(self, what: str, places: list[int]) -> list[int]:
        return [place for place in places if self.columns[place].holds == what]

    def _place(self, column: str, argument: str) -> int:
        if column not in self.names:
            raise no_column(column, self.names, argument=argument, of=self.name)
        return self.names.index(column)

    def _arrow(self, place: int) -> Any:
        import pyarrow as pa

        if not self._is_pandas:
            return self.table.column(place)
        column = self.table.iloc[:, place]
        try:
            return pa.array(column, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # values of several types
            texts = column.astype(str).where(column.notna(), None)
            return pa.array(texts, pa.string(), from_pandas=True)

    def _lists(self, place: int) -> np.ndarray:
        if not self._is_pandas:
            return _arrow_lists(self.table.column(place), self.name)
        return _pandas_lists(self.table.iloc[:, place], self.name, self.names[place])

    def _matrix(self, places: list[int]) -> np.ndarray:
        if not self._is_pandas:
            return np.column_stack([self.table.column(place).to_numpy() for place in places])
        chosen = self.table if len(places) == len(self.names) else self.table.iloc[:, places]
        array = np.asarray(chosen.to_numpy())
        if array.dtype.kind != "O":
            return array
        try:  # pandas' nullable numbers
            return np.asarray(chosen.to_numpy(dtype=float, na_value=np.nan))
        except (TypeError, ValueError):
            return array


def as_frame(X: Any, name: str = "X") -> Frame | None:
    """Return the columns of a pandas or polars data frame, an Arrow table or a Hugging Face dataset.

    Returns None for anything else, a single column included.
    """
    module = type(X).__module__.partition(".")[0]
    if module == "datasets":
        is_column = not hasattr(X, "with_format") and not isinstance(X, Mapping)
        X = None if is_column else _from_datasets(X, name)
    elif module == "polars":
        X = X.collect() if hasattr(X, "collect") else X
        X = X.to_arrow() if hasattr(X, "get_columns") else None
    elif module == "pandas":
        X = X if getattr(X, "ndim", 0) == 2 else None
    elif module == "pyarrow":
        X = X if hasattr(X, "column_names") else None
    else:
        return None
    return None if X is None else Frame(X, name)


def _from_datasets(X: Any, name: str) -> Any:
    """Return the Arrow table of a Hugging Face dataset."""
    if isinstance(X, Mapping):
        raise InputError(f"has the splits {listed(X)}", argument=name, hint=f"pass {name}[{next(iter(X))!r}]")
    if not hasattr(X, "with_format") or not hasattr(X, "__len__"):
        raise InputError(
            argument=name, got=type(X).__name__, wanted="a datasets.Dataset", hint="a stream is not measured"
        )
    return X.with_format("arrow")[:]


def from_frame(X: Any, name: str, apart: Collection[str] = ()) -> np.ndarray:
    """Return the vectors in a data frame, an Arrow table, or one column of either."""
    frame = as_frame(X, name)
    if frame is not None:
        vectors, notes = frame.vectors(apart=apart, strict=True)
        for note in notes:
            warnings.warn(f"{name}: {note}", stacklevel=2)
        return vectors
    X = X.to_arrow() if type(X).__module__.startswith("polars") else X
    if hasattr(X, "type") and arrow_kind(X.type) in (VECTORS, LISTS, TEXTS):
        return _arrow_lists(X, name)
    if hasattr(X, "isna") and len(X) and X.dtype.kind == "O":
        return _pandas_lists(X, name)
    return np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)


def _refuse_no_dimensions(columns: list[Column], name: str) -> None:
    """Raise InputError over columns that are no dimensions, or may be none."""
    verdict = judge(columns)
    others = [columns[place] for place in verdict.others]
    if len(others) == len(columns) and any(column.holds == TEXTS for column in others):
        raise InputError(
            f"has no numbers, only {_kinds(others)} in column{_shown(column.name for column in others)}",
            argument=name,
            wanted="vectors",
            hint=f"encode texts with isoscope.encode({name}) first",
        )
    if others:
        raise InputError(
            f"has {_kinds(others)} in column{_shown(column.name for column in others)}",
            argument=name,
            wanted="numbers in each",
            hint=f"pass {name}.drop(columns=[…]), and texts that are labels as labels=…",
        )
    unlikely = verdict.named or verdict.doubtful
    if unlikely:
        shown = _shown(columns[place].name for place in unlikely)
        why = "by name" if verdict.named else "whole numbers among other columns"
        raise InputError(
            f"seems to have identifiers, labels or times in column{shown} ({why})",
            argument=name,
            wanted="dimensions only",
            hint=[f"pass {name}.drop(columns=[…])", f"{name}.to_numpy() if all columns are dimensions"],
        )


def _kinds(columns: list[Column]) -> str:
    return " and ".join(dict.fromkeys(column.holds for column in columns))


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
    """Return what the Python objects of a column are; missing ones are ignored."""
    missing = ("NoneType", "NAType", "NaTType")
    cells = [cell for cell in column if type(cell).__name__ not in missing]
    for cell in cells:
        if isinstance(cell, list | tuple | np.ndarray):
            return {"f": VECTORS, "i": LISTS, "u": LISTS}.get(np.asarray(cell).dtype.kind, _MIXED)
    strings = [cell for cell in cells if isinstance(cell, str)]
    if strings and all(isinstance(cell, str) or _is_nan(cell) for cell in cells):
        return VECTORS if are_lists(strings) else TEXTS
    if dtype.name == "category":
        return "categories"
    are_numbers = all(isinstance(cell, float | int | Decimal | np.number) for cell in cells)
    has_truths = any(isinstance(cell, bool) for cell in cells)
    return "f" if cells and are_numbers and not has_truths else _MIXED


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, float) and cell != cell


def _arrow(X: Any) -> list[Column]:
    first = X.slice(0, N_JUDGED)
    columns = arrow_columns(X.schema, first.select)
    return [
        replace(column, holds=VECTORS)
        if column.holds == TEXTS and are_lists(first.column(place).to_pylist())
        else column
        for place, column in enumerate(columns)
    ]


def arrow_columns(schema: Any, read: Callable[[list[int]], Any]) -> list[Column]:
    """Return every column of an Arrow table with its first numbers; `read` returns the first rows of some."""
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
    """Return what an Arrow type is: NumPy's letter of a number or truth value, TEXTS, VECTORS, LISTS, "O"."""
    import pyarrow as pa

    if pa.types.is_floating(of) or pa.types.is_decimal(of):
        return "f"
    if _is_list(of):
        return {"f": VECTORS, "i": LISTS}.get(arrow_kind(of.value_type), "O")
    if pa.types.is_boolean(of):
        return "b"
    # polars writes views
    texts = pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of)
    return "i" if pa.types.is_integer(of) else TEXTS if texts else "O"


def column_values(column: Any) -> Any:
    """Return an Arrow column as a NumPy array of numbers without gaps, else as a list (None is missing)."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    letter = arrow_kind(column.type)
    is_decimal = pa.types.is_decimal(column.type)
    if letter in ("f", "i", "b") and not is_decimal and not column.null_count:
        return column.to_numpy()
    if letter != TEXTS and not pa.types.is_nested(column.type):
        column = column.cast(pa.string())
    return column.to_pylist()


def _present(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _pandas_lists(column: Any, name: str, of: str | None = None) -> np.ndarray:
    """Return the vectors of a column, called `of` in its data frame: lists, or lists written as text."""
    if (missing := column.isna().to_numpy()).any():
        rows = np.flatnonzero(missing).tolist()
        dropped = f"{name}.dropna()" if of is None else f"{name}.dropna(subset=[{of!r}])"
        raise no_vectors(rows, len(column), name, hint=f"pass {dropped}")
    if isinstance(column.iloc[0], str):
        import pyarrow as pa

        return _arrow_lists(pa.array(column, pa.string()), name)
    return np.asarray(column.to_numpy())


def _arrow_lists(column: Any, name: str) -> np.ndarray:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return lists_array(parsed_lists(column, name) if arrow_kind(column.type) == TEXTS else column, name)
