"""Errors over words of the command line that cannot be used: what was typed, and what to type instead."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from isoscope.errors import InputError

_FLAGS = {"help": "--help", "version": "--version"}  # options that are typed as commands
_THRESHOLD = {"threshold", "thresholds", "cutoff"}  # what `isoscope threshold` prints
_OUTPUT = {"-o", "--output", "--out"}
_WANTED = {"int": "a whole number", "float": "a number"}
_EXAMPLE = re.compile(r"`(isoscope [^`]*)`")


def is_input(word: str) -> bool:
    """Return whether a word is meant as FILE: it exists, is a pattern or an address, or has a suffix."""
    return os.path.exists(word) or any(mark in word for mark in ".*?[/\\")


def one_of(names: Iterable[str]) -> list[str]:
    """Return the hint that asks whether one of some names was meant, or none where there are no names."""
    names = list(dict.fromkeys(names))
    return [f"did you mean {' or '.join(names)}?"] if names else []


def usage_message(error: Any) -> str:
    """Return what is wrong with the command line and what to type, or "" where the help was shown.

    `error` is what typer raised, with the `words` that were parsed.
    """
    command, words = error.ctx and error.ctx.command, getattr(error, "words", [])
    path = error.ctx.command_path if error.ctx else "isoscope"
    name, param = getattr(error, "option_name", None), getattr(error, "param", None)
    if type(error).__name__ == "NoSuchOption" and name:
        return str(_no_such_option(name, error.ctx, words))
    if type(error).__name__ == "MissingParameter" and param is not None:
        return str(_missing(param, path, command))
    wanted = None if param is None else _WANTED.get(param.bare_type())
    if param is not None and wanted is not None:
        got = _value(words, param.opts)
        return f"{long_name(param.opts)} must be {wanted}{'' if got is None else f', got {got!r}'}."
    message = error.format_message().rstrip(".")
    return f"{message[0].upper()}{message[1:]}. See `{path} --help`." if message else ""


def long_name(names: Sequence[str]) -> str:
    """Return an option's first name in full, rather than its letter or an older name."""
    return next((name for name in names if name.startswith("--")), names[0])


def _no_such_option(name: str, ctx: Any, words: Sequence[str]) -> InputError:
    from isoscope.cli.app import own_commands

    path, known, root = ctx.command_path, own_commands(), ctx.find_root().command
    error = InputError(f"`{path}` has no option {name}", hint=f"see `{path} --help`")
    if close := _close_options(name, ctx.command):
        return error.advise(one_of(close))
    files = [word for word in words if is_input(word)][:1] or ["FILE"]
    if name.strip("-") in _THRESHOLD:
        return error.advise(_thresholds(files))
    if name in _OUTPUT and (written := _written_options(ctx.command)):
        return error.advise(one_of(written))
    if ctx.command is root:  # `isoscope --model M FILE`
        chosen = next((word for word in words if word in known), "look")
        if name not in _options(root.get_command(ctx, chosen)):
            return error
        return error.advise(shlex.join(["isoscope", chosen, *(word for word in words if word != chosen)]))
    others = [other for other in known if name in _options(root.get_command(ctx, other))]
    return error.advise(f"use `isoscope {others[0]}`, which has it") if others else error


def _thresholds(files: Sequence[str]) -> str:
    """Return the command that prints similarity thresholds."""
    return shlex.join(["isoscope", "threshold", *files])


def _written_options(command: Any) -> list[str]:
    """Return the options of a command that name a file to write."""
    return [long_name(param.opts) for param in command.params if param.metavar == "FILE" and param.callback]


def _options(command: Any) -> list[str]:
    options = (param for param in getattr(command, "params", ()) if param.param_type_name == "option")
    return [name for option in options for name in (*option.opts, *option.secondary_opts)]


def _close_options(name: str, command: Any) -> list[str]:
    """Return the options of a command that are spelled nearly so, or so in Python."""
    if not name.startswith("--"):
        return []
    asked = name.strip("-").replace("_", "-").lower()
    by_word = {option.strip("-"): option for option in _options(command) if option.startswith("--")}
    for param in command.params:
        if param.param_type_name == "option" and param.name:
            by_word.setdefault(param.name.replace("_", "-"), long_name(param.opts))
    by_word.pop("help", None)
    near = [word for word in by_word if word.startswith(asked)]
    near = near or difflib.get_close_matches(asked, by_word, n=2, cutoff=0.7)
    return [by_word[word] for word in near[:2]]


def _missing(param: Any, path: str, command: Any) -> InputError:
    what = param.metavar if param.param_type_name == "argument" else long_name(param.opts)
    example = _EXAMPLE.search((command.help or "").partition("**Examples**")[2])
    hint = f"see `{path} --help`" if example is None else f"for example, `{' '.join(example[1].split())}`"
    return InputError(f"`{path}` needs {what}", hint=hint)


def _value(words: Sequence[str], options: Sequence[str]) -> str | None:
    """Return the value that an option was given."""
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in options:
            return value if equals else next(iter(words[place + 1 :]), None)
    return None


def no_such_command(word: str, rest: Sequence[str], known: Sequence[str]) -> InputError:
    """Return the error over a word that is neither a command nor a file."""
    from isoscope.cli.commands import metric_names
    from isoscope.cli.correct import METHODS

    if word in _FLAGS:
        path = ["isoscope", *(name for name in rest[:1] if name in known)]
        return InputError(f"{word!r} is no command", hint=shlex.join([*path, _FLAGS[word]]))
    error = InputError(f"There is no command or file {word!r}", hint="see `isoscope --help`")
    files = [name for name in rest if is_input(name)] or ["FILE"]
    if word in METHODS:
        command = ["correct", *files, "--method", word, "-o", f"{word}.npy"]
        return error.advise(shlex.join(["isoscope", *command]))
    if word in _THRESHOLD:
        return error.advise(_thresholds(files))
    if word in metric_names():
        return error.advise(shlex.join(["isoscope", "measure", *files, "-m", word]))
    close = difflib.get_close_matches(word.lower(), known, n=2)
    files = [entry.name for entry in sorted(Path().iterdir()) if entry.name.partition(".")[0] == word]
    return error.advise(one_of([*files[:3], *close]) or error.hint)
