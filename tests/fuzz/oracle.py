"""What a file of vectors holds by the format's own library, and its readings in extended precision.

A file is one of three things here: an array; invalid, which isoscope has to refuse unless the damage is in a
part that holds no vectors; or open, where reasonable readers differ and any clean answer will do.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

METRICS = ("isoscore", "mean_cosine", "mean_norm")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class InvalidError(Exception):
    """A file that holds no vectors, by its own library or by the letter of its format."""


class OpenError(Exception):
    """A file that may be taken in several ways."""


def array_in(path: Path) -> np.ndarray:
    """Read the (n, d) vectors of a file without isoscope; raise InvalidError or OpenError for none."""
    if path.is_dir() and path.suffix != ".zarr":
        return _shards(path)
    kinds = [suffix for suffix in path.suffixes if suffix in _READERS] or [path.suffix]
    kind = kinds[-1]
    if kind not in _READERS:
        raise OpenError(f"no oracle for {path.name}")
    try:
        X = _READERS[kind](path)
    except (InvalidError, OpenError):
        raise
    except Exception as error:
        raise InvalidError(f"{type(error).__name__}: {error}") from error
    if X.ndim != 2 or 0 in X.shape:
        raise InvalidError(f"shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise InvalidError(f"type {X.dtype}")
    if X.dtype.kind in "iub":
        raise OpenError("whole numbers: perhaps codes, not coordinates")
    if not np.isfinite(X).all():
        raise InvalidError("not finite")
    return X.astype(np.longdouble)


def _shards(folder: Path) -> np.ndarray:
    """The vectors of all files of a folder, whose names may be of one kind only."""
    paths = sorted(folder.iterdir())
    if len({path.suffix for path in paths}) != 1 or any(path.name.startswith(".") for path in paths):
        raise OpenError("files of several kinds")
    if len(paths) != 3:
        raise OpenError("another number of files is another folder")
    arrays = [array_in(path) for path in paths]
    if len({X.shape[1] for X in arrays}) != 1:
        raise InvalidError("files of several widths")
    return np.concatenate(arrays)


def readings(X: np.ndarray) -> dict[str, float | None]:
    """n, d and a few metrics by their definitions; None where one is undefined."""
    n, d = X.shape
    top = np.abs(X).max()
    unit = X / top if top > 0 else X
    centred = unit - unit.mean(axis=0)
    S = centred.T @ centred
    lengths = np.sqrt((unit**2).sum(axis=1))
    found: dict[str, float | None] = {"n": n, "d": d, "mean_norm": float(lengths.mean() * top)}
    share = S.trace() ** 2 / (S**2).sum() if (S**2).sum() > 0 else None
    found["isoscore"] = float((share - 1) / (d - 1)) if share is not None and d > 1 else None
    found["mean_cosine"] = None
    if n > 1 and lengths.min() > 0:
        units = unit / lengths[:, None]
        found["mean_cosine"] = float(((units.sum(axis=0) ** 2).sum() - n) / (n * (n - 1)))
    return found


def differs(name: str, ours: float | None, theirs: float | None) -> bool:
    """Whether a reading is another one than the oracle's; what either calls undefined is let pass."""
    if ours is None or theirs is None:
        return False
    if name in ("n", "d"):
        return ours != theirs
    scale = abs(theirs) if name == "mean_norm" else 1.0
    return not abs(ours - theirs) <= 2e-3 * scale + 1e-300


def _only(arrays: dict[str, Any]) -> np.ndarray:
    two = [np.asarray(value) for value in arrays.values() if np.ndim(value) == 2]
    if len(two) != 1:
        raise OpenError(f"{len(two)} arrays of two axes")
    return two[0]


def _npz(path: Path) -> np.ndarray:
    with np.load(path, allow_pickle=False) as file:
        if len(set(file.files)) < len(file.files):
            raise OpenError("a name twice")
        return _only({name: file[name] for name in file.files})


def _safetensors(path: Path) -> np.ndarray:
    from safetensors.torch import load_file

    tensors = load_file(path)
    return _only(
        {
            name: tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()
            for name, tensor in tensors.items()
        }
    )


def _torch(path: Path) -> np.ndarray:
    import torch

    def walk(value: Any, name: str) -> dict[str, Any]:
        if isinstance(value, torch.Tensor):
            return {name: value.detach().double().numpy() if value.is_floating_point() else value.numpy()}
        if isinstance(value, dict):
            return {k: v for key, entry in value.items() for k, v in walk(entry, f"{name}.{key}").items()}
        return {}

    return _only(walk(torch.load(path, weights_only=True), ""))


def _arrow(path: Path) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        table = pq.read_table(path, page_checksum_verification=True)
    elif path.read_bytes()[:6] == b"ARROW1":
        table = pyarrow.feather.read_table(str(path))
    else:
        with pa.ipc.open_stream(path.read_bytes()) as stream:
            table = stream.read_all()
    table.validate(full=True)
    listed = [name for name in table.column_names if pa.types.is_nested(table.schema.field(name).type)]
    if len(set(table.column_names)) < table.num_columns:
        raise OpenError("a column twice")
    if len(listed) > 1 or (not listed and [f"x{i}" for i in range(table.num_columns)] != table.column_names):
        raise OpenError(f"columns {table.column_names}")
    if listed:
        column = table.column(listed[0])
        if column.null_count:
            raise InvalidError("missing vectors")
        return np.array(column.to_pylist(), dtype=float)
    return np.array([column.to_numpy().astype(float) for column in table.columns]).T


