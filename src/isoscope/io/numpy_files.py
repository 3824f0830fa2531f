""".npy, memory-mapped, and .npz, read member by member. Neither is ever unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from isoscope.arrays import block_rows
from isoscope.errors import FileError, ShapeError
from isoscope.io.addresses import FilePath
from isoscope.io.chunks import Chunk, Reader, check_shape, choose
from isoscope.io.files import SAVE_AGAIN, first_bytes, is_gzip, open_raw
from isoscope.io.formats import reads
from isoscope.io.raw_rows import RawRows
from isoscope.io.structure import check_distinct, check_growth, check_held, declared_bytes

NPY_MAGIC = b"\x93NUMPY"
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # as NumPy writes; others ask for memory by a claim


@reads(".npy", takes=("unpack_bits",))
class NpyReader(Reader):
    """A .npy file: mapped, never copied; at an address read row by row."""

    def open(self) -> None:
        """Check the header."""
        self.seeks = True
        self._member, self._offset = npy_header(self.path)
        check_numbers(self._member.dtype, str(self.path))
        self.n_rows, self.n_dims = check_shape(self._member.shape, str(self.path))

    def pieces(self) -> Iterator[Chunk]:
        """Yield the whole file as one memory map."""
        if isinstance(self.path, Path):
            yield Chunk(map_npy(self.path))
        else:
            yield from self.rows(0, None, block_rows(self.n_dims))

    def rows(self, start: int, stop: int | None, step: int) -> Iterator[Chunk]:
        """Read rows into memory, so that a large file is never mapped whole."""
        shape, dtype = self._member.shape, self._member.dtype
        stop = shape[0] if stop is None else stop
        if not self._member.fortran:
            stored = RawRows(self.path, self._offset, dtype, self.n_dims, self.request.uncached)
            yield from map(Chunk, stored.read(start, stop, step))
        elif isinstance(self.path, Path):
            yield Chunk(map_npy(self.path)[start:stop])  # in Fortran order a row is spread over the file
        else:
            with self.path.open("rb") as file:
                raw = file.read()
            yield Chunk(np.frombuffer(raw, dtype, offset=self._offset).reshape(shape, order="F")[start:stop])


@reads(".npz", takes=("key", "unpack_bits"))
class NpzReader(Reader):
    """A .npz file: one 2-d array of it, streamed; any other array can be the labels."""

    def open(self) -> None:
        """Read the members' headers and choose the one with the vectors."""
        self._members = npz_members(self.path)
        self.columns = tuple(self._members)
        shapes = {name: member.shape for name, member in self._members.items()}
        candidates = [name for name, member in self._members.items() if member.is_matrix]
        key = choose(self.request, shapes, candidates)
        self._vectors = self._members[key]
        check_numbers(self._vectors.dtype, f"{self.path} ({key})")
        self.n_rows, self.n_dims = check_shape(self._vectors.shape, f"{self.path} ({key})")
        self.columns = tuple(name for name in self._members if name != key)

    def pieces(self) -> Iterator[Chunk]:
        """Yield rows as they are decompressed; an array in Fortran order is read whole."""
        yield from map(Chunk, member_rows(self.path, self._vectors))

    def label_values(self, column: str) -> np.ndarray:
        """Read another array of the file."""
        return read_member(self.path, self._members[column])


@dataclass(frozen=True)
class Member:
    """One array of a .npz file, by its header alone."""

    file_name: str
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def is_matrix(self) -> bool:
        """Whether it could hold vectors."""
        return len(self.shape) == 2 and self.dtype.kind in "fiubc"

    def n_bytes(self, what: str) -> int:
        """Return the number of bytes that its shape implies."""
        return declared_bytes(self.shape, self.dtype.itemsize, what)


def map_npy(path: Path) -> np.ndarray:
    """Map a .npy file into memory."""
    npy_header(path)
    return np.lib.format.open_memmap(path, mode="r")


