"""`isoscope train FILE`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.commands import drawn, present
from isoscope.cli.inputs import InputOptions, notes_of
from isoscope.cli.options import (
    Every,
    File,
    Json,
    LearningRate,
    Log,
    MetricOptions,
    Resume,
    Seeds,
    check_resume,
    output_folder,
    parse_numbers,
    parse_seeds,
)
from isoscope.terminal import say

if TYPE_CHECKING:
    from isoscope.training import CollapsePrediction
    from isoscope.training.recorder import Row


def train(
    file: File,
    *,
    labels: Annotated[
        str,
        typer.Option(
            "--labels",
            "-l",
            help="Labels: a column of FILE, a file with one label a line (of each pair), or FILE.csv:column.",
            metavar="WHERE",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        output_folder(
            "Folder for config.json, trajectory.parquet, figure.png, and the trained vectors in "
            "seed-N.safetensors."
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", help="Updates.", metavar="N")] = 1000,
    seeds: Seeds = "5",
    every: Every = 1,
    metrics: MetricOptions,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="Two or more rows of FILE (from 0) for each item: .npy, or .csv, .tsv, .txt with a line an "
            "item.",
            metavar="FILE",
        ),
    ] = None,
    multi_label: Annotated[
        str | None,
        typer.Option("--multi-label", help="Separates several labels of an item.", metavar="SEPARATOR"),
    ] = None,
    bias: Annotated[bool, typer.Option("--bias/--no-bias", help="Whether the classifier has a bias.")] = True,
    hidden: Annotated[
        str | None,
        typer.Option("--hidden", help="Widths of hidden layers, comma-separated.", metavar="WIDTHS"),
    ] = None,
    activation: Annotated[
        str, typer.Option("--activation", help="Between layers: relu, gelu, tanh, sigmoid.", metavar="NAME")
    ] = "relu",
    objective: Annotated[
        str, typer.Option("--objective", help="classifier or triplet.", metavar="NAME")
    ] = "classifier",
    n_triplets: Annotated[
        int | None,
        typer.Option("--n-triplets", help="Triplets drawn in each update. [default: all]", metavar="N"),
    ] = None,
    optimizer: Annotated[
        str,
        typer.Option("--optimizer", help="adam, adamw, nadam, sgd, rmsprop or adagrad.", metavar="NAME"),
    ] = "adam",
    learning_rate: LearningRate = 1e-3,
    sample_above: Annotated[
        int,
        typer.Option(
            "--sample-above",
            help="With more items than this, metrics of labels use a new sample of this size each time.",
            metavar="N",
        ),
    ] = 20_000,
    silhouette_tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance", help="Estimate the silhouette to ± this (95 %) instead of exactly.", metavar="T"
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            "--patience", help="End a seed whose loss has not fallen for this many updates.", metavar="N"
        ),
    ] = None,
    target_accuracy: Annotated[
        float | None,
        typer.Option("--target-accuracy", help="End a seed that reaches this accuracy.", metavar="A"),
    ] = None,
    resume: Resume = False,
    log: Log = None,
    source: InputOptions,
    json: Json = False,
) -> None:
    """Train the vectors in FILE with a classifier, and measure isotropy and clusters at every update.

    With --model, the vectors are those the model makes of the texts in FILE. Metrics are isoscore and
    silhouette, unless --metrics names others.

    The experiment of Mickus, Grönroos and Attieh 2024: full batch, Adam; clusters form, and isotropy goes to
    a value that depends on the number of labels. Where the classifier is linear, items are rows, labels
    are at most 200 and the optimizer is adam, adamw or sgd, IsoScore at the end is predicted before training.

    **Examples**

    The experiment of the paper on any vectors: `isoscope train vectors.npy --labels labels.txt -o run`

    Texts, encoded first: `isoscope train reviews.jsonl --model all-MiniLM-L6-v2 -l label -o run`

    A quick look: `isoscope train vectors.npy -l labels.txt --steps 200 --seeds 2 --every 10`

    Pairs of sentences from one table: `isoscope train sentences.npy --pairs pairs.tsv -l labels.txt -o run`

    Several labels an item: `isoscope train words.vec -l pos.txt --multi-label ,`

    Continue an interrupted run: `isoscope train vectors.npy -l labels.txt -o run --resume`

    A deep classifier, its hidden layer followed too: `isoscope train vectors.npy -l labels.txt --hidden 256`
    """
    from isoscope.io.pair_files import read_row_pairs
    from isoscope.training import train_embeddings
    from isoscope.training.collapse import prediction_beside
    from isoscope.training.rigid_labels import OPTIMIZERS

    check_resume(resume=resume, output=output)
    names = metrics.chosen() or ("isoscore", "silhouette")
    opened = source.open(file, labels=labels if pairs is None else None)
    # pairs have labels of their own, which are read before texts are encoded
    given = None if pairs is None else _pair_labels(labels)
    space = opened.load()
    known = space.labels if pairs is None else given
    if multi_label is not None:
        known = _sets(known, multi_label)
    predicted: CollapsePrediction | None = None
    is_linear = objective == "classifier" and hidden is None
    if is_linear and bias and pairs is None and optimizer in OPTIMIZERS:
        predicted = prediction_beside(
            space, known, learning_rate=learning_rate, steps=steps, optimizer=optimizer
        )
    trajectory = train_embeddings(
        space, known,
        pairs=None if pairs is None else read_row_pairs(pairs),
        steps=steps, seeds=parse_seeds(seeds), every=every, metrics=names,
        bias=bias, hidden=() if hidden is None else parse_numbers("hidden", hidden),
        activation=activation, objective=objective, n_triplets=n_triplets,
        optimizer=optimizer, learning_rate=learning_rate, sample_above=sample_above,
        silhouette_tolerance=silhouette_tolerance, patience=patience,
        target_accuracy=target_accuracy, run=output, resume=resume, log=log,
        callback=None if json or predicted is None else _said_first(predicted),
    )  # fmt: skip
    lines = notes_of(opened)
    if not json and predicted is not None and "isoscore" in trajectory.metrics:
        lines += ["", predicted.beside(trajectory.ends()["isoscore"]["end"])]
    if output is not None:
        pair = trajectory.main_pair
        figure = ""
        if pair is not None:
            draw = partial(trajectory.figure, first=pair[0], second=pair[1])
            figure = drawn(draw, output / "figure.png")
        lines += [] if json else ["", f"wrote {output / 'trajectory.parquet'}{figure}"]
    more = {} if predicted is None else {"predicted": predicted.to_dict()}
    present(trajectory, lines, json=json, more=more)


def _said_first(predicted: CollapsePrediction) -> Callable[[Row], None]:
    """Return a callback that prints the prediction once, when training has begun."""
    lines = [f"prediction: {predicted.opening}", predicted.caution]

    def print_once(_: Row) -> None:
        for line in filter(None, lines):
            say(line)
        lines.clear()

    return print_once


def _pair_labels(labels: str) -> Any:
    from isoscope.io import read_labels
    from isoscope.io.label_files import split_column

    path, column = split_column(labels)
    return read_labels(path, column=column)


def _sets(labels: Any, separator: str) -> list[set[str]]:
    from isoscope.labels import Labels

    named = isinstance(labels, Labels)
    names = [labels.names[code] for code in labels.codes.tolist()] if named else labels
    return [{part.strip() for part in str(name).split(separator) if part.strip()} for name in names]
