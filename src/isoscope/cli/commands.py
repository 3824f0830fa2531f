"""Commands: how they show their help, check their input and report errors (one line, exit code 2)."""

from __future__ import annotations

import functools
import inspect
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout, suppress
from copy import copy
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from isoscope import plugins
from isoscope.cli.usage import long_name, usage_message
from isoscope.errors import FileError, InputError, IsoscopeError, Setting
from isoscope.printable import close_names
from isoscope.terminal import as_json, say, show, show_json, unguarded

FAULT = 1  # exit code of an error in isoscope itself
FAILED = 1  # exit code where a gate is not passed
BAD_INPUT = 2
TOO_LARGE = 2**32  # for a count or a seed
INTERRUPTED = 130
_INPUT_FILES = {"FILE", "[FILE]", "A", "[B]", "OLD", "[NEW]", "TEXTS"}  # arguments that name files to read
_MAY_BE_EMPTY = {"--prefix"}
_OUT_OF_MEMORY = "Out of memory. Use a smaller file, or --memory SIZE where the command has it."
_UsageError: Any = typer.BadParameter.__mro__[1]  # of click, or of the copy that typer carries
# Python's own errors that bad input causes, and their messages
_UNUSUAL: dict[type[Exception], str] = {
    MemoryError: _OUT_OF_MEMORY,
    RecursionError: "The input is nested too deeply",
    OverflowError: "A number is too large",
    UnicodeError: "A name or a text is not valid Unicode",
}


def _no_type(ctx: Any) -> None:
    """Return nothing in place of "<bool>" beside --json, which tells a reader nothing."""
    del ctx


class _Typed:
    """The behaviour shared by a command and a group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help with styles, since it contains no text from files."""
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            if param.param_type_name == "argument" or param.is_flag:
                param.display_type_rich = _no_type
        try:
            with redirect_stdout(unguarded(sys.stdout)):
                super().format_help(ctx, formatter)  # type: ignore[misc]
        except SystemExit as error:  # of rich, where the reader has closed the pipe
            raise BrokenPipeError from error

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; an error remembers the command and the words, to say what to type."""
        words = list(args)
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]
        except _UsageError as error:
            error.ctx, error.words = error.ctx or ctx, words
            raise


class Command(_Typed, TyperCommand):
    """One command; an error about an argument names the option."""

    allow_extra_args = True  # refused in `invoke`, with a better message

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raise InputError for an empty one, as from an unset shell variable."""
        for before, word in pairwise(("", *args)):
            option, equals, value = word.partition("=") if word.startswith("--") else (before, "", word)
            if not value and (equals or not word) and option not in _MAY_BE_EMPTY:
                name = option if option.startswith("-") else "an argument"
                raise InputError(f"{name} is empty", hint="is a shell variable not set?")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; typer puts required arguments in braces."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def invoke(self, ctx: Any) -> Any:
        """Run the command after checking its arguments."""
        try:
            self._check_arguments(ctx)
            return super().invoke(ctx)
        except IsoscopeError as error:
            error.args = (error.text(self.typed),)
            raise

    def _check_arguments(self, ctx: Any) -> None:
        """Raise InputError for arguments that cannot be right, before anything slow is imported."""
        values = ctx.params
        if ctx.args:
            raise self._unexpected(values.get("file"), ctx.args)
        for param in self.params:
            value = values.get(param.name or "")
            if isinstance(value, int) and abs(value) >= TOO_LARGE:
                raise InputError(argument=param.name, got=value, wanted=f"below {TOO_LARGE:,}")
            if param.param_type_name == "argument" and param.metavar in _INPUT_FILES and value is not None:
                check_input(value, what="texts" if values.get("model") else "vectors")
        if not values.get("plugin"):
            check_metrics(values.get("metrics") or ())

    def _unexpected(self, file: str | Path | None, more: list[str]) -> InputError:
        if file is None or not all(Path(name).exists() for name in (file, *more)):
            return InputError(f"Unexpected argument {more[0]!r}", hint=f"see `isoscope {self.name} --help`")
        kinds = {Path(name).suffix for name in (file, *more)}
        hints: list[str | Setting] = []
        if len(more) == 1 and Path(more[0]).suffix != ".txt":
            hints.append(shlex.join(["isoscope", "compare", str(file), *more]))
        if len(kinds) == 1:
            pattern = Path(file).parent / f"*{kinds.pop()}"
            hints.append(f"pass '{pattern}' in quotes, or the folder, to read them as one")
        elif len(more) == 1 and self.typed(Setting("labels")):
            hints.append(Setting("labels", more[0], to="use its lines as labels"))
        return InputError(f"{len(more) + 1} files were given", wanted="one FILE", hint=hints)

    def typed(self, setting: Setting) -> str | None:
        """Return an argument as an option, `--header` for header=True, or None if there is no such option.

        X in Python, the vectors, is FILE here.
        """
        for param in self.params:
            option = long_name(param.opts)
            if param.param_type_name == "argument":
                metavar = param.metavar or option.upper()
                if setting.argument == param.name:
                    return metavar
                if setting.argument == "X" and metavar in _INPUT_FILES:
                    return metavar.strip("[]")
                if setting.argument.upper() in re.findall(r"\w+", metavar):  # MODEL of "MODEL… FILE"
                    return setting.argument.upper()
            elif setting.argument in (param.name, option.strip("-").replace("-", "_")):
                if setting.value is False and param.secondary_opts:
                    return long_name(param.secondary_opts)
                bare = setting.value is True or not setting.has_value
                return option if bare else f"{option} {shlex.quote(str(setting.value))}"
        return None


