"""`isoscope advise FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.inputs import TextOptions, open_input, say_notes
from isoscope.cli.options import (
    BatchSize,
    Device,
    Download,
    Json,
    Key,
    LabelsWhere,
    Model,
    Normalize,
    Pooling,
    Prefix,
    TextColumn,
    VectorColumn,
    as_typed,
)
from isoscope.cli.table_options import AS_JUDGED, TableOptions, takes_tables
from isoscope.errors import InputError
from isoscope.space import Space
from isoscope.terminal import say, show_json

if TYPE_CHECKING:
    from isoscope.advice import Advice
    from isoscope.io.pair_files import FilePairs

_EPILOG = """
**Examples**

With labels: `isoscope advise vectors.npy --labels labels.txt`

With scored pairs of rows (row, row, score): `isoscope advise vectors.npy --pairs pairs.csv`

Pairs of texts, encoded: `isoscope advise --pairs sts.jsonl --model all-MiniLM-L6-v2`

One task, two corrections: `isoscope advise vectors.npy -l labels.txt -t retrieval -c center,whiten`

Keep what is advised: `isoscope advise vectors.npy -l labels.txt --save correction.safetensors`
"""


@takes_tables
def advise(
    file: Annotated[
        str | None,
        typer.Argument(
            help="Vectors, as `isoscope measure` takes them; with --model, texts. "
            "May be left out where --pairs has texts.",
            metavar="[FILE]",
            show_default=False,
        ),
    ] = None,
    labels: LabelsWhere = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs",
            help="A table of two rows (from 0) or two texts, and how alike they are; "
            "PAIRS.csv:first,second,score names the columns.",
            metavar="FILE",
        ),
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--tasks",
            "-t",
            help="linear_probe, knn, clustering, retrieval, similarity. [default: all that can be tried]",
            metavar="NAMES",
        ),
    ] = None,
    corrections: Annotated[
        list[str] | None,
        typer.Option(
            "--corrections",
            "-c",
            help="center, standardize, normalize, remove_dimensions, all_but_the_top, whiten_soft, "
            "whiten_reduced, whiten, cluster_center, clusterwise_all_but_the_top. [default: all]",
            metavar="NAMES",
        ),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", help="Of the cross-validation.", metavar="N")] = 5,
    repeats: Annotated[int, typer.Option("--repeats", help="Of the cross-validation.", metavar="N")] = 3,
    max_rows: Annotated[
        int, typer.Option("--max-rows", help="Labelled rows tried at most, drawn at random.", metavar="N")
    ] = 2000,
    max_pairs: Annotated[
        int, typer.Option("--max-pairs", help="Pairs tried at most, drawn at random.", metavar="N")
    ] = 3000,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", help="Write the advised correction, fitted, to this .safetensors file.", metavar="FILE"
        ),
    ] = None,
    model: Model = None,
    text_column: TextColumn = None,
    prefix: Prefix = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    batch_size: BatchSize = None,
    device: Device = None,
    download: Download = None,
    key: Key = None,
    vector_column: VectorColumn = None,
    table: TableOptions = AS_JUDGED,
    seed: Annotated[int, typer.Option("--seed", help="Of draws, folds and k-means.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write everything to this file, as JSON.", metavar="FILE"),
    ] = None,
    json: Json = False,
) -> None:
    """Say whether to correct the vectors in FILE, by trying every correction on your own task.

    Each correction is fitted on training folds and scored on what is held out: linear probe, nearest
    neighbours, clustering and retrieval by labels; the ranking of scored pairs. Per task: which helps, by how
    much, how surely, and how the geometry moves; or to leave it alone.
    """
    from isoscope.advice import advise as advise_space
    from isoscope.io.pair_files import read_scored_pairs

    texts = TextOptions(model, text_column, prefix, pooling, normalize, batch_size, device, download)
    with as_typed():
        read = None if pairs is None else read_scored_pairs(pairs)
        if file is None:
            told = {"labels": labels, "key": key, "vector_column": vector_column, **table.given()}
            for name in (name for name, value in told.items() if value is not None):
                raise InputError(f"--{name.replace('_', '-')} goes with FILE, which is missing")
            source, space = None, _encoded(read, texts)
        else:
            source = open_input(
                file, labels=labels, key=key, vector_column=vector_column, table=table, texts=texts
            )
            space = source.load()
        found = advise_space(
            space,
            pairs=None if read is None else _triples(read, space),
            tasks=tasks,
            corrections=corrections,
            folds=folds,
            repeats=repeats,
            max_rows=max_rows,
            max_pairs=max_pairs,
            seed=seed,
        )
        said = [] if save is None else [_saved(found, save)]
        if source is not None:
            say_notes(source, err=True)
    if file is not None and model is None and not json:
        said += _command(found, file, key, vector_column, table)
    _show(found, said, output, json=json)


advise.__doc__ = f"{advise.__doc__}\n{_EPILOG}"


def _encoded(pairs: FilePairs | None, options: TextOptions) -> Space:
    """The texts of the pairs themselves, encoded."""
    from isoscope.models import encode

    if pairs is None:
        raise InputError("FILE is missing: wanted vectors or texts; or --pairs of texts with --model NAME")
    if pairs.are_rows or options.model is None:
        raise InputError(
            "FILE is missing: --pairs alone needs pairs of texts and --model NAME to encode them"
        )
    given = options.given()
    given.pop("text_column", None)
    before = given.pop("prefix", "")
    vectors = encode([before + text for text in pairs.texts], model=options.model, **given)
    return Space(vectors, texts=pairs.texts, name="pairs")


def _triples(pairs: FilePairs, space: Space) -> list[tuple[Any, Any, float]]:
    """Pairs of rows: as they are, or by looking their texts up."""
    if pairs.are_rows:
        return list(zip(pairs.firsts, pairs.seconds, pairs.scores, strict=True))
    if space.texts is None:
        raise InputError("--pairs has texts and FILE only vectors; wanted row numbers, counted from 0")
    at = {text: row for row, text in enumerate(space.texts)}
    absent = [text for text in pairs.texts if text not in at]
    if absent:
        raise InputError(f"--pairs has {len(absent)} texts that FILE has not, the first is {absent[0]!r:.60}")
    rows = ([at[text] for text in column] for column in (pairs.firsts, pairs.seconds))
    return list(zip(*rows, pairs.scores, strict=True))


def _command(
    found: Advice, file: str, key: str | None, vector_column: str | None, table: TableOptions
) -> list[str]:
    """The line that corrects FILE as is advised."""
    import shlex

    from isoscope.cli.correct import options_of

    if found.fitted is None:
        return []
    words = ["isoscope", "correct", file, *options_of(found.fitted)]
    for name, value in (("--key", key), ("--vector-column", vector_column)):
        words += [] if value is None else [name, value]
    words += table.words()
    return [f"to do so: {shlex.join([*words, '-o', 'corrected.npy'])}"]


def _saved(found: Advice, path: Path) -> str:
    if found.fitted is None:
        return "nothing saved: there is no correction to advise"
    return f"wrote {found.save(path)}"


def _show(found: Advice, said: list[str], output: Path | None, *, json: bool) -> None:
    if output is not None:
        from isoscope.io.atomic import write_atomically

        text = found.to_json() + "\n"
        write_atomically(output, lambda beside: beside.write_text(text, encoding="utf-8"))
    if json:
        show_json(found.to_dict())
        for line in said:
            say(line, err=True)
        return
    from isoscope.console import Terminal

    found.show()
    console = Terminal()
    for line in said:  # in one piece, to be copied
        console.say(line, whole=True)
