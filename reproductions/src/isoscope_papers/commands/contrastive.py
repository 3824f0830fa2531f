"""`isoscope reproduce contrastive`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from isoscope.cli.options import (
    Data,
    Device,
    Json,
    KeepGoing,
    ReportOnly,
    parse_seeds,
)
from isoscope.errors import InputError
from isoscope.terminal import say, show, show_json
from isoscope_papers.commands.setups import FAILED, Fetch, Output, each, runs_of
from isoscope_papers.contrastive.setups import N_SEEDS, SETUPS, Setup, chosen_setups
from isoscope_papers.dynamics.setups import EPOCHS, PRECISIONS, STARTS
from isoscope_papers.dynamics.setups import Setup as Run
from isoscope_papers.dynamics.setups import chosen_setups as chosen_runs

if TYPE_CHECKING:
    from isoscope_papers.contrastive.run import Geometry
    from isoscope_papers.dynamics.run import Dynamics

PARTS = ("geometry", "dynamics")

_EPILOG = """
**Examples**

The smaller of the paper's models: `isoscope reproduce contrastive --setup minilm --data data`

All, with figures and pages: `isoscope reproduce contrastive --data data -o results`

Your own model by the same protocol: `isoscope reproduce contrastive --model path/to/model`

Before and after training: `isoscope reproduce contrastive --setup mpnet --before path/to/mpnet-base`

All trainings: `isoscope reproduce contrastive --part dynamics --data data -o results --device cuda`

Some of them: `isoscope reproduce contrastive --part dynamics -s masked,smollm2:tau=0.1 -o results`

From your own model: `isoscope reproduce contrastive --part dynamics --model path/to/mpnet-base -o results`

