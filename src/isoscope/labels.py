"""What is known of each row by name: one label, or a set of labels, as integer codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import LabelError, ShapeError


@dataclass(frozen=True, eq=False)
class Labels:
    """Codes 0 … K−1 for n rows, and the K names they stand for, sorted.

    codes: (n,) int64; names: K hashable values (str or int).
    """

    codes: Tensor
    names: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_labels(self) -> int:
        """K, the number of distinct labels."""
        return len(self.names)

    @cached_property
    def counts(self) -> Tensor:
        """(K,) how many rows carry each label, int64."""
        return torch.bincount(self.codes, minlength=self.n_labels)

    def to(self, device: torch.device) -> Labels:
        """The same labels with their codes on another device."""
        return self if self.codes.device == device else Labels(self.codes.to(device), self.names)

    def rows(self, start: int, stop: int) -> Labels:
        """The labels of rows start … stop−1, with all K names kept."""
        return Labels(self.codes[start:stop], self.names)

    def seen(self) -> Labels:
        """The same rows with only the names that occur among them; one object for every call."""
        return self._seen

    @cached_property
    def _seen(self) -> Labels:
        present = self.counts > 0
        if bool(present.all()):
            return self
        codes = (present.cumsum(0) - 1)[self.codes]
        names = tuple(name for name, occurs in zip(self.names, present.tolist(), strict=True) if occurs)
        return Labels(codes, names)


def as_labels(labels: Any, *, n: int | None = None, name: str = "labels") -> Labels:
    """Codes and names from any sequence of labels: strings, numbers, sets of labels, an indicator matrix.

    With several labels a row (an (n, L) matrix of 0 and 1, or a sequence of lists or sets), each
    distinct set of labels is one label. Missing labels are an error that names the rows.
    """
    if isinstance(labels, Labels):
        coded = labels
    else:
        values = _values(labels, name)
        _refuse_missing(values, name)
        names, codes = np.unique(values, return_inverse=True)
        coded = Labels(torch.from_numpy(codes.reshape(-1).astype(np.int64)), tuple(names.tolist()))
    if n is not None and len(coded) != n:
        raise ShapeError(f"{name} has {len(coded)} entries for {n} vectors; wanted one for each vector")
    return coded


def as_clusters(labels: Any, *, n: int, name: str = "labels") -> Labels:
    """Labels that describe clusters: at least two, and fewer than there are points."""
    coded = as_labels(labels, n=n, name=name).seen()
    check_clusters(coded.n_labels, n, coded.names, name=name)
    return coded


def check_clusters(n_labels: int, n: int, names: tuple[Any, ...], *, name: str = "labels") -> None:
    """Raise LabelError unless there are at least two labels, and fewer than points."""
    if n_labels < 2:
        raise LabelError(f"{name} has one label only ({names[0]!r}); wanted at least 2 to compare clusters")
    if n_labels >= n:
        raise LabelError(
            f"{name} gives every one of the {n} points its own label; wanted fewer labels than points"
        )


def _values(labels: Any, name: str) -> np.ndarray:
    """One sortable value a row."""
    if isinstance(labels, str | bytes):
        raise LabelError(f"{name} is one string; wanted a sequence with one label for each vector")
    if not isinstance(labels, torch.Tensor) and not hasattr(labels, "__iter__"):
        raise LabelError(f"{name} is {labels!r}; wanted a sequence with one label for each vector")
    if isinstance(labels, torch.Tensor):
        labels = labels.detach().cpu().numpy()
    elif hasattr(labels, "to_numpy"):  # pandas, polars, Arrow columns
        labels = _to_numpy(labels)
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] > 1:
        return _indicator_sets(labels, name)
    if not isinstance(labels, np.ndarray):
        labels = list(labels)
        if is_indicator(labels):
            return _indicator_sets(np.array(labels), name)
        if any(isinstance(row, list | tuple | set | frozenset | np.ndarray) for row in labels):
            return np.array([_set_name(row) for row in labels], dtype=object).astype(str)
        if any(row is None for row in labels):
            labels = np.array(labels, dtype=object)
    values = np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ShapeError(f"{name} has shape {values.shape}; wanted one label for each vector")
    if values.dtype.kind == "O":
        _refuse_missing(values, name)
        if any(isinstance(row, list | tuple | set | frozenset | np.ndarray) for row in values):
            return np.array([_set_name(row) for row in values], dtype=object).astype(str)
        values = values.astype(str)
    return values


def _to_numpy(column: Any) -> np.ndarray:
    try:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    except TypeError:
        return np.asarray(column.to_numpy())


def is_indicator(rows: list[Any]) -> bool:
    """Whether nested lists are a matrix of 0 and 1, as scikit-learn takes them, not sets of labels."""
    if not rows or not all(isinstance(row, list | tuple) and len(row) == len(rows[0]) > 1 for row in rows):
        return False
    return all(isinstance(cell, int) and cell in (0, 1) for row in rows for cell in row)


def _indicator_sets(matrix: np.ndarray, name: str) -> np.ndarray:
    """Each row of a 0/1 matrix as the name of the set of its columns."""
    if not np.isin(matrix, (0, 1)).all():
        raise LabelError(
            f"{name} has {matrix.shape[1]} columns; wanted one label a row, or a matrix of 0 and 1"
        )
    distinct, codes = np.unique(matrix, axis=0, return_inverse=True)
    names = np.array([_set_name(np.flatnonzero(row).tolist()) for row in distinct])
    return names[codes.reshape(-1)]


def _set_name(row: Iterable[Any]) -> str:
    if isinstance(row, str):
        row = [row]
    names = sorted(str(label) for label in set(row))
    if any("," in name or "}" in name for name in names):  # where plain names could be taken for others
        names = [repr(name) for name in names]
    return "{" + ", ".join(names) + "}"


def _is_missing(label: Any) -> bool:
    """None, NaN, and pandas' own NA and NaT, which equal nothing."""
    return (
        label is None
        or type(label).__name__ in ("NAType", "NaTType")
        or (isinstance(label, float) and label != label)
    )


def _refuse_missing(values: np.ndarray, name: str) -> None:
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        missing = np.array([_is_missing(row) for row in values], dtype=bool)
    elif values.dtype.kind in "US":
        missing = values == values.dtype.type("")
    else:
        return
    rows = np.flatnonzero(missing)
    if len(rows):
        shown = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
        raise LabelError(
            f"{name} is missing for {len(rows)} rows (row {shown}); wanted one label for each vector"
        )
