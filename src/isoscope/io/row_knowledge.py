"""What a file, or another beside it, tells of each row: its label, and how often it counts."""

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
    """Labels or weights of the rows: where they are, and how they are read.

    Attributes:
        what: which of the two.
        asked: as they were asked for, so that the file can be opened again.
        where: where that is, for messages.
        read: the values as they stand; None where none were named.
    """

    what: str
    asked: LabelsFrom | WeightsFrom
    where: str = ""
    read: Callable[[], Any] | None = None

    @classmethod
    def of(cls, what: str, asked: LabelsFrom | WeightsFrom, reader: Reader) -> Known:
        """What is named, found among the columns of the file or beside it."""
        if asked is None:
            return cls(what, None)
        if isinstance(asked, Labels | Tensor):
            return cls(what, asked, "the caller", lambda: asked)
        read, where = locate(
            asked, of=reader.path, columns=reader.columns, read=reader.label_values, argument=what
        )
        return cls(what, asked, where, read)

    def of_rows(self, values: Labels | Tensor | None, start: int, stop: int) -> Known:
        """Some rows of the values, at hand."""
        if values is None:
            return self
        rows = known_rows(values, start, stop)
        return Known(self.what, rows, "the caller", lambda: rows)

    def values(self, n_rows: int | None = None) -> Any:
        """Labels, or weights as a tensor; checked as those of a whole space where n_rows is told."""
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
    """Labels or weights of rows start … stop−1, as a copy: a view is sent with all that lies beside it."""
    if isinstance(known, Labels):
        return Labels(known.codes[start:stop].clone(), known.names)
    return known[start:stop].clone()


def as_numbers(values: Any, *, name: str) -> Any:
    """Values of a column as numbers; a column of strings spells them."""
    if isinstance(values, Tensor):
        return values
    try:
        if isinstance(values, list):  # NumPy would make all texts as wide as the longest
            return np.fromiter(map(float, values), np.float64, len(values))
        return np.asarray(values).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            "has entries that are no numbers; wanted how often each row counts", argument=name
        ) from None