def npy_header(path: FilePath) -> tuple[Member, int]:
    """Read the header of a .npy file: its type, shape, and where the numbers begin. Pickles are refused."""
    if is_gzip(path):
        raise FileError(f"{path} is compressed and cannot be memory-mapped", hint="gunzip it first")
    magic = first_bytes(path, 6)
    if magic[:4] == b"PK\x03\x04":
        raise FileError(f"{path} is a .npz archive under another name", hint="rename it to .npz")
    if magic[:1] == b"\x80":
        raise FileError(f"{path} is a pickle, not a .npy file; {SAVE_AGAIN}")
    if magic != NPY_MAGIC:
        raise FileError(f"{path} does not begin as a .npy file does", wanted="a file that np.save wrote")
    with path.open("rb") as file:
        member = _header(file, path.name)
        offset = file.tell()
    _refuse_objects(member.dtype, str(path))
    n_bytes = member.n_bytes(str(path))
    check_held(n_bytes, path.stat().st_size - offset, str(path))
    if n_bytes == 0:  # an empty map cannot be made
        raise ShapeError(f"{path} is empty, shape {member.shape}", wanted="at least one value")
    return member, offset


def npz_members(path: FilePath) -> dict[str, Member]:
    """Return the arrays of a .npz file by name, from their headers."""
    if is_gzip(path):
        raise FileError(f"{path} is compressed twice", hint="gunzip it first")
    if first_bytes(path, 6) == NPY_MAGIC:
        raise FileError(f"{path} is a single array under another name", hint="rename it to .npy")
    with open_raw(path) as raw, zipfile.ZipFile(raw) as archive:
        check_distinct(archive.namelist(), str(path))
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return {name.removesuffix(".npy"): _member(archive, name, path) for name in names}


def read_member(path: FilePath, member: Member) -> np.ndarray:
    """Read one array of a .npz file."""
    what = _title(path, member.file_name)
    _refuse_objects(member.dtype, what)
    with open_raw(path) as raw, zipfile.ZipFile(raw) as archive, archive.open(member.file_name) as file:
        _header(file, member.file_name)
        array = np.frombuffer(_exactly(file, member.n_bytes(what)), dtype=member.dtype)
        return array.reshape(member.shape, order="F" if member.fortran else "C")


def member_rows(path: FilePath, member: Member) -> Iterator[np.ndarray]:
    """Yield a 2-d array of a .npz file in blocks of rows."""
    if member.fortran:
        yield read_member(path, member)
        return
    n, d = member.shape
    step = block_rows(d)
    with open_raw(path) as raw, zipfile.ZipFile(raw) as archive, archive.open(member.file_name) as file:
        _header(file, member.file_name)
        for start in range(0, n, step):
            rows = min(step, n - start)
            numbers = _exactly(file, rows * d * member.dtype.itemsize)
            yield np.frombuffer(numbers, dtype=member.dtype).reshape(rows, d)


def check_numbers(dtype: np.dtype[Any], what: str) -> None:
    """Raise FileError unless an array of this type can be taken as real numbers."""
    _refuse_objects(dtype, what)
    if dtype.kind == "c":
        raise FileError(
            f"holds complex numbers ({dtype})",
            argument=what,
            wanted="real numbers",
            hint="save X.real or abs(X)",
        )
    if dtype.kind in "SU":
        raise FileError(
            f"holds strings ({dtype})",
            argument=what,
            wanted="numbers",
            hint=["save X.astype(float)", "pass it as labels"],
        )
    if dtype.kind not in "fiub":
        hint = "save X.astype(np.float32)"
        raise FileError(f"holds {dtype} values", argument=what, wanted="numbers", hint=hint)


def _refuse_objects(dtype: np.dtype[Any], what: str) -> None:
    if dtype.hasobject:
        raise FileError(
            f"holds pickled Python objects; {SAVE_AGAIN}, np.stack(X).astype(np.float32) "
            "(labels: np.asarray(y).astype(str))",
            argument=what,
        )


def _member(archive: zipfile.ZipFile, name: str, path: FilePath) -> Member:
    info, what = archive.getinfo(name), _title(path, name)
    if info.compress_type not in _PACKINGS:
        raise FileError(
            f"is compressed by method {info.compress_type}",
            argument=what,
            wanted="an archive that np.savez wrote",
        )
    check_growth(info.file_size, min(info.compress_size, path.stat().st_size), what, "save it as .npy")
    with archive.open(info) as file:
        member = _header(file, name)
        held = info.file_size - file.tell()
    if not member.dtype.hasobject:
        check_held(member.n_bytes(what), held, what)
    return member


def _title(path: FilePath, name: str) -> str:
    return f"{path} ({name.removesuffix('.npy')})"


def _header(file: Any, name: str) -> Member:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return Member(name, *read(file))


def _exactly(file: BinaryIO | Any, n_bytes: int) -> bytes:
    raw: bytes = file.read(n_bytes)
    if len(raw) < n_bytes:
        raise EOFError(f"{n_bytes - len(raw):,} bytes are missing at its end")
    return raw
