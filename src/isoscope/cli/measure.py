"""`isoscope measure FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.options import Json, Key, VectorColumn, complete_metrics
from isoscope.io import open_vectors
from isoscope.measure import measure as measure_space

_EPILOG = """
**Examples**

Everything there is to say by default: `isoscope measure vectors.npy`

With labels, one a line: `isoscope measure vectors.npy --labels labels.txt`

Labels from a column of the same file: `isoscope measure table.parquet --labels topic`

Two numbers, for a script: `isoscope measure vectors.npy -m isoscore,mean_cosine --json`

Whole families: `isoscope measure vectors.npy -m isotropy -m manifold`
"""


def measure(
    file: Annotated[
        str,
        typer.Argument(
            help="Vectors: .npy .npz .safetensors .pt .parquet .arrow .feather .csv .tsv .txt .vec .bin",
            metavar="FILE",
            show_default=False,
        ),
    ],
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            "-l",
            help="A column of FILE, a file with one label a line, or FILE.csv:column.",
            metavar="WHERE",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            help="Names or families, comma-separated or repeated; `all`; `isoscope metrics` lists them.",
            autocompletion=complete_metrics,
            metavar="NAMES",
        ),
    ] = None,
    key: Key = None,
    vector_column: VectorColumn = None,
    errors: Annotated[
        bool,
        typer.Option("--errors/--no-errors", help="Standard errors and intervals, from a second pass."),
    ] = True,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything sampled.")] = 0,
    json: Json = False,
) -> None:
    """Measure the vectors in FILE and say what the numbers mean.

    Metrics that can stream read the file in blocks, so it may be larger than memory.
    """
    source = open_vectors(Path(file), key=key, vector_column=vector_column, labels=labels)
    measurement = measure_space(source, metrics=metrics, errors=errors, seed=seed)
    if json:
        typer.echo(measurement.to_json())
        return
    from rich.console import Console

    console = Console()
    console.print(measurement.table())
    for note in measurement.notes:
        console.print(f"note: {note}", markup=False, highlight=False)


measure.__doc__ = f"{measure.__doc__}\n{_EPILOG}"
