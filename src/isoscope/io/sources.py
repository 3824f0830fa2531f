"""`open_vectors` and `read`: vectors in one file or several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isoscope.arguments import renamed
from isoscope.errors import InputError
from isoscope.frames import as_frame
from isoscope.io.addresses import is_many
from isoscope.io.label_files import locate
from isoscope.io.row_knowledge import at_hand
from isoscope.io.shards import VectorShards
from isoscope.io.store_addresses import StoreAddress, store_at
from isoscope.io.text_files import read_texts
from isoscope.io.vector_files import VectorFile, open_file
from isoscope.space import Space
from isoscope.table_columns import as_choice


@renamed(vector_column="vectors")
def open_vectors(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    vectors: str | None = None,
    columns: str | Sequence[str | int] | None = None,
    exclude: str | Sequence[str | int] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    unpack_bits: bool | None = None,
    labels: Any = None,
    weights: Any = None,
    by: str | Sequence[str] | None = None,
    skip_bad: bool = False,
) -> VectorFile | VectorShards:
    """Open one file of vectors, or several: format and shape are checked, and no vector is read yet.

    Args:
        path: .npy, .npz, .safetensors, .pt, .parquet, .arrow, .feather, .csv, .tsv, .json, .jsonl (perhaps
            .gz), .h5, .hdf5, .fvecs, .bvecs, .faiss, .duckdb, word2vec text or .bin, GloVe .txt, .vec or
            .glove, or a .zarr or .lance folder. A folder of Chroma, or an address of a server
            (`qdrant://host:6333/collection`, `chroma://host:8000/collection`,
            `postgresql://user@host/database`), is a store, which is only read. A folder of files,
            a pattern (`shards/*.parquet`) or an address (`s3://bucket/part-*.npy`, through fsspec) stands for
            several files, which are read in the order of the numbers in their names. Nothing is unpickled.
        key: the array of a .npz, .safetensors, .pt, .zarr or .hdf5 file that holds the vectors, where it has
            several arrays of two axes; the table of a database; the collection of a store.
        vectors: the column of a table that holds the vectors, where it has several columns of lists.
        columns: the columns of a table that are dimensions: names, places from 0, ranges (`"d0:d767"`), or
            all (`":"`). By default these are the columns of numbers, without those whose names are of
            identifiers, labels or times. A column that may be either is an error.
        exclude: columns of a table that are no dimensions, named in the same way.
        header: whether the first line of a .csv or .tsv file has names; by default inferred.
        delimiter: the character between the cells of a .csv or .tsv file; by default inferred.
        decimal: the decimal mark of a .csv or .tsv file, `"."` or `","`.
        unpack_bits: whether each byte is eight dimensions of 0 or 1 (True) or one number (False). By default
            bytes above 127 (uint8) are an error.
        labels: a column or array of the file, else another file (`file.csv:topic` for a column of it), or the
            labels themselves, one a row.
        weights: how often each row counts: a column, a file or values, like labels.
        by: columns that `measure(…, by=…)` slices by. They are no dimensions.
        skip_bad: leave out files that cannot be opened, where there are several, with a note.

    Raises:
        FileError: a file is absent, empty, broken, of an unknown format, or would have to be unpickled.
        ShapeError: its shape is not (n, d), or its dimensions differ from those of other files.
    """
    if isinstance(path, str) and not path.strip():
        raise InputError(argument="path", got=path, wanted="the path of a file, a folder or an address")
    options: dict[str, Any] = {
        "key": key,
        "vectors": vectors,
        "columns": as_choice(columns),
        "exclude": as_choice(exclude),
        "header": header,
        "delimiter": delimiter,
        "decimal": decimal,
        "unpack_bits": unpack_bits,
        "labels": at_hand("labels", labels),
        "weights": at_hand("weights", weights),
        "by": (by,) if isinstance(by, str) else by and tuple(by),
    }
    if (store := store_at(path)) is not None:
        return open_file(store, **options)
    if is_many(path):
        return VectorShards.of(os.fspath(path), skip_bad=skip_bad, **options)
    return open_file(Path(path), **options)


def open_store(
    store: Any, *, key: str | None = None, vectors: str | None = None, **options: Any
) -> VectorFile:
    """Open a collection of a client that you have opened: a QdrantClient, or a client of Chroma.

    Args:
        store: the client. Nothing is written through it.
        key: the name of the collection, where there are several.
        vectors: the name of the vector, where points have several.
        options: `labels`, `weights` and `by`, as `open_vectors` takes them.

    Returns:
        A VectorFile, which every call of isoscope takes as vectors.

    Raises:
        InputError: the client is of no known store.
    """
    suffix = {"qdrant_client": ".qdrant", "chromadb": ".chroma"}.get(type(store).__module__.partition(".")[0])
    if suffix is None:
        wanted = "a QdrantClient or a client of Chroma"
        raise InputError(argument="store", got=type(store).__name__, wanted=wanted)
    place = StoreAddress(f"{suffix[1:]} client", suffix, key or suffix[1:], live=store)
    return open_file(place, key=key, vectors=vectors, **options)


@renamed(vector_column="vectors")
def read(path: str | os.PathLike[str], **options: Any) -> Space:
    """Return the vectors in a file, or in many, as a Space: `open_vectors(path, …).load()`.

    Args:
        path: the file, folder, pattern or address.
        options: the other arguments of `open_vectors`.

    Returns:
        A Space. `np.asarray(space)` and `space.X` are the vectors in NumPy, `space.y` the labels, and
        `space.vectors` is the torch tensor.
    """
    return open_vectors(path, **options).load()


def row_values(X: Any, given: Any, argument: str, *, vectors: str | None = None) -> Any:
    """Return one value a row: those given, or those of a column of X or of a file that `given` names.

    Args:
        X: vectors, the path of a file, an opened file, or a data frame.
        given: a column of X, a file, or the values.
        argument: what it was given as: "labels", "texts", ….
        vectors: the column of a file that holds the vectors.

    Raises:
        FileError: there is no such column or file.
    """
    if not isinstance(given, str | os.PathLike):
        return given
    if isinstance(X, str | os.PathLike):
        X = open_vectors(X, by=os.fspath(given), vectors=vectors)
    frame = as_frame(X)
    names: Sequence[str] = ()
    read: Any = None
    title = "X"
    if frame is not None:
        names, read = frame.names, frame.values
    elif hasattr(type(X), "blocks"):
        names, read, title = X.columns, X.column, X.title
    values, _ = locate(
        given, of=title, columns=names, read=read, argument=argument, read_file=_READ_FILE.get(argument)
    )
    return values()


_READ_FILE = {
    "texts": lambda file, column: read_texts(file, column=column),
    "partners": lambda file, column: open_vectors(file, key=column).load().vectors,
}
