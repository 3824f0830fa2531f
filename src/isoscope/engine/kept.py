"""`Kept`: the statistics behind a measurement, so that what comes after it does not compute them again."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from isoscope.engine.checksums import checksums
from isoscope.engine.source import Source, is_source
from isoscope.errors import InputError
from isoscope.measurement import Measurement
from isoscope.space import Space
from isoscope.statistics.gathered import Statistics

_NOT_COMPUTED_FROM = {"texts"}  # what no statistic depends on


class Kept:
    """Statistics without the vectors they were computed from.

    The vectors are found again while the caller has them, and files are opened again: a measurement that held
    its vectors would keep them in memory.
    """

    def __init__(self, shelf: Statistics, X: Any, source: Source) -> None:
        """Take the vectors off a shelf; `X` is what the caller gave, and `source` what was measured."""
        self._shelf = shelf.over(None)
        self._find: Callable[[], Any] = lambda: source  # a file: little more than its name
        self._known: dict[str, Any] = {}
        self._checksums: dict[str, Any] = {}
        self._identity = X._kept._identity if isinstance(X, Measurement) else _identity(source)
        if isinstance(source, Space):
            self._find = X._kept._find if isinstance(X, Measurement) else _reference(X)
            self._known = _known(source)
            self._checksums = checksums(source)

    def shelf(self) -> Statistics:
        """Return the statistics over their vectors again."""
        X = self._find()
        if X is None:
            raise InputError(
                "is a measurement whose vectors are no longer in memory",
                argument="X",
                hint="pass the vectors themselves",
            )
        if _identity(X) != self._identity:  # before a file that has changed is read
            raise _changed()
        space = replace(_loaded(X), **self._known)
        if self._checksums and checksums(space) != self._checksums:
            raise _changed()
        shelf = self._shelf.over(space)
        shelf.notes[:0] = _notes(X)
        return shelf


def shelf_of(X: Any, *, seed: int = 0, **given: Any) -> Statistics:
    """Return the statistics of what `report`, `compare` or `advise` was given, none computed twice.

    Args:
        X: (n, d) vectors in any array, a Space, an opened file, or a Measurement: what that has computed is
            on the shelf already.
        seed: of everything sampled; a measurement with another one is measured again.
        given: what else is known of the rows: labels, weights, token_types, sentences, partners, texts. All
            but texts change the statistics: a measurement is measured again with them.
    """
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(X, Measurement):
        if X._kept is None:
            raise InputError("is a measurement without its vectors", argument="X", hint="pass the vectors")
        shelf = X._kept.shelf()
        if not given and seed == X.seed:
            return shelf
        space = replace(shelf.space, **given)
        if seed == X.seed and set(given) <= _NOT_COMPUTED_FROM:
            return shelf.over(space)
        return Statistics(space, seed=seed)
    space = _loaded(X)
    shelf = Statistics(replace(space, **given) if given else space, seed=seed)
    shelf.notes += _notes(X)
    return shelf


def _loaded(X: Any) -> Space:
    """Return the vectors in memory or mapped, without a gradient: a measurement is numbers."""
    space: Space = X.load() if is_source(X) else Space(X)
    return replace(space, vectors=space.vectors.detach()) if space.vectors.requires_grad else space


def _identity(X: Any) -> list[Any] | None:
    """Return what tells a file, states or chunks from others; None of vectors that are in memory."""
    return X.identity if is_source(X) and not isinstance(X, Space) else None


def _changed() -> InputError:
    return InputError(
        "is a measurement whose vectors have changed since", argument="X", hint="measure them again"
    )


def _notes(X: Any) -> list[str]:
    return list(X.notes) if is_source(X) else []


def _known(space: Space) -> dict[str, Any]:
    names = [field.name for field in fields(space) if field.name != "vectors"]
    return {name: value for name in names if (value := getattr(space, name)) is not None}


def _reference(X: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(X.space if isinstance(X, Statistics) else X)
    except TypeError:  # a list
        return lambda: X
