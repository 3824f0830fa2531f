"""Options that several commands take, and how their text is read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.commands import TOO_LARGE
from isoscope.errors import InputError, IsoscopeError, Setting

# not in a path, where a folder may be called `key=1`
_ARGUMENT = re.compile(
    r"(?<![\w/\\-])(?P<name>checkpoint|columns|data|decimal|delimiter|download|exclude|header|key|pooling|resume|text_column|"
    r"truncate|unpack_bits|vector_column|weights|window)=(?:True\b|(?P<no>False\b)|(?P<value>(?=\S))|)"
)
# an argument that a message begins with: `max_tokens is 5; wanted …`
_SUBJECT = re.compile(
    r"^(?P<name>batch_size|columns|decimal|delimiter|device|epochs|exclude|every|layers|learning_rate|max_length|max_tokens|max_train|memory|memory_mb|"
    r"metric|pooling|precision|regularizer|sample|save_every|seeds?|steps|strengths|temperature|warmup|window|zeta)"
    r"(?= (is|has|') ?)"
)

BatchSize = Annotated[
    int | None, typer.Option("--batch-size", help="Texts encoded at a time. [default: 64]", metavar="N")
]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of the corpora; ISOSCOPE_DATA if not given.", metavar="FOLDER"),
]
Device = Annotated[
    str | None, typer.Option("--device", help="Where to work: cpu, cuda, cuda:1.", metavar="DEVICE")
]
Download = Annotated[
    bool | None,
    typer.Option(
        "--download", help="Fetch the model where it is not on this machine; nothing is fetched otherwise."
    ),
]
EncodingDevice = Annotated[
    str | None,
    typer.Option("--device", help="Where texts are encoded: cpu, cuda, cuda:1.", metavar="DEVICE"),
]
Every = Annotated[int, typer.Option("--every", help="Updates between measurements.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")]
KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="Leave out setups whose texts or model are not at hand, and say so."),
]
Key = Annotated[
    str | None,
    typer.Option("--key", help="Which array of an .npz, .safetensors or .pt file.", metavar="NAME"),
]
LabelsWhere = Annotated[
    str | None,
    typer.Option(
        "--labels",
        "-l",
        help="A column of FILE, a file with one label a line, or FILE.csv:column.",
        metavar="WHERE",
    ),
]
Log = Annotated[str | None, typer.Option("--log", help="tensorboard, wandb or mlflow, where installed.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Encode the texts in FILE by this model: a name (all-MiniLM-L6-v2), a folder, or a hub id.",
        metavar="NAME",
    ),
]
Normalize = Annotated[
    bool | None,
    typer.Option("--normalize/--no-normalize", help="Vectors of length 1. [default: as the model says]"),
]
Pooling = Annotated[
    str | None,
    typer.Option(
        "--pooling",
        help="Tokens to one vector: mean, cls, max, …. [default: as the model says]",
        metavar="HOW",
    ),
]
Precision = Annotated[str, typer.Option("--precision", help="float32, or bf16 for autocast.", metavar="TYPE")]
Prefix = Annotated[
    str | None,
    typer.Option("--prefix", help='Put before each text, as some models want it: "query: ".', metavar="TEXT"),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the run in the output folder, to the same numbers.")
]
SaveEvery = Annotated[
    int | None,
    typer.Option(
        "--save-every", help="Updates between checkpoints. [default: at the end of each epoch]", metavar="N"
    ),
]
ReportOnly = Annotated[
    bool, typer.Option("--report-only", help="Run nothing: report on the runs the output folder holds.")
]
Seeds = Annotated[str, typer.Option("--seeds", help="How many, or which, comma-separated (7, or 1,2,5).")]
TextColumn = Annotated[
    str | None,
    typer.Option(
        "--text-column",
        help="Which column holds the texts. [default: the only one of strings, or text, sentence, …]",
        metavar="NAME",
    ),
]
VectorColumn = Annotated[
    str | None,
    typer.Option("--vector-column", help="Which column of a table holds the vectors.", metavar="NAME"),
]
VectorsOrTexts = Annotated[
    str,
    typer.Argument(
        help="Vectors or, with --model, texts, in any format `measure` reads.",
        metavar="FILE",
        show_default=False,
    ),
]


def load_plugins(paths: list[Path] | None) -> None:
    """Run files of Python that register metrics with `isoscope.metric`."""
    import runpy

    for path in paths or ():
        try:
            runpy.run_path(str(path))
        except IsoscopeError as error:
            raise InputError(f"--plugin {path}: {error}") from error
        except Exception as error:
            reason = (str(error).splitlines() or [""])[0]
            raise InputError(f"--plugin {path} cannot be run: {type(error).__name__}: {reason}") from error


Plugin = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        help="Run this Python file first: it adds metrics of your own with @isoscope.metric.",
        metavar="FILE",
    ),
]


def complete_metrics(incomplete: str) -> list[str]:
    """Names of metrics and families that begin so, for the shell."""
    from isoscope.metrics.registry import FAMILIES, registered

    return [name for name in (*FAMILIES, "all", "default", *registered()) if name.startswith(incomplete)]


def parse_seeds(text: str) -> int | list[int]:
    """How many seeds, or with a comma, which.

    >>> parse_seeds("5"), parse_seeds("1,2,5"), parse_seeds("7,")
    (5, [1, 2, 5], [7])
    """
    numbers = parse_numbers("seeds", text)
    if "," not in text and numbers[0] < 1:
        raise InputError(f"--seeds is {text!r}; wanted at least one seed")
    return numbers if "," in text else numbers[0]


def parse_numbers(name: str, text: str) -> list[int]:
    """Whole numbers with commas between them, at least one; `name` is the option's.

    >>> parse_numbers("hidden", "256, 64")
    [256, 64]
    """
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers or max(map(abs, numbers)) >= TOO_LARGE:
        raise InputError(f"--{name} is {text!r}; wanted whole numbers with commas between them")
    return numbers


def parse_number(name: str, text: str, *, such_as: str) -> float:
    """A finite number; `name` is the option's. Read here, what is none is answered in one line.

    >>> parse_number("lambda", "-0.1", such_as="-1")
    -0.1
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"--{name} is {text!r}; wanted a finite number, such as {such_as}")
    return number


@contextmanager
def as_typed(**others: str) -> Iterator[None]:
    """Errors raised inside name options as they are typed: `--download` where Python has `download=True`.

    others: options called otherwise than the argument that a message begins with, `test="held-out"`.
    """
    try:
        yield
    except InputError as error:
        if error.argument or any(isinstance(hint, Setting) for hint in error.hint):
            raise
        typed = _ARGUMENT.sub(_option, str(error))
        for name, option in others.items():
            typed = re.sub(rf"^{name}(?= (is|has) )", f"--{option}", typed)
        raise type(error)(
            _SUBJECT.sub(lambda found: f"--{found['name'].replace('_', '-')}", typed)
        ) from error


def _option(argument: re.Match[str]) -> str:
    """An argument as the option of its name; before a value, a blank."""
    no = "" if argument["no"] is None else "no-"
    return f"--{no}{argument['name'].replace('_', '-')}{'' if argument['value'] is None else ' '}"
