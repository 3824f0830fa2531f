"""`isoscope frontier FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.commands import present
from isoscope.cli.inputs import InputOptions, notes_of
from isoscope.cli.options import File, Json, Labels, LearningRate, Seed, written_file
from isoscope.errors import InputError, Setting


def frontier(
    file: File,
    *,
    labels: Labels = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters",
            help="Use k-means clusters instead of labels: their number, or `auto` for the number with the "
            "best silhouette.",
            metavar="K|auto",
        ),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            "--run",
            help="A folder written by `isoscope train -m isoscore,between_share`; may be repeated.",
            metavar="FOLDER",
        ),
    ] = None,
    output: Annotated[Path | None, written_file("--output", "-o", help="Figure: .png, .pdf or .svg.")] = None,
    top: Annotated[
        int, typer.Option("--top", help="How many labels, and how many directions, to list.", metavar="N")
    ] = 5,
    learning_rate: LearningRate = 1e-3,
    source: InputOptions,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compute the highest isotropy that vectors with these labels can have, and how far FILE is below it.

    The share of the variance that lies between labels sets an exact ceiling on IsoScore: clusters that are
    far apart make a space less isotropic. The output gives the score and the ceiling, each as measured and
    without small-sample bias. It then lists the labels and directions that make the vectors less isotropic,
    and predicts where training with a linear classifier (1,000 updates of Adam) would take the score.

    **Examples**

    How close labelled vectors are to the ceiling: `isoscope frontier vectors.npy --labels labels.txt -o
    frontier.png`

    Clusters instead of labels: `isoscope frontier vectors.npy --clusters auto`

    A training run under the frontier: `isoscope train vectors.npy -l labels.txt -o run -m
    isoscore,silhouette,between_share`, then `isoscope frontier vectors.npy -l labels.txt --run run -o f.png`
    """
    if labels is None and clusters is None:
        both = [
            Setting("labels", to="label the rows"),
            Setting("clusters", "auto", to="find clusters"),
        ]
        raise InputError("There are no labels", hint=both)
    if labels is not None and clusters is not None:
        raise InputError(
            "cannot be combined with --labels", argument="clusters", hint="leave one of them out"
        )
    from isoscope.training.frontier import frontier as find
    from isoscope.training.frontier import read_runs

    opened = source.open(file, labels=labels)
    runs = read_runs(run or ())
    result = find(
        opened.load(), clusters=clusters, runs=runs, top=top, seed=seed, learning_rate=learning_rate
    )
    lines = notes_of(opened)
    if output is not None:
        result.figure(output)
        lines += [] if json else [f"wrote {output}"]
    present(result, lines, json=json)
