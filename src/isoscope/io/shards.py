"""`VectorShards`: vectors in many files, read one after another as if they were one."""

from __future__ import annotations

import contextlib
import glob
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import block_rows
from isoscope.errors import FileError, InputError, IsoscopeError, LabelError, ShapeError
from isoscope.io.addresses import is_address, listed_addresses, local_path, shown
from isoscope.io.files import kind, listed
from isoscope.io.formats import FORMATS
from isoscope.io.label_files import locate_labels
from isoscope.io.raw_rows import fill_memory
from isoscope.io.remote_shards import RemoteShard
from isoscope.io.row_knowledge import as_numbers, known_rows
from isoscope.io.sources import VectorFile, open_file
from isoscope.io.table_rows import TableRows
from isoscope.labels import Labels, as_labels
from isoscope.space import Space, as_counts, unchecked

_BESIDE = (".json", ".jsonl")
_NUMBER = re.compile(r"(\d+)")


Shard = VectorFile | RemoteShard


class VectorShards:
    """Vectors in many files of one kind and width, in the order of the numbers in their names.

    It is used as a `VectorFile` is.

    Attributes:
        path: the folder, pattern or address they were found by.
        shards: one a file.
        n_rows: how many vectors in all, or None where only reading to the end tells.
        n_dims: how many dimensions.
        notes: what a user should know: how many files, which were left out.
        bad: what was wrong with each file left out, by its name.
    """

    def __init__(
        self, path: str, shards: list[Shard], n_dims: int, notes: list[str], bad: dict[str, str]
    ) -> None:
        counts = [shard.n_rows for shard in shards]
        self.path = Path(path)
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
        """Every file of vectors in a folder, matching a pattern, or at an address."""
        places, notes = _found(path)
        known = {"labels": labels, "weights": weights}
        shards, bad = _opened(places, {**options, "name": _name(path)}, known, skip_bad=skip_bad)
        if not shards:
            raise FileError(f"{path} has no file that can be read: {next(iter(bad.values()))}")
        n_dims = _check_dims(shards, bad, skip_bad=skip_bad)
        notes += [f"{len(shards):,} files" if len(shards) > 1 else "1 file"]
        notes += dict.fromkeys(note for shard in shards for note in shard.notes)
        notes += [f"left out, since {reason}" for reason in bad.values()]
        return cls(path, shards, n_dims, notes, bad)

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
        """One value a row of a column that every file has."""
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
        """The columns beside the vectors, row by row; None unless every file is a table of the same ones."""
        tables = [shard.table_rows() for shard in self.shards if isinstance(shard, VectorFile)]
        first = tables[0] if tables else None
        if first is None or len(tables) < len(self.shards):
            return None
        same = [table for table in tables if table and table.names == first.names]
        if len(same) < len(tables):
            return None
        return replace(first, read=lambda: (batch for table in same for batch in table.read()))

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """All rows in blocks of n_rows, in order, across the files; each call begins at the first row."""
        if n_rows is not None and n_rows < 1:
            raise InputError(f"n_rows is {n_rows}; wanted at least one vector a block")
        return self._blocks(n_rows or block_rows(self.n_dims))

    def load(self) -> Space:
        """All rows as one Space, in memory."""
        blocks = list(self._blocks(block_rows(self.n_dims)))
        return _together(blocks, self.labels)

    def parts(self, n_rows: int) -> list[Shard]:
        """Pieces of about n_rows, or whole files, that can each be read alone, in order."""
        return [part for shard in self.shards for part in shard.parts(n_rows)]

    def _blocks(self, n_rows: int) -> Iterator[Space]:
        labels = self.labels
        held: list[Space] = []
        start = n_held = 0
        for block in self._each(n_rows):
            at = 0
            while n_held + len(block) - at >= n_rows:
                stop = at + n_rows - n_held
                whole = [*held, block._rows(at, stop)]
                yield _together(whole, labels and labels.rows(start, start + n_rows))
                held, n_held, at, start = [], 0, stop, start + n_rows
            if at < len(block):
                held.append(block._rows(at, len(block)))
                n_held += len(block) - at
        if held:
            yield _together(held, labels and labels.rows(start, start + n_held))

    def _each(self, n_rows: int) -> Iterator[Space]:
        for shard in self.shards:
            for block in shard.blocks(n_rows):
                if block.n_dims != self.n_dims:
                    raise _other_dims(shard.title, block.n_dims, self.n_dims)
                yield block


