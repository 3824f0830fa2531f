"""Every exception that isoscope raises on purpose, and the form of its message.

    IsoscopeError
    ├── InputError (ValueError)         an input cannot be used
    │   ├── ShapeError                  not (n, d), ragged, or of another length
    │   ├── NotFiniteError              NaN or infinity among the numbers
    │   ├── LabelError                  labels that do not describe clusters
    │   └── FileError                   a file that cannot be read or written
    ├── UndefinedError (ValueError)     a metric has no value on this space
    └── ClusterError (RuntimeError)     a scheduler or its workers cannot be reached

How to raise one: pass fields, not a finished message. The message is made from them here, and nowhere else.

    InputError(argument="n", got=1, wanted="at least 2", hint="add rows")
        `n` must be at least 2, got 1. Add rows.
    ShapeError("has 2 entries for 3 rows", argument="labels", wanted="one label for each row")
        `labels` has 2 entries for 3 rows; expected one label for each row.
    FileError(f"{path} has no rows", wanted="at least one vector")
        a.csv has no rows; expected at least one vector.
    FileError(f"{path} has two arrays: a, b", hint=Setting("key", "a", to="read one of them"))
        a.npz has two arrays: a, b. Pass `key='a'` to read one of them.

- `argument` is the Python name. The command line shows the option instead: `--key a` for `key='a'`.
- `got` is the value itself, not its text.
- `wanted` follows "must be", or "expected" where a message says what is wrong.
- `hint` says what to do, as one imperative clause, or is a command that begins with `pip` or `isoscope`.
  Several hints are alternatives, joined by "or".
- No field ends in a full stop, and none repeats another.

Tests compare the fields (`tests.raising.raises`), not the message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

from isoscope.printable import nearest

__all__ = [
    "ClusterError",
    "FileError",
    "InputError",
    "IsoscopeError",
    "LabelError",
    "NotFiniteError",
    "Setting",
    "ShapeError",
    "UndefinedError",
]
_COMMANDS = ("pip ", "isoscope ")  # hints that begin so are commands to run
_PYTHON_NAME = re.compile(r"[A-Za-z_]\w*(\[.*\])?")


class Setting(NamedTuple):
    """An argument that a hint recommends: `header=True` in Python, `--header` on the command line.

    Attributes:
        argument: its name.
        value: its value; without one, only the name is shown.
        to: what it does, as in "to skip the first line".
        verb: what to do with the argument.
    """

    argument: str
    value: Any = ...
    to: str = ""
    verb: str = "pass"

    @property
    def has_value(self) -> bool:
        """Whether the hint names a value."""
        return self.value is not ...

    def __str__(self) -> str:
        return f"`{self.argument}={self.value!r}`" if self.has_value else _quoted(self.argument)


Hint = str | Setting | Sequence[str | Setting]


class IsoscopeError(Exception):
    """The base class of every exception that isoscope raises on purpose.

    Attributes:
        message: what is wrong. After an `argument` it is a predicate: "has 3 entries for 2 rows".
        argument: the name of the argument that is wrong, or None.
        got: the value of the argument, or None.
        wanted: what it must be.
        hint: how to fix it: clauses and `Setting`s, one of which is enough.

    >>> raise InputError(argument="n", got=1, wanted="at least 2", hint="add rows")
    Traceback (most recent call last):
    isoscope.errors.InputError: `n` must be at least 2, got 1. Add rows.
    >>> raise InputError("The header is missing", hint=Setting("header", False))
    Traceback (most recent call last):
    isoscope.errors.InputError: The header is missing. Pass `header=False`.
    """

    def __init__(
        self,
        message: str = "",
        *,
        argument: object = None,
        got: Any = ...,
        wanted: str | None = None,
        hint: Hint = (),
    ) -> None:
        self.message, self.wanted = message, wanted
        self.argument = None if argument is None else str(argument)
        self.got = None if got is ... else got
        self.hint = _as_hints(hint)
        self._value = "" if got is ... else f", got {' '.join(repr(got).split()):.80}"
        super().__init__(self.text())

    @property
    def problem(self) -> str:
        """What is wrong, without the hint and the full stop, to be used within another sentence."""
        return self._problem(None)

    def advise(self, hint: Hint) -> Self:
        """Return a copy of the error with another hint."""
        error = copy(self)
        error.hint = _as_hints(hint)
        error.args = (error.text(),)
        return error

    def text(self, spell: Callable[[Setting], str | None] | None = None) -> str:
        """Return the message, with arguments as `spell` writes them.

        `spell` returns None for an argument that it does not know. Such hints are left out unless no other
        hint remains.
        """
        write = spell or str
        known = [hint for hint in self.hint if isinstance(hint, str) or write(hint)] or self.hint
        hints, verb = [], ""
        for hint in known:
            if isinstance(hint, str):
                hints.append(f"run `{hint}`" if hint.startswith(_COMMANDS) else hint)
                continue
            words = [write(hint) or str(hint), *([f"to {hint.to}"] if hint.to else [])]
            hints.append(" ".join(words if verb == hint.verb else [hint.verb, *words]))
            verb = hint.verb
        advice = ", or ".join(hints)
        sentences = [self._problem(spell), advice[:1].upper() + advice[1:]]
        return " ".join(line if line.endswith((".", "?", "!")) else f"{line}." for line in sentences if line)

    def _problem(self, spell: Callable[[Setting], str | None] | None) -> str:
        subject = self.argument and ((spell and spell(Setting(self.argument))) or _quoted(self.argument))
        said = " ".join(filter(None, (subject, self.message)))
        if self.wanted is None:
            return said
        return (
            f"{said}; expected {self.wanted}"
            if self.message
            else f"{said} must be {self.wanted}{self._value}"
        )


def _as_hints(hint: Hint) -> tuple[str | Setting, ...]:
    return ((hint,) if hint else ()) if isinstance(hint, str | Setting) else tuple(hint)


def _quoted(name: str) -> str:
    """Return a Python name in backticks, and anything else, such as a file's name, as it is."""
    return f"`{name}`" if _PYTHON_NAME.fullmatch(name) else name