def _text(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(str(error)) from error
    if "\x00" in text:
        raise OpenError("NUL")
    return text.removeprefix("\ufeff")


def _number(cell: str) -> float:
    if not _NUMBER.fullmatch(cell.strip(" ")):
        raise ValueError(cell)
    return float(cell)


def _delimited(path: Path) -> np.ndarray:
    text = _text(path)
    if '"' in text or "'" in text or "\r" in text or "#" in text:
        raise OpenError("quotes, comments or other line ends")
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise InvalidError("empty")
    delimiter = next((mark for mark in ("\t", ";", ",", " ") if mark in lines[-1]), ",")
    rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter))
    header = rows[0] if not all(_NUMBER.fullmatch(cell) for cell in rows[0]) else None
    if header is not None and header != [f"x{i}" for i in range(len(header))]:
        raise OpenError(f"header {header[:8]}")
    if header is None and rows[0] == [str(i) for i in range(len(rows[0]))]:
        raise OpenError("a header of numbers, or a row")
    body = rows[1:] if header else rows
    if len({len(row) for row in rows}) > 1:
        raise InvalidError("rows of several lengths")
    values = []
    for row in body:
        try:
            values.append([_number(cell) for cell in row])
        except ValueError as error:
            raise OpenError(f"no number: {error}") from error
    X = np.array(values)
    if X.ndim == 2 and any(_counts(column) for column in X.T):
        raise OpenError("a column that counts: an index, or a dimension")
    return X


def _counts(column: np.ndarray) -> bool:
    """Whether a column holds whole numbers that are all different, as an index does."""
    return bool((column == np.round(column)).all()) and len(set(column)) == len(column)


def _words(path: Path) -> np.ndarray:
    lines = [line for line in _text(path).split("\n") if line]
    if any(set("\r\t\u2028\x0b\x0c\x1c\x1d\x1e\x85\xa0") & set(line) for line in lines):
        raise OpenError("other separators")
    rows = [line.rstrip(" ").split(" ") for line in lines]
    if len(rows[0]) == 2:
        n, d = (int(cell) for cell in rows.pop(0))
        if n != len(rows) or any(len(row) != d + 1 for row in rows):
            raise InvalidError("not what the first line promises")
    if len({len(row) for row in rows}) > 1:
        raise OpenError("a word with blanks, or rows of several lengths")
    try:
        return np.array([[_number(cell) for cell in row[1:]] for row in rows])
    except ValueError as error:
        raise OpenError(f"no number: {error}") from error


def _word2vec(path: Path) -> np.ndarray:
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    head, _, rest = data.partition(b"\n")
    n, d = (int(cell) for cell in head.split())
    if n < 1 or d < 1 or n * d > 10**6:
        raise InvalidError("sizes")
    rows = []
    for _ in range(n):
        rest = rest.lstrip(b"\n")
        _word, blank, rest = rest.partition(b" ")
        if not blank or len(rest) < 4 * d:
            raise InvalidError("cut short")
        rows.append(np.frombuffer(rest[: 4 * d], "<f4"))
        rest = rest[4 * d :]
    if rest.strip(b"\n"):
        raise OpenError("more than it promises")
    return np.array(rows)


def _zarr(path: Path) -> np.ndarray:
    """Read a store twice, the second time with another fill value: what then differs was never stored."""
    X = _zarr_once(path)
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / path.name
        shutil.copytree(path, other)
        for file in [*other.rglob(".zarray"), *other.rglob("zarr.json")]:
            about = json.loads(file.read_text())
            if "fill_value" in about:
                file.write_text(
                    json.dumps({**about, "fill_value": 77.0 if about["fill_value"] == 0 else 0.0})
                )
        try:
            again = _zarr_once(other)
        except ValueError:  # a type that has no such fill value
            return X
    if not np.array_equal(X, again, equal_nan=True):
        raise InvalidError("fill values where numbers were")
    return X


def _zarr_once(path: Path) -> np.ndarray:
    import zarr

    opened = zarr.open(str(path), mode="r")
    arrays = [opened] if isinstance(opened, zarr.Array) else [array for _, array in opened.arrays()]
    arrays = [array for array in arrays if array.ndim == 2]
    if len(arrays) != 1:
        raise OpenError("arrays of two axes")
    if arrays[0].nchunks_initialized < arrays[0].nchunks:
        raise OpenError("chunks that are not there: fill values, or a loss")
    if arrays[0].size > 10**6:
        raise InvalidError("size")
    return np.asarray(arrays[0][:])


def _json_rows(path: Path) -> np.ndarray:
    text = _text(path)
    rows = (
        [json.loads(line) for line in text.split("\n") if line.strip()]
        if path.suffix == ".jsonl"
        else json.loads(text)
    )
    if not isinstance(rows, list) or not rows:
        raise OpenError("no list of rows")
    if all(isinstance(row, dict) for row in rows):
        if any(set(row) != {"text", "embedding"} for row in rows):
            raise OpenError("other columns")
        rows = [row["embedding"] for row in rows]
    if not all(isinstance(row, list) and all(type(cell) in (int, float) for cell in row) for row in rows):
        raise OpenError("rows that are no lists of numbers")
    if len({len(row) for row in rows}) > 1:
        raise InvalidError("rows of several lengths")
    return np.array(rows, dtype=float)


_READERS = {
    ".npy": lambda path: np.load(path, allow_pickle=False, mmap_mode="r"),
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".pt": _torch,
    ".pth": _torch,
    ".parquet": _arrow,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".csv": _delimited,
    ".tsv": _delimited,
    ".txt": _words,
    ".vec": _words,
    ".glove": _words,
    ".bin": _word2vec,
    ".zarr": _zarr,
    ".jsonl": _json_rows,
    ".json": _json_rows,
}
