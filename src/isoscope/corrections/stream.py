"""Files of any size corrected block by block, and written as they come."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from isoscope.corrections.correction import Correction
from isoscope.engine.source import Source, Wrapped
from isoscope.errors import FileError
from isoscope.io.atomic import check_place, write_atomically
from isoscope.io.files import listed, reason
from isoscope.io.table_rows import TableRows, list_column
from isoscope.space import Space


class Corrected(Wrapped):
    """An opened file as a fitted correction makes it: read in blocks, again and again, like the file."""

    def __init__(self, source: Source, correction: Correction) -> None:
        super().__init__(source)
        self.correction = correction

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """The corrected rows in order, a Space a block."""
        return (self.correction.transform(block) for block in self.source.blocks(n_rows))

    def load(self) -> Space:
        """All corrected rows."""
        space: Space = self.correction.transform(self.source.load())
        return space


def write_blocks(
    blocks: Iterator[Space], path: str | os.PathLike[str], *, table: TableRows | None = None
) -> tuple[Path, int]:
    """Write spaces one after another to a .npy or .parquet file; returns the path and the number of rows.

    No more than a block is in memory. `.npy` takes the vectors alone. `.parquet` takes every column of the
    `table` that the rows are from, in its order, else the columns `vector`, `label` and `text`. A failure
    leaves what was there before.
    """
    path = check_target(path)
    write = partial(_write_parquet, rows=table) if path.suffix.lower() == ".parquet" else _write_npy
    n_rows = 0

    def counted() -> Iterator[Space]:
        nonlocal n_rows
        for block in blocks:
            n_rows += len(block)
            yield block

    return write_atomically(path, lambda beside: write(counted(), beside)), n_rows


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path, if `write_blocks` can write to it: known before long work begins."""
    path = Path(path)
    if path.suffix.lower() not in _KINDS:
        raise FileError(
            f"{path} is of a kind that is not written in blocks ({path.suffix!r}); "
            f"wanted one of {listed(_KINDS)}"
        )
    check_place(path)
    return path


def _write_npy(blocks: Iterator[Space], path: Path) -> None:
    """The header is written again once the number of rows is known: NumPy leaves room in it for any."""
    n_rows, about = 0, (0, np.dtype(np.float32))
    with path.open("xb") as file:
        for block in blocks:
            array = _array(block)
            if n_rows == 0:
                about = array.shape[1], array.dtype
                _write_header(file, 0, *about)
            array.tofile(file)
            n_rows += len(array)
        file.seek(0)
        _write_header(file, n_rows, *about)


def _write_header(file: BinaryIO, n_rows: int, n_dims: int, dtype: np.dtype) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n_rows, n_dims)}
    np.lib.format.write_array_header_1_0(file, header)


def _write_parquet(blocks: Iterator[Space], path: Path, *, rows: TableRows | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    try:
        for table in _bare_tables(blocks) if rows is None else _whole_tables(blocks, rows):
            writer = writer or pq.ParquetWriter(path, table.schema, write_page_checksum=True)
            writer.write_table(table)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FileError(f"a column cannot be written to Parquet: {reason(error)}") from error
    finally:
        if writer is not None:
            writer.close()


def _bare_tables(blocks: Iterator[Space]) -> Iterator[Any]:
    """The vectors, and what is known of each."""
    import pyarrow as pa

    for block in blocks:
        columns = {"vector": list_column(_array(block))}
        if block.labels is not None:
            columns["label"] = _labels(block)
        if block.texts is not None:
            columns["text"] = pa.array(list(block.texts), pa.string())
        yield pa.table(columns)


def _whole_tables(blocks: Iterator[Space], rows: TableRows) -> Iterator[Any]:
    """Every column that the rows had, and labels that lay in a file of their own."""
    first, again = itertools.tee(blocks)
    for block, table in zip(first, rows.tables(_array(one) for one in again), strict=True):
        if block.labels is None or rows.has_labels or "label" in table.column_names:
            yield table
        else:
            yield table.append_column("label", _labels(block))


def _labels(block: Space) -> Any:
    import pyarrow as pa

    assert block.labels is not None
    names = block.labels.names
    return pa.array([names[code] for code in block.labels.codes.tolist()])


_KINDS = (".npy", ".parquet")


def _array(space: Space) -> np.ndarray:
    """A block's vectors, C-ordered; bfloat16, which NumPy does not know, as float32."""
    vectors = space.vectors.detach().cpu()
    wide = vectors.float() if vectors.dtype == torch.bfloat16 else vectors
    return np.ascontiguousarray(wide.numpy())
