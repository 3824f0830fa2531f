"""Damage to the structure of a file: header, members, metadata; its lengths and checksums are right again."""

from __future__ import annotations

import ast
import gzip
import io
import json
import random
import shutil
import struct
import zipfile
from pathlib import Path

from tests.fuzz.mutations import STRINGS, damaged, damaged_json, damaged_text, json_bytes
from tests.fuzz.vector_seeds import packed, rezipped

_TYPES = [
    "<f4",
    ">f4",
    "<f8",
    "<f2",
    "<i8",
    "<i4",
    "|i1",
    "|u1",
    "|b1",
    "<c8",
    "|O",
    "|S0",
    "|S8",
    "<U4",
    "|V0",
    "|V4",
    "<M8[D]",
    "<m8[s]",
    "<f16",
    "f4",
    "x",
    "[('a','<f4')]",
]


# what is damaged already, or nested too deep, to be damaged by its structure
_UNPARSED = (
    *(ValueError, KeyError, IndexError, struct.error, zipfile.BadZipFile, OSError, SyntaxError),
    RecursionError,
)


def mutate_file(path: Path, rng: random.Random, other: bytes = b"") -> str:
    """Damage a file in place, by bytes or by structure; what was done."""
    data = path.read_bytes()
    change = _STRUCTURES.get(_kind(path))
    if change is None or rng.random() < 0.45:
        what, data = damaged(data, rng, other)
    else:
        try:
            what, data = change(data, rng)
        except _UNPARSED:
            what, data = damaged(data, rng, other)
    path.write_bytes(data)
    return what


def _kind(path: Path) -> str:
    return path.suffix if path.name not in (".zarray", ".zgroup", ".zattrs") else ".json"


def mutate_folder(folder: Path, rng: random.Random, only: tuple[str, ...] = ()) -> str:
    """Damage a folder of files: one file's content, or which files there are."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    chosen = [path for path in files if path.suffix in only] or files
    path = rng.choice(chosen)
    change = rng.choice(["content"] * 7 + ["delete", "empty", "swap", "folder", "loop", "rename"])
    if change == "content":
        return f"{path.name}: {mutate_file(path, rng, rng.choice(files).read_bytes())}"
    if change == "swap":
        two = rng.choice(files)
        a, b = path.read_bytes(), two.read_bytes()
        path.write_bytes(b), two.write_bytes(a)
        return f"{path.name} and {two.name} swapped"
    if change == "empty":
        path.write_bytes(b"")
        return f"{path.name} emptied"
    if change == "rename":
        path.rename(path.with_name(rng.choice(("1²2", "x", "٣", "-", "a b")) + path.suffix))
        return f"{path.name} renamed"
    path.unlink()
    if change == "folder":
        path.mkdir()
    elif change == "loop":
        path.symlink_to(path.name)
    return f"{path.name}: {change}"


def _npy(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + length].decode())
    change = rng.choice(("shape", "shape", "descr", "fortran_order", "version", "key", "text"))
    if change == "shape":
        shape = list(header["shape"])
        numbers = (0, 1, -1, 2, 2**31, 2**40, 2**63, 10**30, 6_000_000_000, True, 1.5, "5", None)
        if shape and rng.random() < 0.7:
            shape[rng.randrange(len(shape))] = rng.choice(numbers)
        else:
            shape = rng.choice(([], [120], [2, 12, 5], [5, 24], [1] * 40, [0, 2**62]))
        header["shape"] = tuple(shape)
    elif change == "descr":
        kind = rng.choice(_TYPES)
        header["descr"] = ast.literal_eval(kind) if kind.startswith("[") else kind
    elif change == "fortran_order":
        header["fortran_order"] = rng.choice((True, 1, "no", None))
    elif change == "key":
        header[rng.choice(("more", "shape "))] = header.pop(rng.choice(list(header)))
    text = repr(header).encode()
    if change == "text":
        text = rng.choice(
            (b"[" * 3000, b"{" + b"'a':" * 500, b"1/0", b"9" * 9000, b"{'descr': '<f4'", b"\xff")
        )
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    version = rng.choice((b"\2\0", b"\4\0", b"\0\0", b"\1\1")) if change == "version" else data[6:8]
    return f"npy {change}", data[:6] + version + struct.pack("<H", len(text) % 2**16) + text + data[
        10 + length :
    ]


def _zip(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = [(name, file.read(name)) for name in file.namelist()]
    at = rng.randrange(len(members))
    name, content = members[at]
    change = rng.choice(("bytes", "header", "rename", "remove", "twice", "empty", "more", "bytes"))
    if change == "bytes":
        content = damaged(content, rng)[1]
    elif change == "header" and content[:6] == b"\x93NUMPY":
        content = _npy(content, rng)[1]
    elif change == "empty":
        content = b""
    elif change == "rename":
        name = rng.choice(("../" + name, "/etc/" + name, name + "\x1b[31m", name.upper(), "x", "é" + name))
    members[at] = (name, content)
    if change == "remove":
        del members[at]
    elif change == "twice":
        members.append((name, damaged(content, rng)[1]))
    elif change == "more":
        members.append((rng.choice(STRINGS).replace("\x00", "")[:200] + ".npy", content))
    return f"zip {change}", rezipped(members, compressed=rng.random() < 0.5)


def _safetensors(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    kinds = ("F64", "F16", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "F4", "F6_E2M3", "C64", "F32 ", "")
    if rng.random() < 0.3:
        names = [name for name in header if name != "__metadata__"]
        tensor = header[rng.choice(names)]
        tensor["dtype"], what = rng.choice(kinds), "dtype"
    else:
        what, header = damaged_json(header, rng)
    text = json_bytes(header, rng)
    return f"header {what}", struct.pack("<Q", len(text)) + text + data[8 + length :]


def _gzip(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    inner = gzip.decompress(data)
    change = rng.choice(("inside", "inside", "twice", "members", "trailing"))
    if change == "inside":
        return "gzip of damage", packed(damaged(inner, rng)[1])
    if change == "twice":
        return "gzip twice", packed(data)
    return f"gzip {change}", data + (data if change == "members" else b"junk")


def _json(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    what, value = damaged_json(json.loads(data), rng)
    return what, json_bytes(value, rng)


def _jsonl(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    lines = data.splitlines()
    at = rng.randrange(min(len(lines), rng.choice((1, len(lines)))))
    what, value = damaged_json(json.loads(lines[at]), rng)
    lines[at] = json_bytes(value, rng)
    return f"line {at}: {what}", b"\n".join(lines) + b"\n"


def _delimited(delimiter: str):
    return lambda data, rng: damaged_text(data.decode(), rng, delimiter)


_STRUCTURES = {
    ".npy": _npy,
    ".npz": _zip,
    ".pt": _zip,
    ".pth": _zip,
    ".safetensors": _safetensors,
    ".gz": _gzip,
    ".json": _json,
    ".jsonl": _jsonl,
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".txt": _delimited(" "),
    ".vec": _delimited(" "),
    ".glove": _delimited(" "),
}


def copy(source: Path, target: Path) -> Path:
    """Copy a file or a folder."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)
    return target
