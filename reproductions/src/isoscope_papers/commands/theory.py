"""`isoscope reproduce theory`."""

from __future__ import annotations

import typer

from isoscope.cli import Data, Json, KeepGoing, ReportOnly, as_typed
from isoscope.errors import InputError
from isoscope.terminal import say, show, show_json
from isoscope_papers.commands.setups import FAILED, Fetch, Output

_EPILOG = """
**Examples**

Everything, a few minutes on two cores: `isoscope reproduce theory --data data -o docs/reproduction`

What needs no texts and no vectors of words: `isoscope reproduce theory --keep-going`
"""


def theory(
    data: Data = None,
    download: Fetch = False,
    output: Output = None,
    keep_going: KeepGoing = False,
    report_only: ReportOnly = False,
    json: Json = False,
) -> None:
    """Mickus, Grönroos and Attieh 2024: every statement checked, deep classifiers, the trade-off traced.

    Exit code 1 if what a verdict says was not so in some random case.
    """
    from isoscope_papers.theory.report import as_text, write_report
    from isoscope_papers.theory.run import N_CASES, read_findings, run_theory

    if report_only and output is None:
        raise InputError("--report-only goes with --output, the folder that holds theory.json")
    with as_typed():
        if report_only and output is not None:
            found = read_findings(output / "theory.json")
        else:
            found = run_theory(
                data=data,
                download=download,
                keep_going=keep_going,
                progress=lambda what: say(what, err=True),
            )
    show_json(found.to_dict()) if json else show(as_text(found))
    if output is not None:
        written = write_report(found, output, command="isoscope reproduce theory")
        say("wrote " + ", ".join(map(str, written)), err=json)
    if any(held < N_CASES for held in found.held.values()):
        raise typer.Exit(FAILED)


theory.__doc__ = f"{theory.__doc__}\n{_EPILOG}"
