"""`VectorFile`: a file of vectors of any format, whole or in blocks; `LateFile`: one not yet opened."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_tensor, block_rows
from isoscope.errors import FileError, InputError, NotFiniteError, ShapeError
from isoscope.io.addresses import Address, FilePath, fetched
from isoscope.io.chunks import Chunk, Reader, Request, as_coordinates, regroup, stack
from isoscope.io.files import FOLDERS, check_file, kind, no_such_format, reading, stem
from isoscope.io.formats import file_suffixes, formats, refuse_options
from isoscope.io.identity import of_file, of_knowledge
from isoscope.io.raw_rows import fill_memory
from isoscope.io.row_knowledge import Known, LabelsFrom, WeightsFrom
from isoscope.io.table_rows import TableRows
from isoscope.labels import Labels
from isoscope.printable import listed, nearest, some_rows
from isoscope.space import Space, weighted

_WIDENED = 2  # times the bytes of a file at an address: half precision is read as float32
_CPU = torch.device("cpu")


class VectorFile:
    """A file of vectors whose shape is known; `blocks` and `load` read the vectors.

    Attributes:
        path: the file.
        n_rows: the number of vectors, or None where it is known only at the end of the file (CSV, GloVe).
        n_dims: the number of dimensions.
        columns: the names of the columns, which `column` and `labels` take.
        device: the device that rows are read to.
        known: how its labels and weights are read, by name.
        name: its name in tables, by default the file's.
        notes: how the file was read, such as columns that were left out.
    """

    device = _CPU

    def __init__(
        self,
        reader: Reader,
        known: dict[str, Known],
        name: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        self.path: FilePath = reader.path
        self.n_rows: int | None = reader.n_rows if span is None else span[1] - span[0]
        self.n_dims: int = reader.n_dims * (8 if reader.request.unpack_bits else 1)
        self.columns: tuple[str, ...] = reader.columns
        self.name: str = name or stem(self.path)
        self.notes: list[str] = reader.notes
        self.known = known
        self._reader, self._span = reader, span

    def __repr__(self) -> str:
        rows = "?" if self.n_rows is None else f"{self.n_rows:,}"
        return f"VectorFile({self.path.name}, {rows} × {self.n_dims})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LateFile, (self.path, self._options(), self._span)

    def _options(self) -> dict[str, Any]:
        """Return the arguments of `open_file` that open it again."""
        request = self._reader.request
        asked = {what: known.asked for what, known in self.known.items()}
        return {**asked, "name": self.name, "uncached": request.uncached, **request.where()}

    def reopened(self, **options: Any) -> VectorFile:
        """Return the same file opened with other labels, weights, or options of `open_file`."""
        return open_file(self.path, **changed(self._options(), options))

    @property
    def title(self) -> str:
        """What to call it in a message: the file, and which of its rows where not all are meant."""
        return _title(self.path, self._span)

    def column(self, name: str) -> Sequence[Any]:
        """Read a column of the file, one value a row."""
        if name not in self.columns:
            raise FileError(
                f"{self.path} has no column {name!r}; it has {listed(self.columns) or 'none'}",
                hint=nearest(name, self.columns),
            )
        with reading(self.path):
            values: Sequence[Any] = self._reader.label_values(name)
        return values if self._span is None else values[slice(*self._span)]

    def parts(self, n_rows: int) -> list[VectorFile]:
        """Return pieces of about n_rows that can each be read alone; else the file itself."""
        total = self._reader.n_rows
        if self._span is not None or total is None or not self._reader.seeks or total <= n_rows:
            return [self]
        n_parts = -(-total // n_rows)
        cuts = [total * part // n_parts for part in range(n_parts + 1)]
        return [self._of_rows(*span) for span in itertools.pairwise(cuts)]

    def _of_rows(self, start: int, stop: int) -> VectorFile:
        """Return some rows with their labels in memory, so that a part does not read those of all rows."""
        values = {"labels": self.labels, "weights": self.weights}
        known = {what: self.known[what].of_rows(values[what], start, stop) for what in values}
        return self.with_known(known, (start, stop))

    def with_known(self, known: dict[str, Known], span: tuple[int, int] | None = None) -> VectorFile:
        """Return the same file with other labels or weights."""
        return VectorFile(self._reader, known, self.name, span)

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others: the file as it is now, and what is read of it."""
        known = [of_knowledge(known.asked) for known in self.known.values()]
        where = self._reader.request.where().values()
        return [self.title, self.n_rows, *of_file(self.path), *where, *known]

    @property
    def n_bytes(self) -> int | None:
        """What the vectors take in memory as float32, or None where the number of rows is unknown."""
        return None if self.n_rows is None else 4 * self.n_rows * self.n_dims

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of all rows, read once; None where none were named."""
        return self._values("labels")

    @cached_property
    def weights(self) -> Tensor | None:
        """(n,) how often each row counts; None where no weights were named."""
        return self._values("weights")

    def _values(self, what: str) -> Any:
        with reading(self.path):
            values = self.known[what].values()
        if self.n_rows is not None:
            self._check_length(what, values, self.n_rows)
        return values

    def table_rows(self) -> TableRows | None:
        """Return the columns beside the vectors; None where the file is no table, or this is a part of it."""
        return self._reader.table_rows() if self._span is None else None

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield the file in blocks of n_rows vectors, in order; each call begins at the first row.

        Memory is bounded by the block, not by the file. Each block has its labels, under the names of the
        whole file. By default a block is about 16 MB of float32.
        """
        if n_rows is not None and n_rows < 1:
            raise InputError(argument="n_rows", got=n_rows, wanted="at least 1")
        return self._blocks(n_rows or block_rows(self.n_dims))

    def load(self) -> Space:
        """Read the whole file as one Space; .npy, .safetensors and .pt files are mapped into memory."""
        labels, weights = self.labels, self.weights
        with reading(self.path):
            pieces = list(self._pieces() if self._span is None else self._rows(block_rows(self.n_dims)))
            self._check_count(sum(map(len, pieces)))
            return self._space(stack(pieces), labels, weights)

    def _blocks(self, n_rows: int) -> Iterator[Space]:
        labels, weights = self.labels, self.weights
        start = 0
        for chunk in regroup(self._rows(n_rows), n_rows, stack):
            stop = start + len(chunk)
            for what, values in (("labels", labels), ("weights", weights)):
                if values is not None and stop > len(values):
                    self._check_length(what, values, sum(map(len, self._rows(n_rows))))
            here = None if weights is None else weights[start:stop]
            yield self._space(chunk, labels and labels.rows(start, stop), here)
            start = stop
        self._check_count(start)

    def _pieces(self) -> Iterator[Chunk]:
        with reading(self.path):
            yield from self._reader.pieces()

    def _rows(self, n_rows: int) -> Iterator[Chunk]:
        """Yield the rows as they are read from the file, never mapped whole."""
        start, stop = self._span or (0, None)
        with reading(self.path):
            yield from self._reader.rows(start, stop, n_rows)

    def _space(self, chunk: Chunk, labels: Labels | None, weights: Tensor | None) -> Space:
        vectors = as_coordinates(chunk.vectors, self._reader.request)
        try:
            space = Space(vectors, labels=labels, texts=chunk.texts, name=self.name)
        except NotFiniteError:
            raise self._not_finite() from None
        # a block may hold none but rows that do not count, which a whole file may not
        return space if weights is None else weighted(space, weights)

    def _check_count(self, n_read: int) -> None:
        if n_read == 0:
            raise ShapeError(f"{self.path} has no rows", wanted="at least one vector")
        if self.n_rows is not None and n_read != self.n_rows:
            message = f"{self.path} has {n_read:,} vectors where it promises {self.n_rows:,}"
            raise FileError(message, hint="check that it is not truncated")
        self._check_length("labels", self.labels, n_read)
        self._check_length("weights", self.weights, n_read)

    def _check_length(self, what: str, values: Labels | Tensor | None, n_rows: int) -> None:
        if values is not None and len(values) != n_rows:
            raise ShapeError(
                f"has {len(values)} entries for {n_rows} vectors in {self.path} "
                f"({what} from {self.known[what].where})",
                argument=what,
                wanted="one for each vector",
            )

    def _not_finite(self) -> NotFiniteError:
        """Return the error that says which rows of the file have NaN or infinity, and how many."""
        bad: list[int] = []
        n_bad = n_rows = 0
        for chunk in regroup(self._rows(block_rows(self.n_dims)), block_rows(self.n_dims), stack):
            rows = (~torch.isfinite(as_tensor(chunk.vectors))).any(dim=1).nonzero().flatten()
            bad += [n_rows + int(row) for row in rows[: 5 - len(bad)]]
            n_bad += len(rows)
            n_rows += len(chunk)
        return NotFiniteError(
            f"{self.path} has NaN, Inf or missing numbers in {some_rows(bad, n_bad, n_rows)}",
            wanted="finite numbers",
            hint="drop or fill those rows and save the file again",
        )


