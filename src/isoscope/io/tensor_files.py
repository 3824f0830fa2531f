""".safetensors, memory-mapped, and .pt under torch's weights-only reader. Neither runs code."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import block_rows, check_real
from isoscope.errors import FileError, InputError
from isoscope.io.addresses import FilePath
from isoscope.io.chunks import Chunk, Reader, check_shape, choose
from isoscope.io.files import SAVE_AGAIN, first_bytes, is_gzip
from isoscope.io.formats import reads
from isoscope.io.raw_rows import RawRows
from isoscope.io.structure import Field, check_distinct, check_held, declared_bytes, leaves, parse_json

# types by the name they have in a .safetensors file, and how NumPy reads them there: the header promises
# little-endian numbers; bfloat16, unknown to NumPy, is read as 16 bits and viewed
_STORED = {
    "F16": (torch.float16, "<f2"),
    "BF16": (torch.bfloat16, "<i2"),
    "F32": (torch.float32, "<f4"),
    "F64": (torch.float64, "<f8"),
    "I8": (torch.int8, "<i1"),
    "U8": (torch.uint8, "<u1"),
    "I16": (torch.int16, "<i2"),
    "I32": (torch.int32, "<i4"),
    "I64": (torch.int64, "<i8"),
}
_MAX_HEADER_BYTES = 100 * 10**6  # as safetensors itself allows
_CHUNK_BYTES = 2**20
LABEL_NAMES = "label_names"  # the metadata entry of a .safetensors file that spells out its label codes


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of a .safetensors file by its header.

    Attributes:
        dtype: its type, as the file calls it.
        shape: its lengths.
        offset: where its bytes begin in the file.
        n_bytes: how many there are.
    """

    dtype: str
    shape: tuple[int, ...]
    offset: int
    n_bytes: int

    def rows(self, path: FilePath, *, uncached: bool = False) -> tuple[torch.dtype, RawRows]:
        """Return its type, and its numbers as rows; raise FileError over a type that NumPy does not read."""
        if self.dtype not in _STORED:
            raise FileError(f"{path} holds {self.dtype} values", wanted=f"{', '.join(_STORED)} at an address")
        kind, letters = _STORED[self.dtype]
        if declared_bytes(self.shape, kind.itemsize, str(path)) != self.n_bytes:
            raise FileError(f"{path} has {self.n_bytes:,} bytes for a tensor of shape {self.shape}")
        return kind, RawRows(path, self.offset, np.dtype(letters), math.prod(self.shape[1:]), uncached)


@reads(".safetensors", takes=("key", "unpack_bits"))
class SafetensorsReader(Reader):
    """A .safetensors file: one 2-d tensor, mapped, or read by ranges; any other tensor can be the labels."""

    def open(self) -> None:
        """Read the header and choose a tensor."""
        _refuse_gzip(self)
        if isinstance(self.path, Path):
            with self._opened():  # which looks through the whole header
                pass
        self._tensors, self._about = self._header()
        shapes = {name: tensor.shape for name, tensor in self._tensors.items()}
        self._key = choose(self.request, shapes, [name for name, shape in shapes.items() if len(shape) == 2])
        what, chosen = f"{self.path} ({self._key})", self._tensors[self._key]
        self.seeks = chosen.dtype in _STORED
        self.n_rows, self.n_dims = check_shape(chosen.shape, what)
        if isinstance(self.path, Path):
            _check_tensor(self._tensor(self._key), what)
        self.columns = tuple(name for name in self._tensors if name != self._key)

    def pieces(self) -> Iterator[Chunk]:
        """Yield the whole tensor as one memory map."""
        if isinstance(self.path, Path):
            yield Chunk(self._tensor(self._key))
        else:
            yield from self.rows(0, None, block_rows(self.n_dims))

    def rows(self, start: int, stop: int | None, step: int) -> Iterator[Chunk]:
        """Read rows into memory, so that a large file is never mapped whole."""
        stop = self.n_rows if stop is None else stop
        if not self.seeks and isinstance(self.path, Path):
            yield Chunk(self._tensor(self._key)[start:stop])
            return
        kind, stored = self._tensors[self._key].rows(self.path, uncached=self.request.uncached)
        for numbers in stored.read(start, stop or 0, step):
            yield Chunk(torch.from_numpy(numbers).view(kind))

    def label_values(self, column: str) -> Any:
        """Read another tensor of the file; codes are replaced by names where the file has them."""
        codes, names = self._tensor(column), self._about.get(LABEL_NAMES)
        if names is None or column != "labels" or codes.dtype != torch.int64:
            return codes
        spelled = parse_json(names.text(), f"{self.path} ({LABEL_NAMES})").entries()
        if bool(((codes < 0) | (codes >= len(spelled))).any()):
            raise FileError(f"{self.path} has labels without a name", wanted=f"codes below {len(spelled)}")
        return [spelled[code].value for code in codes.tolist()]

    def _header(self) -> tuple[dict[str, StoredTensor], dict[str, Field]]:
        """Return every tensor by name, and the metadata."""
        with self.path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            held = min(self.path.stat().st_size - 8, _MAX_HEADER_BYTES)
            check_held(length, held, f"{self.path} (its header)")
            header = parse_json(file.read(length), str(self.path), max_bytes=_MAX_HEADER_BYTES).mapping()
        about = header.pop("__metadata__", None)
        tensors = {}
        for name, entry in sorted(header.items()):
            first, last = (place.whole() for place in entry["data_offsets"].entries(at_least=2, at_most=2))
            check_held(8 + length + last, self.path.stat().st_size, f"{self.path} ({name})")
            shape = tuple(size.whole() for size in entry["shape"].entries())
            tensors[name] = StoredTensor(entry["dtype"].text(), shape, 8 + length + first, last - first)
        return tensors, about.mapping() if about else {}

    def _opened(self) -> Any:
        from safetensors import safe_open

        return safe_open(str(self.path), framework="pt")

    def _tensor(self, name: str) -> Tensor:
        """Read a whole tensor; a file on this machine is mapped into memory."""
        if isinstance(self.path, Path):
            with self._opened() as file:
                tensor: Tensor = file.get_tensor(name)
                return tensor
        shape = self._tensors[name].shape
        kind, stored = self._tensors[name].rows(self.path)
        length = shape[0] if shape else 1
        (numbers,) = stored.read(0, length, length) if length else (np.empty(0, stored.dtype),)
        return torch.from_numpy(numbers).view(kind).reshape(shape)


