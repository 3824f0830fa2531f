"""`isoscope contrast MODEL --pairs FILE`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoscope.cli.corpora import named_pairs, texts_of
from isoscope.cli.options import (
    Data,
    Device,
    Download,
    Json,
    Precision,
    Resume,
    SaveEvery,
    as_typed,
    parse_number,
    parse_numbers,
)
from isoscope.errors import FileError, InputError
from isoscope.terminal import say, show, show_json

if TYPE_CHECKING:
    from isoscope.training.contrast import Contrasted

_EPILOG = """
**Examples**

Entailment, geometry on STS-B: `isoscope contrast smollm2-135m --pairs nli --probe stsb --data data -o run`

One's own pairs: `isoscope contrast all-MiniLM-L6-v2 --pairs faq.jsonl --columns asked,answer -o run`

Another temperature: `isoscope contrast ./model --pairs pairs.tsv --temperature 0.01 --pooling cls`

Adjusted similarities too: `isoscope contrast ./model -p nli --probe stsb --contextual --layers 6,12`

Continue what was cut short: `isoscope contrast ./model --pairs nli --data data -o run --resume`
"""
_MANY_SHARED = 0.1  # of the pairs: chance repeats are fewer
# columns whose names say that they belong together, the likeliest first
_HEADS = (
    ("anchor", "positive"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question", "answer"),
    ("query", "passage"),
    ("text1", "text2"),
)


def contrast(
    model: Annotated[
        str,
        typer.Argument(
            help="A name (all-MiniLM-L6-v2, smollm2-135m), a folder, a .gguf file, or a hub id.",
            metavar="MODEL",
            show_default=False,
        ),
    ],
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
        typer.Option(
            "--columns", help="The two columns of texts, with a comma between them.", metavar="NAMES"
        ),
    ] = None,
    temperature: Annotated[
        str,  # parsed here, as finetune's --lambda
        typer.Option("--temperature", help="τ of the loss.", metavar="τ"),
    ] = "0.05",
    symmetric: Annotated[
        bool, typer.Option("--symmetric/--one-way", help="Both ways, or from the first text to the second.")
    ] = True,
    pooling: Annotated[
        str,
        typer.Option("--pooling", help="Tokens to one vector: mean, cls, max or lasttoken.", metavar="HOW"),
    ] = "mean",
    batch_size: Annotated[int, typer.Option("--batch-size", help="Pairs an update.")] = 64,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Updates. [default: those of --epochs]", metavar="N")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", help="Passes over the pairs.")] = 1,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", help="Of AdamW, after the warm-up; falls to 0.")
    ] = 2e-5,
    warmup: Annotated[
        float, typer.Option("--warmup", help="Share of the updates over which it rises.", metavar="SHARE")
    ] = 0.1,
    max_length: Annotated[
        int, typer.Option("--max-length", help="Tokens of a text; longer ones are cut.")
    ] = 64,
    probe: Annotated[
        str | None,
        typer.Option("--probe", help="Texts the geometry is followed on: a file, or stsb.", metavar="FILE"),
    ] = None,
    every: Annotated[int, typer.Option("--every", help="Updates between measurements.")] = 20,
    layers: Annotated[
        str,
        typer.Option(
            "--layers", help="Those followed: 0 the embedding layer, -1 the last.", metavar="NUMBERS"
        ),
    ] = "-1",
    contextual: Annotated[
        bool, typer.Option("--contextual", help="Follow adjusted self- and intra-similarity and norms too.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything random.")] = 0,
    data: Data = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the run: model, trajectory, figure.png.", metavar="FOLDER"
        ),
    ] = None,
    resume: Resume = False,
    save_every: SaveEvery = None,
    precision: Precision = "float32",
    device: Device = None,
    download: Download = None,
    json: Json = False,
) -> None:
    """Train MODEL as a sentence encoder on pairs of texts, and follow its geometry on the way.

    Each text must find its partner among all of the batch (InfoNCE, both ways): the training of Xiao, Long
    and Al Moubayed 2023.
    """
    if resume and output is None:
        raise InputError("--resume goes with --output, the folder of the run to continue")
    from isoscope.training.contrast import contrast as run

    with as_typed():
        number = parse_number("temperature", temperature, such_as="0.05")
        found, named = _pairs_and_columns(pairs, columns, data, download=bool(download))
        texts = None if probe is None else texts_of(probe, data, download=bool(download))
        result = run(
            model, found, temperature=number, symmetric=symmetric, pooling=pooling,
            batch_size=batch_size, steps=steps, epochs=epochs, learning_rate=learning_rate, warmup=warmup,
            max_length=max_length, probe=texts, every=every, layers=parse_numbers("layers", layers),
            contextual=contextual, seed=seed, run=output, resume=resume, save_every=save_every,
            precision=precision, device=device, download=bool(download),
        )  # fmt: skip
    drawn = None if output is None else _draw(result, output)
    if json:
        show_json(result.to_dict())
        return
    show(result.summary())
    if probe is None:
        say("note: the geometry was not followed; --probe FILE follows it on the texts of a file")
    for note in _notes(found, None if columns else named):
        say(f"note: {note}")
    if output is None:
        say("note: the model was not kept; -o FOLDER keeps it")
    else:
        say(f"wrote {output / 'model'}{drawn}")


contrast.__doc__ = f"{contrast.__doc__}\n{_EPILOG}"


def read_text_pairs(
    where: str, columns: str | None, data: Path | None, *, download: bool = False
) -> list[tuple[str, str]]:
    """Two columns of a file, or of a corpus by its name."""
    return _pairs_and_columns(where, columns, data, download=download)[0]


def _pairs_and_columns(
    where: str, columns: str | None, data: Path | None, *, download: bool
) -> tuple[list[tuple[str, str]], tuple[str, str] | None]:
    """The pairs, and of a file the names of their columns."""
    from isoscope.io import read_texts

    named = named_pairs(where, data, download=download)
    if named is not None and columns is not None:
        raise InputError(f"--columns goes with a file, and --pairs {where} is a corpus; leave it out")
    if named is not None:
        return named, None
    path = Path(where)
    first, second = _two_columns(path, columns)
    read = zip(read_texts(path, column=first), read_texts(path, column=second), strict=True)
    return list(read), (first, second)


def _notes(pairs: list[tuple[str, str]], columns: tuple[str, str] | None) -> list[str]:
    """Which columns were taken unasked, and whether many partners are not of one text alone."""
    notes = []
    if columns is not None:
        notes.append(f"the pairs are columns {columns[0]} and {columns[1]}; --columns A,B takes others")
    times = Counter(second for _, second in pairs)
    n_shared = sum(n for n in times.values() if n > 1)
    if n_shared > _MANY_SHARED * len(pairs):
        notes.append(
            f"{n_shared:,} of {len(pairs):,} pairs share their second text with another pair; where two such "
            "meet in a batch, the right partner counts as a wrong one (a false negative)"
        )
    return notes


def _two_columns(path: Path, columns: str | None) -> tuple[str, str]:
    """The columns asked for, the only two of texts, or two whose names say so."""
    from isoscope.io.files import check_file, kind, listed, reading
    from isoscope.io.tables import KINDS, open_table
    from isoscope.io.text_files import HEADS
    from isoscope.table_columns import TEXTS

    check_file(path, what="pairs of texts")
    asked = None if columns is None else [name.strip() for name in columns.split(",")]
    if asked is not None and len(asked) != 2:
        raise InputError(f"--columns is {columns!r}; wanted two names with a comma between them")
    heads = {head for pair in _HEADS for head in pair} | set(HEADS)
    with reading(path):
        found = open_table(path, what="pairs", heads=heads, named=asked or ())
    if found is None:
        raise FileError(f"{path} is of an unknown kind {kind(path)!r}; wanted pairs in {', '.join(KINDS)}")
    if asked is not None:
        for name in asked:
            found.check(name)
        return asked[0], asked[1]
    texts = [name for name, holds in found.holds.items() if holds == TEXTS]
    if len(texts) == 2:
        return texts[0], texts[1]
    by_name = {name.strip().lower(): name for name in texts}
    for one, other in _HEADS:
        if one in by_name and other in by_name:
            return by_name[one], by_name[other]
    if len(texts) < 2:
        held = f"one column of texts ({texts[0]})" if texts else "no columns of texts"
        raise FileError(f"{path} has {held}; wanted two, with texts that belong together in each row")
    raise FileError(
        f"{path} has columns {listed(found.names)}; say which two hold the texts with --columns A,B"
    )


def _draw(result: Contrasted, folder: Path) -> str:
    """The figure where matplotlib is; what to say of it."""
    try:
        result.figure(folder / "figure.png")
    except FileError:
        raise
    except InputError as error:  # matplotlib is not installed
        return f"; no figure: {error}"
    return f" and {folder / 'figure.png'}"
