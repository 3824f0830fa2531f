"""What shelf, passes, plans and costs know of a statistic: each declares it beside its class."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from isoscope.errors import InputError
from isoscope.space import Space


@dataclass(frozen=True)
class Declared:
    """One statistic.

    Attributes:
        name: what metrics ask the shelf for.
        kind: its class, as checkpoints keep it; None where it is no class of its own.
        of: the statistic of rows, from a Space and a shelf with `labels`, `progress` and what it builds on.
        builds_on: a statistic of all rows that has to be there first: it takes a second pass.
        merges: whether blocks of rows can be taken alone and merged; if not, it wants all vectors at once.
        weighted: whether a row counts as often as its weight says.
        by_row: whether it holds a number for every row, so that of many rows a sample is taken.
        operations: floating operations for a row of d numbers, or for a pair of rows.
        of_pairs: whether every pair of rows is met.
        groups: what the caller must tell of every row for it: "labels", "token_types" or "sentences".
        bytes_held: memory it takes for n rows of d numbers in k groups (labels, token types, sentences).
    """

    name: str
    kind: type | None
    of: Callable[[Space, Any], Any]
    builds_on: str | None = None
    merges: bool = True
    weighted: bool = False
    by_row: bool = False
    operations: Callable[[int], float] | None = None
    of_pairs: bool = False
    groups: str | None = None
    bytes_held: Callable[[int, int, int], int] = lambda _n, d, _k: 8 * d


@dataclass(frozen=True)
class Together:
    """Statistics that one pass over a block takes together, faster than one after the other.

    Attributes:
        names: of the statistics.
        of: all of them from a Space without weights, in the order of the names.
    """

    names: tuple[str, ...]
    of: Callable[[Space], tuple[Any, ...]]


_DECLARED: dict[str, Declared] = {}
_TOGETHER: list[Together] = []


def declare(name: str, kind: type | None, of: Callable[[Space, Any], Any], **properties: Any) -> None:
    """Make a statistic known to everything that takes, merges, keeps, plans or prices statistics."""
    _DECLARED[name] = Declared(name, kind, of, **properties)


def declare_together(names: tuple[str, ...], of: Callable[[Space], tuple[Any, ...]]) -> None:
    """Make a faster way to several statistics known."""
    _TOGETHER.append(Together(names, of))


@cache
def declared() -> Mapping[str, Declared]:
    """Return every statistic by name: each module of this package declares its own."""
    package = import_module(__package__ or "isoscope.statistics")
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return MappingProxyType(_DECLARED)


def together(names: Iterable[str]) -> list[Together]:
    """Return the ways to take some of these statistics at once."""
    declared()
    return [joint for joint in _TOGETHER if set(joint.names) <= set(names)]


def streamed() -> frozenset[str]:
    """Return the names of statistics that passes over blocks of rows suffice for."""
    return frozenset(name for name, statistic in declared().items() if statistic.merges)


def whole() -> frozenset[str]:
    """Return the names of statistics that want all vectors at once."""
    return frozenset(declared()) - streamed()


def weighted() -> frozenset[str]:
    """Return the names of statistics that count a row as often as its weight says."""
    return frozenset(name for name, statistic in declared().items() if statistic.weighted)


def with_prerequisites(names: Iterable[str]) -> set[str]:
    """Return the statistics and what they build on."""
    wanted = set(names)
    if unknown := sorted(wanted - set(declared())):
        raise InputError(
            f"There is no statistic {unknown[0]!r}", wanted=f"some of {', '.join(sorted(declared()))}"
        )
    return wanted | {earlier for name in wanted if (earlier := declared()[name].builds_on)}
