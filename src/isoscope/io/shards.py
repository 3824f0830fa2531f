"""`VectorShards`: vectors in several files, read as one."""

from __future__ import annotations

import contextlib
import glob
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import block_rows
from isoscope.errors import FileError, InputError, IsoscopeError, LabelError, ShapeError
from isoscope.io.addresses import Address, FilePath, is_address, is_many, listed_addresses, local_path, shown
from isoscope.io.chunks import regroup
from isoscope.io.files import kind
from isoscope.io.formats import file_suffixes, formats
from isoscope.io.raw_rows import fill_memory
from isoscope.io.table_rows import TableRows
from isoscope.io.vector_files import LateFile, VectorFile, changed, open_file
from isoscope.labels import Labels
from isoscope.printable import listed
from isoscope.space import Space, unchecked

_BESIDE = (".json", ".jsonl")
_SPLITS = "dataset_dict.json"  # what `datasets` writes beside the folders of several splits
_SETTINGS = ("dataset_info.json", "state.json")  # and beside the files of one
_NUMBER = re.compile(r"(\d+)")


Shard = VectorFile | LateFile


class VectorShards:
    """Vectors in several files of one format and dimension, in the order of the numbers in their names.

    It has the methods of a `VectorFile`.

    Attributes:
        path: the folder, pattern or address they were found by.
        shards: the opened files.
        n_rows: the number of vectors in all, or None where it is known only at the end.
        n_dims: the number of dimensions.
        notes: how many files there are, and which were left out.
        bad: what is wrong with each file that was left out, by name.
    """

    def __init__(
        self,
        path: str,
        shards: list[Shard],
        n_dims: int,
        notes: list[str],
        bad: dict[str, str],
        options: dict[str, Any],
    ) -> None:
        counts = [shard.n_rows for shard in shards]
        self.path = Path(path)
        self._address, self._options = path, options
        self.shards = shards
        self.n_rows = None if None in counts else sum(count or 0 for count in counts)
        self.n_dims = n_dims
        self.notes = notes
        self.bad = bad

    @classmethod
    def of(
        cls,
        path: str,
        *,
        skip_bad: bool = False,
        labels: Any = None,
        weights: Any = None,
        **options: Any,
    ) -> VectorShards:
        """Open every file of vectors in a folder, matching a pattern, or at an address."""
        asked = {"skip_bad": skip_bad, "labels": labels, "weights": weights, **options}
        places, notes = _found(path)
        known = {"labels": labels, "weights": weights}
        shards, bad = _opened(places, {**options, "name": _name(path)}, known, skip_bad=skip_bad)
        if not shards:
            raise FileError(f"{path} has no file that can be read: {next(iter(bad.values()))}")
        n_dims = _check_dims(shards, bad, skip_bad=skip_bad)
        notes += [f"{len(shards):,} files" if len(shards) > 1 else "1 file"]
        notes += dict.fromkeys(note for shard in shards for note in shard.notes)
        notes += [f"left out, since {reason}" for reason in bad.values()]
        return cls(path, shards, n_dims, notes, bad, asked)

    def reopened(self, **options: Any) -> VectorShards:
        """Return the same files opened with other labels, weights, or options of `open_vectors`."""
        return VectorShards.of(self._address, **changed(self._options, options))

    def __repr__(self) -> str:
        rows = "?" if self.n_rows is None else f"{self.n_rows:,}"
        return f"VectorShards({self.path.name}, {len(self.shards)} files, {rows} × {self.n_dims})"

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return str(self.path)

    @property
    def name(self) -> str:
        """What to call it in tables."""
        return _name(str(self.path))

    @property
    def device(self) -> torch.device:
        """Rows are read on the CPU."""
        return torch.device("cpu")

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others: that of every file."""
        return [shard.identity for shard in self.shards]

    def column(self, name: str) -> list[Any]:
        """Read a column that every file has, one value a row."""
        return [value for shard in self.shards for value in shard.column(name)]

    @property
    def n_bytes(self) -> int | None:
        """What the vectors take in memory as float32, at an address by the files' length; None if unknown."""
        sizes = [shard.n_bytes for shard in self.shards]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of all rows under the names of all files; None where none were named."""
        parts = [(shard, shard.labels) for shard in self.shards]
        return _joined([(shard.title, part) for shard, part in parts if part is not None])

    @cached_property
    def weights(self) -> Tensor | None:
        """(n,) how often each row counts; None where no weights were named."""
        parts = [part for shard in self.shards if (part := shard.weights) is not None]
        return torch.cat(parts) if parts else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in the first file that can be asked for as labels."""
        return self.shards[0].columns

    def table_rows(self) -> TableRows | None:
        """Return the columns beside the vectors; None unless every file is a table with the same columns."""
        first, *others = (shard.table_rows() for shard in self.shards)
        if first is None:
            return None
        same = [first, *(table for table in others if table and table.names == first.names)]
        if len(same) < len(self.shards):
            return None
        return replace(first, read=lambda: (batch for table in same for batch in table.read()))

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield all rows in order in blocks of n_rows, across files; each call begins at the first row."""
        if n_rows is not None and n_rows < 1:
            raise InputError(argument="n_rows", got=n_rows, wanted="at least 1")
        return self._blocks(n_rows or block_rows(self.n_dims))

    def load(self) -> Space:
        """Read all rows into memory as one Space."""
        n_rows = block_rows(self.n_dims)
        return unchecked(dict(vars(_together(list(self._each(n_rows)))), labels=self.labels))

    def parts(self, n_rows: int) -> list[Shard]:
        """Return pieces of about n_rows, or whole files, in order; each can be read alone."""
        return [part for shard in self.shards for part in shard.parts(n_rows)]

    def _blocks(self, n_rows: int) -> Iterator[Space]:
        labels, start = self.labels, 0
        for block in regroup(self._each(n_rows), n_rows, _together):
            stop = start + len(block)
            yield unchecked(dict(vars(block), labels=labels and labels.rows(start, stop)))
            start = stop

    def _each(self, n_rows: int) -> Iterator[Space]:
        for shard in self.shards:
            for block in shard.blocks(n_rows):
                if block.n_dims != self.n_dims:
                    raise _other_dims(shard.title, block.n_dims, self.n_dims)
                yield block


def natural(name: str) -> list[Any]:
    """Return a key that sorts names by the numbers in them: part-2 before part-10."""
    return [int(part) if part.isdecimal() else part for part in _NUMBER.split(name)]


def _name(path: str) -> str:
    """Return the name of vectors in many files, for tables."""
    parts = [part for part in PurePosixPath(path).parts if not any(mark in part for mark in "*?[")]
    return parts[-1] if parts else path


def _found(path: str) -> tuple[list[FilePath], list[str]]:
    """Return the files in order, and a note on files of unknown formats."""
    if is_address(path) and (here := local_path(path)) is not None:
        path = here
    places: dict[str, FilePath]
    if is_address(path):
        places = dict(listed_addresses(path))
    elif Path(path).is_dir():
        places = {str(entry): entry for entry in Path(path).iterdir()}
    else:
        places = {name: Path(name) for name in (glob.glob(path) if is_many(path) else [path])}
    if any(place.name == _SPLITS for place in places.values()):
        folders = listed(sorted(place.name for place in places.values() if place.name != _SPLITS))
        raise FileError(f"{path} has several splits of a dataset: {folders}", hint="name the folder of one")
    # what a framework leaves beside its files begins so: _SUCCESS, .part-0.crc
    names = [
        name
        for name, place in places.items()
        if not place.name.startswith((".", "_")) and place.name not in _SETTINGS
    ]
    known = sorted((name for name in names if kind(places[name]) in formats()), key=natural)
    if not known:
        held = f"; it has {listed(sorted(places[name].name for name in names))}" if names else ""
        is_folder = Path(path).is_dir()
        what = "is a folder without files of vectors" if is_folder else "matches no file of vectors"
        wanted = f"files in {', '.join(file_suffixes())}" if names else None
        raise FileError(f"{shown(path)} {what}{held}", wanted=wanted)
    if any(kind(places[name]) not in _BESIDE for name in known):  # settings beside vectors, not vectors
        known = [name for name in known if kind(places[name]) not in _BESIDE]
    kinds = sorted({kind(places[name]) for name in known})
    if len(kinds) > 1:
        raise FileError(
            f"{shown(path)} has files of {len(kinds)} kinds ({', '.join(kinds)})",
            wanted="one kind",
            hint=f"choose one with a pattern, such as '{shown(path).rstrip('/')}/*{kinds[0]}'",
        )
    if kinds == [".lance"] and len(known) > 1:
        tables = listed(places[name].name for name in known)
        raise FileError(f"{shown(path)} has several tables: {tables}", hint=f"name one, such as {known[0]}")
    others = sorted(places[name].name for name in names if name not in set(known))
    notes = [f"left out files of other kinds: {listed(others)}"] if others else []
    return [places[name] for name in known], notes


def _opened(
    places: list[FilePath], options: dict[str, Any], known: dict[str, Any], *, skip_bad: bool
) -> tuple[list[Shard], dict[str, str]]:
    """Open every file far enough to know its shape; files at an address are opened when they are read."""
    if isinstance(places[0], Address):
        return [LateFile(place, {**options, **known}) for place in places], {}
    files: list[VectorFile] = []
    bad: dict[str, str] = {}
    here = [place for place in places if isinstance(place, Path)]
    uncached = fill_memory(sum(place.stat().st_size for place in here if place.exists()))
    for place in here:
        try:
            files.append(open_file(place, uncached=uncached, **options, **known))
        except IsoscopeError as error:
            if not skip_bad:
                raise
            bad[str(place)] = error.problem
    if not files:
        return [], bad
    apart = [
        name
        for name, value in known.items()
        if value is not None and not (isinstance(value, str) and value in files[0].columns)
    ]
    if not apart:
        return list(files), bad
    if bad:
        raise InputError(
            f"for the rows of all files cannot be assigned when files are left out ({next(iter(bad))})",
            argument=apart[0],
            wanted="a column of each file",
        )
    return _with_rows(files, apart), bad


def _with_rows(files: list[VectorFile], apart: list[str]) -> list[Shard]:
    """Return the files, each with its rows of labels or weights that are given for all files together."""
    counts = [file.n_rows for file in files]
    if None in counts:
        raise InputError(
            f"in one file for all needs the number of rows of each, which {files[0].path} does not say",
            argument=apart[0],
            hint="name a column of each file",
        )
    ends = list(itertools.accumulate(count or 0 for count in counts))
    shards: list[Shard] = []
    values = {name: files[0].known[name].values(ends[-1]) for name in apart}
    for file, count, stop in zip(files, counts, ends, strict=True):
        start = stop - (count or 0)
        mine = {name: file.known[name].of_rows(values[name], start, stop) for name in apart}
        shards.append(file.with_known({**file.known, **mine}))
    return shards


def _check_dims(shards: list[Shard], bad: dict[str, str], *, skip_bad: bool) -> int:
    """Return the dimensions of all files: those of the first, or of most where others are skipped."""
    files = [shard for shard in shards if isinstance(shard, VectorFile)]
    if not files:  # the width of the first that can be read: the others are opened in their turn
        for shard in shards[:-1] if skip_bad else ():
            with contextlib.suppress(IsoscopeError):
                return shard.n_dims
        return shards[-1 if skip_bad else 0].n_dims
    n_dims, which = files[0].n_dims, "the first file has"
    if skip_bad:
        n_dims, which = Counter(file.n_dims for file in files).most_common(1)[0][0], "most files have"
    for file in [file for file in files if file.n_dims != n_dims]:
        error = _other_dims(file.title, file.n_dims, n_dims, which)
        if not skip_bad:
            raise error
        bad[file.title] = error.problem
        shards.remove(file)
    return n_dims


def _other_dims(title: str, n_dims: int, wanted: int, which: str = "the first file has") -> ShapeError:
    return ShapeError(
        f"{title} has {n_dims} dimensions where {which} {wanted}", wanted="the same number in all"
    )


def _joined(parts: list[tuple[str, Labels]]) -> Labels | None:
    """Concatenate labels under the names of all of them."""
    if not parts:
        return None
    first_title, first = parts[0]
    for title, part in parts:
        if {type(name) for name in part.names} != {type(name) for name in first.names}:
            raise LabelError(
                f"has {_kinds(part)} in {title} and {_kinds(first)} in {first_title}",
                argument="labels",
                wanted="one type",
            )
    names = tuple(sorted({name for _, part in parts for name in part.names}))
    place = {name: row for row, name in enumerate(names)}
    coded = [torch.tensor([place[name] for name in part.names])[part.codes] for _, part in parts]
    return Labels(torch.cat(coded), names)


def _kinds(labels: Labels) -> str:
    return " and ".join(sorted({type(name).__name__ for name in labels.names}))


def _together(parts: list[Space]) -> Space:
    """Concatenate blocks, without their labels, whose codes may differ between files."""
    first = parts[0]
    if len(parts) == 1:
        return first
    fields = dict(vars(first), vectors=torch.cat([part.vectors for part in parts]), labels=None)
    if first.texts is not None:
        fields["texts"] = [text for part in parts for text in part.texts or ()]
    if first.weights is not None:
        fields["weights"] = torch.cat([part.weights for part in parts if part.weights is not None])
    return unchecked(fields)
