"""What a file, or another beside it, tells of each row: its label, and how often it counts."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np
from torch import Tensor

from isoscope.errors import InputError
from isoscope.io.chunks import Reader
from isoscope.io.label_files import locate_labels
from isoscope.labels import Labels

# a column or a file by name; or what is already at hand for these rows
LabelsFrom = str | os.PathLike[str] | Labels | None
WeightsFrom = str | os.PathLike[str] | Tensor | None


@dataclass(frozen=True, eq=False)
class RowKnowledge:
    """How labels and weights of the rows are read, and where from, in words.

    Attributes:
        asked: labels, weights and name as they were asked for, so that the file can be opened again.
        labels, weights: read the values; None where none were named.
        labels_from, weights_from: where that is, for messages.
        name: what the rows are called in tables, where not after their file.
    """

    asked: tuple[LabelsFrom, WeightsFrom, str | None]
    labels: Callable[[], Any] | None
    labels_from: str
    weights: Callable[[], Any] | None
    weights_from: str
    name: str | None

    @classmethod
    def of(
        cls, reader: Reader, labels: LabelsFrom, weights: WeightsFrom, name: str | None = None
    ) -> RowKnowledge:
        """What is named, found among the columns of the file or beside it."""
        read_labels, labels_from = _located(reader, labels, "labels")
        read_weights, weights_from = _located(reader, weights, "weights")
        asked = (labels, weights, name)
        return cls(asked, read_labels, labels_from, read_weights, weights_from, name)


def _located(
    reader: Reader, named: LabelsFrom | WeightsFrom, what: str
) -> tuple[Callable[[], Any] | None, str]:
    if named is None:
        return None, ""
    if isinstance(named, Labels | Tensor):
        return partial(_itself, named), "the caller"
    return locate_labels(named, path=reader.path, columns=reader.columns, read=reader.label_values, what=what)


def _itself(value: Any) -> Any:
    return value


@overload
def known_rows(known: Labels, start: int, stop: int) -> Labels: ...
@overload
def known_rows(known: Tensor, start: int, stop: int) -> Tensor: ...
def known_rows(known: Labels | Tensor, start: int, stop: int) -> Labels | Tensor:
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
            f"{name} has entries that are no numbers; wanted how often each row counts"
        ) from None
