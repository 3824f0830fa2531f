"""`isoscope measure FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.commands import present
from isoscope.cli.inputs import InputOptions
from isoscope.cli.options import File, Json, Labels, MetricOptions, Seed


def measure(
    file: File,
    *,
    labels: Labels = None,
    metrics: MetricOptions,
    source: InputOptions,
    errors: Annotated[
        bool,
        typer.Option(
            "--errors/--no-errors", help="Also compute standard errors and intervals, in a second pass."
        ),
    ] = True,
    seed: Seed = 0,
    weights: Annotated[
        str | None,
        typer.Option("--weights", help="How often each row counts: a column or a file.", metavar="WHERE"),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="The most memory to use, such as 2GB.", metavar="SIZE"),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            help="Let Dask's workers read the files: tcp://host:8786, or local to start some here.",
            metavar="ADDRESS",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="Save progress here; the same command continues from it.",
            metavar="FOLDER",
        ),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip files of many that cannot be read, and name them.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure the vectors in FILE, or those a model makes of its texts, and say what the numbers mean.

    Metrics that can stream read a file of vectors in blocks, so it may be larger than memory. Texts are
    encoded once: their vectors are cached.

    **Examples**

    The default metrics: `isoscope measure vectors.npy`

    With labels, one a line: `isoscope measure vectors.npy --labels labels.txt`

    Labels from a column of the same file: `isoscope measure table.parquet --labels topic`

    Texts: `isoscope measure reviews.jsonl --model all-MiniLM-L6-v2 --labels label`

    Two numbers, for a script: `isoscope measure vectors.npy -m isoscore,mean_cosine --json`

    Whole families: `isoscope measure vectors.npy -m isotropy -m manifold`

    Many files, larger than memory: `isoscope measure 'shards/*.parquet' --memory 2GB --checkpoint progress`
    """
    from isoscope.engine.measure import measure as measure_space

    measurement = measure_space(
        source.open(file, labels=labels, weights=weights, skip_bad=skip_bad),
        metrics=metrics.chosen(),
        errors=errors,
        seed=seed,
        memory=memory,
        scheduler=scheduler,
        checkpoint=checkpoint,
        skip_bad=skip_bad,
    )
    present(measurement, json=json)
