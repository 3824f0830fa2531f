"""Which columns of a file are read as dimensions: those that are asked for, else those that must be."""

from __future__ import annotations

from collections.abc import Sequence

from isoscope.errors import FileError, InputError
from isoscope.io.chunks import Request
from isoscope.io.files import listed
from isoscope.table_columns import Column, judge, places_of

_INDEX = "__index_level_"  # the columns pandas writes its row index to


def excluded(request: Request, names: Sequence[str]) -> set[int]:
    """The places of the columns that the caller leaves out."""
    return set(places_of(request.exclude or (), names, argument="exclude"))


def choose_dimensions(request: Request, columns: Sequence[Column]) -> tuple[list[int], list[str]]:
    """The places of the dimensions, and notes on columns left out that were not said to be none.

    Labels and weights are no dimensions, nor what is excluded. A column that may be one or not is an error
    that asks.
    """
    names = [column.name for column in columns]
    out = excluded(request, names)
    rest = [
        place
        for place, name in enumerate(names)
        if place not in out and name not in (request.labels, request.weights)
    ]
    if request.columns is not None:
        return _asked(request, columns, rest)
    verdict = judge([columns[place] for place in rest])
    taken, others, named, doubtful = (
        [rest[place] for place in places]
        for places in (verdict.dimensions, verdict.others, verdict.named, verdict.doubtful)
    )
    if doubtful:
        raise FileError(_question(request, names, doubtful, taken))
    notes = []
    if others:
        notes.append(f"left out non-numeric columns: {listed(names[place] for place in others)}")
    if 0 in named and not names[0].strip():
        named.remove(0)
        notes.append("left out the unnamed first column, a row index")
    named = [place for place in named if not names[place].startswith(_INDEX)]
    if named:
        shown = listed(names[place] for place in named)
        notes.append(f"left out as no dimensions, by their names: {shown} (`columns` would take them)")
    return taken, notes


def _asked(request: Request, columns: Sequence[Column], rest: list[int]) -> tuple[list[int], list[str]]:
    """The columns asked for by name, all of numbers; of a range, those that are."""
    asked = request.columns or ()
    chosen = places_of(asked, [column.name for column in columns], argument="columns")
    chosen = [place for place in chosen if place in set(rest)]
    others = [columns[place].name for place in chosen if not columns[place].is_number]
    if others and not any(":" in item for item in asked):
        raise InputError(f"columns has {others[0]!r}, which holds no numbers in {request.path}; leave it out")
    notes = [f"left out non-numeric columns: {listed(others)}"] if others else []
    return [place for place in chosen if columns[place].is_number], notes


def _question(request: Request, names: list[str], doubtful: list[int], taken: list[int]) -> str:
    several = len(doubtful) > 1
    shown = listed((repr(names[place]) for place in doubtful), at_most=4)
    # a column without a name goes by its place, unless another has that number for a name
    words = [names[place] if names[place].strip() else str(place) for place in doubtful]
    if any(not names[place].strip() and str(place) in names for place in doubtful) and taken:
        answer = f"columns='{names[taken[0]]}:{names[taken[-1]]}' to leave out"
    else:
        answer = f"exclude='{','.join(words[:4])}{',…' if several and len(words) > 4 else ''}'"
    return (
        f"{request.path} has whole numbers in column{'s' if several else ''} {shown} "
        f"that may be identifiers, labels or times: {'dimensions' if several else 'a dimension'} or not? say "
        f"{answer}, or columns=':' to take all"
    )
