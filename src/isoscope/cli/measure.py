"""`isoscope measure FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.commands import FAILED, present
from isoscope.cli.inputs import InputOptions
from isoscope.cli.options import File, Json, JsonOutput, Labels, MetricOptions, Seed
from isoscope.errors import InputError

if TYPE_CHECKING:
    from isoscope.comparison import Gate, GateResult


def measure(
    file: File,
    *,
    labels: Labels = None,
    metrics: MetricOptions,
    source: InputOptions,
    errors: Annotated[
        bool,
        typer.Option(
            "--errors/--no-errors", help="Also compute standard errors and intervals, in a second pass."
        ),
    ] = True,
    seed: Seed = 0,
    weights: Annotated[
        str | None,
        typer.Option("--weights", help="How often each row counts: a column or a file.", metavar="WHERE"),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="The most memory to use, such as 2GB.", metavar="SIZE"),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            help="Let Dask's workers read the files: tcp://host:8786, or local to start some here.",
            metavar="ADDRESS",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="Save progress here; the same command continues from it.",
            metavar="FOLDER",
        ),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip files of many that cannot be read, and name them.")
    ] = False,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="Slice by a column of FILE, or a file with one value a line; repeated, by several columns.",
            metavar="WHERE",
        ),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            help='A condition on a metric of all rows ("mean_cosine<=0.5"). Can be repeated. '
            "The exit code is 1 unless all conditions hold.",
            metavar="CONDITION",
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what would be measured and how, and measure nothing.")
    ] = False,
    output: JsonOutput = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of tables, a row a reading.")] = False,
    json: Json = False,
) -> None:
    """Compute metrics of the vectors in FILE, and say what each number means.

    With --model, the vectors are those that the model makes of the texts in FILE. Metrics that can stream
    read a file of vectors in blocks, so it may be larger than memory. Texts are encoded once: their vectors
    are cached. With --by, every slice is measured in the same passes and compared with all other rows; the
    worst slice comes first. The glossary, docs/glossary.md in the repository, explains the words, and
    `isoscope metrics NAME` one metric.

    **Examples**

    The default metrics: `isoscope measure vectors.npy`

    With labels, one a line: `isoscope measure vectors.npy --labels labels.txt`

    Labels from a column of the same file: `isoscope measure table.parquet --labels topic`

    Texts: `isoscope measure reviews.jsonl --model all-MiniLM-L6-v2 --labels label`

    Two numbers, for a script: `isoscope measure vectors.npy -m isoscore,mean_cosine --json`

    Whole families: `isoscope measure vectors.npy -m isotropy -m manifold`

    Each language beside the others, worst first: `isoscope measure docs.parquet --by language`

    A check in a pipeline: `isoscope measure vectors.npy --gate "mean_cosine<=0.5"`

    What would be done, and at what cost: `isoscope measure docs.parquet --plan`

    Many files, larger than memory: `isoscope measure 'shards/*.parquet' --memory 2GB --checkpoint progress`
    """
    if csv and json:
        raise InputError("cannot be combined with --json", argument="csv", hint="leave one of them out")
    if gate and plan:
        raise InputError("cannot be combined with --plan, which measures nothing", argument="gate")
    from isoscope.engine.measure import measure as measure_space
    from isoscope.engine.plan import plan as plan_of
    from isoscope.results import Result

    gates = _gates(gate) if gate else []
    chosen = metrics.chosen()
    if gates:
        chosen = [*(chosen or ["default"]), *(one.name for one in gates)]
    opened = source.open(file, labels=labels, weights=weights, by=by, skip_bad=skip_bad)
    options: dict[str, Any] = {
        "by": tuple(by) if by else None,
        "errors": errors,
        "seed": seed,
        "scheduler": scheduler,
        "checkpoint": checkpoint,
        "skip_bad": skip_bad,
    }
    found: Result
    results: list[GateResult] = []
    if plan:
        found = plan_of(chosen, opened, budget=memory, **options)
    else:
        found = measured = measure_space(opened, metrics=chosen, memory=memory, **options)
        results = [one.tested(measured[one.name]) for one in gates]
    lines = [] if json or csv else [str(one) for one in results]
    if "spectrum" in (metrics.metrics or ()) and not (json or csv or plan):
        lines.append("which number of dimensions to use: isoscope metrics spectrum")
    more = {"gates": [one.to_dict() for one in results]} if gates else None
    present(found, lines, json=json, output=output, csv=csv, more=more)
    if not all(one.passed for one in results):
        raise typer.Exit(FAILED)


def _gates(texts: list[str]) -> list[Gate]:
    from isoscope.comparison import parse_gates

    gates = parse_gates(texts)
    for one in gates:
        if one.metric != one.name:
            raise InputError(
                argument="gate", got=str(one), wanted="on a metric", hint="`isoscope compare` takes this gate"
            )
    return gates
