"""`isoscope reproduce contrastive`."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoscope.cli.options import (
    Data,
    Device,
    Json,
    KeepGoing,
    ReportOnly,
    Seeds,
    parse_seeds,
)
from isoscope.cli.reproductions import FAILED, Fetch, Output, each, runs_of
from isoscope.errors import InputError
from isoscope.papers.contrastive_setups import N_SEEDS, SETUPS, Setup, chosen_setups

if TYPE_CHECKING:
    from isoscope.papers.contrastive import Geometry

PARTS = ("geometry",)

_EPILOG = """
**Examples**

The smaller of the paper's models: `isoscope reproduce contrastive --setup minilm --data data`

All, with figures and pages: `isoscope reproduce contrastive --data data -o results`

Your own model by the same protocol: `isoscope reproduce contrastive --model path/to/model`

Before and after training: `isoscope reproduce contrastive --setup mpnet --before path/to/mpnet-base`
"""


def contrastive(
    part: Annotated[
        str, typer.Option("--part", help=f"Of the paper: {', '.join(PARTS)}.", metavar="NAME")
    ] = PARTS[0],
    setup: Annotated[
        list[str] | None,
        typer.Option(
            "--setup",
            "-s",
            help=f"{', '.join(SETUPS)}, or all; comma-separated or repeated. [default: all]",
            metavar="NAMES",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Another model: its name, folder or .gguf file.", metavar="MODEL"),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--before", help="The model before its training, to compare tokens with.", metavar="MODEL"
        ),
    ] = None,
    data: Data = None,
    download: Fetch = False,
    output: Output = None,
    seeds: Seeds = str(N_SEEDS),
    device: Device = None,
    keep_going: KeepGoing = False,
    report_only: ReportOnly = False,
    json: Json = False,
) -> None:
    """Xiao, Long and Al Moubayed 2023: the geometry of contrastively trained sentence encoders.

    Exit code 1 if a figure that can be compared was not reproduced.
    """
    from isoscope.papers.contrastive import keep_run, measure_geometry, read_runs

    if part not in PARTS:
        raise InputError(f"--part is {part!r}; wanted {' or '.join(PARTS)}")
    if report_only:
        _report(read_runs(runs_of(output)), output, json=json, show=not json)
        return
    chosen = chosen_setups(setup, model)
    if before is not None and len(chosen) > 1:
        raise InputError("--before goes with one model: name it by --setup or --model")

    def run(one: Setup) -> Geometry:
        return measure_geometry(
            one, before=before, data=data, download=download, device=device, seeds=parse_seeds(seeds)
        )

    runs = []
    for found in each(chosen, run, keep_going=keep_going):
        runs.append(found)
        if output is not None:
            keep_run(found, output / "runs")
        if not json:
            _show(found)
    # runs of an earlier call stay on the page
    _report(runs if output is None else read_runs(output / "runs"), output, json=json)


contrastive.__doc__ = f"{contrastive.__doc__}\n{_EPILOG}"


def _show(found: Geometry) -> None:
    from isoscope.papers.contrastive_report import as_text

    typer.echo(as_text(found) + "\n")


def _report(runs: list[Geometry], output: Path | None, *, json: bool, show: bool = False) -> None:
    """Print JSON if asked, write the pages where there is a folder, and set the exit code."""
    from isoscope.papers.contrastive_comparison import rows
    from isoscope.papers.contrastive_report import as_dict, write_report
    from isoscope.papers.verdicts import Verdict

    for found in runs if show else ():
        _show(found)
    if json:
        typer.echo(json_text.dumps(as_dict(runs), indent=2, ensure_ascii=False, allow_nan=False))
    if output is not None:
        written = write_report(runs, output, command="isoscope reproduce contrastive")
        typer.echo("wrote " + ", ".join(map(str, written)), err=json)
    if any(row.verdict is Verdict.DIFFERS for found in runs for row in rows(found)):
        raise typer.Exit(FAILED)
