"""Vectors to a file: written beside it first, then moved into place, so that no half file is ever left."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isoscope.errors import FileError
from isoscope.io.atomic import check_place, write_atomically
from isoscope.io.files import listed
from isoscope.io.tensor_files import LABEL_NAMES
from isoscope.space import Space


def save(space: Any, path: str | os.PathLike[str]) -> Path:
    """Write a Space, or any (n, d) array, to a file; the suffix says how. Returns the path.

    `.npy` takes the vectors alone. `.npz` takes `vectors`, `labels` and `texts`. `.safetensors` takes
    `vectors`, and `labels` as codes with their names in the metadata. `.parquet` takes the columns
    `vector`, `label` and `text`. bfloat16, which only .safetensors knows, is written as float32 elsewhere.
    """
    path = Path(path)
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise FileError(
            f"{path} is of a kind that is not written ({path.suffix!r}); wanted one of {listed(_WRITERS)}"
        )
    check_place(path)
    space = space if isinstance(space, Space) else Space(space)
    return write_atomically(path, lambda beside: write(space, beside))


def _write_npy(space: Space, path: Path) -> None:
    with path.open("xb") as file:
        np.save(file, _array(space), allow_pickle=False)


def _write_npz(space: Space, path: Path) -> None:
    arrays = {"vectors": _array(space)}
    names = _label_names(space)
    if names is not None:
        arrays["labels"] = np.array(names)
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


def _write_parquet(space: Space, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    vectors = _array(space)
    columns = {"vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])}
    names = _label_names(space)
    if names is not None:
        columns["label"] = pa.array(names)
    if space.texts is not None:
        columns["text"] = pa.array(list(space.texts), pa.string())
    pq.write_table(pa.table(columns), path, write_page_checksum=True)


_WRITERS: dict[str, Callable[[Space, Path], None]] = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
    ".parquet": _write_parquet,
}


def _array(space: Space) -> np.ndarray:
    vectors = space.vectors.detach().cpu()
    return (vectors.float() if vectors.dtype == torch.bfloat16 else vectors).numpy()


def _label_names(space: Space) -> list[Any] | None:
    if space.labels is None:
        return None
    return [space.labels.names[code] for code in space.labels.codes.tolist()]
