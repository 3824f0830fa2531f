"""`isoscope compare A B`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from isoscope.cli.commands import FAILED, present
from isoscope.cli.inputs import InputOptions, SearchOptions
from isoscope.cli.options import Json, JsonOutput, Labels, MetricOptions, Seed, Texts
from isoscope.errors import InputError

Twice = list[str] | None  # one value for both files, or one for A and one for B


@dataclass(frozen=True)
class TwoInputs(InputOptions):
    """The options for reading A and B."""

    key: Annotated[
        Twice,
        typer.Option(
            "--key",
            help="The array of an .npz, .safetensors or .pt file; give it twice for A and B.",
            metavar="NAME",
        ),
    ] = None  # type: ignore[assignment]
    model: Annotated[
        Twice,
        typer.Option(
            "--model",
            help="Encode texts by this model: a name, a folder, or a hub id; give it twice for A and B.",
            metavar="NAME",
        ),
    ] = None  # type: ignore[assignment]

    def each(self) -> list[InputOptions]:
        """Return the options of A and those of B."""
        shared = {field.name: getattr(self, field.name) for field in fields(self)}
        pairs = zip(two("key", self.key), two("model", self.model), strict=True)
        return [InputOptions(**shared | {"key": key, "model": model}) for key, model in pairs]


def two(argument: str, values: Twice) -> list[str | None]:
    """Return the value for A and the value for B.

    >>> two("key", ["x"]), two("key", ["x", "y"]), two("key", None)
    (['x', 'x'], ['x', 'y'], [None, None])
    """
    if not values:
        return [None, None]
    if len(values) > 2:
        raise InputError(
            f"must be given once, or twice for A and B, got {len(values)} values", argument=argument
        )
    return [values[0], values[-1]]


@dataclass(frozen=True)
class BothSearched(SearchOptions):
    """Queries of A, and those of B where another model encodes them."""

    ids_option = "pair_ids"

    pair_ids: Annotated[
        str | None,
        typer.Option(
            "--pair-ids",
            help="The column of A and of the queries that pairs name. [default: rows from 0]",
            metavar="COLUMN",
        ),
    ] = None
    queries_b: Annotated[
        str | None,
        typer.Option(
            "--queries-b",
            help="The same queries for B, where they are other vectors. [default: those of A]",
            metavar="FILE",
        ),
    ] = None


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
            help="Other vectors of the same items; leave it out where two models encode the texts of A.",
            metavar="[B]",
            show_default=False,
        ),
    ] = None,
    *,
    labels: Labels = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--ids",
            help="Match rows by this column or file of ids in A and B; give it twice where they differ; none "
            "keeps the order. [default: a column id, ids, _id, key or uuid that is in another order in B]",
            metavar="WHERE",
        ),
    ] = None,
    texts: Texts = None,
    metrics: MetricOptions,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            help='A condition on a metric of B ("isoscore>=0.1"), on the difference B − A '
            '("delta:isoscore>=-0.02"), or on cka, cka_debiased, procrustes or overlap; with --by, "worst:" '
            'before it is on the worst slice ("worst:overlap>=0.8"). Can be repeated. '
            "The exit code is 1 unless all conditions hold.",
            metavar="CONDITION",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--neighbors",
            "-k",
            help="The number of nearest neighbours to compare. [default: 10, or fewer for few rows]",
            metavar="N",
        ),
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", help="Distance between neighbours: cosine or euclidean.")
    ] = "cosine",
    n_moved: Annotated[
        int,
        typer.Option("--moved", help="How many of the rows and labels that moved most to list.", metavar="N"),
    ] = 10,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="Also compare each slice by a column of A, or a file with one value a line; repeated, by "
            "several columns.",
            metavar="WHERE",
        ),
    ] = None,
    source: TwoInputs,
    asked: BothSearched,
    errors: Annotated[
        bool, typer.Option("--errors/--no-errors", help="Also compute intervals of the differences.")
    ] = True,
    seed: Seed = 0,
    output: JsonOutput = None,
    json: Json = False,
) -> None:
    """Compare two sets of vectors of the same items: what changed, by how much, and for which items.

    The output has the metrics of both with the interval of their difference, linear CKA, the Procrustes
    distance, the share of nearest neighbours that both have, and the rows and labels that moved most.

    **Examples**

    A correction, before and after: `isoscope compare before.npy after.npy --labels labels.txt`

    Two models on one file: `isoscope compare reviews.jsonl --model all-MiniLM-L6-v2 --model smollm2-135m`

    Rows in a different order: `isoscope compare old.parquet new.parquet --ids id`

    Each language, the worst first: `isoscope compare old.parquet new.parquet --by language`

    What a search finds in both: `isoscope compare old.npy new.npy --queries q_old.npy --queries-b q_new.npy`

    A check in a pipeline: `isoscope compare old.npy new.npy --gate "isoscore>=0.1" --gate "overlap>=0.8"`

    On changes: `isoscope compare old.npy new.npy --gate "delta:silhouette>=-0.02" --json -o comparison.json`
    """
    first, second = source.each()
    if b is None and (first.key, first.model) == (second.key, second.model):
        raise InputError(
            "B is missing", hint=["pass a second file", "pass --model twice to encode A with two models"]
        )
    from isoscope.comparison import compare as compare_spaces
    from isoscope.comparison import parse_gates

    gates = parse_gates(gate or ())
    wanted = [*(metrics.chosen() or ["default"]), *(one.metric for one in gates if one.metric)]
    opened = list(zip((first, second), (a, b or a), strict=True))
    of_a = first.open(a, labels=labels, by=[*(by or ()), *asked.columns] or None)
    comparison = compare_spaces(
        of_a,
        second.open(b or a),
        queries=_queries(asked, of_a, first, second),
        ids=_ids(opened, two("ids", ids)),
        texts=texts,
        metrics=wanted,
        k=k,
        metric=metric,
        n_moved=n_moved,
        errors=errors,
        seed=seed,
        by=tuple(by) if by else None,
    )
    results = comparison.check(gates)
    more = {"gates": [one.to_dict() for one in results]}
    present(comparison, [] if json else map(str, results), json=json, output=output, more=more)
    if not all(one.passed for one in results):
        raise typer.Exit(FAILED)


def _queries(asked: BothSearched, of_a: Any, first: InputOptions, second: InputOptions) -> Any:
    """Return the queries of A and those of B; None where none are given."""
    queries = asked.open(of_a, first)
    if queries is None:
        if asked.queries_b is not None:
            raise InputError("needs --queries FILE", argument="queries_b")
        return None
    if asked.queries_b is None and second.model == first.model:
        return queries
    return queries, second.open(asked.queries_b or str(asked.queries))


def _ids(files: list[tuple[InputOptions, str]], columns: list[str | None]) -> Any:
    """Return the ids of both files; None, or "none" to keep the order, as they are."""
    if columns[0] is None or columns == ["none", "none"]:
        return columns[0]
    try:
        first, second = (
            options.open(file, labels=column).labels
            for (options, file), column in zip(files, columns, strict=True)
        )
    except InputError as error:
        if error.argument == "labels":
            error.argument = "ids"
        raise
    return first, second
