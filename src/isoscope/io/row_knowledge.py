"""Labels and weights of the rows of a file: from a column, another file, or the caller."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import InputError
from isoscope.io.chunks import Reader
from isoscope.io.label_files import locate
from isoscope.labels import Labels, as_labels
from isoscope.space import as_counts, as_weights

# a column or a file by name; or what is already at hand for these rows
LabelsFrom = str | os.PathLike[str] | Labels | None
WeightsFrom = str | os.PathLike[str] | Tensor | None


@dataclass(frozen=True, eq=False)
class Known:
    """Labels or weights of the rows of a file, and how they are read.

    Attributes:
        what: "labels" or "weights".
        asked: the argument, with which the file can be opened again.
        where: where the values are, for messages.
        read: reads the values; None where there are none.
    """

    what: str
    asked: LabelsFrom | WeightsFrom
    where: str = ""
    read: Callable[[], Any] | None = None

    @classmethod
    def of(cls, what: str, asked: LabelsFrom | WeightsFrom, reader: Reader) -> Known:
        """Find what is named among the columns of the file, or in a file of its own."""
        if asked is None:
            return cls(what, None)
        if isinstance(asked, Labels | Tensor):
            return cls(what, asked, "the caller", lambda: asked)
        read, where = locate(
            asked, of=reader.path, columns=reader.columns, read=reader.label_values, argument=what
        )
        return cls(what, asked, where, read)

    def of_rows(self, values: Labels | Tensor | None, start: int, stop: int) -> Known:
        """Return the labels or weights of some rows, in memory."""
        if values is None:
            return self
        rows = known_rows(values, start, stop)
        return Known(self.what, rows, "the caller", lambda: rows)

    def values(self, n_rows: int | None = None) -> Any:
        """Return labels, or weights as a tensor; with n_rows they are checked as those of a whole space."""
        if self.read is None:
            return None
        name, values = f"{self.what} ({self.where})", self.read()
        if self.what == "labels":
            return as_labels(values, n=n_rows, name=name)
        numbers = as_numbers(values, name=name)
        if n_rows is None:
            return as_weights(numbers, n=len(numbers), name=name)
        return as_counts(numbers, n=n_rows, name=name)


def at_hand(what: str, given: Any) -> Any:
    """Return labels or weights given as values in the type that files hold; a name or a path as it is.

    Raises:
        InputError: they are neither one value a row, nor the name of a column or a file.
    """
    if given is None or isinstance(given, str | os.PathLike):
        return given
    if what == "labels":
        return as_labels(given, name=what).to(torch.device("cpu"))
    numbers = torch.as_tensor(as_numbers(given, name=what)).flatten()
    return as_weights(numbers, n=len(numbers), name=what).cpu()


def known_rows(known: Any, start: int, stop: int) -> Any:
    """Return labels or weights of rows start … stop−1; a copy, since a view is pickled with all rows."""
    if isinstance(known, Labels):
        return Labels(known.codes[start:stop].clone(), known.names)
    return known[start:stop].clone()


def as_numbers(values: Any, *, name: str) -> Any:
    """Return the values of a column as numbers, parsed where they are strings."""
    if isinstance(values, Tensor):
        return values
    try:
        if isinstance(values, list):  # NumPy would make all texts as wide as the longest
            return np.fromiter(map(float, values), np.float64, len(values))
        return np.asarray(values).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            "has entries that are not numbers", argument=name, wanted="how often each row counts"
        ) from None
