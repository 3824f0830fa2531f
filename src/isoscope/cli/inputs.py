"""How commands open FILE: vectors, or texts with the model that encodes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.options import TextColumn, complete_models
from isoscope.errors import FileError, InputError, Setting

if TYPE_CHECKING:
    from isoscope.engine.source import Source
    from isoscope.models import TextFile
    from isoscope.queries import Queries

_EACH = 2  # rows that labels have at least, on average
_MODEL = Setting("model", "all-MiniLM-L6-v2", to="encode its texts")


@dataclass(frozen=True)
class VectorOptions:
    """How the vectors are stored in FILE; None where an option was not given."""

    panel = "How the vectors are stored"

    key: Annotated[
        str | None,
        typer.Option("--key", help="The array of an .npz, .safetensors or .pt file.", metavar="NAME"),
    ] = None
    vectors: Annotated[
        str | None,
        typer.Option(
            "--vectors", "--vector-column", help="The column of a table that holds vectors.", metavar="NAME"
        ),
    ] = None
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            help="Columns of a table that are dimensions: names, ranges (d0:d767), : for every one.",
            metavar="NAMES",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="Columns of a table that are not dimensions.", metavar="NAMES"),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether a .csv or .tsv begins with names. [default: inferred]"
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option("--delimiter", help="Separates the cells of a .csv, such as ; or tab.", metavar="MARK"),
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", help="The decimal mark of a .csv: . or ,", metavar="MARK")
    ] = None
    unpack_bits: Annotated[
        bool | None,
        typer.Option(
            "--unpack-bits/--no-unpack-bits", help="Whether each byte is eight dimensions, or a number."
        ),
    ] = None

    def of_vectors(self) -> dict[str, Any]:
        """Return the options for vectors that were given."""
        return _given(self, (field.name for field in fields(VectorOptions)))

    def words(self) -> list[str]:
        """Return the options for vectors as words of a command line."""
        return self._words(self.of_vectors())

    @staticmethod
    def _words(given: dict[str, Any]) -> list[str]:
        words = []
        for name, value in given.items():
            option = name.replace("_", "-")
            if isinstance(value, bool):
                words.append(f"--{option}" if value else f"--no-{option}")
            else:
                values = value if isinstance(value, list) else [value]
                words += [word for one in values for word in (f"--{option}", str(one))]
        return words

    def open_vectors(self, file: str | Path, **more: Any) -> Source:
        """Open the vectors in FILE."""
        from isoscope.io import VectorFile, open_vectors
        from isoscope.space import as_counts

        opened = open_vectors(file, **self.of_vectors(), **more)
        if self.columns and opened.n_dims == 1:
            raise InputError(
                "names 1 column",
                argument="columns",
                wanted="2 or more, one for each dimension",
                hint="give a range, such as d0:d767",
            )
        if isinstance(opened, VectorFile) and opened.weights is not None:  # of many files one may hold little
            as_counts(opened.weights, n=len(opened.weights), name=f"--weights {more['weights']}")
        return opened


@dataclass(frozen=True)
class EncodingOptions:
    """How the texts in FILE are encoded; None where an option was not given."""

    panel = "How texts are encoded"

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Encode the texts in FILE by this model: a name (all-MiniLM-L6-v2), a folder, or a hub id.",
            metavar="NAME",
            autocompletion=complete_models,
        ),
    ] = None
    text_column: TextColumn = None
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix", help='Put before each text, as some models want it: "query: ".', metavar="TEXT"
        ),
    ] = None
    pooling: Annotated[
        str | None,
        typer.Option(
            "--pooling",
            help="How tokens become one vector: mean, cls, max, …. [default: as the model says]",
            metavar="HOW",
        ),
    ] = None
    normalize: Annotated[
        bool | None,
        typer.Option(
            "--normalize/--no-normalize", help="Scale vectors to length 1. [default: as the model says]"
        ),
    ] = None
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", help="Texts encoded at a time. [default: 64]", metavar="N")
    ] = None
    download: Annotated[
        bool | None,
        typer.Option("--download", help="Allow the download of a model that is not on this machine."),
    ] = None
    device: Annotated[
        str | None,
        typer.Option(
            "--device", help="Where to compute: cpu, cuda, or cuda:0,cuda:1 together.", metavar="DEVICE"
        ),
    ] = None

    def of_texts(self) -> dict[str, Any]:
        """Return the options for texts that were given, except the model and the device."""
        names = ("text_column", "prefix", "pooling", "normalize", "batch_size", "download")
        return _given(self, names)

    def texts(self, path: Path, model: str, labels: str | None) -> TextFile:
        """Open the texts in FILE, to be encoded by a model."""
        from isoscope.io.files import check_file, kind
        from isoscope.io.formats import formats
        from isoscope.io.tables import KINDS
        from isoscope.models import open_texts

        check_file(path, what="texts")
        if kind(path) in formats() and kind(path) not in KINDS:
            raise FileError(
                f"{path} contains vectors, which need no model", wanted=f"texts in {', '.join(KINDS)}"
            )
        device: dict[str, Any] = {} if self.device is None else {"device": self.device}
        return open_texts(path, model=model, labels=labels, **self.of_texts(), **device)


@dataclass(frozen=True)
class InputOptions(EncodingOptions, VectorOptions):
    """How FILE is read: vectors, or texts that a model encodes; None where an option was not given."""

    def text_words(self) -> list[str]:
        """Return the options for texts, the model and the device as words of a command line."""
        return self._words(_given(self, ("model", "device")) | self.of_texts())

    def open(
        self,
        file: str,
        *,
        labels: str | None = None,
        weights: str | None = None,
        by: Sequence[str] | None = None,
        skip_bad: bool = False,
    ) -> Source:
        """Open FILE: its texts where a model is given to encode them, else its vectors."""
        if self.model is not None:
            for name in self.of_vectors() | ({} if weights is None else {"weights": weights}):
                raise InputError("cannot be combined with --model, which encodes texts", argument=name)
            return self.texts(Path(file), self.model, labels)
        for name in self.of_texts():
            raise InputError("needs --model NAME, which encodes the texts in FILE", argument=name)
        chosen = {"key", "vectors", "columns", "delimiter"} & set(self.of_vectors())
        if not chosen and _has_only_texts(file):
            raise FileError(f"{file} has texts, not vectors", hint=_MODEL)
        source = self.open_vectors(file, labels=labels, weights=weights, by=by, skip_bad=skip_bad)
        if self.device is None:
            return source
        from isoscope.engine.on_device import OnDevice

        return OnDevice(source, self.device)


@dataclass(frozen=True)
class SearchOptions:
    """Queries beside the documents in FILE, and what is relevant to each; None where not given."""

    panel = "Queries"
    ids_option = "ids"

    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            help="Queries: vectors, or texts with --model; FILE has the documents.",
            metavar="FILE",
        ),
    ] = None
    relevance: Annotated[
        str | None,
        typer.Option(
            "--relevance",
            help="What is relevant to a query: documents with the same value in a column of both files "
            "(topic; answer=id), or a file of pairs (query,document,score).",
            metavar="WHERE",
        ),
    ] = None
    query_prefix: Annotated[
        str | None,
        typer.Option("--query-prefix", help="The --prefix of queries, where it differs.", metavar="TEXT"),
    ] = None

    @property
    def pair_ids(self) -> str | None:
        """The column that pairs name; None where they name rows."""
        return None

    @property
    def columns(self) -> list[str]:
        """The columns of FILE that are named, which are no dimensions."""
        from isoscope.queries.opened import columns_of

        return [side[1] for side in columns_of(self.relevance, self.pair_ids)]

    def open(self, documents: Source, source: InputOptions) -> Queries | None:
        """Return the queries beside documents, read as FILE is; None where none are given."""
        from isoscope.queries.opened import as_queries, columns_of

        if self.queries is None:
            for name in _given(self, ("relevance", "pair_ids", "query_prefix")):
                option = self.ids_option if name == "pair_ids" else name
                raise InputError("needs --queries FILE", argument=option)
            return None
        if self.query_prefix is not None and source.model is None:
            raise InputError("needs --model NAME, which encodes texts", argument="query_prefix")
        prefixed = source if self.query_prefix is None else replace(source, prefix=self.query_prefix)
        named = [side[0] for side in columns_of(self.relevance, self.pair_ids)]
        opened = prefixed.open(self.queries, by=named or None)
        return as_queries(opened, documents, relevance=self.relevance, ids=self.pair_ids)


@dataclass(frozen=True)
class QueryOptions(SearchOptions):
    """Queries, and pairs that may name identifiers."""

    ids: Annotated[
        str | None,
        typer.Option(
            "--ids", help="The column of both files that pairs name. [default: rows from 0]", metavar="COLUMN"
        ),
    ] = None

    @property
    def pair_ids(self) -> str | None:
        """The column that pairs name."""
        return self.ids


def _given(options: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(options, name)) not in (None, [])}


def notes_of(source: Source) -> list[str]:
    """Return how the input was read, a line each."""
    from isoscope.labels import label_notes

    labels = source.labels
    notes = [*source.notes, *([] if labels is None else label_notes(labels, n=len(labels)))]
    return [f"note: {note}" for note in notes]


def label_columns(source: Source) -> list[str]:
    """Return the columns of a table that may hold labels: whole numbers or texts, most of them repeated.

    They are judged by the first rows.
    """
    from isoscope.frames import arrow_kind
    from isoscope.io import VectorFile
    from isoscope.table_columns import TEXTS

    rows = source.table_rows() if isinstance(source, VectorFile) else None
    first = None if rows is None or not rows.others else next(rows.read(), None)
    if first is None:
        return []
    columns = {
        name: column
        for name, column in zip(first.schema.names, first.columns, strict=True)
        if arrow_kind(column.type) in ("i", "b", TEXTS)
    }
    return [name for name, column in columns.items() if 2 <= len(column.unique()) <= len(first) / _EACH]


def _has_only_texts(file: str) -> bool:
    from isoscope.io.addresses import is_many
    from isoscope.io.files import FOLDERS, check_file, kind
    from isoscope.io.text_files import holds_texts

    if is_many(file) or kind(Path(file)) in FOLDERS:
        return False
    check_file(Path(file))
    try:
        return holds_texts(Path(file))
    except InputError:  # broken: the reader of vectors says how
        return False
