"""`isoscope finetune MODEL`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from isoscope.cli.corpora import named_task
from isoscope.cli.options import (
    Data,
    Device,
    Download,
    Json,
    LabelsWhere,
    Precision,
    Resume,
    SaveEvery,
    Seeds,
    TextColumn,
    as_typed,
    parse_number,
    parse_seeds,
)
from isoscope.errors import FileError, InputError
from isoscope.terminal import say, show, show_json

if TYPE_CHECKING:
    from isoscope.training.finetuned import FineTuned

_EPILOG = """
**Examples**

I-STAR on a task: `isoscope finetune all-MiniLM-L6-v2 --task rte --regularizer istar --lambda -1 -o run`

One's own labelled texts: `isoscope finetune all-MiniLM-L6-v2 --texts reviews.csv --labels stars -o run`

Pairs of texts: `isoscope finetune ./model -t pairs.jsonl --text-column asked --pair-column answer -l good`

Without C₀: `isoscope finetune ./model --task cola --regularizer istar-debiased --lambda 0.1 --seeds 3`

Quickly, on some of the texts: `isoscope finetune all-MiniLM-L6-v2 --task sst2 --max-train 2000 --epochs 1`

Continue what was cut short: `isoscope finetune all-MiniLM-L6-v2 --task rte --data data -o run --resume`
"""


def finetune(
    model: Annotated[
        str,
        typer.Argument(
            help="A name (all-MiniLM-L6-v2, smollm2-135m), a folder, a .gguf file, or a hub id.",
            metavar="MODEL",
            show_default=False,
        ),
    ],
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
    labels: LabelsWhere = None,
    text_column: TextColumn = None,
    pair_column: Annotated[
        str | None,
        typer.Option(
            "--pair-column", help="The column of the second texts, where items are pairs.", metavar="NAME"
        ),
    ] = None,
    held_out: Annotated[
        str,  # parsed here, as --lambda
        typer.Option("--held-out", help="Share to score on, where there is no test set.", metavar="SHARE"),
    ] = "0.2",
    data: Data = None,
    max_train: Annotated[
        int | None, typer.Option("--max-train", help="Train on so many texts, drawn once.", metavar="N")
    ] = None,
    regularizer: Annotated[
        str, typer.Option("--regularizer", help="istar, istar-debiased, cosreg or none.", metavar="NAME")
    ] = "none",
    strength: Annotated[
        str,  # parsed here: what is no number is answered in one line, and -1 is no option
        typer.Option("--lambda", help="Its weight; negative makes the space less isotropic.", metavar="λ"),
    ] = "1",
    zeta: Annotated[float, typer.Option("--zeta", help="Weight of C₀ in IsoScore*.")] = 0.2,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", help="accuracy, f1 or matthews. [default: matthews for cola, else accuracy]"
        ),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", help="Passes over the texts.")] = 3,
    batch_size: Annotated[int, typer.Option("--batch-size", help="Texts an update.")] = 32,
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="Of AdamW, constant.")] = 1e-5,
    max_length: Annotated[
        int, typer.Option("--max-length", help="Tokens of a text; longer ones are cut.")
    ] = 256,
    seeds: Seeds = "1",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the runs, seed-N each, and figure.png.", metavar="FOLDER"
        ),
    ] = None,
    resume: Resume = False,
    save_every: SaveEvery = None,
    precision: Precision = "float32",
    device: Device = None,
    download: Download = None,
    json: Json = False,
) -> None:
    """Fine-tune MODEL to classify texts, with a penalty that shapes its space; score and geometry after.

    Cross-entropy + λ·(1 − IsoScore*), AdamW: the protocol of Rudman and Eickhoff 2024.
    """
    if resume and output is None:
        raise InputError("--resume goes with --output, the folder of the run to continue")
    with as_typed(test="held-out"):
        arguments = (
            named_task(task, data, download=bool(download))
            if task
            else _labelled(texts, labels, text_column, pair_column)
        )
        if task and (texts or labels or text_column or pair_column):
            raise InputError("--task brings its own texts; leave --texts, --labels and their columns out")
        arguments = {"test": parse_share(held_out)} | arguments | ({"metric": metric} if metric else {})
        if max_train is not None:
            from isoscope.training.held_out import some_examples

            arguments = some_examples(arguments, max_train)
        numbers = parse_seeds(seeds)
        options = {
            "regularizer": parse_regularizer(regularizer),
            "strength": parse_number("lambda", strength, such_as="-1"), "zeta": zeta, "epochs": epochs,
            "batch_size": batch_size, "learning_rate": learning_rate,
            "max_length": max_length, "resume": resume, "save_every": save_every, "precision": precision,
            "device": device, "download": bool(download),
        }  # fmt: skip
        runs = _runs(model, arguments | options, numbers, output)
    drawn = None if output is None else _draw(runs, output)
    if json:
        found = [run.to_dict() for run in runs]
        show_json(found)
        return
    _show(runs)
    if output is None:
        model_was, them = ("model was", "it") if len(runs) == 1 else ("models were", "them")
        say(f"note: the {model_was} not kept; -o FOLDER keeps {them}")
    else:
        say(f"wrote {output / 'seed-N'}{drawn}" if len(runs) > 1 else f"wrote {runs[0].folder}{drawn}")


finetune.__doc__ = f"{finetune.__doc__}\n{_EPILOG}"


def parse_regularizer(name: str) -> str | None:
    """A penalty by its name, None for none.

    >>> parse_regularizer("istar"), parse_regularizer("none")
    ('istar', None)
    """
    from isoscope.training.regularizers import REGULARIZERS

    if name not in (*REGULARIZERS, "none"):
        raise InputError(f"--regularizer is {name!r}; wanted one of {', '.join(REGULARIZERS)} or none")
    return None if name == "none" else name


def parse_share(text: str) -> float:
    """The part of the texts that is held out.

    >>> parse_share("0.2")
    0.2
    """
    share = parse_number("held-out", text, such_as="0.2")
    if not 0 < share < 1:
        raise InputError(f"--held-out is {text}; wanted a share between 0 and 1, such as 0.2")
    return share


def _labelled(
    path: Path | None, labels: str | None, text_column: str | None, pair_column: str | None
) -> dict[str, Any]:
    """The texts of a file, their labels, and their partners."""
    from isoscope.io.label_files import column_labels, locate_labels
    from isoscope.io.text_files import open_text_file

    if path is None and labels is None:
        raise InputError("--task NAME is missing; wanted that, or --texts FILE and --labels COLUMN")
    if path is None:
        raise InputError(f"--texts FILE is missing; wanted the texts that --labels {labels} belongs to")
    if labels is None:
        raise InputError(
            f"--labels is missing; wanted the column of {path} that holds the labels, or a file of them"
        )
    found = open_text_file(path, column=text_column, labels=labels)
    read, _ = locate_labels(
        labels, path=path, columns=found.columns.names, read=lambda name: column_labels(found.columns, name)
    )
    pairs = None if pair_column is None else open_text_file(path, column=pair_column).texts
    return {"texts": found.texts, "labels": list(read()), "pairs": pairs}


def _runs(
    model: str, options: dict[str, Any], seeds: int | list[int], output: Path | None
) -> list[FineTuned]:
    from isoscope.training.configuration import as_seeds
    from isoscope.training.finetune import finetune as run

    texts, labels = options.pop("texts"), options.pop("labels")
    return [
        run(
            model,
            texts,
            labels,
            seed=seed,
            run=None if output is None else output / f"seed-{seed}",
            **options,
        )
        for seed in as_seeds(seeds)
    ]


def _show(runs: list[FineTuned]) -> None:
    from rich.table import Table

    from isoscope.console import Terminal
    from isoscope.tables import shown

    for run in runs:
        show(run.summary())
    if len(runs) < 2:
        return
    table = Table("", "mean", "sd", *(f"seed {run.configuration['seed']}" for run in runs))
    for name in ("score", "isoscore_star", "isoscore_debiased", "mean_cosine", "twonn"):
        values = np.array([getattr(run, name) for run in runs])
        cells = (values.mean(), values.std(ddof=1), *values)
        table.add_row(runs[0].metric if name == "score" else name, *(shown(float(cell)) for cell in cells))
    Terminal().print(table)


def _draw(runs: list[FineTuned], folder: Path) -> str:
    """The figure of all seeds where matplotlib is; what to say of it."""
    from isoscope.training.encoder_figure import draw_finetuned

    try:
        draw_finetuned(runs, folder / "figure.png")
    except FileError:
        raise
    except InputError as error:  # matplotlib is not installed
        return f"; no figure: {error}"
    return f" and {folder / 'figure.png'}"
