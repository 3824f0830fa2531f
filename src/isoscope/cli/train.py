"""`isoscope train FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from isoscope.cli.inputs import TextOptions, open_input, say_notes
from isoscope.cli.options import (
    BatchSize,
    Device,
    Download,
    Every,
    Json,
    Key,
    Log,
    Model,
    Normalize,
    Plugin,
    Pooling,
    Prefix,
    Resume,
    Seeds,
    TextColumn,
    VectorColumn,
    VectorsOrTexts,
    as_typed,
    complete_metrics,
    load_plugins,
    parse_numbers,
    parse_seeds,
)
from isoscope.cli.table_options import AS_JUDGED, TableOptions, takes_tables
from isoscope.errors import FileError, InputError
from isoscope.io import read_labels
from isoscope.io.files import reading, reason, text_lines
from isoscope.io.label_files import split_column
from isoscope.io.numpy_files import map_npy
from isoscope.terminal import say, show, show_json
from isoscope.training import train_embeddings

if TYPE_CHECKING:
    from isoscope.space import Space
    from isoscope.tracking import Trajectory

_EPILOG = """
**Examples**

The experiment of the paper on any vectors: `isoscope train vectors.npy --labels labels.txt -o run`

Texts, encoded first: `isoscope train reviews.jsonl --model all-MiniLM-L6-v2 -l label -o run`

A quick look: `isoscope train vectors.npy -l labels.txt --steps 200 --seeds 2 --every 10`

Pairs of sentences that share a table: `isoscope train sentences.npy --pairs pairs.tsv -l labels.txt -o run`

Several labels an item: `isoscope train words.vec -l pos.txt --multi-label ,`

Continue what was cut short: `isoscope train vectors.npy -l labels.txt -o run --resume`

