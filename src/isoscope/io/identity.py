"""What identifies rows, so that a checkpoint of other rows of the same name is not used."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from isoscope.arrays import digest
from isoscope.io.addresses import Address, FilePath
from isoscope.io.label_files import split_column
from isoscope.labels import Labels

# how file systems call the length of a file, when it was written, and what it holds
_TELLING = ("size", "ETag", "etag", "LastModified", "last_modified", "mtime", "created", "updated", "md5Hash")


def of_file(path: FilePath) -> list[Any]:
    """Return the size of a file and when it was written; for a folder such as a .zarr, of its content."""
    if isinstance(path, Address):
        return [f"{name} {path.listing[name]}" for name in _TELLING if path.listing.get(name) is not None]
    if path.is_dir():
        inside = [entry.stat() for entry in path.rglob("*") if entry.is_file()]
        written = max((entry.st_mtime_ns for entry in inside), default=0)
        return [len(inside), sum(entry.st_size for entry in inside), written]
    if not path.is_file():
        return []
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def of_knowledge(known: Any) -> Any:
    """Return what identifies labels or weights: a digest of values, a column, or a file and its date.

    >>> import torch
    >>> of_knowledge("topic"), of_knowledge(None)
    (['topic'], None)
    >>> of_knowledge(torch.ones(2)) == of_knowledge(torch.zeros(2))
    False
    """
    if known is None:
        return None
    if isinstance(known, Labels):
        return [list(map(str, known.names)), digest(known.codes)]
    if isinstance(known, Tensor):
        return [digest(known)]
    return [str(known), *of_file(split_column(str(known))[0])]
