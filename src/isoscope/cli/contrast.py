"""`isoscope contrast MODEL --pairs FILE`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.commands import drawn, present
from isoscope.cli.corpora import named_pairs, texts_of
from isoscope.cli.options import (
    BatchSize,
    Data,
    Device,
    Download,
    Every,
    Json,
    LearningRate,
    MaxLength,
    Model,
    Precision,
    Resume,
    SaveEvery,
    Seed,
    check_resume,
    output_folder,
    parse_number,
    parse_numbers,
)
from isoscope.errors import InputError

_MANY_SHARED = 0.1  # share of the pairs; repeats by chance are fewer


def contrast(
    model: Model,
    *,
    pairs: Annotated[
        str,
        typer.Option(
            "--pairs",
            "-p",
            metavar="FILE",
            show_default=False,
            help="Two texts a row that belong together: .jsonl, .csv, .tsv, .parquet; or nli, snli, mnli.",
        ),
    ],
    columns: Annotated[
        str | None,
        typer.Option("--columns", help="The two columns of texts, comma-separated.", metavar="NAMES"),
    ] = None,
    temperature: Annotated[
        str,  # read below, as finetune's --lambda
        typer.Option("--temperature", help="Temperature τ of the loss.", metavar="τ"),
    ] = "0.05",
    symmetric: Annotated[
        bool,
        typer.Option(
            "--symmetric/--one-way", help="Compare both ways, or only from the first text to the second."
        ),
    ] = True,
    pooling: Annotated[
        str,
        typer.Option(
            "--pooling", help="How tokens become one vector: mean, cls, max or lasttoken.", metavar="HOW"
        ),
    ] = "mean",
    batch_size: BatchSize = 64,
    steps: Annotated[
        int | None,
        typer.Option("--steps", help="Number of updates. [default: as many as --epochs needs]", metavar="N"),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", help="Passes over the pairs.", metavar="N")] = 1,
    learning_rate: LearningRate = 2e-5,
    warmup: Annotated[
        float,
        typer.Option(
            "--warmup", help="Share of the updates over which the learning rate rises.", metavar="SHARE"
        ),
    ] = 0.1,
    max_length: MaxLength = 64,
    probe: Annotated[
        str | None,
        typer.Option(
            "--probe",
            help="Texts to measure the geometry on during training: a file, or stsb.",
            metavar="FILE",
        ),
    ] = None,
    every: Every = 20,
    layers: Annotated[
        str,
        typer.Option(
            "--layers", help="Layers to measure: 0 is the embedding layer, -1 the last.", metavar="NUMBERS"
        ),
    ] = "-1",
    contextual: Annotated[
        bool,
        typer.Option("--contextual", help="Also measure adjusted self- and intra-similarity and norms."),
    ] = False,
    seed: Seed = 0,
    data: Data = None,
    output: Annotated[
        Path | None, output_folder("Folder for the run: model, trajectory, figure.png.")
    ] = None,
    resume: Resume = False,
    save_every: SaveEvery = None,
    precision: Precision = "float32",
    device: Device = None,
    download: Download = False,
    json: Json = False,
) -> None:
    """Train MODEL as a sentence encoder on pairs of texts, and measure its geometry during training.

    The model learns to find the partner of each text among all texts of the batch (InfoNCE, both ways), with
    AdamW and a learning rate that falls to 0, as in Xiao, Long and Al Moubayed 2023.

    **Examples**

    Entailment, geometry on STS: `isoscope contrast smollm2-135m --pairs nli --probe stsb --data data -o run`

    Your own pairs: `isoscope contrast all-MiniLM-L6-v2 --pairs faq.jsonl --columns asked,answer -o run`

    Another temperature: `isoscope contrast ./model --pairs pairs.tsv --temperature 0.01 --pooling cls`

    Adjusted similarities too: `isoscope contrast ./model -p nli --probe stsb --contextual --layers 6,12`

    Continue an interrupted run: `isoscope contrast ./model --pairs nli --data data -o run --resume`
    """
    check_resume(resume=resume, output=output)
    tau = parse_number("temperature", temperature, such_as="0.05")
    numbers = parse_numbers("layers", layers)
    both, notes = _pairs(pairs, columns, data, download=download)
    texts = None if probe is None else texts_of(probe, data, download=download)
    from isoscope.training.contrast import contrast as train

    result = train(
        model, both, temperature=tau, symmetric=symmetric, pooling=pooling, batch_size=batch_size,
        steps=steps, epochs=epochs, learning_rate=learning_rate, warmup=warmup, max_length=max_length,
        probe=texts, every=every, layers=numbers, contextual=contextual, seed=seed,
        run=output, resume=resume, save_every=save_every, precision=precision, device=device,
        download=download,
    )  # fmt: skip
    figure = "" if output is None else drawn(result.figure, output / "figure.png")
    if probe is None:
        notes.insert(0, "the geometry was not measured; --probe FILE measures it on the texts of a file")
    notes += ["the model was not saved; -o FOLDER saves it"] if output is None else []
    lines = [f"note: {note}" for note in notes]
    lines += [] if output is None else [f"wrote {output / 'model'}{figure}"]
    present(result, [] if json else lines, json=json)


def _pairs(
    where: str, columns: str | None, data: Path | None, *, download: bool
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the pairs of a file or of a named corpus, and notes for the user."""
    pairs, notes = named_pairs(where, data, download=download), []
    if pairs is None:
        from isoscope.io.pair_files import read_text_pairs

        asked = None if columns is None else [name.strip() for name in columns.split(",")]
        pairs, (first, second) = read_text_pairs(where, asked)
        if asked is None:
            notes.append(f"the pairs are columns {first} and {second}; --columns A,B takes others")
    elif columns is not None:
        raise InputError(
            f"works only with a file, but --pairs {where} is a corpus",
            argument="columns",
            hint="leave it out",
        )
    times = Counter(second for _, second in pairs)
    n_shared = sum(n for n in times.values() if n > 1)
    if n_shared > _MANY_SHARED * len(pairs):
        notes.append(
            f"{n_shared:,} of {len(pairs):,} pairs share their second text with another pair; if two such "
            "pairs are in one batch, a right partner counts as a wrong one (a false negative)"
        )
    return pairs, notes
