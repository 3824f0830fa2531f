"""Small files whose headers lie: each would hang, swell or confuse a reader that believes it.

VECTORS are files to be measured, LABELS and WEIGHTS files of what is known of rows. Each entry maps a file's
name to the function that writes it. All must be refused in one line.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

Writer = Callable[[Path], None]
HUGE = 6_000_000_000  # rows that no file here has
BOMB_BYTES = 128 * 2**20  # beyond the bound, and far beyond its packed size


def npy_bytes(shape: tuple[int, ...], dtype: str, body: bytes = b"", *, fortran: bool = False) -> bytes:
    """Return a .npy file whose header claims any shape and type."""
    header = f"{{'descr': {dtype!r}, 'fortran_order': {fortran}, 'shape': {shape!r}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def write_npy(path: Path, shape: tuple[int, ...], dtype: str, body: bytes = b"") -> None:
    """Write a .npy file whose header claims any shape and type."""
    path.write_bytes(npy_bytes(shape, dtype, body))


def write_npz(path: Path, **members: bytes) -> None:
    """Write a .npz archive of members as they are given."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def deflated(head: bytes, n_zeros: int, unit: bytes = b"\0") -> bytes:
    """Return a raw deflate stream of `head`, then about `n_zeros` bytes of a repeated unit."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    mebibyte = unit * (2**20 // len(unit))
    again = packer.compress(mebibyte) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + again * (n_zeros // len(mebibyte)) + packer.flush(zlib.Z_FINISH)


def write_npz_bomb(path: Path, n_bytes: int = BOMB_BYTES, *, fortran: bool = False) -> None:
    """Write a .npz whose only array unpacks to `n_bytes` of zeros; its checksum is wrong, at the very end."""
    n_dims = 128
    head = npy_bytes((n_bytes // (4 * n_dims), n_dims), "<f4", fortran=fortran)
    packed = deflated(head, n_bytes)
    # the header of a stored member becomes that of a deflated one
    name = b"x.npy"
    size = len(head) + n_bytes
    common = struct.pack("<HHHHHIII", 20, 0, 8, 0, 0x21, 0, len(packed), size)
    local = b"PK\x03\x04" + common + struct.pack("<HH", len(name), 0) + name
    central = b"PK\x01\x02" + struct.pack("<H", 20) + common
    central += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    at = len(local) + len(packed)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), at, 0)
    path.write_bytes(local + packed + central + end)


def write_gzip_bomb(path: Path, line: bytes, n_bytes: int = BOMB_BYTES) -> None:
    """Write a .gz that unpacks to about `n_bytes` of the same line."""
    path.write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + deflated(line, n_bytes, line) + bytes(8))


def safetensors_bytes(header: Any, body: bytes = b"", *, length: int | None = None) -> bytes:
    """Return a .safetensors file of any header, which may claim another length."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + body


def write_safetensors(path: Path, dtype: str, shape: list[int], n_bytes: int) -> None:
    """Write a .safetensors file of one tensor of any type and shape, with so many bytes behind the header."""
    header = {"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, n_bytes]}}
    path.write_bytes(safetensors_bytes(header, bytes(range(n_bytes))))


def write_shared_dicts(path: Path, depth: int = 40) -> None:
    """Write a .pt of 2^depth entries in a few kilobytes: each dict holds the next one twice."""
    nested: Any = {"x": torch.ones(3, 2)}
    for _ in range(depth):
        nested = {"a": nested, "b": nested}
    torch.save(nested, path)


def write_deep_dicts(path: Path, depth: int = 5000) -> None:
    """Write a .pt of dicts one in another."""
    with zipfile.ZipFile(path, "w") as archive:
        pickled = b"\x80\x02" + b"}X\x01\0\0\0a" * depth + b"}" + b"s" * depth + b"."
        archive.writestr("a/data.pkl", pickled)
        archive.writestr("a/byteorder", "little")
        archive.writestr("a/version", "3\n")


def write_meta_tensor(path: Path) -> None:
    """Write a .pt of a tensor without data."""
    torch.save(torch.empty(5, 3, device="meta"), path)


def write_torch(path: Path, dtype: torch.dtype) -> None:
    """Write a .pt of a type that is no number by itself."""
    torch.save(torch.zeros(4, 4, dtype=torch.uint8).view(dtype), path)


def write_lines(path: Path, line: str, n_lines: int = 20) -> None:
    """Write the same line again and again."""
    path.write_text(f"{line}\n" * n_lines)


def write_parquet_bomb(path: Path, n_rows: int = 4_000_000) -> None:
    """Write a Parquet file of a few kilobytes with as many rows as asked for, all alike."""
    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int8)), pa.array([0.0], pa.float32()))
    pq.write_table(pa.table({"x": one, "y": one}), path, compression="zstd")