def check_input(path: str | Path, *, what: str) -> None:
    """Raise FileError if the path names a single local file that does not exist or cannot be read."""
    from isoscope.io.addresses import is_many
    from isoscope.io.files import FOLDERS, check_file, kind, no_such_format

    if is_many(path) or kind(Path(path)) in FOLDERS:
        return
    check_file(Path(path), what=what)
    vectors, texts = file_suffixes()
    if kind(Path(path)) not in {*vectors, *texts}:
        raise no_such_format(Path(path), texts if what == "texts" else vectors, what=what)


def file_suffixes() -> list[list[str]]:
    """Return the suffixes of files of vectors and of texts from a list, since importing readers is slow."""
    lines = Path(__file__).with_name("suffixes.txt").read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines]


def metric_names() -> list[str]:
    """Return the names of metrics and families from a list, since importing the metrics is slow."""
    return Path(__file__).with_name("metric_names.txt").read_text(encoding="utf-8").split()


def check_metrics(names: Iterable[str], argument: str | None = "metrics") -> None:
    """Raise InputError for a name that is neither a metric nor a family."""
    known = metric_names()
    for name in (part.strip() for text in names for part in text.split(",")):
        if name and name.removesuffix("_score") not in known:
            if plugins.has_metrics():
                return  # their names are known when they are imported
            close = close_names(name, known)
            hint = f"did you mean {' or '.join(close)}?" if close else "see `isoscope metrics` for all names"
            what = "has no" if argument else "There is no metric"
            raise InputError(f"{what} {name!r}", argument=argument, hint=hint)


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with every field of its dataclass parameters as an option.

    A dataclass holds a group of options that several commands have.
    """
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name in groups:
            parameters += options_in(groups[parameter.name])
        else:
            parameters.append(
                parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY)
            )

    @functools.wraps(command)
    def run(**values: Any) -> None:
        built = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        command(**values, **built)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def options_in(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters of a command, under the heading of its `panel`."""
    hints = get_type_hints(group, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    for owner in (owner for owner in group.__mro__[::-1] if "panel" in vars(owner)):
        for name in inspect.get_annotations(owner):
            option = copy(hints[name].__metadata__[0])  # other commands have it under another heading
            option.rich_help_panel = owner.panel
            hints[name] = Annotated[hints[name].__origin__, option]
    return [
        inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name])
        for field in fields(group)
    ]


def present(
    result: Any,
    lines: Iterable[str] = (),
    *,
    json: bool,
    output: Path | None = None,
    more: Mapping[str, Any] | None = None,
    csv: bool = False,
) -> None:
    """Print a result and notes on it. With `json`, print JSON, and the notes to standard error.

    csv: print CSV instead.
    output: also write the JSON to this file.
    more: additional entries of the JSON.
    """
    content = result.to_dict() | (more or {}) if json or output is not None else {}
    if output is not None:
        from isoscope.io.atomic import write_atomically

        text = as_json(content) + "\n"
        write_atomically(output, lambda beside: beside.write_text(text, encoding="utf-8"))
    if json:
        show_json(content)
    elif csv:
        show(result.to_csv().removesuffix("\n"))
    else:
        result.show()
    for line in lines:
        say(line, err=json)


def drawn(draw: Callable[[Path], Any], path: Path) -> str:
    """Draw a figure. Return what to append to "wrote …": its path, or the reason why there is no figure."""
    try:
        draw(path)
    except FileError:
        raise
    except InputError as error:  # matplotlib is not installed
        return f"; no figure: {error.problem}"
    return f" and {path}"


class Commands(_Typed, TyperGroup):
    """A group of commands, each of which ends with one line when it is interrupted."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Ctrl-C prints what was saved and exits with code 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            say(f"isoscope: {str(stop) or 'interrupted'}", err=True)
            raise typer.Exit(INTERRUPTED) from None


def run(app: typer.Typer) -> int:
    """Run the command line and return the exit code; an error is printed as one line."""
    try:
        return _run(app)
    except Exception as error:
        if isinstance(error, OSError) and not _names_a_file(error):
            _forget_output()
        if isinstance(error, BrokenPipeError):  # `isoscope … | head` is no error
            return 0
        line = _message(error)
        if line is None:
            traceback.print_exc()
            return FAULT
        if line:
            say(f"isoscope: error: {' '.join(line.split())}", err=True)
        return BAD_INPUT


def _run(app: typer.Typer) -> int:
    try:
        code = typer.main.get_command(app).main(prog_name="isoscope", standalone_mode=False)
    finally:
        sys.stdout.flush()  # here, where an error can still be reported
    return code if isinstance(code, int) else 0


def _message(error: Exception) -> str | None:
    """Return the message, None for an error in isoscope itself, or "" where the help was shown."""
    if isinstance(error, IsoscopeError):
        return str(error)
    if isinstance(error, _UsageError):
        return usage_message(error)
    if isinstance(error, OSError):
        named = _names_a_file(error)
        what = f"{os.fsdecode(error.filename)} cannot be used" if named else "cannot write the output"
        return f"{what}: {error.strerror or error}"
    for kind, line in _UNUSUAL.items():
        if isinstance(error, kind):
            return f"{line} ({type(error).__name__}: {error})" if str(error) else line
    return _OUT_OF_MEMORY if _is_of_torch_memory(error) else None


def _names_a_file(error: OSError) -> bool:
    return isinstance(error.filename, str | bytes)


def _is_of_torch_memory(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and (
        type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    )


def _forget_output() -> None:
    """Discard unwritten output, so that Python does not try to write it again at exit."""
    with suppress(OSError), open(os.devnull, "w") as nothing:  # stdout is not a file
        os.dup2(nothing.fileno(), sys.stdout.fileno())
