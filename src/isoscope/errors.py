"""Every exception isoscope raises on purpose.

    IsoscopeError
    ├── InputError (ValueError)         what came in cannot be measured
    │   ├── ShapeError                  not (n, d), ragged, or of another length
    │   ├── NotFiniteError              NaN or Inf among the numbers
    │   ├── LabelError                  labels that say nothing about clusters
    │   └── FileError                   a file that cannot be read as vectors
    ├── UndefinedError (ValueError)     the metric has no value on this space
    └── ClusterError (RuntimeError)     the machines that were to do the work went away

Each message is one line: the argument, what came, what is wanted, how to fix it.
"""

from __future__ import annotations

__all__ = [
    "ClusterError",
    "FileError",
    "InputError",
    "IsoscopeError",
    "LabelError",
    "NotFiniteError",
    "ShapeError",
    "UndefinedError",
]


class IsoscopeError(Exception):
    """The root: catch this to catch everything isoscope raises on purpose."""


class InputError(IsoscopeError, ValueError):
    """What came in cannot be measured."""


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
        raise InputError(f"seed is {seed!r}; wanted a whole number from 0 to 4294967295")
