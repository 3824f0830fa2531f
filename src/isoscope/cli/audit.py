"""`isoscope audit FILE`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.commands import FAILED, present
from isoscope.cli.inputs import InputOptions, QueryOptions
from isoscope.cli.options import File, Json, JsonOutput, Seed, Texts, written_file
from isoscope.errors import InputError, Setting

if TYPE_CHECKING:
    from isoscope.audit import Audit

_CSV = (".csv",)


def audit(
    file: File,
    *,
    texts: Texts = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            help='Exit with code 1 if this holds, such as "duplicates>1%". Can be repeated.',
            metavar="CONDITION",
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        written_file(
            "--rows", help="Also write the rows of every finding to this .csv, with their texts.", kinds=_CSV
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="How many neighbours a result has.", metavar="N")] = 10,
    near: Annotated[
        float,
        typer.Option(
            "--near",
            help="The cosine of near duplicates, where random rows have 0; it is rescaled where they do not.",
            metavar="COSINE",
        ),
    ] = 0.99,
    max_rows: Annotated[
        int | None,
        typer.Option(
            "--max-rows",
            help="Up to so many rows, the neighbours of all are searched; of more, those of a random sample. "
            "[default: 20000; with CUDA 2000000]",
            metavar="N",
        ),
    ] = None,
    neighbors: Annotated[
        Path | None,
        typer.Option(
            "--neighbors",
            help="The rows that your index returns for each row (or query), .npy or text: its recall.",
            metavar="FILE",
        ),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            "--sweep",
            help="Try the settings of faiss or usearch on these vectors, in place of the audit.",
            metavar="LIBRARY",
        ),
    ] = None,
    queries: QueryOptions,
    source: InputOptions,
    seed: Seed = 0,
    output: JsonOutput = None,
    json: Json = False,
) -> None:
    """Find what is broken in the vectors of an index in FILE, with the rows that are.

    Hubs and rows that are never retrieved, copies and near copies, outliers, odd lengths, zero vectors, NaN,
    constant dimensions, padded rows, vectors of two models in one file, and whether cosine and inner product
    give other results. Each finding has a share, with a 95 % interval where it is from a sample, its first
    rows with their texts, and what to do next.

    **Examples**

    The audit, with texts from a column: `isoscope audit docs.parquet --texts body`

    A check in a pipeline: `isoscope audit vectors.npy --fail-on "duplicates>1%" --fail-on "not_finite>0"`

    The rows to look at or to remove: `isoscope audit docs.parquet --texts body --rows rows.csv`

    With queries: `isoscope audit docs.npy --queries queries.npy --relevance pairs.csv`

    The recall of your index: `isoscope audit docs.npy --neighbors ids.npy`

    Which settings an index needs: `isoscope audit docs.npy --sweep faiss`
    """
    from isoscope.audit import audit as audit_space
    from isoscope.audit import sweep as try_settings
    from isoscope.look.next_steps import NextSteps

    apart = [*queries.columns, *([texts] if texts else [])]
    opened = source.open(file, by=apart if apart and source.model is None else None)
    if sweep is not None:
        unused = {
            "fail_on": fail_on, "rows": rows, "neighbors": neighbors, "texts": texts, "max_rows": max_rows,
            "queries": queries.queries, "relevance": queries.relevance, "ids": queries.ids,
        }  # fmt: skip
        for name, value in unused.items():
            if value is not None and value != []:
                raise InputError("cannot be combined with --sweep, which audits nothing", argument=name)
        present(try_settings(opened, sweep, k=k, seed=seed), json=json, output=output)
        return
    if texts is not None and source.model is not None:
        raise InputError(
            "goes with vectors; with --model the texts of FILE are shown",
            argument="texts",
            hint=Setting("text_column", to="name their column"),
        )
    steps = NextSteps((file, *source.words()), source.text_words(), can_correct=source.model is None)
    found = audit_space(
        opened,
        queries=queries.open(opened, source),
        texts=texts,
        neighbors=neighbors,
        k=k,
        near=near,
        max_rows=max_rows,
        fail_on=fail_on or (),
        seed=seed,
        steps=steps,
    )
    lines = []
    if rows is not None:
        lines.append(f"wrote {shlex.quote(str(rows))}: {_write(found, rows):,} rows")
    present(found, lines, json=json, output=output)
    if not found.passed:
        raise typer.Exit(FAILED)


def _write(found: Audit, path: Path) -> int:
    """Write the rows of the findings; return how many lines."""
    import pyarrow as pa
    from pyarrow import csv

    from isoscope.io.atomic import write_atomically
    from isoscope.results import arrow

    columns: dict[str, Any] = found.rows()
    table = pa.table({name: arrow(values) for name, values in columns.items()})
    write_atomically(path, lambda beside: csv.write_csv(table, beside))
    return len(table)
