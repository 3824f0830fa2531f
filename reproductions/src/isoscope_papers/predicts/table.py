"""The table of all numbers: one row for each space, corpus and metric or task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from isoscope.errors import FileError, InputError
from isoscope.io import write_atomically
from isoscope_papers.page import make_folder
from isoscope_papers.predicts.setups import SETUPS

FILE = "predicts.parquet"
TYPES = {
    "space": "category", "model": "category", "family": "category", "layer": "int8", "depth": "float32",
    "pooling": "category", "step": "int16", "correction": "category", "strength": "float32",
    "n_dims": "int16", "corpus": "category", "kind": "category", "name": "category", "value": "float32",
    "standard_error": "float32", "n": "int16",
}  # fmt: skip
_NAMES = [name for name, kind in TYPES.items() if kind == "category"]


@dataclass(frozen=True, eq=False)
class Spaces:
    """The rows of one model, or of several.

    Attributes:
        rows: the columns of `TYPES`.
    """

    rows: pd.DataFrame


def table_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the columns and types of the table."""
    return rows[list(TYPES)].astype(TYPES)


def keep(run: Spaces, path: Path) -> Path:
    """Write the rows of a run into the table beside `path`, in place of those of the same models."""
    make_folder(path.parent)
    table = path.parent / FILE
    parts = [run.rows.astype(dict.fromkeys(_NAMES, "str"))]
    if table.exists():
        earlier = _read(table).astype(dict.fromkeys(_NAMES, "str"))
        parts.append(earlier[~earlier["model"].isin(set(parts[0]["model"]))])
    rows = pd.concat(parts, ignore_index=True)
    order = {name: place for place, name in enumerate(SETUPS)}
    ranks = rows["model"].map(lambda name: order.get(name, len(order)))
    rows = table_of(rows.assign(rank=ranks).sort_values("rank", kind="stable"))
    return write_atomically(table, lambda place: _write(rows, place))


def _write(rows: pd.DataFrame, path: Path) -> None:
    rows.to_parquet(
        path, index=False, compression="zstd", compression_level=19,
        use_dictionary=[*_NAMES, "strength", "depth"],
        column_encoding={"value": "BYTE_STREAM_SPLIT", "standard_error": "BYTE_STREAM_SPLIT"},
    )  # fmt: skip


def load(folder: Path) -> list[Spaces]:
    """Read the table of a folder: one run for each model."""
    table = folder / FILE
    if not table.exists():
        raise InputError(f"{folder} has no runs of predicts", wanted=f"{FILE}, as --output writes it")
    rows = _read(table)
    return [Spaces(own) for _, own in rows.groupby("model", sort=False, observed=True)]


def _read(path: Path) -> pd.DataFrame:
    try:
        rows = pd.read_parquet(path)
        return table_of(rows)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path} does not hold a run of this study: {error}") from error


def joined(runs: Sequence[Spaces]) -> pd.DataFrame:
    """Return the rows of all runs, with names as text."""
    parts = [run.rows.astype(dict.fromkeys(_NAMES, "str")) for run in runs]
    return pd.concat(parts, ignore_index=True)
