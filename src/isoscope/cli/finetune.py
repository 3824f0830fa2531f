"""`isoscope finetune MODEL`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isoscope.cli.commands import check_input, drawn
from isoscope.cli.corpora import named_task
from isoscope.cli.options import (
    BatchSize,
    Data,
    Device,
    Download,
    Json,
    Labels,
    LearningRate,
    MaxLength,
    Model,
    Precision,
    Resume,
    SaveEvery,
    Seeds,
    TextColumn,
    check_resume,
    output_folder,
    parse_number,
    parse_seeds,
)
from isoscope.errors import InputError, check_choice
from isoscope.terminal import say, show_json

REGULARIZERS = ("istar", "istar-debiased", "cosreg", "none")


def finetune(
    model: Model,
    *,
    task: Annotated[
        str | None,
        typer.Option("--task", help="A corpus: sst2, rte, mrpc, cola, banking77, …", metavar="NAME"),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(
            "--texts", "-t", help="Labelled texts: .csv, .tsv, .jsonl, .json, .parquet.", metavar="FILE"
        ),
    ] = None,
    labels: Labels = None,
    text_column: TextColumn = None,
    pair_column: Annotated[
        str | None,
        typer.Option(
            "--pair-column", help="The column of the second texts, where items are pairs.", metavar="NAME"
        ),
    ] = None,
    test: Annotated[
        str,  # read below, as --lambda
        typer.Option(
            "--held-out", help="Share of the texts to score on, where there is no test set.", metavar="SHARE"
        ),
    ] = "0.2",
    data: Data = None,
    max_train: Annotated[
        int | None, typer.Option("--max-train", help="Train on so many texts, drawn once.", metavar="N")
    ] = None,
    regularizer: Annotated[
        str, typer.Option("--regularizer", help=f"{', '.join(REGULARIZERS)}.", metavar="NAME")
    ] = "none",
    strength: Annotated[
        str,  # read below: -1 would be taken for an option
        typer.Option(
            "--lambda", help="Weight of the penalty; negative makes the space less isotropic.", metavar="λ"
        ),
    ] = "1",
    zeta: Annotated[
        float, typer.Option("--zeta", help="Weight of C₀ in IsoScore*, from 0 to 1.", metavar="ζ")
    ] = 0.2,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            help="accuracy, f1 or matthews. [default: matthews for cola, else accuracy]",
            metavar="NAME",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", help="Passes over the texts.", metavar="N")] = 3,
    batch_size: BatchSize = 32,
    learning_rate: LearningRate = 1e-5,
    max_length: MaxLength = 256,
    seeds: Seeds = "1",
    output: Annotated[Path | None, output_folder("Folder for the runs, seed-N each, and figure.png.")] = None,
    resume: Resume = False,
    save_every: SaveEvery = None,
    precision: Precision = "float32",
    device: Device = None,
    download: Download = False,
    json: Json = False,
) -> None:
    """Fine-tune MODEL to classify texts, with a penalty on its isotropy, and print its score and geometry.

    The loss is cross-entropy + λ·(1 − IsoScore*), minimised by AdamW with a constant learning rate: the
    protocol of Rudman and Eickhoff 2024.

    **Examples**

    I-STAR on a task: `isoscope finetune all-MiniLM-L6-v2 --task rte --regularizer istar --lambda -1 -o run`

    Your own labelled texts: `isoscope finetune all-MiniLM-L6-v2 --texts reviews.csv --labels stars -o run`

    Pairs: `isoscope finetune ./model -t pairs.jsonl --text-column asked --pair-column answer -l good`

    Without C₀: `isoscope finetune ./model --task cola --regularizer istar-debiased --lambda 0.1 --seeds 3`

    Quickly, on some texts: `isoscope finetune all-MiniLM-L6-v2 --task sst2 --max-train 2000 --epochs 1`

    Continue an interrupted run: `isoscope finetune all-MiniLM-L6-v2 --task rte --data data -o run --resume`
    """
    check_resume(resume=resume, output=output)
    check_choice("regularizer", regularizer, REGULARIZERS)
    if task and (texts or labels or text_column or pair_column):
        raise InputError("--task brings its own texts; leave --texts, --labels and their columns out")
    share = parse_number("test", test, such_as="0.2")
    weight = parse_number("strength", strength, such_as="-1")
    chosen = parse_seeds(seeds)
    arguments = (
        named_task(task, data, download=download)
        if task
        else _labelled(texts, labels, text_column, pair_column)
    )
    from isoscope.training.configuration import as_seeds
    from isoscope.training.encoder_figure import draw_finetuned
    from isoscope.training.finetune import OverSeeds
    from isoscope.training.finetune import finetune as train
    from isoscope.training.held_out import some_examples

    arguments = {"test": share} | arguments
    if max_train is not None:
        arguments = some_examples(arguments, max_train)
    arguments |= {"metric": metric} if metric else {}
    runs = [
        train(
            model,
            **arguments,
            regularizer=None if regularizer == "none" else regularizer,
            strength=weight, zeta=zeta, epochs=epochs,
            batch_size=batch_size, learning_rate=learning_rate, max_length=max_length, resume=resume,
            save_every=save_every, precision=precision, device=device, download=download, seed=seed,
            run=None if output is None else output / f"seed-{seed}",
        )
        for seed in as_seeds(chosen)
    ]  # fmt: skip
    figure = "" if output is None else drawn(lambda path: draw_finetuned(runs, path), output / "figure.png")
    if json:
        show_json([run.to_dict() for run in runs])
        return
    for run in runs:
        run.show()
    if len(runs) > 1:
        OverSeeds(runs).show()
    if output is None:
        models = "model was" if len(runs) == 1 else "models were"
        say(f"note: the {models} not saved; -o FOLDER saves {'it' if len(runs) == 1 else 'them'}")
    else:
        say(f"wrote {output / 'seed-N' if len(runs) > 1 else runs[0].folder}{figure}")


def _labelled(
    path: Path | None, labels: str | None, text_column: str | None, pair_column: str | None
) -> dict[str, Any]:
    """Read the texts of a file, their labels, and their partners."""
    if path is None and labels is None:
        raise InputError(
            "There is nothing to train on", hint=["pass --task NAME", "--texts FILE and --labels COLUMN"]
        )
    if path is None:
        raise InputError("--texts is missing", wanted=f"a file with the texts of --labels {labels}")
    if labels is None:
        raise InputError(
            "--labels is missing", wanted=f"the column of {path} with the labels, or a file of labels"
        )
    check_input(path, what="texts")
    from isoscope.io.label_files import column_labels, locate
    from isoscope.io.text_files import open_text_file

    found = open_text_file(path, column=text_column, labels=labels)
    read, _ = locate(
        labels, of=path, columns=found.columns.names, read=lambda name: column_labels(found.columns, name)
    )
    pairs = None if pair_column is None else open_text_file(path, column=pair_column).texts
    return {"texts": found.texts, "labels": list(read()), "pairs": pairs}
