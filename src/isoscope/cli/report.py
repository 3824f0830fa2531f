"""`isoscope report FILE -o report.html`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.inputs import TextOptions, open_input
from isoscope.cli.options import (
    BatchSize,
    Download,
    EncodingDevice,
    Json,
    Key,
    LabelsWhere,
    Model,
    Normalize,
    Pooling,
    Prefix,
    TextColumn,
    VectorColumn,
    VectorsOrTexts,
    as_typed,
)
from isoscope.cli.table_options import AS_JUDGED, TableOptions, takes_tables
from isoscope.engine.source import Source, Wrapped
from isoscope.errors import FileError, InputError
from isoscope.io import read_texts
from isoscope.io.label_files import split_column
from isoscope.terminal import say, show_json

if TYPE_CHECKING:
    from isoscope.report import Report
    from isoscope.space import Space

_EPILOG = """
**Examples**

One page about a file of vectors: `isoscope report vectors.npy -o report.html`

With labels, and texts to read beside the points: `isoscope report table.parquet -l topic --texts body`

Texts, encoded: `isoscope report reviews.jsonl --model all-MiniLM-L6-v2 -l label -o reviews.html`

With the curves of the run that made the vectors: `isoscope report vectors.npy --run run`

The same plots for a paper: `isoscope report vectors.npy -l labels.txt --figures figures`
"""


@takes_tables
def report(
    file: VectorsOrTexts,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page to write, .html.", metavar="PAGE")
    ] = Path("report.html"),
    labels: LabelsWhere = None,
    texts: Annotated[
        str | None,
        typer.Option(
            "--texts",
            help="Shown beside points: a column of FILE, a file with one text a line, or FILE.csv:column.",
            metavar="WHERE",
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option("--title", help="Of the page. [default: FILE's name]", metavar="TEXT"),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="A training run's folder, for its curves.", metavar="FOLDER"),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", help="Write the plots as PDF and PNG as well.", metavar="FOLDER"),
    ] = None,
    model: Model = None,
    text_column: TextColumn = None,
    prefix: Prefix = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    batch_size: BatchSize = None,
    device: EncodingDevice = None,
    download: Download = None,
    key: Key = None,
    vector_column: VectorColumn = None,
    table: TableOptions = AS_JUDGED,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything sampled.")] = 0,
    json: Json = False,
) -> None:
    """Write one page about the vectors in FILE, or those a model makes of its texts.

    The page holds everything it shows and loads nothing: words, numbers, pictures, and sliders that say what
    corrections would do. Labels and texts are shown as they are, and nothing in them can run.
    """
    from isoscope.report import report as make
    from isoscope.report.document import check_page
    from isoscope.report.runs import load_run

    options = TextOptions(model, text_column, prefix, pooling, normalize, batch_size, device, download)
    with as_typed():
        check_page(output)
        if output.exists() and Path(file).exists() and output.samefile(file):
            raise FileError(f"{output} is FILE itself; wanted another place to write to")
        followed = None if run is None else load_run(run)
        if texts is not None and model is not None:
            raise InputError("--texts goes with vectors; with --model the texts of FILE are shown")
        source = open_input(
            file, labels=labels, key=key, vector_column=vector_column, table=table, texts=options
        )
        found = None if texts is None else _texts(texts, file)
        made = make(
            _Described(source, found) if found is not None else source,
            path=output,
            title=title,
            run=followed,
            figures=figures,
            seed=seed,
        )
    if json:
        show_json(_as_dict(made))
        return
    for sentence in made.headline:
        say(sentence.replace("\u00a0", " "))
    for path in made.figures:
        say(f"figure: {path}")
    say(f"page: {output} ({made.n_bytes / 1e6:.1f} MB)")


class _Described(Wrapped):
    """An opened file with a text for each of its rows."""

    def __init__(self, source: Source, texts: list[str]) -> None:
        super().__init__(source)
        self._texts = texts

    def load(self) -> Space:
        """All rows, with their texts."""
        return replace(self.source.load(), texts=self._texts)


def _texts(texts: str, file: str) -> list[str]:
    """What --texts names: a file of its own, else a column of FILE."""
    path, column = split_column(texts)
    return read_texts(path, column=column) if path.exists() else read_texts(file, column=texts)


def _as_dict(made: Report) -> dict[str, Any]:
    return {
        "page": str(made.path),
        "n_bytes": made.n_bytes,
        "figures": [str(path) for path in made.figures],
        "headline": made.headline,
        "measurement": made.measurement.to_dict(),
    }


report.__doc__ = f"{report.__doc__}\n{_EPILOG}"
