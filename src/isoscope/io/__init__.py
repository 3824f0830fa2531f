"""Files to vectors in blocks, and back: NumPy, safetensors, torch, Parquet, Arrow, CSV, zarr, word vectors.

    read(path)                  the whole file as a Space
    open_vectors(path)          a VectorFile: shape first, then .blocks() or .load(); VectorShards of many
    open_store(client)          a collection of a client of Qdrant or Chroma
    read_labels(path)           labels from a file of their own
    read_texts(path)            texts, from lines or a column
    save(space, path)           write, all or nothing
    write_json, read_json       a JSON file written all or nothing, with a checksum, and read again
    write_atomically(path, …)   any file, all or nothing

Nothing is ever unpickled.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoscope.io.atomic import write_atomically
    from isoscope.io.label_files import read_labels
    from isoscope.io.sealed import read_json, write_json
    from isoscope.io.shards import VectorShards
    from isoscope.io.sources import open_store, open_vectors, read
    from isoscope.io.text_files import read_texts
    from isoscope.io.vector_files import VectorFile
    from isoscope.io.writers import save

__all__ = [
    "VectorFile",
    "VectorShards",
    "open_store",
    "open_vectors",
    "read",
    "read_json",
    "read_labels",
    "read_texts",
    "save",
    "write_atomically",
    "write_json",
]

_MODULE_OF = {
    "VectorFile": "vector_files",
    "VectorShards": "shards",
    "open_store": "sources",
    "open_vectors": "sources",
    "read": "sources",
    "read_json": "sealed",
    "read_labels": "label_files",
    "read_texts": "text_files",
    "save": "writers",
    "write_atomically": "atomic",
    "write_json": "sealed",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that a command can check a path without importing torch."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
