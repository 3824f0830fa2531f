"""`isoscope reproduce corrections`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoscope.cli.options import Data, Device, Json, KeepGoing, ReportOnly
from isoscope.terminal import say, show, show_json
from isoscope_papers.commands.setups import Fetch, Output, each, runs_of
from isoscope_papers.corrections.setups import (
    DATASETS,
    FOLDS,
    MAX_PAIRS,
    MAX_ROWS,
    REPEATS,
    SETUPS,
    Setup,
    chosen_setups,
)

if TYPE_CHECKING:
    from isoscope_papers.corrections.run import Outcome

_COMMAND = "isoscope reproduce corrections"
_EPILOG = """
**Examples**

Word vectors, minutes on a CPU: `isoscope reproduce corrections --setup glove --data data`

All encoders, with the page: `isoscope reproduce corrections --setup all --data data -o results`

A model of your own, on sentence similarity: `isoscope reproduce corrections --model my-model -d sentences`

The page from runs made elsewhere: `isoscope reproduce corrections --report-only -o results`
"""


def corrections(
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
            help="A sentence encoder's name, folder or hub id, or a file of word vectors; may be repeated.",
            metavar="NAME",
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            "-d",
            help=f"{', '.join(DATASETS)}; or sentences, words, labels. [default: all]",
            metavar="NAMES",
        ),
    ] = None,
    data: Data = None,
    download: Fetch = False,
    output: Output = None,
    page: Annotated[
        Path | None,
        typer.Option("--page", help="Where the Markdown page goes, if not to the output.", metavar="FILE"),
    ] = None,
    max_pairs: Annotated[
        int, typer.Option("--max-pairs", help="Pairs of each data set, drawn at random.", metavar="N")
    ] = MAX_PAIRS,
    max_rows: Annotated[
        int, typer.Option("--max-rows", help="Labelled texts of each data set, drawn at random.", metavar="N")
    ] = MAX_ROWS,
    folds: Annotated[int, typer.Option("--folds", help="Of the cross-validation.", metavar="N")] = FOLDS,
    repeats: Annotated[
        int, typer.Option("--repeats", help="Of the cross-validation.", metavar="N")
    ] = REPEATS,
    seed: Annotated[int, typer.Option("--seed", help="Of draws, folds and k-means.")] = 0,
    device: Device = None,
    keep_going: KeepGoing = False,
    report_only: ReportOnly = False,
    json: Json = False,
) -> None:
    """Should I whiten? Every correction on sentence and word similarity, classification and clustering.

    Does it hold that graded tasks gain from isotropy and that tasks with labels lose by it (Mu and Viswanath
    2018, Su et al. 2021, Rajaee and Pilehvar 2021, Mickus et al. 2024)? Claims with their figures, what each
    correction gains, and the best for each encoder and kind of task.
    """
    from isoscope_papers.corrections.run import keep, read_outcomes, run_setup

    if report_only:
        _report(read_outcomes(runs_of(output)), output, page, json=json)
        return

    def run(one: Setup) -> Outcome:
        return run_setup(
            one, datasets=dataset, data=data, download=download, device=device, max_pairs=max_pairs,
            max_rows=max_rows, folds=folds, repeats=repeats, seed=seed,
        )  # fmt: skip

    names = setup or ([] if model else ["minilm", "glove"])
    outcomes = []
    for found in each(chosen_setups(names, model), run, keep_going=keep_going):
        outcomes.append(found)
        if output is not None:
            keep(found, output / "runs")
    # runs of an earlier call stay on the page
    _report(outcomes if output is None else read_outcomes(output / "runs"), output, page, json=json)


corrections.__doc__ = f"{corrections.__doc__}\n{_EPILOG}"


def _report(outcomes: list[Outcome], output: Path | None, page: Path | None, *, json: bool) -> None:
    """Print what was found, and write the pages where there is a folder."""
    from isoscope_papers.corrections.report import as_dict, as_text, write_report

    show_json(as_dict(outcomes)) if json else show(as_text(outcomes))
    if output is not None:
        written = write_report(outcomes, output, command=_COMMAND, page=page)
        say("wrote " + ", ".join(map(str, written)), err=json)
