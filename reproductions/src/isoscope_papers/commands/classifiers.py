"""`isoscope reproduce classifiers`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoscope.cli.options import (
    Data,
    Device,
    Every,
    Json,
    KeepGoing,
    Log,
    ReportOnly,
    Seeds,
    parse_seeds,
)
from isoscope.errors import InputError
from isoscope.terminal import say, show, show_json
from isoscope_papers.classifiers.setups import SETUPS, Setup
from isoscope_papers.commands.setups import FAILED, Fetch, Output, each, runs_of

if TYPE_CHECKING:
    from isoscope_papers.classifiers.run import Outcome

_DEFAULT = ["pos", "supersense", "supersense-single", "polarity"]  # what can be run without a data folder

_EPILOG = """
**Examples**

What comes with isoscope, no data folder needed: `isoscope reproduce classifiers --setup pos,supersense`

Every setup at hand: `isoscope reproduce classifiers --setup all --data data -o results`

Another encoder: `isoscope reproduce classifiers --setup cola,rte --encoder all-mpnet-base-v2`

On a GPU: `isoscope reproduce classifiers --setup polarity --device cuda -o results`

Quickly, with estimated silhouettes: `isoscope reproduce classifiers --setup polarity --tolerance 0.0002`
"""


def classifiers(
    setup: Annotated[
        list[str] | None,
        typer.Option(
            "--setup",
            "-s",
            help=f"{', '.join(SETUPS)}, or all; comma-separated or repeated. "
            "[default: those that need no data folder]",
            metavar="NAMES",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", help="A model, its folder, or a file of word vectors.", metavar="NAME"),
    ] = None,
    data: Data = None,
    download: Fetch = False,
    output: Output = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Updates. [default: the paper's: 1,000, or 250 for GLUE]")
    ] = None,
    seeds: Seeds = "5",
    every: Every = 1,
    tolerance: Annotated[
        float | None, typer.Option("--tolerance", help="Estimate silhouettes to ± this instead of exactly.")
    ] = None,
    device: Device = None,
    log: Log = None,
    keep_going: KeepGoing = False,
    report_only: ReportOnly = False,
    json: Json = False,
) -> None:
    """Mickus, Grönroos and Attieh 2024: isotropy against clusters while a linear classifier trains.

    Exit code 1 if a figure that can be compared was not reproduced.
    """
    from isoscope_papers.classifiers.run import read_outcomes, run_setup

    if steps is not None and steps < 1:
        raise InputError(f"--steps is {steps}; wanted a whole number above 0")
    if report_only:
        outcomes = read_outcomes(runs_of(output))
        for found in () if json else outcomes:
            _show(found)
        _report(outcomes, output, json=json)
        return
    setups = _chosen(setup, encoder)
    encoders = {one.name: own for one, own in setups}

    def run(one: Setup) -> Outcome:
        own = encoders[one.name]
        return run_setup(
            one, encoder=own, data=data, download=download, device=device, seeds=parse_seeds(seeds),
            steps=steps, every=every, tolerance=tolerance, log=log,
            folder=output and output / "runs" / f"{one.name}-{Path(own or one.encoder).name}",
        )  # fmt: skip

    outcomes = []
    for found in each([one for one, _ in setups], run, keep_going=keep_going):
        outcomes.append(found)
        if not json:
            _show(found)
    _report(outcomes, output, json=json)


classifiers.__doc__ = f"{classifiers.__doc__}\n{_EPILOG}"


def _chosen(names: list[str] | None, encoder: str | None) -> list[tuple[Setup, str | None]]:
    """The setups, each with the encoder asked for where it takes one: a model for texts, a file for words."""
    from isoscope_papers.classifiers.run import chosen_setups

    is_file = encoder is not None and Path(encoder).is_file()
    setups = chosen_setups(names or _DEFAULT)
    others = [setup.name for setup in setups if setup.is_static != is_file]
    if encoder is not None and len(others) == len(setups):
        wanted = "the name or folder of a model" if is_file else "a file of word vectors"
        raise InputError(f"--encoder {encoder} serves none of {', '.join(others)}; wanted {wanted}")
    if encoder is not None and others:
        say(f"{', '.join(others)}: own vectors, not {encoder}", err=True)
    return [(setup, None if setup.name in others else encoder) for setup in setups]


def _show(found: Outcome) -> None:
    from isoscope_papers.classifiers.report import as_text

    show(as_text([found]) + "\n")


def _report(outcomes: list[Outcome], output: Path | None, *, json: bool) -> None:
    """Print JSON if asked, write the pages where there is a folder, and set the exit code."""
    from isoscope_papers.classifiers.report import as_dict, write_report
    from isoscope_papers.verdicts import Verdict

    if json:
        show_json(as_dict(outcomes))
    if output is not None:
        written = write_report(outcomes, output, command="isoscope reproduce classifiers")
        say("wrote " + ", ".join(map(str, written)), err=json)
    if any(row.verdict is Verdict.DIFFERS for found in outcomes for row in found.rows()):
        raise typer.Exit(FAILED)