class InputError(IsoscopeError, ValueError):
    """An input cannot be used."""


class ShapeError(InputError):
    """Not an (n, d) array, ragged rows, or two inputs whose lengths differ."""


class NotFiniteError(InputError):
    """NaN or infinity among the numbers."""


class LabelError(InputError):
    """Labels that do not describe clusters: a single label, a label for each point, or missing labels."""


class FileError(InputError):
    """A file that is absent, empty, truncated, of an unknown kind, or would have to be unpickled."""


class UndefinedError(IsoscopeError, ValueError):
    """A metric has no value on this space: all points are equal, too few, or without a direction."""


class ClusterError(IsoscopeError, RuntimeError):
    """A scheduler that cannot be reached or has stopped, or workers that failed repeatedly."""


def not_installed(
    what: str,
    *packages: str,
    extra: str | None = None,
    argument: str | None = None,
    error: type[InputError] = InputError,
) -> InputError:
    """Return the error for optional packages that are missing, with the command that installs them.

    Args:
        what: what needs the packages, in the singular; "" where it is the argument.
        packages: their names, as pip knows them.
        extra: the extra of isoscope that contains them; without one, pip installs them by name.
        argument: the argument that needs them.
        error: the class of the error.

    >>> print(not_installed("A figure", "matplotlib", extra="figures"))
    A figure needs matplotlib, which is not installed. Run `pip install 'isoscope[figures]'`.
    """
    verb = "is" if len(packages) == 1 else "are"
    target = " ".join(packages) if extra is None else f"'isoscope[{extra}]'"
    needs = f"needs {' and '.join(packages)}, which {verb} not installed"
    return error(f"{what} {needs}".lstrip(), argument=argument, hint=f"pip install {target}")


def check_seed(seed: object) -> None:
    """Raise InputError unless every random generator accepts the seed."""
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError(argument="seed", got=seed, wanted="a whole number from 0 to 4294967295")


def check_whole(argument: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """Return a whole number as an int, or raise InputError unless it is one within the bounds."""
    number = None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if number is None or number < least or (most is not None and number > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(argument=argument, got=value, wanted=f"a whole number {bounds}")
    return number


def check_positive(argument: str, value: Any, *, or_zero: bool = False) -> None:
    """Raise InputError unless the value is a finite number above 0, or 0 where `or_zero` allows it."""
    is_finite = isinstance(value, Real) and math.isfinite(value)
    if not is_finite or value < 0 or (value == 0 and not or_zero):
        wanted = "0 or a positive number" if or_zero else "a positive number"
        raise InputError(argument=argument, got=value, wanted=wanted)


def check_share(argument: str, value: Any, *, or_word: str | None = None) -> None:
    """Raise InputError unless the value is a number from 0 to 1, or the word allowed in its place."""
    is_share = isinstance(value, Real) and 0 <= float(value) <= 1
    if not is_share and (or_word is None or value != or_word):
        also = "" if or_word is None else f"{or_word!r} or "
        raise InputError(argument=argument, got=value, wanted=f"{also}a number from 0 to 1")


def check_between(
    argument: str, value: Any, low: float, high: float, *, wanted: str, open_at: str = ""
) -> float:
    """Return a number as a float, or raise InputError with `wanted` unless it is one from low to high.

    open_at: which of "low" and "high" do not count.
    """
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    inside = low <= number <= high and not (
        ("low" in open_at and number == low) or ("high" in open_at and number == high)
    )
    if not inside:
        raise InputError(argument=argument, got=value, wanted=wanted)
    return number


def check_choice(argument: str, value: Any, choices: Iterable[str]) -> None:
    """Raise InputError unless the value is one of the choices; the hint names the nearest one."""
    names = tuple(choices)
    if not isinstance(value, str) or value not in names:
        hint = nearest(value, names) if isinstance(value, str) else ""
        raise InputError(argument=argument, got=value, wanted=f"one of {', '.join(names)}", hint=hint)
