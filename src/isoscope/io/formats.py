"""Every kind of file that holds vectors: who reads it, and which options it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isoscope.errors import FileError
from isoscope.io.addresses import FilePath
from isoscope.io.chunks import Reader, Request
from isoscope.io.numpy_files import NpyReader, NpzReader
from isoscope.io.tensor_files import SafetensorsReader, TorchReader
from isoscope.io.vector_tables import TableReader
from isoscope.io.word_vectors import WordBinaryReader, WordTextReader
from isoscope.io.zarr_files import ZarrReader


@dataclass(frozen=True)
class Format:
    """How files of one suffix are read.

    Attributes:
        reader: who reads it.
        takes: the options that say where in it the vectors are.
        by_ranges: whether it is read through `path.open`, so that at an address no more is fetched than is
            asked for; where not, it is mapped or unpacked, and has to lie here.
    """

    reader: Callable[[Request], Reader]
    takes: tuple[str, ...] = ()
    by_ranges: bool = True


_ARRAYS = ("key", "unpack_bits")
_TABLES = ("vector_column", "columns", "exclude")
_DELIMITED = (*_TABLES, "header", "delimiter", "decimal")

# one entry a suffix; .gz is set aside before
FORMATS: dict[str, Format] = {
    ".npy": Format(NpyReader, takes=("unpack_bits",)),
    ".npz": Format(NpzReader, takes=_ARRAYS),
    ".safetensors": Format(SafetensorsReader, takes=_ARRAYS, by_ranges=False),
    ".pt": Format(TorchReader, takes=_ARRAYS, by_ranges=False),
    ".pth": Format(TorchReader, takes=_ARRAYS, by_ranges=False),
    ".parquet": Format(TableReader, takes=(*_TABLES, "unpack_bits")),
    ".arrow": Format(TableReader, takes=(*_TABLES, "unpack_bits")),
    ".feather": Format(TableReader, takes=(*_TABLES, "unpack_bits")),
    ".csv": Format(TableReader, takes=_DELIMITED),
    ".tsv": Format(TableReader, takes=_DELIMITED),
    ".json": Format(TableReader, takes=_TABLES),
    ".jsonl": Format(TableReader, takes=_TABLES),
    ".txt": Format(WordTextReader),
    ".vec": Format(WordTextReader),
    ".glove": Format(WordTextReader),
    ".bin": Format(WordBinaryReader),
    ".zarr": Format(ZarrReader, takes=_ARRAYS, by_ranges=False),
}


def refuse_options(path: FilePath, form: Format, options: dict[str, Any]) -> None:
    """Raise FileError over an option that files of this kind do not take."""
    for option, value in options.items():
        if value is not None and option not in (*form.takes, "by"):
            kinds = ", ".join(suffix for suffix, other in FORMATS.items() if option in other.takes)
            shown = ",".join(value) if isinstance(value, tuple) else value
            raise FileError(f"{option}={shown!r} is for {kinds}; {path} has no such choice: leave it out")
