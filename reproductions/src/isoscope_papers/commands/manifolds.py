"""`isoscope reproduce manifolds`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoscope.cli.options import (
    Data,
    Device,
    Json,
    KeepGoing,
    ReportOnly,
    parse_numbers,
)
from isoscope.terminal import say, show, show_json
from isoscope_papers.commands.setups import FAILED, Fetch, Output, each, runs_of
from isoscope_papers.manifolds.setups import SETUPS, Setup

if TYPE_CHECKING:
    from isoscope_papers.manifolds.run import Outcome

_COMMAND = "isoscope reproduce manifolds"
_EPILOG = """
**Examples**

A first look on the CPU: `isoscope reproduce manifolds --setup minilm,glove --max-tokens 10000 --data data`

All of WikiText-2's test split, on a GPU: `isoscope reproduce manifolds --setup all --device cuda -o results`

The paper's own model, fetched: `isoscope reproduce manifolds --model openai-community/gpt2 --download`

Pages and figures from runs made elsewhere: `isoscope reproduce manifolds --report-only -o results`
"""


def manifolds(
    setup: Annotated[
        list[str] | None,
        typer.Option(
            "--setup",
            "-s",
            help=f"{', '.join(SETUPS)}, or all; comma-separated or repeated. [default: minilm, glove]",
            metavar="NAMES",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="A language model's name, folder or hub id, or a file of word vectors; may be repeated.",
            metavar="NAME",
        ),
    ] = None,
    data: Data = None,
    download: Fetch = False,
    output: Output = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", help="At most so many tokens. [default: the whole split]", metavar="N"),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Of WikiText-2: test, valid or train.")] = "test",
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers",
            help="Which, comma-separated: 0 is the embedding layer, -1 the last. [default: all]",
            metavar="NUMBERS",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the paper's draws, of k-means and samples.")] = 0,
    device: Device = None,
    keep_going: KeepGoing = False,
    report_only: ReportOnly = False,
    json: Json = False,
) -> None:
    """Cai, Huang, Bian and Church 2021: clusters and manifolds in the layers of language models.

    With --output, pages and figures are of all runs the folder holds. Exit code 1 if a figure that can be
    compared was not reproduced.
    """
    from isoscope_papers.manifolds.run import keep, read_outcomes, run_setup
    from isoscope_papers.manifolds.setups import chosen_setups

    if report_only:
        _report(read_outcomes(runs_of(output)), output, json=json)
        return

    def run(one: Setup) -> Outcome:
        return run_setup(
            one, data=data, download=download, device=device, split=split, max_tokens=max_tokens,
            layers=None if layers is None else parse_numbers("layers", layers), seed=seed,
        )  # fmt: skip

    names = setup or ([] if model else ["minilm", "glove"])
    outcomes = []
    for found in each(chosen_setups(names, model), run, keep_going=keep_going):
        outcomes.append(found)
        if output is not None:
            keep(found, output / "runs")
    # runs of an earlier call stay on the page
    _report(outcomes if output is None else read_outcomes(output / "runs"), output, json=json)


manifolds.__doc__ = f"{manifolds.__doc__}\n{_EPILOG}"


def _report(outcomes: list[Outcome], output: Path | None, *, json: bool) -> None:
    """Print what was found, write the pages where there is a folder, and set the exit code."""
    from isoscope_papers.manifolds.report import as_dict, as_text, lid_row, write_report
    from isoscope_papers.verdicts import Verdict

    show_json(as_dict(outcomes)) if json else show(as_text(outcomes))
    if output is not None:
        written = write_report(outcomes, output, command=_COMMAND)
        say("wrote " + ", ".join(map(str, written)), err=json)
    if any(lid_row(one).verdict is Verdict.DIFFERS for one in outcomes):
        raise typer.Exit(FAILED)
