"""HDF5 files, such as those of ann-benchmarks: one dataset holds the vectors, others a value a row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from isoscope.arrays import block_rows
from isoscope.errors import FileError, not_installed
from isoscope.io.chunks import Chunk, Reader, check_shape, choose
from isoscope.io.formats import reads
from isoscope.io.numpy_files import check_numbers
from isoscope.io.structure import check_growth, declared_bytes


@reads(".h5", ".hdf5", takes=("key", "unpack_bits"), by_ranges=False)
class Hdf5Reader(Reader):
    """A .h5 or .hdf5 file. Nothing outside the file is read: links and storage elsewhere are refused."""

    def open(self) -> None:
        """Choose the dataset with the vectors; datasets of one value a row can be labels."""
        with self._file() as file:
            datasets = _datasets(file)
            shapes = {name: tuple(data.shape) for name, data in datasets.items()}
            two_axes = [
                name for name, data in datasets.items() if data.ndim == 2 and data.dtype.kind in "biuf"
            ]
            self._key = choose(self.request, shapes, _without_neighbors(two_axes))
            data, what = datasets[self._key], f"{self.path} ({self._key})"
            check_numbers(np.dtype(data.dtype), what)
            self.n_rows, self.n_dims = check_shape(tuple(data.shape), what)
            n_bytes = declared_bytes(data.shape, data.dtype.itemsize, what)
            check_growth(n_bytes, self.path.stat().st_size, what, "save it as .npy")
            others = [name for name in shapes if name != self._key]
            self.columns = tuple(name for name in others if shapes[name] == (self.n_rows,))
        self.seeks = True

    def pieces(self) -> Iterator[Chunk]:
        """Yield all rows, a block at a time."""
        yield from self.rows(0, None, block_rows(self.n_dims))

    def rows(self, start: int, stop: int | None, step: int) -> Iterator[Chunk]:
        """Yield rows start … stop−1."""
        stop = self.n_rows if stop is None else stop
        assert stop is not None
        with self._file() as file:
            data = _inside(file, self._key)
            for first in range(start, stop, step):
                yield Chunk(np.asarray(data[first : min(first + step, stop)]))

    def label_values(self, column: str) -> Any:
        """Read another dataset; its strings are decoded."""
        with self._file() as file:
            data = _inside(file, column)
            return data.asstr()[:].tolist() if data.dtype.kind in "SO" else np.asarray(data[:])

    @contextmanager
    def _file(self) -> Iterator[Any]:
        try:
            import h5py
        except ImportError as error:
            raise not_installed(f"{self.path}", "h5py", extra="stores", error=FileError) from error
        with h5py.File(self.here, "r") as file:
            yield file


def _datasets(file: Any) -> dict[str, Any]:
    """Return all datasets by their paths in the file, which links to other files are not part of."""
    import h5py

    found: dict[str, Any] = {}

    def take(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            found[name] = _inside(file, name)

    file.visititems(take)  # follows no link out of the file
    return found


def _inside(file: Any, name: str) -> Any:
    """Return a dataset; raise FileError where its numbers lie in other files, which a stranger may choose."""
    data = file[name]
    if data.is_virtual or data.external:
        raise FileError(
            f"{file.filename} ({name}) keeps its numbers in other files",
            hint="copy them into one, with h5repack",
        )
    return data


def _without_neighbors(names: list[str]) -> list[str]:
    """Return those that may hold vectors: ann-benchmarks keeps neighbours and distances beside them."""
    if {"train", "test"} <= set(names):
        return [name for name in names if name == "train"]
    return names
