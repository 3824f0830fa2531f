"""`Snapshot`: what drift needs of one sample of vectors, so that each is measured once and kept."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import digest
from isoscope.engine.inputs import as_input
from isoscope.errors import FileError, InputError, ShapeError, check_seed, check_whole
from isoscope.io.files import reading
from isoscope.io.sealed import read_tensors, write_tensors
from isoscope.io.structure import parse_json
from isoscope.results import Result
from isoscope.statistics.moments import Moments

SAMPLE = 10_000
SUFFIX = ".safetensors"
_KIND = "isoscope_snapshot"  # the metadata entry that tells a snapshot from vectors
_FORMAT = 1
_MOMENTS = tuple(field.name for field in fields(Moments))


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot(Result):
    """The moments of all rows of a sample, and a random sample of its rows with their texts.

    Snapshots of parts merge into the snapshot of the whole: the moments exactly, the rows into a random
    sample of all rows.

    Attributes:
        moments: of all rows.
        vectors: (s, d) the sampled rows.
        priorities: (s,) a random number for each of them, ascending; the rows with the smallest are sampled.
        texts: their texts, or None.
        sample: the largest number of rows that is sampled.
        name: what to call it.

    >>> parts = [Snapshot.of([[0.0, 1.0], [2.0, 3.0]]), Snapshot.of([[4.0, 4.0]])]
    >>> parts[0].merge(parts[1]).title
    '3 rows of 2 dimensions, 3 of them kept'
    """

    moments: Moments
    vectors: Tensor
    priorities: Tensor
    texts: tuple[str, ...] | None = None
    sample: int = SAMPLE
    name: str | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        *,
        texts: Any = None,
        sample: int = SAMPLE,
        seed: int = 0,
        vectors: str | None = None,
        device: Any = None,
    ) -> Snapshot:
        """Return the snapshot of vectors, of which a file is read in blocks; a Snapshot passes unchanged.

        Args:
            X: vectors in any array, a path, a data frame, an opened file; or the path of a saved snapshot,
                or of a folder of them, which are merged.
            texts: one text for each row, or a name, as `measure` takes them.
            sample: the largest number of rows to keep.
            seed: of the sample. Other vectors are sampled independently under the same seed.
            vectors: the column of a table that holds the vectors.
            device: where to compute.
        """
        check_seed(seed)
        check_whole("sample", sample)
        if isinstance(X, Snapshot):
            return X
        if is_snapshot(X):
            return cls.load(X)
        source = as_input(X, {"texts": texts}, vectors=vectors, device=device).source
        if source.weights is not None:
            raise InputError("has weights, but drift counts every row once", argument="X")
        made = None
        for block in source.blocks():
            # of the vectors too: samples of two files that are merged later may not be the same rows of each
            generator = torch.Generator().manual_seed(seed + int(digest(block.vectors)[:12], 16))
            priorities, rows = torch.rand(len(block), generator=generator, dtype=torch.float64).sort()
            some = block.take(rows[:sample].to(block.device))
            known = None if some.texts is None else tuple(some.texts)
            moments = Moments.of(block.vectors)
            part = cls(moments, some.vectors.clone(), priorities[:sample], known, sample, source.name)
            made = part if made is None else made.merge(part)
        assert made is not None  # a source has a row
        return made

    @property
    def n(self) -> int:
        """How many rows there were."""
        return int(self.moments.count)

    @property
    def n_dims(self) -> int:
        """How many dimensions they have."""
        return self.moments.n_dims

    def merge(self, other: Snapshot) -> Snapshot:
        """Return the snapshot of the rows of both."""
        if self.n_dims != other.n_dims:
            raise ShapeError(
                f"Snapshots have {self.n_dims} and {other.n_dims} dimensions",
                wanted="the same number in each",
            )
        sample = min(self.sample, other.sample)
        both = torch.cat([self.priorities, other.priorities])
        first = both.argsort(stable=True)[:sample]
        rows = torch.cat([self.vectors, other.vectors.to(self.vectors)])[first.to(self.vectors.device)]
        texts = None
        if self.texts is not None and other.texts is not None:
            known = (*self.texts, *other.texts)
            texts = tuple(known[place] for place in first.tolist())
        name = self.name if self.name == other.name else None
        return Snapshot(self.moments.merge(other.moments), rows, both[first], texts, sample, name)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the snapshot, with its texts, to a sealed .safetensors file."""
        path = Path(path)
        if path.suffix != SUFFIX:
            raise InputError(argument="path", got=str(path), wanted=f"the name of a {SUFFIX} file")
        tensors = {"vectors": self.vectors, "priorities": self.priorities}
        plain: dict[str, Any] = {}
        for name in _MOMENTS:
            value = getattr(self.moments, name)
            if isinstance(value, Tensor):
                tensors[f"moments.{name}"] = value
            else:
                plain[name] = value
        about = {
            "format": _FORMAT, "moments": plain, "texts": self.texts, "sample": self.sample, "name": self.name
        }  # fmt: skip
        return write_tensors(path, tensors, {_KIND: json.dumps(about)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Snapshot:
        """Return the snapshot in a file, or the merged snapshots in a folder."""
        path = Path(path)
        if path.is_dir():
            return reduce(Snapshot.merge, [cls.load(file) for file in sorted(path.glob(f"*{SUFFIX}"))])
        tensors, metadata = read_tensors(path)
        if _KIND not in metadata:
            raise FileError(f"{path} is no snapshot", wanted="a file written by Snapshot.save")
        with reading(path):
            about: Any = parse_json(metadata[_KIND], str(path)).value
            if about["format"] != _FORMAT:
                raise FileError(
                    f"{path} has format {about['format']}",
                    wanted=f"{_FORMAT}",
                    hint="install a newer isoscope",
                )
            parts = about["moments"] | {
                name: tensors[f"moments.{name}"] for name in _MOMENTS if f"moments.{name}" in tensors
            }
            texts = None if about["texts"] is None else tuple(map(str, about["texts"]))
            return cls(
                Moments(**parts), tensors["vectors"], tensors["priorities"], texts,
                int(about["sample"]), about["name"],
            )  # fmt: skip

    @property
    def title(self) -> str:
        """How many rows there were, and how many are kept."""
        name = "" if self.name is None else f"{self.name}: "
        return f"{name}{self.n:,} rows of {self.n_dims:,} dimensions, {len(self.vectors):,} of them kept"

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes."""
        return {name: values[0] for name, values in self._columns().items()}

    def _columns(self) -> dict[str, list[Any]]:
        return {"name": [self.name], "n": [self.n], "n_dims": [self.n_dims], "n_kept": [len(self.vectors)]}


def is_snapshot(X: Any) -> bool:
    """Return whether X is the path of a saved snapshot, or of a folder of nothing but snapshots."""
    if not isinstance(X, str | os.PathLike):
        return False
    path = Path(X)
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    return bool(files) and all(map(_is_snapshot_file, files))


def _is_snapshot_file(path: Path) -> bool:
    if path.suffix != SUFFIX or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            return _KIND.encode() in file.read(min(size, 2**26))
    except OSError:
        return False
