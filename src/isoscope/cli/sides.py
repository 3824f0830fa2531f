"""`isoscope sides A B`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from isoscope.cli.commands import FAILED, drawn, present
from isoscope.cli.compare import Twice, TwoInputs, two
from isoscope.cli.inputs import InputOptions
from isoscope.cli.options import Json, JsonOutput, Seed, written_file
from isoscope.errors import InputError, Setting


@dataclass(frozen=True)
class SideInputs(TwoInputs):
    """The options for reading A and B, which may have a prefix each."""

    prefix: Annotated[
        Twice,
        typer.Option(
            "--prefix",
            help='Put before each text ("query: "); give it twice for A and B.',
            metavar="TEXT",
        ),
    ] = None  # type: ignore[assignment]

    def each(self) -> list[InputOptions]:
        """Return the options of A and those of B."""
        prefixes = two("prefix", self.prefix)
        shared = replace(self, prefix=None)
        sides = TwoInputs.each(shared)
        return [replace(side, prefix=prefix) for side, prefix in zip(sides, prefixes, strict=True)]


def sides(
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
        typer.Argument(help="The other side; leave it out with --by.", metavar="[B]", show_default=False),
    ] = None,
    *,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="The side of each row of A: a column, or a file with one a line. Of more than two, each "
            "is set beside all others.",
            metavar="WHERE",
        ),
    ] = None,
    relevance: Annotated[
        str | None,
        typer.Option(
            "--relevance",
            help="Which rows are partners: those with the same value in a column (answer=id), or a file "
            "of pairs. [default: row i of A and row i of B]",
            metavar="WHERE",
        ),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            "--sample", help="Search for the partners of so many random rows of a side.", metavar="N"
        ),
    ] = 2000,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            help="A condition on gap, separability, hit_rate (of the first 10), mrr, asymmetry of the worst "
            'side ("hit_rate>=0.8"). Can be repeated. The exit code is 1 unless all conditions hold.',
            metavar="CONDITION",
        ),
    ] = None,
    figure: Annotated[
        Path | None, written_file("--figure", help="Draw how soon partners are found: .png, .pdf, .svg.")
    ] = None,
    source: SideInputs,
    seed: Seed = 0,
    output: JsonOutput = None,
    json: Json = False,
) -> None:
    """Measure the sides of one space: queries and documents, languages, images and captions.

    The output has the gap between the sides, how well a classifier tells them apart, how well each side finds
    its partners on the other, as they are and with the mean of each side subtracted, and what stands out.

    **Examples**

    Row i is the query of document i: `isoscope sides queries.npy documents.npy`

    Partners by a column of both: `isoscope sides queries.parquet documents.parquet --relevance answer=id`

    Languages of one file, translations by a column: `isoscope sides all.parquet --by language --relevance id`

    Are the prefixes worth it:
    `isoscope sides questions.txt answers.txt --model e5-small --prefix "query: " --prefix "passage: "`
    """
    if (b is None) == (by is None):
        raise InputError(
            "needs B, or --by for the sides of one file",
            argument="a",
            hint=["pass a second file", Setting("by", "COLUMN", to="name the side of each row")],
        )
    from isoscope.comparison import parse_gates
    from isoscope.queries.opened import columns_of
    from isoscope.sides import sides as sides_of
    from isoscope.sides.result import GATED

    gates = parse_gates(gate or (), GATED)
    first, second = source.each()
    options: dict[str, Any] = {"relevance": relevance, "sample": sample, "seed": seed}
    if b is None:
        columns = [name for name in (by, relevance) if name is not None and not Path(name).is_file()]
        result = sides_of(first.open(a, by=columns or None), by=by, **options)
    else:
        pairs = columns_of(relevance, None)
        opened = (
            own.open(path, by=[pair[side] for pair in pairs] or None)
            for side, (own, path) in enumerate(((first, a), (second, b)))
        )
        names = _names(a, b)
        result = sides_of(*opened, names=names, **options)
    results = result.check(gates)
    lines = [str(one) for one in results]
    if figure:
        lines.append(drawn(result.plot, figure).removeprefix("; ").replace(" and ", "wrote ", 1))
    more = {"gates": [one.to_dict() for one in results]}
    present(result, [] if json else lines, json=json, output=output, more=more)
    if not all(one.passed for one in results):
        raise typer.Exit(FAILED)


def _names(a: str, b: str) -> tuple[str, str]:
    """Return the names of both files without what they end in, if these differ."""
    first, second = (Path(path).name.split(".")[0] for path in (a, b))
    return (first, second) if first != second and first and second else ("A", "B")
