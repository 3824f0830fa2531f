"""Zarr arrays, formats 2 and 3, in a folder: read chunk by chunk of rows. Never unpickled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.arrays import block_rows
from isoscope.errors import FileError, not_installed
from isoscope.io.chunks import Chunk, Reader, check_shape, choose
from isoscope.io.files import SAVE_AGAIN
from isoscope.io.formats import reads
from isoscope.io.numpy_files import check_numbers
from isoscope.io.structure import declared_bytes

_BLOSC_HEADER = 16  # bytes
# what claims less is harmless; what claims more must have a hundredth of it in the folder
_MAX_CLAIMED_BYTES = 256 * 2**20
_MAX_CLAIMED_CHUNKS = 2**20
_MAX_GROWTH = 100
# codecs whose decoding runs code or makes Python objects of bytes
_OBJECT_CODECS = ("pickle", "json2", "msgpack2", "vlen")


@reads(".zarr", takes=("key", "unpack_bits"), by_ranges=False)
class ZarrReader(Reader):
    """A .zarr folder: an array, or a group with one 2-d array; other arrays of the group can be labels."""

    def open(self) -> None:
        """Read the metadata, refuse what would be unpickled, and choose the array with the vectors."""
        arrays = self._arrays()
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        two_axes = [name for name, shape in shapes.items() if len(shape) == 2]
        key = choose(self.request, shapes, list(shapes) if len(shapes) == 1 else two_axes)
        self._vectors, what = arrays[key], f"{self.path} ({key})" if key else str(self.path)
        _refuse_objects(self._vectors, what)
        check_numbers(np.dtype(self._vectors.dtype), what)
        self.n_rows, self.n_dims = check_shape(tuple(self._vectors.shape), what)
        self.seeks = True  # chunks are files of their own
        self._others = {name: array for name, array in arrays.items() if name != key}
        self.columns = tuple(self._others)
        n_absent, n_chunks = count_absent(self.here, self._vectors, what)
        if n_absent:
            self.notes.append(
                f"{n_absent:,} of {n_chunks:,} chunks are not in the folder; "
                f"their numbers are the fill value, {self._vectors.fill_value}"
            )

    def pieces(self) -> Iterator[Chunk]:
        """Yield all rows, some chunks at a time."""
        yield from self.rows(0, None, block_rows(self.n_dims))

    def rows(self, start: int, stop: int | None, step: int) -> Iterator[Chunk]:
        """Yield rows start … stop−1 in whole chunks, so that none is decompressed twice."""
        stop = len_of(self._vectors) if stop is None else stop
        chunk = max(1, int(self._vectors.chunks[0]))
        step = max(1, step // chunk) * chunk
        first = start
        while first < stop:
            last = min((first // chunk) * chunk + step, stop)
            check_blosc(self.here, self._vectors, first, last)
            yield Chunk(np.asarray(self._vectors[first:last]))
            first = last

    def label_values(self, column: str) -> Any:
        """Read another array of the group."""
        array = self._others[column]
        _refuse_objects(array, f"{self.path} ({column})")
        count_absent(self.here, array, f"{self.path} ({column})")
        check_blosc(self.here, array, 0, len_of(array))
        return np.asarray(array[:])

    def _arrays(self) -> dict[str, Any]:
        zarr = _library(self.path)
        opened = zarr.open(str(self.path), mode="r")
        if not isinstance(opened, zarr.Group):
            return {"": opened}
        return {
            name: array for name, array in sorted(opened.members(max_depth=None)) if hasattr(array, "dtype")
        }


def count_absent(path: Path, array: Any, what: str) -> tuple[int, int]:
    """Return how many chunks, or shards, are not in the folder, and how many there should be.

    Raises:
        FileError: the metadata claim very much that is not there, in all or in one chunk.
    """
    folder, item_bytes = path / array.path, np.dtype(array.dtype).itemsize
    found = (file for file in folder.rglob("*") if file.is_file())
    sizes = {file.relative_to(folder).as_posix(): file.stat().st_size for file in found}
    lengths = tuple(array.shards or array.chunks)
    counts = [-(-size // max(1, step)) for size, step in zip(array.shape, lengths, strict=True)]
    n_chunks, n_bytes = math.prod(counts), declared_bytes(array.shape, item_bytes, what)
    is_large = n_bytes > _MAX_CLAIMED_BYTES or n_chunks > _MAX_CLAIMED_CHUNKS
    if is_large and n_chunks > _MAX_GROWTH * len(sizes):
        raise FileError(
            f"{what} claims {n_bytes:,} bytes in {n_chunks:,} chunks, but its folder has "
            f"{len(sizes):,} files",
            wanted=f"a file for at least one chunk in {_MAX_GROWTH}",
            hint=f"check that the shape {tuple(array.shape)} is right",
        )
    largest = max(sizes.values(), default=0)
    chunk_bytes = declared_bytes(lengths, item_bytes, what)
    if chunk_bytes > max(_MAX_CLAIMED_BYTES, _MAX_GROWTH * largest):
        raise FileError(
            f"{what} claims chunks of {chunk_bytes:,} bytes, but its largest file has {largest:,}",
            wanted=f"at most {_MAX_GROWTH} times as many",
            hint="save it with smaller chunks",
        )
    key = array.metadata.encode_chunk_key
    return sum(key(place) not in sizes for place in itertools.product(*map(range, counts))), n_chunks


def check_blosc(path: Path, array: Any, first: int, last: int) -> None:
    """Raise FileError over chunks of rows first … last−1 that are not as long as their headers say.

    Blosc believes its header, and reads past the end of a chunk that is cut short.
    """
    metadata = array.metadata
    outermost = getattr(metadata, "compressor", None) or (getattr(metadata, "codecs", None) or (None,))[-1]
    if "blosc" not in type(outermost).__name__.lower() or not array.shape:
        return
    counts = [-(-size // step) for size, step in zip(array.shape, array.chunks, strict=True)]
    n_bytes = math.prod(array.chunks) * np.dtype(array.dtype).itemsize
    rows = range(first // array.chunks[0], -(-last // array.chunks[0]))
    for place in itertools.product(rows, *map(range, counts[1:])):
        file = path / array.path / metadata.encode_chunk_key(place)
        if not file.is_file():
            continue
        with file.open("rb") as opened:
            header, size = opened.read(_BLOSC_HEADER), file.stat().st_size
        unpacked, packed = (int.from_bytes(header[at : at + 4], "little") for at in (4, 12))
        if len(header) < _BLOSC_HEADER or packed != size or unpacked > 2 * n_bytes + _BLOSC_HEADER:
            raise FileError(
                f"{file} is a chunk of {size:,} bytes that says it has {packed:,}, {unpacked:,} unpacked",
                wanted=f"{n_bytes:,} unpacked",
                hint="check that it is not truncated",
            )


def len_of(array: Any) -> int:
    """Return the number of rows."""
    return int(array.shape[0])


def _library(path: object) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise not_installed(f"{path}, a zarr folder,", "zarr", extra="scale", error=FileError) from error
    return zarr


def _refuse_objects(array: Any, what: str) -> None:
    """Raise FileError unless an array holds numbers or strings of fixed width, in codecs that are safe."""
    named = list(_names(array.metadata.to_dict()))
    if np.dtype(array.dtype).hasobject or any(bad in name for name in named for bad in _OBJECT_CODECS):
        raise FileError(f"holds pickled or Python objects; {SAVE_AGAIN}", argument=what)


def _names(value: Any) -> Iterator[str]:
    """Yield the name of every codec in an array's metadata, at any depth."""
    if isinstance(value, dict):
        yield from (str(value[key]).lower() for key in ("id", "name") if key in value)
        for entry in value.values():
            yield from _names(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _names(entry)
    elif hasattr(value, "codec_id"):
        yield str(value.codec_id).lower()
