"""Every exception isoscope raises on purpose.

    IsoscopeError
    ├── InputError (ValueError)         what came in cannot be measured
    │   ├── ShapeError                  not (n, d), ragged, or of another length
    │   ├── NotFiniteError              NaN or Inf among the numbers
    │   ├── LabelError                  labels that say nothing about clusters
    │   └── FileError                   a file that cannot be read as vectors
    ├── UndefinedError (ValueError)     the metric has no value on this space
    └── ClusterError (RuntimeError)     the machines that were to do the work went away

Each message is one line: the argument, what came, what is wanted, how to fix it. An `InputError` keeps these
as fields, so that the command line can name the option instead of the argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

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


class Setting(NamedTuple):
    """An argument that a hint advises to pass: `header=True` in Python, `--header` on the command line.

    Attributes:
        argument: its name.
        value: its value; without one, the name alone is shown.
        to: what passing it does.
        verb: what to do with it.
    """

    argument: str
    value: Any = ...
    to: str = ""
    verb: str = "pass"

    @property
    def has_value(self) -> bool:
        """Whether the hint names a value too."""
        return self.value is not ...

    def __str__(self) -> str:
        return f"{self.argument}={repr(self.value) if self.has_value else ''}"


Hint = str | Setting | Sequence[str | Setting]


class IsoscopeError(Exception):
    """The root: catch this to catch everything isoscope raises on purpose."""


class InputError(IsoscopeError, ValueError):
    """What came in cannot be measured.

    Attributes:
        message: what is wrong; where `argument` is given, it goes on from there: "has 3 entries for 2 rows".
        argument: the argument that is wrong, if one is.
        got: its value.
        wanted: what it must be, in words that follow "must be".
        hint: how to fix it: a sentence, a `Setting`, or several of them, one of which will do.

    >>> raise InputError(argument="n", got=1, wanted="at least 2", hint="add rows")
    Traceback (most recent call last):
    isoscope.errors.InputError: n must be at least 2, got 1; add rows
    >>> raise InputError("the header is missing", hint=Setting("header", False))
    Traceback (most recent call last):
    isoscope.errors.InputError: the header is missing; pass header=False
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
        self.hint = (hint,) if isinstance(hint, str | Setting) else tuple(hint)
        if wanted is not None:
            came = "" if got is ... else f", got {got!r:.80}"
            self.message = f"{message}; expected {wanted}" if message else f"must be {wanted}{came}"
        super().__init__(self.text())

    def text(self, spell: Callable[[Setting], str | None] | None = None) -> str:
        """Return the message; `spell` writes the arguments otherwise than Python does, those that it knows.

        Of several hints, those whose argument it does not know are left out where another is left.
        """
        write = spell or str
        subject = self.argument and ((spell and spell(Setting(self.argument))) or self.argument)
        known = [hint for hint in self.hint if isinstance(hint, str) or write(hint)] or self.hint
        hints, verb = [], ""
        for hint in known:
            if isinstance(hint, str):
                hints.append(hint)
                continue
            written = [write(hint) or str(hint), *([f"to {hint.to}"] if hint.to else [])]
            hints.append(" ".join(written if verb == hint.verb else [hint.verb, *written]))
            verb = hint.verb
        line = " ".join(filter(None, (subject, self.message)))
        between = " " if line.endswith("?") else "; "
        return between.join(filter(None, (line, ", or ".join(hints))))


class ShapeError(InputError):
    """Not an (n, d) array, ragged rows, or two inputs whose lengths differ."""


class NotFiniteError(InputError):
    """NaN or infinity among the numbers."""


class LabelError(InputError):
    """Labels that do not describe clusters: one label only, every point its own, or missing."""


class FileError(InputError):
    """A file that is absent, empty, truncated, of an unknown kind, or would have to be unpickled."""


class UndefinedError(IsoscopeError, ValueError):
    """The metric has no value on this space (all points equal, too few points, no direction)."""


class ClusterError(IsoscopeError, RuntimeError):
    """A scheduler that cannot be reached or went away, or workers that died over and over."""


def check_seed(seed: object) -> None:
    """Raise InputError unless seed is a whole number that every generator takes."""
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InputError(argument="seed", got=seed, wanted="a whole number from 0 to 4294967295")


def check_whole(argument: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """Return a whole number within bounds, Python's own or NumPy's; raise InputError over anything else."""
    number = None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if number is None or number < least or (most is not None and number > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(argument=argument, got=value, wanted=f"a whole number {bounds}")
    return number


def check_positive(argument: str, value: Any, *, or_zero: bool = False) -> None:
    """Raise InputError unless the value is a finite number above 0, or 0 where that is allowed."""
    known = isinstance(value, Real) and math.isfinite(value)
    if not known or value < 0 or (value == 0 and not or_zero):
        raise InputError(
            argument=argument, got=value, wanted="0 or a positive number" if or_zero else "a positive number"
        )


def check_share(argument: str, value: Any, *, or_word: str | None = None) -> None:
    """Raise InputError unless the value is a number from 0 to 1, or the word that is allowed in its place."""
    known = isinstance(value, Real) and 0 <= float(value) <= 1
    if not known and (or_word is None or value != or_word):
        also = "" if or_word is None else f"{or_word!r} or "
        raise InputError(argument=argument, got=value, wanted=f"{also}a number from 0 to 1")


def check_choice(argument: str, value: Any, choices: Iterable[str]) -> None:
    """Raise InputError unless the value is one of the choices."""
    known = tuple(choices)
    if value not in known:
        raise InputError(argument=argument, got=value, wanted=f"one of {', '.join(known)}")
