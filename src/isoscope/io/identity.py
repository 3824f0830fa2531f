"""What tells rows from others of the same name, so that work kept for some is never taken for others'."""

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
    """How long a file is and when it was written; of a folder, such as a .zarr, all that lies in it."""
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
    """Labels or weights: values by a digest of them, a column by its name, a file by that and its date.

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
