"""Labels of rows as integer codes: one label a row, or a set of labels."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import LabelError, ShapeError
from isoscope.printable import quoted, some_rows

_PLAIN = {str, bytes, int, bool, float}  # types that are labels as they are
_EMPTY = (None, "", b"")
_COLLECTIONS = (list, tuple, set, frozenset)
_FEW_LABELS = 20  # whatever the number of rows
_FEW_ROWS = 10  # of each label, on average
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_NUMBERS_A_ROW = 4  # whole numbers that span fewer than so many a row are counted, not sorted


@dataclass(frozen=True, eq=False)
class Labels:
    """Codes 0 … K−1 for n rows, and the K names they stand for, sorted.

    codes: (n,) int64; names: K hashable values (str, bytes or numbers).
    """

    codes: Tensor
    names: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        del copy  # always one
        return np.asarray(np.asarray(self.names)[self.codes.cpu().numpy()], dtype=dtype)

    def __getitem__(self, rows: Any) -> Any:
        """Return the label of a row, or the labels of several as an array."""
        return np.asarray(self)[rows]

    def tolist(self) -> list[Any]:
        """Return the label of each row."""
        return [self.names[code] for code in self.codes.tolist()]

    @property
    def n_labels(self) -> int:
        """K, the number of distinct labels."""
        return len(self.names)

    @cached_property
    def counts(self) -> Tensor:
        """(K,) number of rows of each label, int64."""
        return torch.bincount(self.codes, minlength=self.n_labels)

    @cached_property
    def sizes(self) -> list[int]:
        """Rows of each label as plain numbers; the device is synchronised once."""
        return self.counts.tolist()

    def to(self, device: torch.device) -> Labels:
        """Return the labels with their codes on another device."""
        if self.codes.device == device:
            return self
        moved = Labels(self.codes.to(device), self.names)
        if "sizes" in vars(self):
            vars(moved).update(sizes=self.sizes, counts=self.counts.to(device))
        return moved

    def rows(self, start: int, stop: int) -> Labels:
        """Return the labels of rows start … stop−1, with all K names."""
        if not start and stop == len(self):
            return self
        return Labels(self.codes[start:stop], self.names)

    def seen(self) -> Labels:
        """Return the labels with only the names that occur; every call returns the same object."""
        return self._seen

    @cached_property
    def _seen(self) -> Labels:
        if all(self.sizes):
            return self
        codes = ((self.counts > 0).cumsum(0) - 1)[self.codes]
        return Labels(codes, tuple(name for name, size in zip(self.names, self.sizes, strict=True) if size))


def as_labels(labels: Any, *, n: int | None = None, name: str = "labels") -> Labels:
    """Return codes and names of any sequence of labels: strings, numbers, sets, an indicator matrix.

    With several labels a row (an (n, L) matrix of 0 and 1, or a sequence of lists or sets), each
    distinct set of labels is one label. Whole numbers of any size are kept exactly. Labels of different
    types are compared as texts; two labels with the same text, such as 1 and "1", are an error. Missing
    labels (None, NaN, NaT, NA, masked entries, empty texts) are an error that names the rows.
    """
    coded = labels if isinstance(labels, Labels) else _coded(labels, name)
    if n is not None and len(coded) != n:
        raise ShapeError(
            f"has {len(coded)} entries for {n} vectors", argument=name, wanted="one for each vector"
        )
    return coded


def as_clusters(labels: Any, *, n: int, name: str = "labels") -> Labels:
    """Return labels that describe clusters: at least two, and fewer than points."""
    coded = as_labels(labels, n=n, name=name).seen()
    check_clusters(coded.n_labels, n, coded.names, name=name)
    return coded


def label_notes(labels: Labels, *, n: int) -> list[str]:
    """Return notes on labels that look like times, scores or identifiers: very many, or fractions."""
    notes = []
    if labels.n_labels > _FEW_LABELS and labels.n_labels * _FEW_ROWS > n:
        notes.append(
            f"{labels.n_labels:,} labels for {n:,} vectors, {n / labels.n_labels:.1f} each on average: "
            "are they labels, or identifiers or times?"
        )
    fraction = next((name for name in labels.names if isinstance(name, float) and name % 1), None)
    if fraction is not None:
        notes.append(f"labels are fractions, such as {fraction:g}: are they labels, or measured values?")
    return notes


def check_clusters(n_labels: int, n: int, names: tuple[Any, ...], *, name: str = "labels") -> None:
    """Raise LabelError unless there are at least two labels, and fewer than points."""
    if n_labels < 2:
        raise LabelError(
            f"has only one label ({quoted(names[0])})", argument=name, wanted="at least 2 to compare clusters"
        )
    if n_labels >= n:
        raise LabelError(
            f"has a different label for each of the {n} points",
            argument=name,
            wanted="fewer labels than points",
        )


def _coded(labels: Any, name: str) -> Labels:
    if isinstance(labels, str | bytes):
        raise LabelError("is one string", argument=name, wanted="a sequence with one label for each vector")
    if not isinstance(labels, Tensor) and not hasattr(labels, "__iter__"):
        raise LabelError(argument=name, got=labels, wanted="a sequence with one label for each vector")
    if isinstance(labels, Tensor):
        if labels.ndim == 1 and len(labels) and labels.dtype in _WHOLE:
            coded = _of_whole_numbers(labels.detach())
            if coded is not None:
                return coded
        labels = _array(labels)
    elif hasattr(labels, "to_numpy"):  # pandas, polars, Arrow columns
        labels = _to_numpy(labels)
    if isinstance(labels, np.ndarray):
        return _of_array(labels, name)
    values = list(labels)
    return _of_indicator(np.array(values), name) if is_indicator(values) else _of_values(values, name)


def _of_whole_numbers(values: Tensor) -> Labels | None:
    """Return labels from whole numbers by counting on their device; None if their range is too wide."""
    wide = values.long()
    low, high = torch.stack(wide.aminmax()).tolist()
    if high - low >= max(_NUMBERS_A_ROW * len(wide), 2**10):
        return None
    every = Labels(wide - low, tuple(range(low, high + 1)))
    present = every.seen()
    if values.dtype == torch.bool:
        return Labels(present.codes, tuple(map(bool, present.names)))
    return present


def _of_array(values: np.ndarray, name: str) -> Labels:
    """Return labels from an array: numbers by sorting, texts one by one, as NumPy pads them to one width."""
    if values.ndim == 2 and values.shape[1] > 1:
        return _of_indicator(values, name)
    if values.ndim == 2:
        values = values[:, 0]
    if values.ndim != 1:
        raise ShapeError(f"has shape {values.shape}", argument=name, wanted="one label for each vector")
    _refuse_missing(np.ma.getmaskarray(values), name)
    values = np.asarray(values)
    if values.dtype.kind == "U":
        _refuse_no_unicode(values, name)
    if values.dtype.kind in "OUS":
        return _of_values(values.tolist(), name)
    if values.dtype.kind in "fc":
        _refuse_missing(np.isnan(values), name)
    elif values.dtype.kind in "mM":
        _refuse_missing(np.isnat(values), name)
    names, codes = np.unique(values, return_inverse=True)
    if values.dtype.kind in "cmM":
        names = names.astype(str)
    return Labels(torch.from_numpy(codes.reshape(-1).astype(np.int64)), tuple(names.tolist()))


def _refuse_no_unicode(values: np.ndarray, name: str) -> None:
    """Raise LabelError for code points beyond Unicode, which NumPy stores and Python cannot read."""
    if values.dtype.itemsize == 0:
        return
    characters = np.ascontiguousarray(values).view(np.dtype("u4").newbyteorder(values.dtype.byteorder))
    if bool((characters > sys.maxunicode).any()):
        raise LabelError("has texts that are not Unicode", argument=name, wanted="labels that np.save wrote")


def _of_values(values: list[Any], name: str) -> Labels:
    kinds = set(map(type, values))
    if kinds & {np.ndarray, Tensor}:
        values = [_array(row).tolist() if isinstance(row, np.ndarray | Tensor) else row for row in values]
    if not kinds <= _PLAIN:
        some_sets = any(isinstance(row, _COLLECTIONS) for row in values)
        values = _set_names(values, name) if some_sets else [_plain(label) for label in values]
    distinct = dict.fromkeys(values)
    types = set(map(type, distinct))
    missing = {label for label in _EMPTY if label in distinct}
    if float in types:
        missing |= {label for label in distinct if label != label}
    if missing:
        _refuse_missing(np.array([label in missing for label in values]), name)
    if len({kind if kind in (str, bytes) else float for kind in types}) > 1:
        values = _texts(distinct, values, name)
        distinct = dict.fromkeys(values)
    names = tuple(sorted(distinct))
    rank = {label: code for code, label in enumerate(names)}
    codes = np.fromiter(map(rank.__getitem__, values), dtype=np.int64, count=len(values))
    return Labels(torch.from_numpy(codes), names)


def _plain(label: Any) -> Any:
    """Return a label as a plain str, bytes or number; None if it is missing."""
    if _is_missing(label):
        return None
    if isinstance(label, np.generic) and label.dtype.kind not in "mM":
        label = label.item()
    if type(label) in _PLAIN:
        return label
    if isinstance(label, str):
        return str.__str__(label)  # of an enumeration the value
    kind = next((kind for kind in (bytes, int, float) if isinstance(label, kind)), str)
    return kind(label)


def _texts(distinct: Iterable[Any], values: list[Any], name: str) -> list[str]:
    """Return labels of different types as texts; raise LabelError if two of them have the same text."""
    texts = {label: _text(label) for label in distinct}
    first: dict[str, Any] = {}
    for label, text in texts.items():
        other = first.setdefault(text, label)
        if other is not label:
            a, b = (
                f"{quoted(one)} ({type(one).__name__}, row {values.index(one)})" for one in (other, label)
            )
            raise LabelError(
                f"has labels of different types with the same text, {a} and {b}",
                argument=name,
                wanted="one type",
                hint="convert them with [str(label) for label in labels], bytes with label.decode()",
            )
    return [texts[label] for label in values]


def _text(label: Any) -> str:
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else str(label)


def _array(values: Any) -> np.ndarray:
    """Return a tensor or NumPy scalar as an array, in a type NumPy has."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return (values.double() if values.is_floating_point() else values).numpy()
    return np.asarray(values)


