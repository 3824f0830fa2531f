"""`isoscope report FILE -o report.html`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.inputs import InputOptions, QueryOptions
from isoscope.cli.options import File, Json, Labels, Seed, Texts, written_file
from isoscope.errors import InputError
from isoscope.io.targets import PAGE
from isoscope.terminal import say, show_json


def report(
    file: File,
    *,
    output: Annotated[
        Path, written_file("--output", "-o", help="The page to write, .html.", kinds=PAGE)
    ] = Path("report.html"),
    labels: Labels = None,
    texts: Texts = None,
    title: Annotated[
        str | None,
        typer.Option("--title", help="Title of the page. [default: FILE's name]", metavar="TEXT"),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="The folder of a training run; its curves are shown.", metavar="FOLDER"),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", help="Also write the plots as PDF and PNG.", metavar="FOLDER"),
    ] = None,
    queries: QueryOptions,
    source: InputOptions,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write an HTML page about the vectors in FILE, with text, numbers and charts.

    With --model, the vectors are those that the model makes of the texts in FILE. The page is one HTML file
    that loads nothing. Sliders show the effect of corrections. Labels and texts are shown as text and are
    never executed. The glossary, docs/glossary.md in the repository, explains the words.

    **Examples**

    A page about a file of vectors: `isoscope report vectors.npy -o report.html`

    With labels, and with texts beside the points: `isoscope report table.parquet -l topic --texts body`

    Thresholds of queries: `isoscope report docs.parquet --queries q.parquet --relevance topic`

    Texts and a model: `isoscope report reviews.jsonl --model all-MiniLM-L6-v2 -l label -o reviews.html`

    With the curves of a training run: `isoscope report vectors.npy --run run`

    With the plots as files, for a paper: `isoscope report vectors.npy -l labels.txt --figures figures`
    """
    from isoscope.report import report as make
    from isoscope.report.runs import load_run

    trajectory = None if run is None else load_run(run)
    if texts is not None and source.model is not None:
        raise InputError("goes with vectors; with --model the texts of FILE are shown", argument="texts")
    opened = source.open(file, labels=labels, by=queries.columns or None)
    made = make(
        opened,
        queries=queries.open(opened, source),
        texts=texts,
        path=output,
        title=title,
        run=trajectory,
        figures=figures,
        seed=seed,
    )
    if json:
        show_json(
            {
                "page": str(made.path),
                "n_bytes": made.n_bytes,
                "figures": [str(path) for path in made.figures],
                "headline": made.headline,
                "thresholds": made.thresholds,
                "measurement": made.measurement.to_dict(),
            }
        )
        return
    for sentence in made.headline:
        say(sentence.replace("\u00a0", " "))
    for path in made.figures:
        say(f"wrote {path}")
    say(f"wrote {output} ({made.n_bytes / 1e6:.1f} MB)")
