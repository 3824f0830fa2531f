"""`isoscope reproduce istar`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from isoscope.cli.options import (
    Data,
    Device,
    Json,
    KeepGoing,
    ReportOnly,
    Seeds,
    as_typed,
    parse_seeds,
)
from isoscope.errors import InputError
from isoscope.terminal import say, show, show_json
from isoscope_papers.commands.setups import Fetch, Output, each, runs_of
from isoscope_papers.istar.setups import MODEL, SETUPS, STRENGTHS, Point, Settings, Setup

if TYPE_CHECKING:
    from isoscope_papers.istar.report import Found

_COMMAND = "isoscope reproduce istar"
_PARTS = ("estimators", "sweep", "all")
_DEFAULT = Settings()
_EPILOG = """
**Examples**

Mini-batch estimates against the truth (figure 4): `isoscope reproduce istar --part estimators -o results`

The sweep on two tasks, on a GPU: `isoscope reproduce istar --part sweep -s rte,mrpc --device cuda -o results`

A few strengths, one seed: `isoscope reproduce istar --part sweep -s rte --strengths -1,-0.1,0.1,1 --seeds 1`

The paper's own model, fetched: `isoscope reproduce istar --part sweep --model google-bert/bert-base-cased
--learning-rate 1e-5 --download -o results`

Pages and figures from runs made elsewhere: `isoscope reproduce istar --report-only -o results`
"""


def istar(
    part: Annotated[
        str,
        typer.Option("--part", help="estimators (figure 4), sweep (figures 5 to 7), or all.", metavar="PART"),
    ] = "all",
    setup: Annotated[
        list[str] | None,
        typer.Option(
            "--setup",
            "-s",
            help=f"Tasks of the sweep: {', '.join(SETUPS)}, or all; comma-separated or repeated.",
            metavar="NAMES",
        ),
    ] = None,
    strengths: Annotated[
        str | None,
        typer.Option(
            "--strengths",
            help="λ, comma-separated; 0 is always run. [default: 14 from -5 to 5 for istar, 3 or 4 else]",
            metavar="NUMBERS",
        ),
    ] = None,
    regularizers: Annotated[
        str | None,
        typer.Option(
            "--regularizers",
            help=f"Some of {', '.join(STRENGTHS)}. [default: all; with --strengths istar]",
            metavar="NAMES",
        ),
    ] = None,
    seeds: Seeds = "3",
    model: Annotated[
        str,
        typer.Option("--model", help="What is fine-tuned: a name, a folder, or a hub id.", metavar="NAME"),
    ] = MODEL,
    epochs: Annotated[int, typer.Option("--epochs", help="Passes over the texts.")] = _DEFAULT.epochs,
    batch_size: Annotated[int, typer.Option("--batch-size", help="Texts an update.")] = _DEFAULT.batch_size,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", help="Of AdamW, constant. The paper has 1e-5 for BERT.")
    ] = _DEFAULT.learning_rate,
    max_length: Annotated[
        int, typer.Option("--max-length", help="Tokens of a text or pair; longer ones are cut, and counted.")
    ] = _DEFAULT.max_length,
    max_train: Annotated[
        int | None,
        typer.Option(
            "--max-train",
            help="Train on so many texts, drawn once. [default: 10000 of sst2, all of others]",
            metavar="N",
        ),
    ] = None,
    data: Data = None,
    download: Fetch = False,
    output: Output = None,
    device: Device = None,
    keep_going: KeepGoing = False,
    report_only: ReportOnly = False,
    json: Json = False,
) -> None:
    """Rudman and Eickhoff 2024: isotropy estimated from mini-batches, and as a penalty in fine-tuning.

    With --output every run is kept when it is done: a sweep that is cut short goes on where it was, and any
    number of processes may work on the same folder, with the same command or others. Pages and figures are
    of all runs the folder holds. The estimators are one run, of some twenty minutes on two cores.
    """
    if part not in _PARTS:
        raise InputError(f"--part is {part!r}; wanted one of {', '.join(_PARTS)}")
    if report_only:
        _report(_read(runs_of(output)), output, json=json)
        return
    settings = Settings(model, epochs, batch_size, learning_rate, max_length, max_train=max_train)
    with as_typed():  # before the estimators take their minutes
        planned = {} if part == "estimators" else _planned(setup, strengths, regularizers, seeds)
    with TemporaryDirectory() as scratch:
        runs = Path(scratch) if output is None else output / "runs"
        if part != "sweep":
            _estimators(runs, data=data, download=download, device=device)

        def run(one: Setup) -> int:
            from isoscope_papers.istar.sweep import own_settings, run_sweep

            return run_sweep(
                planned[one], own_settings(settings, one), runs, data=data, download=download,
                device=device, tell=lambda line: say(line, err=True),
            )  # fmt: skip

        if planned:
            list(each(planned, run, keep_going=keep_going))
        _report(_read(runs), output, json=json)


istar.__doc__ = f"{istar.__doc__}\n{_EPILOG}"


def parse_strengths(text: str) -> list[float]:
    """Numbers with commas between them, at least one.

    >>> parse_strengths("-1, 0.03")
    [-1.0, 0.03]
    """
    try:
        numbers = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers:
        raise InputError(f"--strengths is {text!r}; wanted numbers with commas between them: -1,-0.1,0.1,1")
    return numbers


def _planned(
    setup: list[str] | None, strengths: str | None, regularizers: str | None, seeds: str
) -> dict[Setup, list[Point]]:
    """The runs of each task."""
    from isoscope.training.configuration import as_seeds
    from isoscope_papers.istar.setups import chosen_setups, chosen_strengths, points

    named = None if regularizers is None else [name.strip() for name in regularizers.split(",")]
    chosen = chosen_strengths(named, None if strengths is None else parse_strengths(strengths))
    numbers = as_seeds(parse_seeds(seeds))
    return {one: points(one, chosen, numbers) for one in chosen_setups(setup)}


def _estimators(runs: Path, *, data: Path | None, download: bool, device: str | None) -> None:
    """Made populations, then token states of the models at hand."""
    from itertools import chain

    from isoscope.encoders.language_models import best_device
    from isoscope_papers.istar.estimators import keep, run_study
    from isoscope_papers.istar.populations import spectra, state_populations

    with as_typed():
        place = best_device(device)
        states = state_populations(data=data, download=download, device=device)
        keep(run_study(chain(spectra(), states), device=place), runs)


def _read(runs: Path) -> Found:
    from isoscope_papers.istar.report import read_found

    return read_found(runs)


def _report(found: Found, output: Path | None, *, json: bool) -> None:
    """Print what was found, and write the pages where there is a folder."""
    from isoscope_papers.istar.report import as_dict, as_text, write_report

    show_json(as_dict(found)) if json else show(as_text(found))
    if output is not None:
        written = write_report(found, output, command=_COMMAND)
        say("wrote " + ", ".join(map(str, written)), err=json)
