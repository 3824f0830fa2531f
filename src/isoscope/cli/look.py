"""`isoscope look FILE`, and `isoscope FILE`."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from isoscope.cli.commands import present
from isoscope.cli.inputs import InputOptions, label_columns
from isoscope.cli.options import File, Json, JsonOutput, Labels, Seed
from isoscope.printable import listed


def look(
    file: File,
    *,
    labels: Labels = None,
    max_rows: Annotated[
        int, typer.Option("--max-rows", help="Rows to draw at random for neighbours.", metavar="N")
    ] = 5000,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="The most memory to use, such as 2GB.", metavar="SIZE"),
    ] = None,
    source: InputOptions,
    seed: Seed = 0,
    output: JsonOutput = None,
    json: Json = False,
) -> None:
    """Take a first look at the vectors in FILE: what stands out, what it means, what to try next.

    `isoscope FILE` does the same. Seven or eight findings, the worst first: each has a number with its 95 %
    interval, the same number for known models, what it means for search, clustering or a classifier, and one
    command to try next. Directions, lengths and variances are those of all rows; neighbours are searched
    among rows drawn at random. The glossary, docs/glossary.md in the repository, explains the words.

    **Examples**

    The first look: `isoscope vectors.npy`

    With labels: `isoscope look table.parquet --labels topic`

    Texts, encoded: `isoscope look reviews.jsonl --model all-MiniLM-L6-v2`

    For a script: `isoscope look vectors.npy --json`
    """
    from isoscope.look import look as look_at
    from isoscope.look.next_steps import NextSteps

    steps = NextSteps(
        (file, *source.words()), source.text_words(), labels, labels is not None, source.model is None
    )
    opened = source.open(file, labels=labels)
    found = look_at(opened, max_rows=max_rows, memory=memory, seed=seed, steps=steps)
    lines = []
    if labels is None and not json and (columns := label_columns(opened)):
        words = ["isoscope", "look", *steps.file, "--labels", columns[0]]
        lines.append(f"columns that may be labels: {listed(columns)}; to use one: {shlex.join(words)}")
    present(found, lines, json=json, output=output)
