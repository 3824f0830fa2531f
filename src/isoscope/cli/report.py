"""`isoscope report FILE -o report.html`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.inputs import InputOptions
from isoscope.cli.options import File, Json, Labels, Seed, Texts, output
from isoscope.errors import FileError, InputError
from isoscope.terminal import say, show_json


def report(
    file: File,
    *,
    output: Annotated[Path, output("The page to write, .html.", "PAGE")] = Path("report.html"),
    labels: Labels = None,
    texts: Texts = None,
    title: Annotated[
        str | None,
        typer.Option("--title", help="Title of the page. [default: FILE's name]", metavar="TEXT"),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="A training run's folder; its curves are shown.", metavar="FOLDER"),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", help="Also write the plots as PDF and PNG.", metavar="FOLDER"),
    ] = None,
    source: InputOptions,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write one page about the vectors in FILE, or those a model makes of its texts.

    The page contains everything it shows and loads nothing: words, numbers, pictures, and sliders for what
    corrections would do. Labels and texts are shown as they are, and nothing in them can run.

    **Examples**

    One page about a file of vectors: `isoscope report vectors.npy -o report.html`

    With labels, and texts to read beside the points: `isoscope report table.parquet -l topic --texts body`

    Texts, encoded: `isoscope report reviews.jsonl --model all-MiniLM-L6-v2 -l label -o reviews.html`

    With the curves of the run that made the vectors: `isoscope report vectors.npy --run run`

    The same plots for a paper: `isoscope report vectors.npy -l labels.txt --figures figures`
    """
    from isoscope.report import report as make
    from isoscope.report.document import check_page
    from isoscope.report.runs import load_run

    check_page(output)
    if output.exists() and Path(file).exists() and output.samefile(file):
        raise FileError(f"{output} is FILE itself; wanted another place to write to")
    followed = None if run is None else load_run(run)
    if texts is not None and source.model is not None:
        raise InputError("goes with vectors; with --model the texts of FILE are shown", argument="texts")
    made = make(
        source.open(file, labels=labels),
        texts=texts,
        path=output,
        title=title,
        run=followed,
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
                "measurement": made.measurement.to_dict(),
            }
        )
        return
    for sentence in made.headline:
        say(sentence.replace("\u00a0", " "))
    for path in made.figures:
        say(f"figure: {path}")
    say(f"page: {output} ({made.n_bytes / 1e6:.1f} MB)")