def is_many(path: Any) -> bool:
    """Whether a path stands for many files: an address, a folder that is not one array, a pattern."""
    if is_address(path):
        return True
    here = Path(path)
    if here.is_dir():
        return kind(here) != ".zarr"
    return any(mark in here.name or mark in str(here.parent) for mark in "*?[") and not here.exists()


def natural(name: str) -> list[Any]:
    """A key to sort names by, the numbers in them as numbers: part-2 before part-10."""
    return [int(part) if part.isdecimal() else part for part in _NUMBER.split(name)]


def _name(path: str) -> str:
    """What vectors in many files are called in tables."""
    parts = [part for part in PurePosixPath(path).parts if not any(mark in part for mark in "*?[")]
    return parts[-1] if parts else path


def _found(path: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The files, in order, each with what a listing of its address says, and a note on unknown kinds."""
    listings: dict[str, dict[str, Any]] = {}
    if is_address(path) and (here := local_path(path)) is not None:
        path = here
    if is_address(path):
        listings = listed_addresses(path)
        names = list(listings)
    elif Path(path).is_dir():
        names = [str(entry) for entry in Path(path).iterdir()]
    else:
        names = glob.glob(path) if is_many(path) else [path]
    # what a framework leaves beside its files begins so: _SUCCESS, .part-0.crc
    names = [name for name in names if not PurePosixPath(name).name.startswith((".", "_"))]
    known = sorted((name for name in names if kind(Path(name)) in FORMATS), key=natural)
    if not known:
        held = f"; it has {listed(sorted(PurePosixPath(name).name for name in names))}" if names else ""
        what = (
            "is a folder; wanted files of vectors in it"
            if Path(path).is_dir()
            else "matches no file of vectors"
        )
        raise FileError(f"{shown(path)} {what}{held}")
    if any(kind(Path(name)) not in _BESIDE for name in known):  # settings beside vectors, not vectors
        known = [name for name in known if kind(Path(name)) not in _BESIDE]
    kinds = sorted({kind(Path(name)) for name in known})
    if len(kinds) > 1:
        raise FileError(
            f"{shown(path)} has files of {len(kinds)} kinds ({', '.join(kinds)}); wanted one: "
            f"say which with a pattern, such as '{shown(path).rstrip('/')}/*{kinds[0]}'"
        )
    others = sorted(PurePosixPath(name).name for name in names if name not in set(known))
    notes = [f"left out files of other kinds: {listed(others)}"] if others else []
    return {name: listings.get(name, {}) for name in known}, notes


def _opened(
    places: dict[str, dict[str, Any]], options: dict[str, Any], known: dict[str, Any], *, skip_bad: bool
) -> tuple[list[Shard], dict[str, str]]:
    """Every file opened far enough to know its shape; those at an address when they are read."""
    if is_address(next(iter(places))):
        return [RemoteShard(place, {**options, **known}, listing) for place, listing in places.items()], {}
    shards: list[Shard] = []
    bad: dict[str, str] = {}
    options = {**options, "uncached": fill_memory(sum(map(_n_bytes, places)))}
    apart = _apart(places, options, known)
    for place in places:
        columns = {name: value for name, value in known.items() if name not in apart}
        try:
            shards.append(open_file(Path(place), **options, **columns))
        except IsoscopeError as error:
            if not skip_bad:
                raise
            bad[place] = str(error)
    if apart and bad:
        raise InputError(
            f"{next(iter(apart))} in a file of its own cannot be told apart when files are left out "
            f"({next(iter(bad))}); wanted a column of each file"
        )
    return _with_slices(shards, apart, options), bad


def _n_bytes(place: str) -> int:
    """The size of a file; none where it is gone or a link leads nowhere, which opening it says."""
    try:
        return Path(place).stat().st_size
    except OSError:
        return 0


def _apart(places: Iterable[str], options: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Labels and weights that lie in one file for all rows, not in a column of each."""
    if all(value is None for value in known.values()):
        return {}
    for place in places:
        try:
            reader = open_file(Path(place), **options)._reader
        except IsoscopeError:
            continue  # said when it is opened in its turn
        named = {name: value for name, value in known.items() if value is not None}
        return {name: value for name, value in named.items() if value not in reader.columns}
    return {}


def _with_slices(shards: list[Shard], apart: dict[str, Any], options: dict[str, Any]) -> list[Shard]:
    """The same files, each with its rows of what lies in one file for all."""
    if not apart:
        return shards
    files = [shard for shard in shards if isinstance(shard, VectorFile)]
    counts = [file.n_rows for file in files]
    if None in counts:
        raise InputError(
            f"{next(iter(apart))} in a file of its own needs files that say how many rows they have; "
            f"{files[0].path} does not: name a column of each"
        )
    total = sum(count or 0 for count in counts)
    values = {name: _read_apart(name, value, files[0], total) for name, value in apart.items()}
    opened: list[Shard] = []
    start = 0
    for file in files:
        stop = start + (file.n_rows or 0)
        mine: dict[str, Any] = {name: known_rows(value, start, stop) for name, value in values.items()}
        asked: dict[str, Any] = dict(zip(("labels", "weights"), file._about.asked[:2], strict=True))
        opened.append(open_file(file.path, **options, **{**asked, **mine}))
        start = stop
    return opened


def _read_apart(name: str, value: Any, first: VectorFile, n_rows: int) -> Labels | Tensor:
    columns, read = first._reader.columns, first._reader.label_values
    values, where = locate_labels(value, path=first.path, columns=columns, read=read, what=name)
    if name == "labels":
        return as_labels(values(), n=n_rows, name=f"labels ({where})")
    return as_counts(as_numbers(values(), name=f"weights ({where})"), n=n_rows, name=f"weights ({where})")


def _check_dims(shards: list[Shard], bad: dict[str, str], *, skip_bad: bool) -> int:
    """The width of all files: that of the first, or of most where others are left out."""
    files = [shard for shard in shards if isinstance(shard, VectorFile)]
    if not files:
        return _dims_at_address(shards, skip_bad=skip_bad)
    n_dims, which = files[0].n_dims, "the first file has"
    if skip_bad:
        n_dims, which = Counter(file.n_dims for file in files).most_common(1)[0][0], "most files have"
    for file in [file for file in files if file.n_dims != n_dims]:
        error = _other_dims(file.title, file.n_dims, n_dims, which)
        if not skip_bad:
            raise error
        bad[file.title] = str(error)
        shards.remove(file)
    return n_dims


def _dims_at_address(shards: list[Shard], *, skip_bad: bool) -> int:
    """The width of the first file that can be read: they are fetched one at a time."""
    remote = [shard for shard in shards if isinstance(shard, RemoteShard)]
    for shard in remote[:-1] if skip_bad else ():
        with contextlib.suppress(IsoscopeError):
            return shard.n_dims
    return remote[-1 if skip_bad else 0].n_dims


def _other_dims(title: str, n_dims: int, wanted: int, which: str = "the first file has") -> ShapeError:
    return ShapeError(f"{title} has {n_dims} dimensions where {which} {wanted}; wanted the same")


def _joined(parts: list[tuple[str, Labels]]) -> Labels | None:
    """Labels one after another, under the names of all."""
    if not parts:
        return None
    first_title, first = parts[0]
    for title, part in parts:
        if {type(name) for name in part.names} != {type(name) for name in first.names}:
            raise LabelError(
                f"labels are {_kinds(part)} in {title} and {_kinds(first)} in {first_title}; wanted one kind"
            )
    names = tuple(sorted({name for _, part in parts for name in part.names}))
    place = {name: row for row, name in enumerate(names)}
    coded = [torch.tensor([place[name] for name in part.names])[part.codes] for _, part in parts]
    return Labels(torch.cat(coded), names)


def _kinds(labels: Labels) -> str:
    return " and ".join(sorted({type(name).__name__ for name in labels.names}))


def _together(blocks: Iterable[Space], labels: Labels | None) -> Space:
    """Blocks one after another as one, with labels under the names of all files."""
    parts = list(blocks)
    first = parts[0]
    if len(parts) == 1 and labels is None:
        return first
    fields = {**vars(first), "labels": labels}
    if len(parts) > 1:
        fields["vectors"] = torch.cat([part.vectors for part in parts])
        if first.texts is not None:
            fields["texts"] = [text for part in parts for text in part.texts or ()]
        if first.weights is not None:
            fields["weights"] = torch.cat([part.weights for part in parts if part.weights is not None])
    return unchecked(fields)
