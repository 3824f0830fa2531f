"""The slice of every row, named by its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from isoscope.engine.source import Source
from isoscope.labels import Labels, as_labels

By = Labels | tuple[str, ...]  # the slice of every row, or the columns whose values name it


def columns_of_values(by: Any) -> dict[str, Any]:
    """Return values of several a row as columns: a row of two values has an order, and is no set."""
    rows = by
    if isinstance(by, list | tuple) and by and all(isinstance(row, tuple) for row in by):
        widths = {len(row) for row in by}
        if len(widths) == 1 and widths != {0}:
            return {f"column {place}": list(values) for place, values in enumerate(zip(*by, strict=True))}
    elif getattr(by, "ndim", 1) == 2 and by.shape[1] > 0:
        rows = np.asarray(by.detach().cpu() if hasattr(by, "detach") else by)
        return {f"column {place}": rows[:, place] for place in range(rows.shape[1])}
    return {"": rows}


def slices_of(source: Source, columns: Sequence[str] | Mapping[str, Any]) -> Labels:
    """Return the slice of every row, named by its values in these columns: "de, 3" for two of them.

    columns: names of columns of the source, or values by name.
    """
    read = columns.__getitem__ if isinstance(columns, Mapping) else source.column
    each = [as_labels(read(name), n=source.n_rows, name=f"by ({name})" if name else "by") for name in columns]
    codes, names = each[0].codes, [str(name) for name in each[0].names]
    if len(each) > 1:
        names = [_joinable(name) for name in names]
    for other in each[1:]:
        codes = codes * other.n_labels + other.codes
        values = [_joinable(str(name)) for name in other.names]
        names = [f"{first}, {second}" for first in names for second in values]
    return Labels(codes, tuple(names)).seen()


def _joinable(name: str) -> str:
    """Return a name that can be joined to others by commas, in quotes where it could be read as several.

    It depends on the name alone, so that blocks with other values name their slices alike.
    """
    return repr(name) if "," in name or name.startswith(("'", '"')) else name
