"""`isoscope drift A B`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isoscope.cli.commands import FAILED, drawn, present
from isoscope.cli.compare import TwoInputs
from isoscope.cli.options import Json, JsonOutput, Seed, Texts, written_file
from isoscope.errors import InputError, Setting, check_choice
from isoscope.io.targets import check_folder

_WINDOWS = {"every": ("day", "week", "month", "quarter", "year"), "against": ("first", "previous")}


def drift(
    a: Annotated[
        str,
        typer.Argument(
            help="Vectors, as `isoscope measure` takes them; with --model, texts; or a file or folder that "
            "--keep wrote.",
            metavar="A",
            show_default=False,
        ),
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            help="Vectors of other items by the same model; leave it out with --date.",
            metavar="[B]",
            show_default=False,
        ),
    ] = None,
    *,
    tolerate: Annotated[
        float,
        typer.Option(
            "--tolerate", help="The drift that raises no alarm, a share of the rows.", metavar="SHARE"
        ),
    ] = 0.02,
    date: Annotated[
        str | None,
        typer.Option(
            "--date",
            help="Compare windows of time in A: a column of dates, or a file with one a line.",
            metavar="WHERE",
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            help="How long a window is: day, week, month, quarter or year. [default: week]",
            metavar="WINDOW",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="Compare each window with the first or the previous one. [default: first]",
            metavar="WINDOW",
        ),
    ] = None,
    texts: Texts = None,
    n_texts: Annotated[
        int, typer.Option("--show", help="How many texts that came and that went to list.", metavar="N")
    ] = 5,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "--clusters",
            help="Clusters of A and B together. [default: one for 30 rows, at most 20]",
            metavar="K",
        ),
    ] = None,
    n_permutations: Annotated[
        int, typer.Option("--permutations", help="Permutations for the p-value; 0 for none.", metavar="N")
    ] = 499,
    sample: Annotated[
        int, typer.Option("--sample", help="Of more rows, take a random sample of so many.", metavar="N")
    ] = 10_000,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            help="Another condition, on drift, separability, mean_shift, spread_change or covariance_change "
            '("mean_shift<=0.01"). Can be repeated. The exit code is 1 unless all conditions hold.',
            metavar="CONDITION",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            help="Keep what drift needs of A, B or each window in this folder, for later comparisons; with "
            "one file of vectors, nothing is compared.",
            metavar="FOLDER",
            callback=lambda path: path and check_folder(path),
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        written_file(
            "--figure", help="Draw the clusters of A and B, or the drift over time: .png, .pdf, .svg."
        ),
    ] = None,
    source: TwoInputs,
    seed: Seed = 0,
    output: JsonOutput = None,
    json: Json = False,
) -> None:
    """Compare samples of different items: how far B has drifted from A, and what came and went.

    The drift is the share of the rows of B that would have to be replaced to make it a sample like A, at
    least, with its 95 % interval. If the whole interval is above --tolerate, the exit code is 1. Whether
    there is any difference at all is what the p-value says; of many rows it finds the smallest one.

    **Examples**

    This week against the last: `isoscope drift last-week.npy this-week.npy`

    With texts that came and went: `isoscope drift old.parquet new.parquet --texts text --tolerate 0.05`

    Every month of one file: `isoscope drift docs.parquet --date created --every month --figure drift.png`

    Measured once a day and kept: `isoscope drift monday.npy --keep days`, then
    `isoscope drift days tuesday.npy --keep days`
    """
    if date is not None and b is not None:
        raise InputError("cannot be combined with B", argument="date", hint="leave one of them out")
    if date is None and b is None and keep is None:
        raise InputError(
            "B is missing",
            hint=["pass a second file", Setting("date", "COLUMN", to="compare windows of time in A")],
        )
    if gate and b is None:
        raise InputError("needs A and B", argument="gate")
    windows = {"every": every, "against": against}
    given = {name: value for name, value in windows.items() if value is not None}
    if date is None and given:
        raise InputError("needs --date COLUMN", argument=next(iter(given)))
    if figure and date is None and b is None:
        raise InputError("needs B or --date: there is nothing to draw", argument="figure")
    for name, value in given.items():
        check_choice(name, value, _WINDOWS[name])
    from isoscope.comparison import parse_gates
    from isoscope.drift import Snapshot, drift_over_time
    from isoscope.drift import drift as drift_of
    from isoscope.drift.result import QUANTITIES
    from isoscope.drift.snapshot import is_snapshot

    gates = parse_gates(gate or (), QUANTITIES)
    options: dict[str, Any] = {
        "tolerate": tolerate,
        "n_permutations": n_permutations,
        "n_clusters": n_clusters,
        "n_texts": n_texts,
        "seed": seed,
    }
    first, second = source.each()
    opened: Any
    lines: list[str] = []
    if date is not None:
        opened = first.open(a, by=[date])
        options |= {**given, "texts": texts, "sample": sample}
        over_time = drift_over_time(opened, date, **options)
        lines += _kept(over_time.snapshots, keep)
        if figure:
            lines.append(_figure(over_time, figure))
        present(over_time, [] if json else lines, json=json, output=output)
        if over_time.alarm:
            raise typer.Exit(FAILED)
        return
    samples: list[Any] = []
    for own, path in ((first, a), *([] if b is None else [(second, b)])):
        is_kept = is_snapshot(path)
        opened = path if is_kept else own.open(path)
        samples.append(Snapshot.of(opened, texts=None if is_kept else texts, sample=sample, seed=seed))
        lines += [] if is_kept else _kept({Path(path).name.split(".")[0]: samples[-1]}, keep)
    if b is None:
        present(samples[0], [] if json else lines, json=json, output=output)
        return
    result = drift_of(*samples, **options)
    results = result.check(gates)
    if figure:
        lines.append(_figure(result, figure))
    more = {"gates": [one.to_dict() for one in results]}
    present(result, [] if json else [*map(str, results), *lines], json=json, output=output, more=more)
    if result.alarm or not all(one.passed for one in results):
        raise typer.Exit(FAILED)


def _figure(found: Any, path: Path) -> str:
    return drawn(found.plot, path).removeprefix("; ").replace(" and ", "wrote ", 1)


def _kept(snapshots: dict[str, Any], folder: Path | None) -> list[str]:
    """Save snapshots under their names, and return a line for each."""
    if folder is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    return [f"wrote {one.save(folder / f'{name}.safetensors')}" for name, one in snapshots.items()]
