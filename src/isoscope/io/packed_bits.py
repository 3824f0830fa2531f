"""Bytes that may be packed bits: eight dimensions each, or one."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from isoscope.arrays import LARGEST_BYTE
from isoscope.errors import FileError, Setting
from isoscope.io.chunks import Request


def as_coordinates(vectors: Any, request: Request) -> Any:
    """Rows as they are, or unpacked as `request.unpack_bits` says; bytes that may be either are an error.

    Bits are unpacked from the highest down, as `numpy.packbits` packs them. Signed bytes (int8) count from
    −128, as sentence-transformers and others write binary embeddings.
    """
    is_bytes = vectors.dtype in (np.uint8, torch.uint8)
    if request.unpack_bits is None:
        largest = int(vectors.max()) if is_bytes and len(vectors) else 0
        if largest > LARGEST_BYTE:
            raise FileError(
                f"{request.path} holds bytes (uint8) up to {largest}: packed bits, or whole numbers?",
                hint=[Setting("unpack_bits", True), Setting("unpack_bits", False)],
            )
        return vectors
    if not request.unpack_bits:
        if not is_bytes:
            return vectors
        return vectors.astype(np.float32) if isinstance(vectors, np.ndarray) else vectors.float()
    array = np.asarray(vectors)
    if array.dtype == np.int8:
        array = (array.astype(np.int16) + 128).astype(np.uint8)
    if array.dtype != np.uint8:
        raise FileError(
            f"{request.path} holds {array.dtype} numbers; wanted bytes (uint8 or int8) to unpack",
            hint=Setting("unpack_bits", True, verb="leave out"),
        )
    return np.unpackbits(array, axis=1)
