"""`isoscope threshold FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.commands import present
from isoscope.cli.inputs import InputOptions, QueryOptions, notes_of
from isoscope.cli.options import File, Json, JsonOutput, Labels, Seed, parse_number
from isoscope.errors import InputError
from isoscope.terminal import say


def threshold(
    file: File,
    *,
    labels: Labels = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="Labelled pairs of rows (row, row, 1 or 0) or texts; with --queries, of queries and rows.",
            metavar="FILE",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Vectors of the same rows by another model: also give each cosine as it is there.",
            metavar="OTHER",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", help="Also keep the promises within each value of this column.", metavar="COLUMN"
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            "--rates",
            help="False-match rates to give cosines for, comma-separated. [default: 1e-2 to 1e-6]",
            metavar="RATES",
        ),
    ] = None,
    precision: Annotated[
        float, typer.Option("--precision", help="The precision to promise.", metavar="SHARE")
    ] = 0.95,
    false_match_rate: Annotated[
        float,
        typer.Option("--false-match-rate", help="The false-match rate to promise.", metavar="SHARE"),
    ] = 0.01,
    confidence: Annotated[
        float, typer.Option("--confidence", help="How often a promise holds.", metavar="SHARE")
    ] = 0.95,
    max_pairs: Annotated[
        int,
        typer.Option(
            "--max-pairs",
            help="The most random pairs to count; of more, those of rows drawn at random, 500 or more.",
            metavar="N",
        ),
    ] = 400_000_000,
    queries: QueryOptions,
    source: InputOptions,
    seed: Seed = 0,
    output: JsonOutput = None,
    json: Json = False,
) -> None:
    """Find from which cosine on two vectors count as a match, and what a threshold promises.

    Without labels, the output has the cosine that 1 in 100, 1 in 1,000, … random pairs of rows reach: these
    are false matches. With --queries, random pairs are of a query and a row. With labelled pairs, or with
    --relevance, it also has the lowest threshold with a given precision, and the lowest with a given rate of
    false matches. Both promises hold with a given confidence for pairs like these.

    **Examples**

    How often unrelated rows reach a cosine: `isoscope threshold vectors.npy`

    A threshold with a precision of at least 0.9: `isoscope threshold vectors.npy --pairs pairs.csv
    --precision 0.9`

    Queries against documents: `isoscope threshold documents.parquet --queries queries.parquet`

    With what is relevant to each: `isoscope threshold docs.parquet --queries q.parquet --relevance topic`

    The same thresholds for a new model: `isoscope threshold old.npy --to new.npy`
    """
    if pairs is not None and queries.relevance is not None:
        raise InputError(
            "cannot be combined with --relevance", argument="pairs", hint="leave one of them out"
        )
    wanted = (
        None if rates is None else [parse_number("rates", one, such_as="1e-3") for one in rates.split(",")]
    )
    from isoscope.io.pair_files import read_scored_pairs
    from isoscope.matching.threshold import RATES
    from isoscope.matching.threshold import threshold as find

    labelled = None if pairs is None else read_scored_pairs(pairs)
    apart = [*queries.columns, *([] if by is None else [by])]
    opened = source.open(file, labels=labels, by=apart or None)
    found = find(
        opened,
        queries=queries.open(opened, source),
        pairs=labelled,
        to=None if to is None else source.open(to),
        by=by,
        rates=RATES if wanted is None else wanted,
        precision=precision,
        false_match_rate=false_match_rate,
        confidence=confidence,
        max_pairs=max_pairs,
        seed=seed,
    )
    for note in notes_of(opened):
        say(note, err=True)
    present(found, json=json, output=output)