@reads(".pt", ".pth", takes=("key", "unpack_bits"), by_ranges=False)
class TorchReader(Reader):
    """A .pt file: a tensor, or a (nested) dict with one 2-d tensor; its other entries can be labels."""

    def open(self) -> None:
        """Map the archive and choose the tensor with the vectors."""
        _refuse_gzip(self)
        self._archive = TorchArchive(self.here)
        self._entries = dict(leaves(self._load(), str(self.path)))
        tensors = {name: value for name, value in self._entries.items() if isinstance(value, Tensor)}
        self._archive.check_sizes(tensors.values())
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        # a file with one tensor in it has no name to choose by; its shape is then what is wrong
        candidates = list(shapes) if len(shapes) == 1 else [name for name in shapes if len(shapes[name]) == 2]
        key = choose(self.request, shapes, candidates)
        self._vectors = tensors[key].detach()
        self.n_rows, self.n_dims = _check_tensor(
            self._vectors, f"{self.path} ({key})" if key else str(self.path)
        )
        self.columns = tuple(name for name in self._entries if name not in (key, ""))

    def pieces(self) -> Iterator[Chunk]:
        """Yield the whole tensor as one memory map, after its checksum is compared."""
        self._archive.check(self._vectors.untyped_storage().nbytes())
        yield Chunk(self._vectors)

    def label_values(self, column: str) -> Any:
        """Read another entry of the dict: a list, or a tensor after its checksum is compared."""
        values = self._entries[column]
        if isinstance(values, Tensor) and _is_stored(values):
            self._archive.check(values.untyped_storage().nbytes())
        return values

    def _load(self) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch muses about protocols; what matters it raises
                return torch.load(self.here, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:
            if "weights_only" in str(error) or "WeightsUnpickler" in str(error):
                raise FileError(
                    f"{self.path} holds Python objects besides tensors; {SAVE_AGAIN}, "
                    "or torch.save the tensor alone"
                ) from error
            raise


class TorchArchive:
    """The zip archive that torch.save writes, members as they are; torch does not read their checksums."""

    def __init__(self, path: Path) -> None:
        # anything torch.save has written since 2020 is a zip archive; what is not is a bare pickle
        if first_bytes(path, 4) != b"PK\x03\x04":
            raise FileError(f"{path} is a pickle, not an archive that torch.save wrote; {SAVE_AGAIN}")
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self._members = archive.infolist()
        check_distinct((member.filename for member in self._members), str(path))
        for member in self._members:
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise FileError(
                    f"{path} ({member.filename}) is compressed", wanted="an archive that torch.save wrote"
                )
        self._check([member for member in self._members if "/data/" not in member.filename])

    def check_sizes(self, tensors: Iterable[Tensor]) -> None:
        """Raise FileError where a tensor has no member of its size: mapped, it would read on beyond one."""
        stored = [tensor.untyped_storage() for tensor in tensors if _is_stored(tensor)]
        storages = {(storage.data_ptr(), storage.nbytes()) for storage in stored}
        missing = Counter(n_bytes for _, n_bytes in storages if n_bytes)
        missing.subtract(member.file_size for member in self._members if "/data/" in member.filename)
        if max(missing.values(), default=0) > 0:
            raise FileError(
                f"{self.path} has fewer bytes than its tensors say", hint="check that it is not truncated"
            )

    @cache  # noqa: B019 - as long as the reader
    def check(self, n_bytes: int) -> None:
        """Raise FileError where a tensor of this size is not as it was written."""
        self._check([member for member in self._members if member.file_size == n_bytes])

    def _check(self, members: list[zipfile.ZipInfo]) -> None:
        with zipfile.ZipFile(self.path) as archive:
            for member in members:
                if member.CRC == 0:  # torch can be told to write none
                    continue
                with archive.open(member) as file:
                    while file.read(_CHUNK_BYTES):  # zipfile compares the checksum at the end
                        pass


def _is_stored(tensor: Tensor) -> bool:
    """Whether a tensor's numbers lie in a storage of its own kind: not sparse, not without any."""
    return tensor.layout == torch.strided and not tensor.is_meta


def _check_tensor(tensor: Tensor, what: str) -> tuple[int, int]:
    try:
        check_real(tensor, name=what)
    except InputError as error:
        raise FileError(error.problem, hint=error.hint) from None
    shape = check_shape(tuple(tensor.shape), what)
    # an expanded tensor claims rows that the file does not hold
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise FileError(
            f"is an expanded view of shape {shape}",
            argument=what,
            wanted="stored rows",
            hint="save X.contiguous()",
        )
    return shape


def _refuse_gzip(reader: Reader) -> None:
    if is_gzip(reader.path):
        raise FileError(f"{reader.path} is compressed and cannot be memory-mapped", hint="gunzip it first")
