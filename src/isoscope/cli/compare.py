"""`isoscope compare A B`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.inputs import TextOptions, open_input
from isoscope.cli.options import (
    BatchSize,
    Device,
    Download,
    Json,
    Normalize,
    Plugin,
    Pooling,
    Prefix,
    TextColumn,
    VectorColumn,
    as_typed,
    complete_metrics,
    load_plugins,
)
from isoscope.cli.table_options import AS_JUDGED, TableOptions, takes_tables
from isoscope.errors import InputError
from isoscope.terminal import show_json

if TYPE_CHECKING:
    from isoscope.comparison import Comparison, GateResult

_OF_LABELS = re.compile("^labels ")  # ids are read as labels are, and messages begin with that
FAILED = 1  # exit code where a gate is not passed
_EPILOG = """
**Examples**

Before and after: `isoscope compare before.npy after.npy --labels labels.txt`

Two models on the same texts: `isoscope compare reviews.jsonl --model all-MiniLM-L6-v2 --model smollm2-135m`

Rows in another order: `isoscope compare old.parquet new.parquet --ids id`

A stop in a pipeline: `isoscope compare old.npy new.npy --gate "isoscore>=0.1" --gate "overlap>=0.8"`

On changes: `isoscope compare old.npy new.npy --gate "delta:silhouette>=-0.02" --json -o comparison.json`
"""


@takes_tables
def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="Vectors, as `isoscope measure` takes them; with --model, texts.",
            metavar="A",
            show_default=False,
        ),
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            help="The same items once more; may be left out where two models encode the texts of A.",
            metavar="[B]",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            "-l",
            help="A column of A, a file with one label a line, or FILE.csv:column.",
            metavar="WHERE",
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--ids",
            help="Match rows by this column (or file) of ids, in A and B; twice where B's is another.",
            metavar="WHERE",
        ),
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(
            "--texts", help="A file of texts, one for each row of A, to name what moved.", metavar="FILE"
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            help="Names or families, comma-separated or repeated; `all`.",
            autocompletion=complete_metrics,
            metavar="NAMES",
        ),
    ] = None,
    plugin: Plugin = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            help='A condition, repeatable: on a metric of B ("isoscore>=0.1"), on B − A '
            '("delta:isoscore>=-0.02"), on cka, cka_debiased, procrustes or overlap. '
            "Exit code 1 unless all pass.",
            metavar="CONDITION",
        ),
    ] = None,
    neighbors: Annotated[
        int | None,
        typer.Option(
            "--neighbors",
            "-k",
            help="Nearest neighbours whose overlap is taken. [default: 10, fewer where rows are few]",
            metavar="N",
        ),
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", help="Of the neighbours: cosine or euclidean.")
    ] = "cosine",
    moved: Annotated[
        int, typer.Option("--moved", help="How many rows and labels that moved most to name.", metavar="N")
    ] = 10,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="Encode texts by this model: a name, a folder, or a hub id; twice for A's and B's.",
            metavar="NAME",
        ),
    ] = None,
    text_column: TextColumn = None,
    prefix: Prefix = None,
    pooling: Pooling = None,
    normalize: Normalize = None,
    batch_size: BatchSize = None,
    device: Device = None,
    download: Download = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            help="Which array of an .npz, .safetensors or .pt file; twice for A's and B's.",
            metavar="NAME",
        ),
    ] = None,
    vector_column: VectorColumn = None,
    table: TableOptions = AS_JUDGED,
    errors: Annotated[
        bool, typer.Option("--errors/--no-errors", help="Intervals of the differences.")
    ] = True,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything sampled.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write everything to this file, as JSON.", metavar="FILE"),
    ] = None,
    json: Json = False,
) -> None:
    """Compare two snapshots or models of the same items: what changed, how surely, and for which items.

    Metrics of both with the interval of their difference, linear CKA, Procrustes distance, the share of
    nearest neighbours that both have, and the rows and labels that moved most.
    """
    load_plugins(plugin)
    from isoscope.comparison import compare as compare_spaces
    from isoscope.comparison import parse_gates

    gates = parse_gates(gate or ())
    wanted = [*(metrics or ["default"]), *(one.metric for one in gates if one.metric)]
    given: dict[str, Any] = {
        "text_column": text_column, "prefix": prefix, "pooling": pooling, "normalize": normalize,
        "batch_size": batch_size, "device": device, "download": download,
    }  # fmt: skip
    with as_typed():
        models, keys, columns = _two("model", model), _two("key", key), _two("ids", ids)
        other = _other(a, b, models, keys)
        sources = [
            open_input(
                file,
                labels=at,
                key=one_key,
                vector_column=vector_column,
                table=table,
                texts=TextOptions(name, **given),
            )
            for file, at, one_key, name in zip((a, other), (labels, None), keys, models, strict=True)
        ]
        found = compare_spaces(
            *sources,
            ids=_ids((a, other), columns, keys, models, vector_column, table, given),
            texts=_texts(texts),
            metrics=wanted,
            k=neighbors,
            metric=metric,
            n_moved=moved,
            errors=errors,
            seed=seed,
        )
    _show(found, found.check(gates), output, json=json)


compare.__doc__ = f"{compare.__doc__}\n{_EPILOG}"


def _two(name: str, values: list[str] | None) -> list[str | None]:
    """An option for both, or A's and B's."""
    if not values:
        return [None, None]
    if len(values) > 2:
        raise InputError(
            f"--{name} is given {len(values)} times; wanted it once for both, or A's and then B's"
        )
    return [values[0], values[-1]]


def _other(a: str, b: str | None, models: list[str | None], keys: list[str | None]) -> str:
    if b is not None:
        return b
    if models[0] == models[1] and keys[0] == keys[1]:
        raise InputError(
            "B is missing: wanted a second file, or --model twice to encode the texts of A by two"
        )
    return a


def _ids(
    files: tuple[str, str],
    columns: list[str | None],
    keys: list[str | None],
    models: list[str | None],
    vector_column: str | None,
    table: TableOptions,
    given: dict[str, Any],
) -> tuple[Any, Any] | None:
    """The ids of both files, read as labels are."""
    if columns[0] is None:
        return None
    try:
        found = [
            open_input(
                file,
                labels=at,
                key=key,
                vector_column=vector_column,
                table=table,
                texts=TextOptions(name, **given),
            ).labels
            for file, at, key, name in zip(files, columns, keys, models, strict=True)
        ]
    except InputError as error:
        raise type(error)(_OF_LABELS.sub("--ids ", str(error))) from error
    return found[0], found[1]


def _texts(file: str | None) -> list[str] | None:
    from isoscope.io import read_texts

    return None if file is None else read_texts(file)


def _show(found: Comparison, results: list[GateResult], output: Path | None, *, json: bool) -> None:
    import json as json_text

    page = found.to_dict() | {"gates": [one.to_dict() for one in results]}
    text = json_text.dumps(page, indent=2, ensure_ascii=False, allow_nan=False)
    if output is not None:
        _write(output, text)
    if json:
        show_json(page)
    else:
        _print(found, results)
    if not all(one.passed for one in results):
        raise typer.Exit(FAILED)


def _write(path: Path, text: str) -> None:
    from isoscope.io.atomic import write_atomically

    write_atomically(path, lambda beside: beside.write_text(text + "\n", encoding="utf-8"))


def _print(found: Comparison, results: list[GateResult]) -> None:
    from isoscope.console import Terminal
    from isoscope.tables import shown

    found.show()
    console = Terminal()
    for one in results:
        value = "undefined" if one.value is None else shown(one.value)
        verdict = "pass" if one.passed else "FAIL"
        console.say(f"gate {verdict}: {one.gate} (is {value})")