def _to_numpy(column: Any) -> np.ndarray:
    try:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    except TypeError:
        return np.asarray(column.to_numpy())


def is_indicator(rows: list[Any]) -> bool:
    """Return whether nested lists are scikit-learn's indicator matrix of 0 and 1, not sets of labels."""
    if not rows or not all(isinstance(row, list | tuple) and len(row) == len(rows[0]) > 1 for row in rows):
        return False
    return all(isinstance(cell, int) and cell in (0, 1) for row in rows for cell in row)


def _of_indicator(matrix: np.ndarray, name: str) -> Labels:
    """Return labels from an indicator matrix: each distinct set of columns is one label."""
    _refuse_missing(np.asarray(np.ma.getmaskarray(matrix).any(axis=1)), name)
    if not np.isin(matrix, (0, 1)).all():
        raise LabelError(
            f"has {matrix.shape[1]} columns",
            argument=name,
            wanted="one label a row, or a matrix of 0 and 1",
        )
    distinct, codes = np.unique(np.asarray(matrix), axis=0, return_inverse=True)
    names = [_set_name(np.flatnonzero(row).tolist()) for row in distinct]
    return _of_values([names[code] for code in codes.reshape(-1).tolist()], name)


def _set_names(rows: list[Any], name: str) -> list[str | None]:
    """Return a name for each set of labels, None if a label is missing; one label is a set of one."""
    try:
        sets = [frozenset(row) if isinstance(row, _COLLECTIONS) else frozenset([row]) for row in rows]
    except TypeError as error:
        raise LabelError(
            f"has sets of labels that hold lists or objects ({error})",
            argument=name,
            wanted="texts or numbers in each",
        ) from None
    names = {members: _set_name(members) for members in dict.fromkeys(sets)}
    return [names[members] for members in sets]


def _set_name(members: Iterable[Any]) -> str | None:
    if any(type(label) is not str and _is_missing(label) for label in members):
        return None
    names = sorted({str(label) for label in members})
    if any("," in name or "}" in name for name in names):  # where plain names could be taken for others
        names = [repr(name) for name in names]
    return "{" + ", ".join(names) + "}"


def _is_missing(label: Any) -> bool:
    """Return whether a label is None, masked, pandas' NA, NaN of any type or NaT."""
    if label is None or label is np.ma.masked or type(label).__name__ == "NAType":
        return True
    if isinstance(label, Decimal):
        return label.is_nan()  # a signalling one cannot even be compared
    return bool(label != label)


def _refuse_missing(missing: np.ndarray, name: str) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        raise LabelError(
            f"is missing for {some_rows(rows.tolist(), len(rows), len(missing))}",
            argument=name,
            wanted="one label for each vector",
            hint=["drop these rows", "give them a label of their own"],
        )