The pages again: `isoscope reproduce contrastive --report-only -o results`
"""


def contrastive(
    part: Annotated[
        str, typer.Option("--part", help=f"Of the paper: {' or '.join(PARTS)}.", metavar="NAME")
    ] = PARTS[0],
    setup: Annotated[
        list[str] | None,
        typer.Option(
            "--setup",
            "-s",
            help=f"{', '.join(SETUPS)}; of dynamics {', '.join(STARTS)}, or a run such as masked:tau=0.1, "
            "masked:batch=16, masked:pooling=cls; or all; comma-separated or repeated. [default: all]",
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
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds",
            help=f"How many, or which, comma-separated (7, or 1,2,5). [default: {N_SEEDS}; of dynamics 1]",
            metavar="TEXT",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", help=f"Of dynamics: passes over the pairs. [default: {EPOCHS}]"),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision",
            help=f"Of dynamics: the training's, {', '.join(PRECISIONS)}. [default: {PRECISIONS[0]}]",
            metavar="TYPE",
        ),
    ] = None,
    device: Device = None,
    keep_going: KeepGoing = False,
    report_only: ReportOnly = False,
    json: Json = False,
) -> None:
    """Xiao, Long and Al Moubayed 2023: contrastively trained sentence encoders, and their training.

    Part geometry measures models that are there; part dynamics trains them with the paper's temperatures,
    batch sizes and poolings. With --output each run is kept as soon as it is done, those of dynamics are not
    run again, and the pages are of all runs the folder holds. Exit code 1 if a figure that can be compared
    was not reproduced; claims that did not hold are on the page.
    """
    if part not in PARTS:
        raise InputError(f"--part is {part!r}; wanted {' or '.join(PARTS)}")
    if report_only:
        runs_of(output)
        _report([], [], output, json=json, show=not json)
        return
    if part == "dynamics":
        if before is not None:
            raise InputError("--before goes with --part geometry: dynamics begins from what is untrained")
        trained = _train(
            chosen_runs(setup, model), output, _Options(data, download, device, keep_going, json),
            seeds=seeds or "1", epochs=EPOCHS if epochs is None else epochs,
            precision=precision or PRECISIONS[0],
        )  # fmt: skip
        _report([], trained, output, json=json)
        return
    for name, given in (("--epochs", epochs), ("--precision", precision)):
        if given is not None:
            raise InputError(f"{name} goes with --part dynamics: geometry trains nothing")
    _report(
        _measure(
            chosen_setups(setup, model), output, _Options(data, download, device, keep_going, json),
            before=before, seeds=seeds or str(N_SEEDS),
        ),
        [], output, json=json,
    )  # fmt: skip


contrastive.__doc__ = f"{contrastive.__doc__}\n{_EPILOG}"


class _Options(NamedTuple):
    """What both parts take."""

    data: Path | None
    download: bool
    device: str | None
    keep_going: bool
    json: bool


def _measure(
    chosen: list[Setup], output: Path | None, options: _Options, *, before: str | None, seeds: str
) -> list[Geometry]:
    from isoscope_papers.contrastive.run import keep_run, measure_geometry

    if before is not None and len(chosen) > 1:
        raise InputError("--before goes with one model: name it by --setup or --model")

    def run(one: Setup) -> Geometry:
        return measure_geometry(
            one, before=before, data=options.data, download=options.download, device=options.device,
            seeds=parse_seeds(seeds),
        )  # fmt: skip

    runs = []
    for found in each(chosen, run, keep_going=options.keep_going):
        runs.append(found)
        if output is not None:
            keep_run(found, output / "runs")
        if not options.json:
            _show(found)
    return runs


def _train(
    chosen: list[Run], output: Path | None, options: _Options, *, seeds: str, epochs: int, precision: str
) -> list[Dynamics]:
    """Every run that the folder does not hold yet, kept as soon as it is done."""
    from isoscope_papers.dynamics import run as dynamics

    material = dynamics.Material(output, data=options.data, download=options.download, device=options.device)
    parsed = parse_seeds(seeds)
    runs = []
    for seed in range(parsed) if isinstance(parsed, int) else parsed:

        def run(one: Run, seed: int = seed) -> Dynamics:
            path = None if output is None else dynamics.run_path(output / "runs", one, seed)
            if path is not None and path.exists():
                return dynamics.same_run(path, epochs=epochs, precision=precision)
            found = dynamics.run_dynamics(one, material, epochs=epochs, seed=seed, precision=precision)
            if path is not None:
                dynamics.keep_dynamics(found, path)
            return found

        for found in each(chosen, run, keep_going=options.keep_going):
            runs.append(found)
            if not options.json:
                _show_training(found)
    return runs


def _show(found: Geometry) -> None:
    from isoscope_papers.contrastive.report import as_text

    show(as_text(found) + "\n")


def _show_training(found: Dynamics) -> None:
    from isoscope_papers.dynamics.report import as_text

    show(as_text(found) + "\n")


def _report(
    runs: list[Geometry], trained: list[Dynamics], output: Path | None, *, json: bool, show: bool = False
) -> None:
    """Print JSON if asked, write the pages where there is a folder, and set the exit code.

    Runs of earlier calls stay on the page: with a folder, they are what it holds.
    """
    from isoscope_papers.contrastive.comparison import rows
    from isoscope_papers.contrastive.report import as_dict, write_report
    from isoscope_papers.contrastive.run import read_runs
    from isoscope_papers.dynamics import report as dynamics_report
    from isoscope_papers.dynamics.run import read_dynamics
    from isoscope_papers.verdicts import Verdict

    if output is not None:
        trained = read_dynamics(output / "runs")
        has_geometry = next((output / "runs").glob("contrastive-*.json"), None) is not None
        runs = read_runs(output / "runs") if has_geometry or not trained else []
    for found in runs if show else ():
        _show(found)
    for training in trained if show else ():
        _show_training(training)
    if json:
        about = as_dict(runs) | (dynamics_report.as_dict(trained) if trained else {})
        show_json(about)
    if output is not None:
        written = write_report(runs, output, command="isoscope reproduce contrastive", dynamics=trained)
        say("wrote " + ", ".join(map(str, written)), err=json)
    if any(row.verdict is Verdict.DIFFERS for found in runs for row in rows(found)):
        raise typer.Exit(FAILED)
