"""Vectors to a file: written beside it first, then moved into place, so that no half file is ever left."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from isoscope.errors import FileError, InputError
from isoscope.io.atomic import write_atomically
from isoscope.io.files import reason
from isoscope.io.table_rows import TableRows, list_column
from isoscope.io.targets import BLOCKWISE, KINDS, check_target
from isoscope.io.tensor_files import LABEL_NAMES
from isoscope.space import Space


def save(space: Any, path: str | os.PathLike[str]) -> Path:
    """Write a Space, or any (n, d) array, to a file; the suffix says how. Returns the path.

    `.npy` takes the vectors alone. `.npz` takes `vectors`, `labels` and `texts`. `.safetensors` takes
    `vectors`, and `labels` as codes with their names in the metadata. `.parquet` takes the columns
    `vector`, `label` and `text`. bfloat16, which only .safetensors knows, is written as float32 elsewhere.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(argument="path", got=type(path), wanted="a path", hint="call save(X, path)")
    path = check_target(path, KINDS)
    space = space if isinstance(space, Space) else Space(space)
    write = _WHOLE.get(path.suffix.lower())
    if write is None:
        return write_blocks([space], path)[0]
    return write_atomically(path, lambda beside: write(space, beside))


def write_blocks(
    blocks: Iterable[Space], path: str | os.PathLike[str], *, table: TableRows | None = None
) -> tuple[Path, int]:
    """Write spaces one after another to a .npy or .parquet file; returns the path and the number of rows.

    No more than a block is in memory. `.npy` takes the vectors alone. `.parquet` takes every column of the
    `table` that the rows are from, in its order, else the columns `vector`, `label` and `text`. A failure
    leaves what was there before.
    """
    path = check_target(path, BLOCKWISE)
    n_rows = 0

    def counted() -> Iterator[Space]:
        nonlocal n_rows
        for block in blocks:
            n_rows += len(block)
            yield block

    def write(beside: Path) -> None:
        if path.suffix.lower() == ".npy":
            _write_npy(counted(), beside)
        else:
            _write_parquet(counted(), beside, table)

    return write_atomically(path, write), n_rows


def _write_npy(blocks: Iterator[Space], path: Path) -> None:
    """Write the header again once the number of rows is known: NumPy leaves room in it for any."""
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


def _write_parquet(blocks: Iterator[Space], path: Path, rows: TableRows | None) -> None:
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
    """Yield the vectors, and what is known of each."""
    import pyarrow as pa

    for block in blocks:
        columns = {"vector": list_column(_array(block))}
        if block.labels is not None:
            columns["label"] = pa.array(_label_names(block))
        if block.texts is not None:
            columns["text"] = pa.array(list(block.texts), pa.string())
        yield pa.table(columns)


def _whole_tables(blocks: Iterator[Space], rows: TableRows) -> Iterator[Any]:
    """Yield every column that the rows had, and labels that lay in a file of their own."""
    import pyarrow as pa

    first, again = itertools.tee(blocks)
    for block, table in zip(first, rows.tables(_array(one) for one in again), strict=True):
        if block.labels is None or rows.has_labels or "label" in table.column_names:
            yield table
        else:
            yield table.append_column("label", pa.array(_label_names(block)))


def _write_npz(space: Space, path: Path) -> None:
    arrays = {"vectors": _array(space)}
    if space.labels is not None:
        arrays["labels"] = np.array(_label_names(space))
    if space.texts is not None:
        arrays["texts"] = np.array(list(space.texts), dtype=str)
    with path.open("xb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _write_safetensors(space: Space, path: Path) -> None:
    from safetensors.torch import save_file

    tensors = {"vectors": space.vectors.detach().cpu().contiguous()}
    metadata = {}
    if space.labels is not None:
        tensors["labels"] = space.labels.codes.cpu().contiguous()
        metadata[LABEL_NAMES] = json.dumps(space.labels.names)
    save_file(tensors, path, metadata=metadata)


_WHOLE: dict[str, Callable[[Space, Path], None]] = {".npz": _write_npz, ".safetensors": _write_safetensors}


def _array(space: Space) -> np.ndarray:
    """Return a block's vectors, C-ordered; bfloat16, which NumPy does not know, as float32."""
    vectors = space.vectors.detach().cpu()
    wide = vectors.float() if vectors.dtype == torch.bfloat16 else vectors
    return np.ascontiguousarray(wide.numpy())


def _label_names(space: Space) -> list[Any]:
    assert space.labels is not None
    return [space.labels.names[code] for code in space.labels.codes.tolist()]
