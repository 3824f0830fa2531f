"""`isoscope compress FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.commands import drawn, present
from isoscope.cli.inputs import InputOptions, QueryOptions, notes_of
from isoscope.cli.options import File, Json, JsonOutput, Labels, Seed, written_file
from isoscope.errors import InputError
from isoscope.io.targets import CORRECTION
from isoscope.terminal import say


def compress(
    file: File,
    *,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            help="Methods, comma-separated or repeated. A method is steps joined by +, such as int8, "
            "center+binary, pca:128+int8, truncate:256, pq:48, rabitq. [default: about 15 that fit]",
            metavar="NAMES",
        ),
    ] = None,
    k: Annotated[int, typer.Option("--neighbors", "-k", help="The number of neighbours.", metavar="K")] = 10,
    target: Annotated[
        float, typer.Option("--target", help="The recall that a method must hold.", metavar="SHARE")
    ] = 0.95,
    oversample: Annotated[
        int,
        typer.Option("--oversample", help="Rescore so many times K of the returned rows.", metavar="N"),
    ] = 4,
    metric: Annotated[str, typer.Option("--metric", help="cosine or euclidean.", metavar="NAME")] = "cosine",
    labels: Labels = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="Scored pairs of rows (row, row, score) or of texts, to compare how they are ranked.",
            metavar="FILE",
        ),
    ] = None,
    max_queries: Annotated[
        int,
        typer.Option("--max-queries", help="The most queries; more are sampled at random.", metavar="N"),
    ] = 1000,
    max_fit: Annotated[
        int, typer.Option("--max-fit", help="The most rows to fit on, drawn at random.", metavar="N")
    ] = 20_000,
    save: Annotated[
        Path | None,
        written_file(
            "--save",
            help="Save the method of fewest bytes that holds the target, fitted, as .safetensors.",
            kinds=CORRECTION,
        ),
    ] = None,
    figure: Annotated[
        Path | None, written_file("--figure", help="Draw recall against bytes: .png, .pdf or .svg.")
    ] = None,
    queries: QueryOptions,
    source: InputOptions,
    seed: Seed = 0,
    output: JsonOutput = None,
    json: Json = False,
) -> None:
    """Find how few bytes a vector can take while a search still finds its neighbours.

    Truncation, PCA, float16, int8, int4, binary codes, product quantization and RaBitQ are tried on the
    vectors in FILE. For each method the output has the bytes of a vector, the share of the exact nearest
    rows that a search still returns, with its 95 % interval over queries and the 5th percentile, and the same
    where the returned rows are rescored by exact distance. Queries are rows drawn at random, which are
    neither searched nor fitted on, or those in --queries.

    **Examples**

    The methods that fit the vectors: `isoscope compress vectors.npy --figure compress.pdf`

    A few methods, and one of them saved: `isoscope compress vectors.npy --methods int8,pca:128+int8 --save
    map.safetensors`

    Your own queries and what is relevant to them: `isoscope compress documents.parquet --queries
    queries.parquet --relevance answer=id`

    With labels, the share of returned rows with the label of the query: `isoscope compress table.parquet
    --labels topic`
    """
    from isoscope.compression.compress import compress as try_methods
    from isoscope.io.pair_files import read_scored_pairs

    scored = None if pairs is None else read_scored_pairs(pairs)
    opened = source.open(file, labels=labels, by=queries.columns or None)
    asked = queries.open(opened, source)
    result = try_methods(
        opened,
        methods=methods,
        queries=asked,
        pairs=scored,
        k=k,
        target=target,
        oversample=oversample,
        metric=metric,
        max_queries=max_queries,
        max_fit=max_fit,
        seed=seed,
    )
    lines = []
    if save is not None:
        try:
            lines.append(f"wrote {result.save(save)}")
        except InputError as error:
            lines.append(f"nothing saved: {error.problem}")
    if figure is not None:
        lines.append(f"wrote{drawn(result.figure, figure).removeprefix(' and')}")
    for note in notes_of(opened):
        say(note, err=True)
    present(result, lines, json=json, output=output)
