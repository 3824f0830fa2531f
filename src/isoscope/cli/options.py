"""Options that several commands have, and how their values are parsed."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from isoscope.cli.commands import TOO_LARGE, file_suffixes, metric_names
from isoscope.errors import InputError, IsoscopeError
from isoscope.io.targets import check_folder, check_target


def written_file(*names: str, help: str, kinds: Collection[str] = ()) -> Any:
    """Return an option that names a file to write, checked before anything slow is imported."""
    check = partial(check_target, kinds=kinds)
    return typer.Option(*names, help=help, metavar="FILE", callback=lambda path: path and check(path))


def output_folder(help: str) -> Any:
    """Return the option --output that names a folder, checked before anything slow is imported."""
    return typer.Option(
        "--output", "-o", help=help, metavar="FOLDER", callback=lambda path: path and check_folder(path)
    )


def complete_models(incomplete: str) -> list[str]:
    """Return the names of installed models that begin with `incomplete`, for completion in the shell."""
    from isoscope.known_models import installed_models

    return [name for name in installed_models() if name.lower().startswith(incomplete.lower())]


_VECTORS, _TEXTS = map(" ".join, file_suffixes())
BatchSize = Annotated[int, typer.Option("--batch-size", help="Items in each update.", metavar="N")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of the corpora. [default: $ISOSCOPE_DATA]", metavar="FOLDER"),
]
Device = Annotated[
    str | None, typer.Option("--device", help="Where to compute: cpu, cuda, cuda:1.", metavar="DEVICE")
]
Download = Annotated[
    bool,
    typer.Option("--download", help="Allow the download of a model that is not on this machine."),
]
Every = Annotated[int, typer.Option("--every", help="Updates between measurements.", metavar="N")]
File = Annotated[
    str,
    typer.Argument(
        help=f"Vectors: {_VECTORS}; a folder of them, a pattern ('shards/*.parquet', quoted) or an address "
        f"(s3://…). Or, with --model, texts: {_TEXTS}.",
        metavar="FILE",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
JsonOutput = Annotated[
    Path | None, written_file("--output", "-o", help="Also write the result to this file, as JSON.")
]
KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="Skip setups whose texts or model are missing, and name them."),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        "-l",
        help="Labels: a column of FILE, a file with one label a line, or FILE.csv:column.",
        metavar="WHERE",
    ),
]
LearningRate = Annotated[
    float, typer.Option("--learning-rate", help="Learning rate of the optimizer.", metavar="RATE")
]
Log = Annotated[
    str | None,
    typer.Option("--log", help="Also log to tensorboard, wandb or mlflow, if installed.", metavar="NAME"),
]
MaxLength = Annotated[
    int, typer.Option("--max-length", help="Maximum number of tokens; longer texts are cut.", metavar="N")
]
Model = Annotated[
    str,
    typer.Argument(
        help="A model's name (all-MiniLM-L6-v2, smollm2-135m), a folder, a .gguf file, or a hub id.",
        metavar="MODEL",
        show_default=False,
        autocompletion=complete_models,
    ),
]
Plugin = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        help="Run this Python file first: it adds metrics of your own with @isoscope.metric.",
        metavar="FILE",
    ),
]
Precision = Annotated[
    str, typer.Option("--precision", help="float32, or bf16 for mixed precision.", metavar="TYPE")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the run in the output folder, with the same result.")
]
ReportOnly = Annotated[
    bool, typer.Option("--report-only", help="Run nothing; report on the runs in the output folder.")
]
SaveEvery = Annotated[
    int | None,
    typer.Option(
        "--save-every", help="Updates between checkpoints. [default: at the end of each epoch]", metavar="N"
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all random numbers.", metavar="N")]
Seeds = Annotated[
    str,
    typer.Option("--seeds", help="The number of seeds, or comma-separated seeds (1,2,5).", metavar="SEEDS"),
]
Texts = Annotated[
    str | None,
    typer.Option(
        "--texts",
        help="The text of each row: a column of FILE, else a file with one text a line, or FILE.csv:column.",
        metavar="WHERE",
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text-column",
        help="The column that holds the texts. [default: the only one of strings, or text, sentence, …]",
        metavar="NAME",
    ),
]


def complete_metrics(incomplete: str) -> list[str]:
    """Return the metrics and families that begin with the last name, for completion in the shell."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in metric_names() if name.startswith(last)]


@dataclass(frozen=True)
class MetricOptions:
    """Which metrics to compute."""

    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            help="Metrics or families, comma-separated or repeated, or `all`; `isoscope metrics` lists them.",
            autocompletion=complete_metrics,
            metavar="NAMES",
        ),
    ] = None
    plugin: Plugin = None

    def chosen(self) -> list[str] | None:
        """Run the plugins and return the chosen names."""
        load_plugins(self.plugin)
        return self.metrics or None


def load_plugins(paths: list[Path] | None) -> None:
    """Run Python files that register metrics with `isoscope.metric`."""
    import runpy

    for path in paths or ():
        try:
            runpy.run_path(str(path))
        except IsoscopeError as error:
            raise InputError(f"--plugin {path}: {error.problem}", hint=error.hint) from error
        except Exception as error:
            reason = (str(error).splitlines() or [""])[0]
            raise InputError(f"--plugin {path} cannot be run: {type(error).__name__}: {reason}") from error


def check_resume(*, resume: bool, output: Path | None) -> None:
    """Raise InputError if there is no folder to resume from."""
    if resume and output is None:
        raise InputError("needs --output, the folder of the run to resume", argument="resume")


def parse_seeds(text: str) -> int | list[int]:
    """Return the number of seeds, or a list of seeds if there is a comma.

    >>> parse_seeds("5"), parse_seeds("1,2,5"), parse_seeds("7,")
    (5, [1, 2, 5], [7])
    """
    numbers = parse_numbers("seeds", text)
    if "," not in text and numbers[0] < 1:
        raise InputError(argument="seeds", got=text, wanted="at least one seed")
    return numbers if "," in text else numbers[0]


def parse_numbers(name: str, text: str) -> list[int]:
    """Parse comma-separated whole numbers, at least one; `name` is the argument.

    >>> parse_numbers("hidden", "256, 64")
    [256, 64]
    """
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or max(map(abs, numbers)) >= TOO_LARGE:
        raise InputError(argument=name, got=text, wanted="comma-separated whole numbers")
    return numbers


def parse_number(name: str, text: str, *, such_as: str) -> float:
    """Parse a finite number; `name` is the argument. Typer itself would take -1 for an option.

    >>> parse_number("strength", "-0.1", such_as="-1")
    -0.1
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(argument=name, got=text, wanted=f"a finite number, such as {such_as}")
    return number
