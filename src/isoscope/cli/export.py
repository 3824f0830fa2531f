"""`isoscope export FILE --atlas OUT`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.inputs import InputOptions
from isoscope.cli.options import File, Labels, Seed, Texts, written_file
from isoscope.errors import FileError, InputError
from isoscope.printable import counted
from isoscope.terminal import say


def export(
    file: File,
    *,
    atlas: Annotated[
        Path | None,
        written_file(
            "--atlas",
            help="The table to write for Embedding Atlas, .parquet. [required]",
            kinds=(".parquet",),
        ),
    ] = None,
    labels: Labels = None,
    texts: Texts = None,
    projection: Annotated[
        str,
        typer.Option(
            "--projection",
            help="How rows are placed in the plane: principal, UMAP or PaCMAP.",
            metavar="NAME",
        ),
    ] = "principal",
    k: Annotated[
        int,
        typer.Option("--neighbors", "-k", help="Nearest neighbours of each row; 0 for none.", metavar="N"),
    ] = 15,
    metric: Annotated[
        str, typer.Option("--metric", help="Distance between neighbours: cosine or euclidean.")
    ] = "cosine",
    source: InputOptions,
    seed: Seed = 0,
) -> None:
    """Write the vectors in FILE as a table that Embedding Atlas shows as a map.

    The table has the place of each row in the plane, its exact nearest neighbours, text and label, and the
    other columns of FILE where it is a table. The command that opens it is printed.

    **Examples**

    A table with texts and labels: `isoscope export table.parquet --atlas atlas.parquet -l topic --texts body`

    Texts, encoded: `isoscope export reviews.jsonl --model all-MiniLM-L6-v2 -l label --atlas atlas.parquet`
    """
    if atlas is None:
        raise InputError(
            "is missing",
            argument="atlas",
            wanted="the .parquet file to write",
            hint=f"isoscope export {shlex.quote(file)} --atlas atlas.parquet",
        )
    if atlas.exists() and Path(file).exists() and atlas.samefile(file):
        raise FileError(f"{atlas} is the file that is read", wanted="another name to write to")
    from isoscope.report.atlas import atlas_command, n_without_neighbors, save_atlas

    written = save_atlas(
        source.open(file, labels=labels),
        atlas,
        texts=texts,
        projection=projection,
        k=k,
        metric=metric,
        seed=seed,
    )
    if n_rows := n_without_neighbors(written):
        what = f"{counted(n_rows, 'row')} {'has' if n_rows == 1 else 'have'} no neighbours"
        say(f"note: {what}: a zero vector has no direction")
    say(f"wrote {written}")
    say(f"to open it: {atlas_command(written)}")