A deep classifier, its hidden layer followed too: `isoscope train vectors.npy -l labels.txt --hidden 256`
"""


@takes_tables
def train(
    file: VectorsOrTexts,
    labels: Annotated[
        str,
        typer.Option(
            "--labels",
            "-l",
            help="A column of FILE, a file with one label a line (of each pair), or FILE.csv:column.",
            metavar="WHERE",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder for config.json, trajectory.parquet, figure.png, and the trained vectors in "
            "seed-N.safetensors.",
            metavar="FOLDER",
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", help="Updates.")] = 1000,
    seeds: Seeds = "5",
    every: Every = 1,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            help="Names or families, comma-separated or repeated. [default: isoscore,silhouette]",
            autocompletion=complete_metrics,
            metavar="NAMES",
        ),
    ] = None,
    plugin: Plugin = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="Two or more rows of FILE (from 0) for each item: .npy, or .csv, .tsv, .txt a line an item.",
            metavar="FILE",
        ),
    ] = None,
    multi_label: Annotated[
        str | None,
        typer.Option("--multi-label", help="What separates the labels of an item.", metavar="SEPARATOR"),
    ] = None,
    bias: Annotated[bool, typer.Option("--bias/--no-bias", help="Whether the classifier has one.")] = True,
    hidden: Annotated[
        str | None,
        typer.Option("--hidden", help="Widths of hidden layers, comma-separated.", metavar="WIDTHS"),
    ] = None,
    activation: Annotated[
        str, typer.Option("--activation", help="Between layers: relu, gelu, tanh, sigmoid.")
    ] = "relu",
    objective: Annotated[str, typer.Option("--objective", help="classifier or triplet.")] = "classifier",
    n_triplets: Annotated[
        int | None, typer.Option("--n-triplets", help="Triplets drawn an update; all if not given.")
    ] = None,
    optimizer: Annotated[
        str, typer.Option("--optimizer", help="adam, adamw, nadam, sgd, rmsprop or adagrad.")
    ] = "adam",
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="Of the optimiser.")] = 1e-3,
    sample_above: Annotated[
        int,
        typer.Option("--sample-above", help="With more items, label metrics use a fresh sample so large."),
    ] = 20_000,
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance", help="Estimate the silhouette to ± this (95 %) instead of exactly."),
    ] = None,
    patience: Annotated[
        int | None, typer.Option("--patience", help="End a seed whose loss has not fallen for so long.")
    ] = None,
    target_accuracy: Annotated[
        float | None, typer.Option("--target-accuracy", help="End a seed that reaches this accuracy.")
    ] = None,
    resume: Resume = False,
    log: Log = None,
    device: Device = None,
    model: Model = None,
    text_column: TextColumn = None,
    prefix: Prefix = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    batch_size: BatchSize = None,
    download: Download = None,
    key: Key = None,
    vector_column: VectorColumn = None,
    table: TableOptions = AS_JUDGED,
    json: Json = False,
) -> None:
    """Train the vectors in FILE with a classifier and follow isotropy and clusters at every update.

    With --model, the vectors are those the model makes of the texts in FILE.

    The experiment of Mickus, Grönroos and Attieh 2024: full batch, Adam; clusters form, isotropy goes.
    """
    load_plugins(plugin)
    if resume and output is None:
        raise InputError("--resume goes with --output, the folder of the run to continue")
    encoded_on = None if model is None else device  # without a model, vectors go there as they are
    texts = TextOptions(model, text_column, prefix, pooling, normalize, batch_size, encoded_on, download)
    with as_typed():
        source = open_input(
            file,
            labels=labels if pairs is None else None,
            key=key,
            vector_column=vector_column,
            table=table,
            texts=texts,
        )
        # the labels of pairs are not as many as the vectors; a file of them is read before texts are encoded
        named = None if pairs is None else _pair_labels(labels)
        space = source.load()
    named = space.labels if pairs is None else named
    with as_typed():
        found = train_embeddings(
            _on_device(space, device),
            named if multi_label is None else _sets(named, multi_label),
            pairs=None if pairs is None else read_pairs(pairs),
            steps=steps, seeds=parse_seeds(seeds), every=every,
            metrics=metrics or ("isoscore", "silhouette"),
            bias=bias, hidden=() if hidden is None else parse_numbers("hidden", hidden),
            activation=activation, objective=objective, n_triplets=n_triplets,
            optimizer=optimizer, learning_rate=learning_rate, sample_above=sample_above,
            silhouette_tolerance=tolerance, patience=patience,
            target_accuracy=target_accuracy, run=output, resume=resume, log=log,
        )  # fmt: skip
    drawn = None if output is None else _draw(found, output)
    if json:
        show_json(found.to_dict())
        say_notes(source, err=True)
        return
    show(found.summary())
    say_notes(source)
    if output is not None:
        say("")
        say(f"wrote {output / 'trajectory.parquet'}{drawn}")


train.__doc__ = f"{train.__doc__}\n{_EPILOG}"


def _pair_labels(labels: str) -> Any:
    """One label a pair, from a file of their own."""
    path, column = split_column(labels)
    return read_labels(path, column=column)


def read_pairs(path: Path) -> np.ndarray:
    """(m, c) whole numbers from a .npy, or from text with commas, tabs or blanks between them."""
    if not path.is_file():
        raise FileError(f"{path} is not there; wanted a file of pairs")
    if path.suffix.lower() == ".npy":
        with reading(path):
            return np.array(map_npy(path))
    try:
        lines = [line.replace(",", " ").split() for line in text_lines(path, what="pairs")]
        return np.array([[int(cell) for cell in line] for line in lines if line])
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read as pairs of whole numbers: {reason(error)}") from error


def _sets(labels: Any, separator: str) -> list[set[str]]:
    if not separator:
        raise InputError("--multi-label is empty; wanted what separates labels, such as ,")
    names = [labels.names[code] for code in labels.codes.tolist()] if hasattr(labels, "codes") else labels
    return [{part.strip() for part in str(name).split(separator) if part.strip()} for name in names]


def _on_device(space: Space, device: str | None) -> Space:
    if device is None:
        return space
    try:
        return space.with_vectors(space.vectors.to(device))
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"--device {device} cannot be used: {reason(error)}") from None


def _draw(found: Trajectory, folder: Path) -> str:
    """Draw the figure where matplotlib is; what to say of it."""
    pair = found.main_pair
    if pair is None:
        return ""
    try:
        found.figure(folder / "figure.png", first=pair[0], second=pair[1])
    except InputError as error:
        if isinstance(error, FileError):
            raise
        return f"; no figure: {error}"
    return f" and {folder / 'figure.png'}"
