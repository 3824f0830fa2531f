"""`VectorFile`: a file of vectors of any known format, whole or in blocks."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from isoscope.arrays import as_tensor, block_rows
from isoscope.engine.source import Wrapped
from isoscope.errors import FileError, InputError, NotFiniteError, ShapeError
from isoscope.io.chunks import Chunk, Reader, Request, regroup, stack
from isoscope.io.files import check_file, kind, listed, reading, stem
from isoscope.io.formats import FORMATS, refuse_options
from isoscope.io.identity import of_file, of_knowledge
from isoscope.io.packed_bits import as_coordinates
from isoscope.io.raw_rows import fill_memory
from isoscope.io.row_knowledge import LabelsFrom, RowKnowledge, WeightsFrom, as_numbers, known_rows
from isoscope.io.table_rows import TableRows
from isoscope.labels import Labels, as_labels
from isoscope.space import Space, as_weights, weighted
from isoscope.table_columns import as_choice

if TYPE_CHECKING:
    from isoscope.io.shards import VectorShards

_K = TypeVar("_K", Labels, Tensor)


class VectorFile:
    """A file of vectors, opened far enough to know its shape; reading starts with `blocks` or `load`.

    Attributes:
        path: the file.
        n_rows: how many vectors, or None where only reading to the end tells (CSV, GloVe, Arrow streams).
        n_dims: how many dimensions.
        notes: what a user should know about how the file was taken, such as columns left out.
    """

    def __init__(self, reader: Reader, about: RowKnowledge, span: tuple[int, int] | None = None) -> None:
        self.path: Path = reader.path
        self.n_rows: int | None = reader.n_rows if span is None else span[1] - span[0]
        self.n_dims: int = reader.n_dims * (8 if reader.request.unpack_bits else 1)
        self.notes: list[str] = reader.notes
        self._reader = reader
        self._about = about
        self._span = span

    def __repr__(self) -> str:
        rows = "?" if self.n_rows is None else f"{self.n_rows:,}"
        return f"VectorFile({self.path.name}, {rows} × {self.n_dims})"

    def __reduce__(self) -> tuple[Any, ...]:
        return SentFile, (self._reader.request, self._about.asked, self._span, self.title)

    @property
    def name(self) -> str:
        """What to call it in tables: as it was named, else after the file."""
        return self._about.name or stem(self.path)

    @property
    def device(self) -> torch.device:
        """Rows are read on the CPU."""
        return torch.device("cpu")

    def column(self, name: str) -> Sequence[Any]:
        """One value a row of a column of the file."""
        if name not in self.columns:
            raise FileError(f"{self.path} has no column {name!r}; it has {listed(self.columns) or 'none'}")
        with reading(self.path):
            values: Sequence[Any] = self._reader.label_values(name)
        return values if self._span is None else values[slice(*self._span)]

    @property
    def title(self) -> str:
        """What to call it in a message: the file, and which of its rows where not all are meant."""
        return str(self.path) if self._span is None else f"{self.path}, rows {self._span[0]:,} on"

    def parts(self, n_rows: int) -> list[VectorFile]:
        """Pieces of about n_rows that can each be read alone; the file itself where it is read through."""
        total = self._reader.n_rows
        if self._span is not None or total is None or not self._reader.seeks or total <= n_rows:
            return [self]
        n_parts = -(-total // n_rows)
        cuts = [total * part // n_parts for part in range(n_parts + 1)]
        return [VectorFile(self._reader, self._about_rows(span), span) for span in itertools.pairwise(cuts)]

    def _about_rows(self, span: tuple[int, int]) -> RowKnowledge:
        """What is known of some rows, at hand: else every part would read it for the whole file."""
        if self.labels is None and self.weights is None:
            return self._about
        labels = None if self.labels is None else known_rows(self.labels, *span)
        weights = None if self.weights is None else known_rows(self.weights, *span)
        return RowKnowledge.of(self._reader, labels, weights, self._about.name)

    @property
    def identity(self) -> list[Any]:
        """What tells these rows from others: the file as it is now, and what is read of it."""
        request, (labels, weights, _) = self._reader.request, self._about.asked
        known = [of_knowledge(labels), of_knowledge(weights)]
        return [self.title, self.n_rows, *of_file(self.path), *request.where().values(), *known]

    @property
    def n_bytes(self) -> int | None:
        """What the vectors take in memory as float32, or None where the number of rows is unknown."""
        return None if self.n_rows is None else 4 * self.n_rows * self.n_dims

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of all rows, read once; None where none were named."""
        return self._known(self._about.labels, self._labels_of, self._about.labels_from)

    @cached_property
    def weights(self) -> Tensor | None:
        """(n,) how often each row counts; None where no weights were named."""
        return self._known(self._about.weights, self._weights_of, self._about.weights_from)

    def _labels_of(self, values: Any) -> Labels:
        return as_labels(values, name=f"labels ({self._about.labels_from})")

    def _weights_of(self, values: Any) -> Tensor:
        name = f"weights ({self._about.weights_from})"
        return as_weights(as_numbers(values, name=name), n=len(values), name=name)

    def _known(self, read: Callable[[], Any] | None, made: Callable[[Any], _K], source: str) -> _K | None:
        """What is known of each row, from a column or a file of its own."""
        if read is None:
            return None
        with reading(self.path):
            known = made(read())
        if self.n_rows is not None:
            self._check_length(known, self.n_rows, source)
        return known

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in the file that can be asked for as labels."""
        return self._reader.columns

    def table_rows(self) -> TableRows | None:
        """The columns beside the vectors, row by row; None where the file is no table, or a part of one."""
        return self._reader.table_rows() if self._span is None else None

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """The file in blocks of n_rows vectors, in order; each call begins at the first row.

        Memory is bounded by the block, not by the file. Each block has its labels, under the names of the
        whole file. By default a block is about 16 MB of float32.
        """
        if n_rows is not None and n_rows < 1:
            raise InputError(f"n_rows is {n_rows}; wanted at least one vector a block")
        return self._blocks(n_rows or block_rows(self.n_dims))

    def load(self) -> Space:
        """The whole file as one Space; .npy, .safetensors and .pt stay on disk, mapped into memory."""
        labels, weights = self.labels, self.weights
        with reading(self.path):
            pieces = list(self._pieces() if self._span is None else self._rows(block_rows(self.n_dims)))
            self._check_count(sum(map(len, pieces)), labels)
            return self._space(stack(pieces), labels, weights)

    def _blocks(self, n_rows: int) -> Iterator[Space]:
        labels, weights = self.labels, self.weights
        start = 0
        for chunk in regroup(self._rows(n_rows), n_rows):
            stop = start + len(chunk)
            for known, source in ((labels, self._about.labels_from), (weights, self._about.weights_from)):
                if known is not None and stop > len(known):
                    self._check_length(known, sum(map(len, self._rows(n_rows))), source)
            here = None if weights is None else weights[start:stop]
            yield self._space(chunk, labels and labels.rows(start, stop), here)
            start = stop
        self._check_count(start, labels)

    def _pieces(self) -> Iterator[Chunk]:
        with reading(self.path):
            yield from self._reader.pieces()

    def _rows(self, n_rows: int) -> Iterator[Chunk]:
        """The rows as they are read from the file, never mapped whole."""
        start, stop = self._span or (0, None)
        with reading(self.path):
            yield from self._reader.rows(start, stop, n_rows)

    def _space(self, chunk: Chunk, labels: Labels | None, weights: Tensor | None) -> Space:
        # a block may hold none but rows that do not count, which a whole file may not
        bare: dict[str, Any] = {
            "labels": labels,
            "texts": chunk.texts,
            "name": self.name,
        }
        try:
            space = Space(as_coordinates(chunk.vectors, self._reader.request), **bare)
        except NotFiniteError:
            raise NotFiniteError(self._not_finite()) from None
        return space if weights is None else weighted(space, weights)

    def _check_count(self, n_read: int, labels: Labels | None) -> None:
        if n_read == 0:
            raise ShapeError(f"{self.path} has no rows; wanted at least one vector")
        if self.n_rows is not None and n_read != self.n_rows:
            raise FileError(
                f"{self.path} has {n_read:,} vectors where it promises {self.n_rows:,}: is it truncated?"
            )
        if labels is not None:
            self._check_length(labels, n_read, self._about.labels_from)
        if self.weights is not None:
            self._check_length(self.weights, n_read, self._about.weights_from)

    def _check_length(self, known: Labels | Tensor, n_rows: int, source: str) -> None:
        if len(known) != n_rows:
            what = "labels" if isinstance(known, Labels) else "weights"
            raise ShapeError(
                f"{what} has {len(known)} entries for {n_rows} vectors in {self.path} "
                f"({what} from {source}); wanted one for each vector"
            )

    def _not_finite(self) -> str:
        """Which rows of the file are bad, and how many: the whole file is looked through."""
        bad: list[int] = []
        n_bad = n_rows = 0
        for chunk in regroup(self._rows(block_rows(self.n_dims)), block_rows(self.n_dims)):
            rows = (~torch.isfinite(as_tensor(chunk.vectors))).any(dim=1).nonzero().flatten()
            bad += [n_rows + int(row) for row in rows[: 5 - len(bad)]]
            n_bad += len(rows)
            n_rows += len(chunk)
        shown = ", ".join(map(str, bad)) + (", …" if n_bad > len(bad) else "")
        return (
            f"{self.path} has NaN, Inf or missing numbers in {n_bad} of {n_rows} rows "
            f"(row {shown}, counting from 0); wanted finite numbers: drop or fill those rows and save again"
        )


def open_vectors(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    vector_column: str | None = None,
    columns: str | Sequence[str | int] | None = None,
    exclude: str | Sequence[str | int] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    unpack_bits: bool | None = None,
    labels: str | os.PathLike[str] | None = None,
    weights: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
) -> VectorFile | VectorShards:
    """Open vectors in a file, or in many: kind and shape are checked, the vectors not yet read.

    Args:
        path: .npy, .npz, .safetensors, .pt, .parquet, .arrow, .feather, .csv, .tsv, .json, .jsonl (perhaps
            .gz), word2vec text or .bin, GloVe .txt, .vec or .glove, a .zarr folder. A folder of such files, a
            pattern (`shards/*.parquet`) or an address (`s3://bucket/part-*.npy`, `memory://…`, through
            fsspec) is many, in the order of the numbers in their names. Nothing is ever unpickled.
        key: which array of a .npz, .safetensors, .pt or .zarr, where it has several of two axes.
        vector_column: which column of lists of a table, where it has several.
        columns: which columns of a table are dimensions: names, places from 0, ranges (`"d0:d767"`), every
            one (`":"`). By default the columns of numbers, those left out that have names of identifiers,
            labels or times; a column that may be either is an error.
        exclude: columns of a table that are no dimensions, named likewise.
        header: whether the first line of a .csv or .tsv file has names; by default judged by the first rows.
        delimiter: what lies between the cells of a .csv or .tsv file.
        decimal: the decimal mark of a .csv or .tsv file, `"."` or `","`.
        unpack_bits: whether bytes are eight dimensions of 0 or 1 each (True), or numbers (False); by default
            bytes above 127 (uint8) are an error.
        labels: a column or array of the same file, else a file of labels (`file.csv:topic` for a column).
        weights: how often each row counts; a column or a file, as labels.
        skip_bad: leave out files of many that cannot be opened, with a note.

    Raises:
        FileError: a file is absent, empty, broken, of an unknown kind, or would have to be unpickled.
        ShapeError: what it holds is not (n, d), or not of the others' d.
    """
    from isoscope.io.shards import VectorShards, is_many

    options: dict[str, Any] = {
        "key": key,
        "vector_column": vector_column,
        "columns": as_choice(columns),
        "exclude": as_choice(exclude),
        "header": header,
        "delimiter": delimiter,
        "decimal": decimal,
        "unpack_bits": unpack_bits,
        "labels": labels,
        "weights": weights,
    }
    if is_many(path):
        return VectorShards.of(os.fspath(path), skip_bad=skip_bad, **options)
    return open_file(Path(path), **options)


def open_file(
    path: Path,
    *,
    labels: LabelsFrom = None,
    weights: WeightsFrom = None,
    name: str | None = None,
    uncached: bool | None = None,
    **where: Any,
) -> VectorFile:
    """One file; labels and weights may be at hand already. `name` is for tables, else after the file.

    uncached: whether rows are read past the system's cache; None where the file alone decides by its size.
    where: the options of `Request` that say where the vectors are.
    """
    if not (kind(path) == ".zarr" and path.is_dir()):
        check_file(path)
    form = FORMATS.get(kind(path))
    if form is None:
        raise FileError(f"{path} is of an unknown kind {kind(path)!r}; wanted one of {', '.join(FORMATS)}")
    refuse_options(path, form, where)
    column = labels if isinstance(labels, str) else None  # a Path is a path, whatever columns there are
    beside = weights if isinstance(weights, str) else None
    with reading(path):
        past = fill_memory(path.stat().st_size) if uncached is None else uncached
        reader = form.reader(Request(path, labels=column, weights=beside, uncached=past, **where))
    return VectorFile(reader, RowKnowledge.of(reader, labels, weights, name))


def read(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    vector_column: str | None = None,
    columns: str | Sequence[str | int] | None = None,
    exclude: str | Sequence[str | int] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    unpack_bits: bool | None = None,
    labels: str | os.PathLike[str] | None = None,
) -> Space:
    """Vectors in a file, or in many, as a Space: `open_vectors(...).load()`, with the same arguments."""
    return open_vectors(
        path,
        key=key,
        vector_column=vector_column,
        columns=columns,
        exclude=exclude,
        header=header,
        delimiter=delimiter,
        decimal=decimal,
        unpack_bits=unpack_bits,
        labels=labels,
    ).load()


class SentFile(Wrapped):
    """A file as another process gets it: by name, opened there when it is first read.

    Attributes:
        title: what to call it in a message.
    """

    title = ""

    def __init__(
        self,
        request: Request,
        asked: tuple[LabelsFrom, WeightsFrom, str | None],
        span: tuple[int, int] | None,
        title: str,
    ) -> None:
        self.title = title
        self._request, self._asked, self._span = request, asked, span

    @cached_property
    def source(self) -> VectorFile:  # type: ignore[override]
        """The file, opened."""
        labels, weights, name = self._asked
        request = self._request
        known: dict[str, Any] = {"labels": labels, "weights": weights, "name": name}
        file = open_file(request.path, **known, uncached=request.uncached, **request.where())
        return file if self._span is None else VectorFile(file._reader, file._about, self._span)
