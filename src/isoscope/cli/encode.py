"""`isoscope encode TEXTS`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.inputs import EncodingOptions
from isoscope.cli.options import Json, Labels, written_file
from isoscope.errors import InputError
from isoscope.io.targets import KINDS
from isoscope.terminal import say, show_json

_MODEL = "all-MiniLM-L6-v2"


def encode(
    file: Annotated[
        Path,
        typer.Argument(
            help="Texts: .txt (one a line), .jsonl, .json, .csv, .tsv, .parquet, .arrow or .feather.",
            metavar="TEXTS",
            show_default=False,
        ),
    ],
    *,
    output: Annotated[
        Path,
        written_file(
            "--output",
            "-o",
            help="Where to write the vectors: .npy, .npz, .safetensors or .parquet.",
            kinds=KINDS,
        ),
    ],
    labels: Labels = None,
    encoding: EncodingOptions,
    json: Json = False,
) -> None:
    """Encode texts with a model, and write one vector for each.

    A .parquet file has the columns `vector`, `text`, `label` and every other column of TEXTS. A .npz file has
    the vectors, the texts and the labels. Vectors are cached on disk: a run that was interrupted continues
    where it stopped, and texts that were encoded before are not encoded again. The model is all-MiniLM-L6-v2
    unless --model names another.

    **Examples**

    One vector for each line: `isoscope encode reviews.txt -o vectors.npy`

    A column of a table, with labels: `isoscope encode reviews.csv --labels stars -o reviews.parquet`

    A model of your own, on a GPU: `isoscope encode docs.jsonl --model ./my-model --device cuda -o docs.npy`

    Then measure them (the labels are now in the column `label`): `isoscope measure reviews.parquet --labels
    label`
    """
    from isoscope.io.writers import save, write_blocks

    if output.exists() and file.exists() and output.samefile(file):
        raise InputError(
            f"{output} is the input file; choose another file for the vectors", argument="output"
        )
    if labels is not None and output.suffix.lower() == ".npy":
        raise InputError(
            "cannot be written to a .npy file, which holds only vectors",
            argument="labels",
            hint="write a .parquet file",
        )
    source = encoding.texts(file, encoding.model or _MODEL, labels)
    space = source.load()
    rows = source.table_rows() if output.suffix.lower() == ".parquet" else None
    if rows is None:
        save(space, output)
    else:
        write_blocks([space], output, table=rows)
    if json:
        about = {"file": str(file), "model": source.model, "n_rows": len(space), "n_dims": space.n_dims}
        show_json({**about, "output": str(output), "notes": list(source.notes)})
        return
    for note in source.notes:
        say(f"note: {note}")
    say(f"wrote {output}: {len(space):,} vectors of {space.n_dims:,} dimensions")
