""".safetensors, memory-mapped, and .pt under torch's weights-only reader. Neither runs code."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.errors import FileError
from isoscope.io.chunks import Chunk, Reader, check_shape, choose
from isoscope.io.files import SAVE_AGAIN, first_bytes, is_gzip
from isoscope.io.raw_rows import RawRows

# the header promises little-endian numbers; bfloat16, unknown to NumPy, is read as 16 bits and viewed
_STORED = {
    torch.float16: "<f2",
    torch.bfloat16: "<i2",
    torch.float32: "<f4",
    torch.float64: "<f8",
    torch.int8: "<i1",
    torch.uint8: "<u1",
    torch.int16: "<i2",
    torch.int32: "<i4",
    torch.int64: "<i8",
}
LABEL_NAMES = "label_names"  # the metadata entry of a .safetensors file that spells out its label codes


class SafetensorsReader(Reader):
    """A .safetensors file: one 2-d tensor, mapped; any other tensor can be the labels."""

    def open(self) -> None:
        """Read the header and map the chosen tensor."""
        _refuse_gzip(self)
        self._shapes = self._read_shapes()
        key = choose(
            self.request, self._shapes, [name for name, shape in self._shapes.items() if len(shape) == 2]
        )
        self._key = key
        self._vectors = self._tensor(key)
        self.n_rows, self.n_dims = _check_tensor(self._vectors, f"{self.path} ({key})")
        self.columns = tuple(name for name in self._shapes if name != key)

    def pieces(self) -> Iterator[Chunk]:
        """The whole tensor as one mapped piece."""
        yield Chunk(self._vectors)

    @property
    def seeks(self) -> bool:
        """Rows lie one after another, in a type that NumPy reads too."""
        return self._vectors.dtype in _STORED

    def rows(self, start: int, stop: int | None, step: int) -> Iterator[Chunk]:
        """Rows read into memory, so that a large file is never mapped whole."""
        stop = len(self._vectors) if stop is None else stop
        kind = self._vectors.dtype
        if kind not in _STORED:
            yield Chunk(self._vectors[start:stop])
            return
        stored = RawRows(self.path, self._offset, np.dtype(_STORED[kind]), self.n_dims, self.request.uncached)
        for numbers in stored.read(start, stop, step):
            yield Chunk(torch.from_numpy(numbers).view(kind))

    @cached_property
    def _offset(self) -> int:
        """Where the tensor's bytes begin: after the header's length, the header, and what lies before."""
        with self.path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        return 8 + length + int(header[self._key]["data_offsets"][0])

    def label_values(self, column: str) -> Any:
        """Another tensor of the file, by name where the file spells its codes out."""
        with self._opened() as file:
            codes = file.get_tensor(column)
            names = (file.metadata() or {}).get(LABEL_NAMES)
        if names is None or column != "labels" or codes.dtype != torch.int64:
            return codes
        spelled = json.loads(names)
        return [spelled[code] for code in codes.tolist()]

    def _opened(self) -> Any:
        from safetensors import safe_open

        return safe_open(str(self.path), framework="pt")

    def _read_shapes(self) -> dict[str, tuple[int, ...]]:
        with self._opened() as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in sorted(file.keys())}

    def _tensor(self, key: str) -> Tensor:
        with self._opened() as file:
            tensor: Tensor = file.get_tensor(key)
            return tensor


class TorchReader(Reader):
    """A .pt file: a tensor, or a (nested) dict with one 2-d tensor; its other entries can be labels."""

    def open(self) -> None:
        """Map the archive and choose the tensor with the vectors."""
        _refuse_gzip(self)
        self._entries = _flat(self._load(), "")
        tensors = {name: value for name, value in self._entries.items() if isinstance(value, Tensor)}
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
        """The whole tensor as one mapped piece."""
        yield Chunk(self._vectors)

    def label_values(self, column: str) -> Any:
        """Another entry of the dict: a tensor or a list."""
        return self._entries[column]

    def _load(self) -> Any:
        # anything torch.save has written since 2020 is a zip archive; what is not is a bare pickle
        if first_bytes(self.path, 4) != b"PK\x03\x04":
            raise FileError(f"{self.path} is a pickle, not an archive that torch.save wrote; {SAVE_AGAIN}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch muses about protocols; what matters it raises
                return torch.load(self.path, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:
            if "weights_only" in str(error) or "WeightsUnpickler" in str(error):
                raise FileError(
                    f"{self.path} holds Python objects besides tensors; {SAVE_AGAIN}, "
                    "or torch.save the tensor alone"
                ) from error
            raise


def _flat(value: Any, prefix: str) -> dict[str, Any]:
    """A nested dict with dotted names, so that a checkpoint's tensors can be asked for by key."""
    if not isinstance(value, dict):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for name, entry in value.items():
        flat |= _flat(entry, f"{prefix}.{name}" if prefix else str(name))
    return flat


def _check_tensor(tensor: Tensor, what: str) -> tuple[int, int]:
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise FileError(
            f"{what} is sparse or quantized; wanted a dense tensor: save X.to_dense() or X.dequantize()"
        )
    if tensor.is_complex():
        raise FileError(
            f"{what} holds complex numbers ({tensor.dtype}); wanted real ones: save X.real or X.abs()"
        )
    shape = check_shape(tuple(tensor.shape), what)
    # an expanded tensor claims rows that the file does not hold
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise FileError(f"{what} is an expanded view, shape {shape}; wanted stored rows: save X.contiguous()")
    return shape


def _refuse_gzip(reader: Reader) -> None:
    if is_gzip(reader.path):
        raise FileError(
            f"{reader.path} is compressed; wanted a plain file, which is memory-mapped: gunzip it first"
        )
