"""`isoscope measure FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.inputs import TextOptions, open_input
from isoscope.cli.options import (
    BatchSize,
    Download,
    EncodingDevice,
    Json,
    Key,
    LabelsWhere,
    Model,
    Normalize,
    Plugin,
    Pooling,
    Prefix,
    TextColumn,
    VectorColumn,
    as_typed,
    complete_metrics,
    load_plugins,
)
from isoscope.cli.table_options import AS_JUDGED, TableOptions, takes_tables
from isoscope.engine.measure import measure as measure_space
from isoscope.terminal import show_json

_EPILOG = """
**Examples**

Everything there is to say by default: `isoscope measure vectors.npy`

With labels, one a line: `isoscope measure vectors.npy --labels labels.txt`

Labels from a column of the same file: `isoscope measure table.parquet --labels topic`

Texts: `isoscope measure reviews.jsonl --model all-MiniLM-L6-v2 --labels label`

Two numbers, for a script: `isoscope measure vectors.npy -m isoscore,mean_cosine --json`

Whole families: `isoscope measure vectors.npy -m isotropy -m manifold`

Many files, larger than memory: `isoscope measure 'shards/*.parquet' --memory 2GB --checkpoint kept`
"""


@takes_tables
def measure(
    file: Annotated[
        str,
        typer.Argument(
            help="Vectors: .npy .npz .safetensors .pt .parquet .arrow .feather .csv .tsv .json .jsonl "
            ".txt .vec .bin .zarr; a folder of them, a pattern ('shards/*.parquet', quoted) or an address "
            "(s3://…); or, with --model, texts: .txt (one a line) .jsonl .json .csv .tsv .parquet .arrow "
            ".feather",
            metavar="FILE",
            show_default=False,
        ),
    ],
    labels: LabelsWhere = None,
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
    plugin: Plugin = None,
    model: Model = None,
    text_column: TextColumn = None,
    prefix: Prefix = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    batch_size: BatchSize = None,
    device: EncodingDevice = None,
    download: Download = None,
    key: Key = None,
    vector_column: VectorColumn = None,
    table: TableOptions = AS_JUDGED,
    errors: Annotated[
        bool,
        typer.Option("--errors/--no-errors", help="Standard errors and intervals, from a second pass."),
    ] = True,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything sampled.")] = 0,
    weights: Annotated[
        str | None,
        typer.Option("--weights", help="How often each row counts: a column or a file.", metavar="WHERE"),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="The most memory to take, such as 2GB.", metavar="SIZE"),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            help="Dask's workers read the files: tcp://host:8786, or local to start some here.",
            metavar="ADDRESS",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="Keep what is finished here; the same command goes on from it.",
            metavar="FOLDER",
        ),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out files of many that cannot be read, and say which.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure the vectors in FILE, or those a model makes of its texts, and say what the numbers mean.

    Metrics that can stream read a file of vectors in blocks, so it may be larger than memory. Texts are
    encoded once: their vectors are kept for the next time.
    """
    load_plugins(plugin)
    texts = TextOptions(model, text_column, prefix, pooling, normalize, batch_size, device, download)
    with as_typed():
        source = open_input(
            file,
            labels=labels,
            key=key,
            vector_column=vector_column,
            table=table,
            texts=texts,
            weights=weights,
            skip_bad=skip_bad,
        )
        measurement = measure_space(
            source,
            metrics=metrics,
            errors=errors,
            seed=seed,
            memory=memory,
            scheduler=scheduler,
            checkpoint=checkpoint,
            skip_bad=skip_bad,
        )
    if json:
        show_json(measurement.to_dict())
        return
    measurement.show()


measure.__doc__ = f"{measure.__doc__}\n{_EPILOG}"
