"""Which columns of a table are dimensions: one rule for delimited files, Arrow tables and data frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isoscope.errors import Hint, InputError, ShapeError
from isoscope.printable import listed, nearest

# what a column holds; lists are of whole numbers, which are tokens where others are vectors
TEXTS, NUMBERS, VECTORS, LISTS, OTHER = "texts", "numbers", "vectors", "lists", "other"
MAX_COLUMNS = 2**15  # Arrow takes a minute over 200,000
N_JUDGED = 100  # rows a column is judged by
_FEW = 5  # with fewer rows, whole numbers among fractions may be chance
_MANY = 10  # with fewer rows, numbers that rise or never repeat may be chance
_INDEX = "__index_level_"  # the columns pandas writes its row index to
_WIDER = 10  # an identifier spans so many times the range of a dimension

_WORDS = (
    *("id", "ids", "idx", "index", "uid", "uuid", "guid", "rowid", "docid", "label", "labels", "class"),
    *("target", "topic", "cluster", "category", "date", "time", "datetime", "timestamp"),
)
_NO_DIMENSION = re.compile(rf"(.*[_\s.:/-])?({'|'.join(_WORDS)})|unnamed: \d+|__index_level_\d+__")


@dataclass(frozen=True)
class Column:
    """A column of a table, as far as it was looked at.

    name: what it is called.
    is_number: whether it holds numbers, rather than texts, dates or truth values.
    is_integer: whether its type, or the way it is written, is that of whole numbers.
    values: some of its first numbers, missing ones left out; integers by `whole_numbers`.
    holds: what it holds where that is no numbers, for messages.
    """

    name: str
    is_number: bool
    is_integer: bool = False
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    holds: str = ""


@dataclass(frozen=True)
class Verdict:
    """The places of a table's columns, by what they are.

    dimensions: numbers that are coordinates.
    others: no numbers.
    named: numbers whose column has a name of identifiers, labels or times.
    doubtful: numbers that may be identifiers, labels or times by their values.
    """

    dimensions: list[int]
    others: list[int]
    named: list[int]
    doubtful: list[int]


def check_n_columns(n_columns: int, where: object, hint: Hint = "save it as .npy") -> None:
    """Raise ShapeError over more columns than a table may have."""
    if n_columns > MAX_COLUMNS:
        raise ShapeError(f"{where} has {n_columns:,} columns", wanted=f"at most {MAX_COLUMNS:,}", hint=hint)


def names_no_dimension(name: str) -> bool:
    """Whether a column of this name holds identifiers, labels or times.

    >>> [names_no_dimension(name) for name in ("id", "user_id", "Timestamp", "x1", "valid")]
    [True, True, True, False, False]
    """
    return _NO_DIMENSION.fullmatch(name.strip().lower()) is not None


def are_truth_values(names: Sequence[str], is_truth: Sequence[bool]) -> bool:
    """Whether all columns hold truth values, a row index or identifiers aside: they are 0 and 1."""
    named = (
        names_no_dimension(name) or (place == 0 and not name.strip()) for place, name in enumerate(names)
    )
    return any(is_truth) and all(truth or other for truth, other in zip(is_truth, named, strict=True))


def judge(columns: Sequence[Column]) -> Verdict:
    """Tell dimensions from identifiers, labels and times, by type, name and first values.

    A column is doubtful when it holds whole numbers, not all 0, beside columns of fractions; or, where
    all columns hold whole numbers, when it alone rises from row to row or never repeats a number over a range
    far wider than the others'.
    """
    others = [place for place, column in enumerate(columns) if not column.is_number]
    numbers = [place for place, column in enumerate(columns) if column.is_number]
    is_named = any(columns[place].name.strip() for place in numbers)
    named = [
        place
        for place in numbers
        if names_no_dimension(columns[place].name)
        or (place == 0 and is_named and not columns[0].name.strip())
    ]
    rest = [place for place in numbers if place not in set(named)]
    doubtful = _doubtful([columns[place] for place in rest])
    return Verdict(
        [place for place, doubt in zip(rest, doubtful, strict=True) if not doubt],
        others,
        named,
        [place for place, doubt in zip(rest, doubtful, strict=True) if doubt],
    )


def _doubtful(columns: list[Column]) -> list[bool]:
    whole = [_is_whole(column.values) for column in columns]
    if not all(whole):
        return [is_whole and _stands_out(column) for column, is_whole in zip(columns, whole, strict=True)]
    ranges = [_span(column.values) if len(column.values) else 0.0 for column in columns]
    usual = float(np.median(ranges)) if ranges else 0.0
    counts = [
        len(column.values) >= _MANY
        and (_rises(column.values) or (_is_distinct(column.values) and span > _WIDER * usual))
        for column, span in zip(columns, ranges, strict=True)
    ]
    return counts if 2 * sum(counts) < len(counts) else [False] * len(counts)


def _stands_out(column: Column) -> bool:
    """Whether whole numbers beside fractions may be no coordinates; noughts alone are an unused one."""
    if column.is_integer:
        return len(column.values) >= _FEW and bool(np.any(column.values != 0))
    return len(column.values) >= _MANY and _is_distinct(column.values)


def whole_numbers(values: Iterable[Any]) -> np.ndarray:
    """Return integers of any size, exactly: as float64, neighbours past 2^53 would be equal."""
    numbers = [int(value) for value in values]
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array(numbers, dtype=object)


def _are_integers(values: np.ndarray) -> bool:
    return values.dtype.kind in "iuO"


def _is_whole(values: np.ndarray) -> bool:
    if _are_integers(values):
        return True
    return bool(np.all(np.isfinite(values)) and np.all(values == np.trunc(values)))


def _is_distinct(values: np.ndarray) -> bool:
    return len(np.unique(values)) == len(values)


def _span(values: np.ndarray) -> float:
    low, high = values.min(), values.max()
    return float(int(high) - int(low) if _are_integers(values) else high - low)


def _rises(values: np.ndarray) -> bool:
    before, after = values[:-1], values[1:]
    return bool(np.all(after > before) or np.all(after < before))


def dimensions_among(
    columns: Sequence[Column], places: Sequence[int]
) -> tuple[list[int], list[int], list[str]]:
    """Tell which of some columns are dimensions.

    Returns:
        The places of the dimensions; those of columns that may be dimensions or not; and notes on the columns
        that are left out.
    """
    verdict = judge([columns[place] for place in places])
    taken, others, named, doubtful = (
        [places[number] for number in numbers]
        for numbers in (verdict.dimensions, verdict.others, verdict.named, verdict.doubtful)
    )
    names = [columns[place].name for place in named if not columns[place].name.startswith(_INDEX)]
    return taken, doubtful, left_out((columns[place].name for place in others), names)


def left_out(others: Iterable[str], named: Iterable[str] = ()) -> list[str]:
    """Return the note on columns that are no dimensions: without numbers, or by their names.

    >>> left_out(["text"], ["", "id"])
    ['columns that are not dimensions: text (no numbers), an unnamed one (row index), id (by its name)']
    """
    whys = [f"{name} (no numbers)" for name in others]
    whys += [f"{name} (by its name)" if name.strip() else "an unnamed one (row index)" for name in named]
    return [f"columns that are not dimensions: {listed(whys)}"] if whys else []


def no_column(
    name: str,
    names: Sequence[str],
    *,
    argument: str,
    of: object,
    wanted: str = "a column",
    error: type[InputError] = InputError,
) -> InputError:
    """Return the error over a column that does not exist, with the columns and the nearest spelling."""
    columns = f"The columns of {of} are {listed(names)}" if names else f"There are no columns in {of}"
    hint = " ".join(filter(None, (nearest(name, names), columns)))
    return error(argument=argument, got=name, wanted=wanted, hint=hint)


def as_choice(columns: str | int | Sequence[str | int] | None) -> tuple[str, ...] | None:
    """Return the columns that the caller names as a tuple of texts."""
    if columns is None:
        return None
    if isinstance(columns, str | int) or not isinstance(columns, Iterable):
        columns = [columns]
    return tuple(str(column) for column in columns)


def places_of(choice: Iterable[str], names: Sequence[str], *, argument: str) -> list[int]:
    """Return the places of the columns that are named, in the order of the table.

    A choice is a name; several with commas between; a range of names with both ends, `d0:d767`, or with one
    end or none left open, so that `:` is every column; or a place, counted from 0, where no column is so
    called.

    >>> places_of(["b:d"], ["a", "b", "c", "d"], argument="columns")
    [1, 2, 3]
    >>> places_of(["d,a"], ["a", "b", "c", "d"], argument="columns")
    [0, 3]
    """
    chosen: set[int] = set()
    for item in choice:
        parts = [item] if item in names else [part.strip() for part in item.split(",") if part.strip()]
        if not parts:
            raise InputError(argument=argument, got=item, wanted="names of columns with commas between them")
        for part in parts:
            chosen.update(_places(part, names, argument))
    return sorted(chosen)


def _places(part: str, names: Sequence[str], argument: str) -> Iterable[int]:
    if part in names:
        return [place for place, name in enumerate(names) if name == part]
    if ":" in part:
        for cut in (found.start() for found in re.finditer(":", part)):
            first, last = part[:cut].strip(), part[cut + 1 :].strip()
            start = _place(first, names) if first else 0
            stop = _place(last, names) if last else len(names) - 1
            if start is not None and stop is not None and start <= stop:
                return range(start, stop + 1)
    elif (place := _place(part, names)) is not None:
        return [place]
    raise no_column(part, names, argument=argument, of="the table")


def _place(name: str, names: Sequence[str]) -> int | None:
    if name in names:
        return list(names).index(name)
    return (
        int(name) if name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(names) else None
    )