def open_file(
    path: FilePath,
    *,
    labels: LabelsFrom = None,
    weights: WeightsFrom = None,
    name: str | None = None,
    uncached: bool | None = None,
    **where: Any,
) -> VectorFile:
    """Open one file; labels and weights may be values. `name` is its name in tables, by default the file's.

    uncached: whether rows are let go from the system's cache; None where the file alone decides by its size.
    where: the options of `Request` that say where the vectors are.
    """
    if not (kind(path) in FOLDERS and isinstance(path, Path) and path.is_dir()):
        check_file(path)
    form = formats().get(kind(path))
    if form is None:
        raise no_such_format(path, file_suffixes())
    refuse_options(path, form, where)
    column = labels if isinstance(labels, str) else None  # a Path is a path, whatever columns there are
    beside = weights if isinstance(weights, str) else None
    with reading(path):
        past = fill_memory(path.stat().st_size) if uncached is None else uncached
        reader = form.reader(Request(path, labels=column, weights=beside, uncached=past, **where))
    known = {"labels": Known.of("labels", labels, reader), "weights": Known.of("weights", weights, reader)}
    return VectorFile(reader, known, name)


class LateFile:
    """A file that is opened when it is first read: at an address, or sent to another process.

    At an address only the ranges that are needed are fetched. Where a format is mapped or unpacked, the
    whole file is fetched each time it is read, and deleted afterwards.

    Attributes:
        path: where it is.
        device: the device that rows are read to.
        name: its name in tables.
        notes: empty.
    """

    device = _CPU
    notes: tuple[str, ...] = ()

    def __init__(self, path: FilePath, options: dict[str, Any], span: tuple[int, int] | None = None) -> None:
        self.path = path
        self.name: str | None = options.get("name")
        self._options, self._span = options, span

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return _title(self.path, self._span)

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others: the file as it was listed, and what is read of it."""
        asked = [
            of_knowledge(value) if name in ("labels", "weights") else value
            for name, value in sorted(self._options.items())
        ]
        return [self.title, *of_file(self.path), *asked]

    @property
    def n_rows(self) -> int | None:
        """How many vectors; None before it is opened."""
        return self._file.n_rows if "_file" in vars(self) else None

    @property
    def n_bytes(self) -> int | None:
        """What the vectors take in memory as float32; at most about so many where only the length is told."""
        if "_file" in vars(self) and self._file.n_bytes is not None:
            return self._file.n_bytes
        size = self.path.stat().st_size
        return _WIDENED * size if size else None

    @cached_property
    def n_dims(self) -> int:
        """How many dimensions it has."""
        with self._opened() as file:
            return file.n_dims

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names in the file that can be asked for as labels."""
        with self._opened() as file:
            return file.columns

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of its rows; nothing is fetched where none were named."""
        if self._options.get("labels") is None:
            return None
        with self._opened() as file:
            return file.labels

    @cached_property
    def weights(self) -> Tensor | None:
        """(n,) how often each row counts; nothing is fetched where no weights were named."""
        if self._options.get("weights") is None:
            return None
        with self._opened() as file:
            return file.weights

    def column(self, name: str) -> Sequence[Any]:
        """Read a column of the file, one value a row."""
        with self._opened() as file:
            return file.column(name)

    def table_rows(self) -> TableRows | None:
        """Return the columns beside the vectors; None where the file is no table, or is fetched whole."""
        return self._file.table_rows() if self._can_stay else None

    def reopened(self, **options: Any) -> LateFile:
        """Return the same file with other labels, weights, or options of `open_file`."""
        return LateFile(self.path, changed(self._options, options), self._span)

    def parts(self, n_rows: int) -> list[LateFile]:
        """Return the file itself, as the only part."""
        del n_rows
        return [self]

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield its rows in order."""
        with self._opened() as file:
            yield from file.blocks(n_rows)

    def load(self) -> Space:
        """Read all its rows into memory: a fetched file is deleted, so nothing of it can stay mapped."""
        with self._opened() as file:
            space = file.load()
            return space if self._can_stay else space.with_vectors(space.vectors.clone())

    @property
    def _can_stay(self) -> bool:
        if isinstance(self.path, Path):
            return True
        return formats()[kind(self.path)].by_ranges and self.path.stat().st_size > 0

    @cached_property
    def _file(self) -> VectorFile:
        file = open_file(self.path, **self._options)
        return file.with_known(file.known, self._span)

    @contextmanager
    def _opened(self) -> Iterator[VectorFile]:
        if self._can_stay:
            yield self._file
            return
        assert isinstance(self.path, Address)
        with fetched(self.path) as path:
            yield open_file(path, **self._options)


def changed(options: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return options with others in their place; columns that are no dimensions stay so."""
    apart = dict.fromkeys((*(options.get("by") or ()), *(new.get("by") or ())))
    return {**options, **new, "by": tuple(apart) or None}


def _title(path: FilePath, span: tuple[int, int] | None) -> str:
    return str(path) if span is None else f"{path}, rows {span[0]:,} on"