VECTORS: dict[str, Writer] = {
    "negative.npy": partial(write_npy, shape=(-1, 4), dtype="<f4", body=bytes(160)),
    "rows.npy": partial(write_npy, shape=(HUGE, 4), dtype="<f4", body=bytes(160)),
    "overflow.npy": partial(write_npy, shape=(2**62, 2**62), dtype="<f4", body=bytes(160)),
    "empty-rows.npy": partial(write_npy, shape=(2**62, 0), dtype="<f4"),
    "no-bytes.npy": partial(write_npy, shape=(HUGE, 4), dtype="|V0"),
    "overflow.npz": partial(write_npz, x=npy_bytes((2**62, 2**62), "<f4", bytes(64))),
    "negative.npz": partial(write_npz, x=npy_bytes((-4, -4), "<f4", bytes(64))),
    "empty-rows.npz": partial(write_npz, x=npy_bytes((2**62, 0), "<f4")),
    "bomb.npz": write_npz_bomb,
    "bomb-fortran.npz": partial(write_npz_bomb, fortran=True),
    "bomb.csv.gz": partial(write_gzip_bomb, line=b"0," * 127 + b"0\n"),
    "bomb.tsv.gz": partial(write_gzip_bomb, line=b"0\t" * 127 + b"0\n"),
    "bomb.vec.gz": partial(write_gzip_bomb, line=b"w" + b" 0" * 128 + b"\n"),
    "bomb.bin.gz": partial(write_gzip_bomb, line=b"10000000 3\n" + b"w " + bytes(12)),
    "bomb.parquet": write_parquet_bomb,
    "fp4.safetensors": partial(write_safetensors, dtype="F4", shape=[4, 4], n_bytes=8),
    "fp6.safetensors": partial(write_safetensors, dtype="F6_E2M3", shape=[4, 4], n_bytes=12),
    "unknown.safetensors": partial(write_safetensors, dtype="Q7", shape=[4, 4], n_bytes=16),
    "overflow.safetensors": partial(write_safetensors, dtype="F32", shape=[2**62, 4], n_bytes=16),
    "empty-rows.safetensors": partial(write_safetensors, dtype="F32", shape=[2**62, 0], n_bytes=0),
    "header.safetensors": lambda path: path.write_bytes(safetensors_bytes(b"{}", length=2**62)) and None,
    "deep.safetensors": lambda path: path.write_bytes(safetensors_bytes(b"[" * 100_000)) and None,
    "shared.pt": write_shared_dicts,
    "deep.pt": write_deep_dicts,
    "meta.pt": write_meta_tensor,
    "fp4.pt": partial(write_torch, dtype=torch.float4_e2m1fn_x2),
    "bits.pt": partial(write_torch, dtype=torch.bits8),
}
LABELS: dict[str, Writer] = {
    **{
        f"{kind}-{n}.npy": partial(write_npy, shape=(n,), dtype=dtype)
        for kind, dtype in (("bytes", "|S0"), ("void", "|V0"), ("text", "<U0"))
        for n in (11, HUGE)
    },
    "labels.npz": partial(write_npz, labels=npy_bytes((HUGE,), "|S0")),
    "objects.npz": partial(write_npz, labels=npy_bytes((11,), "|O")),
    "bomb.txt.gz": partial(write_gzip_bomb, line=b"a\n"),
    "bomb.json.gz": lambda path: write_gzip_bomb(path, b'["a"' + b',"a"' * 100),
    "bomb.npz": write_npz_bomb,
    "bomb.parquet": write_parquet_bomb,
}
WEIGHTS: dict[str, Writer] = {
    f"{number[:6]}.txt": partial(write_lines, line=number, n_lines=11)
    for number in ("1e308", "1e400", "-1e400", "nan", "1" * 400, "1e17", "x")
}
