"""What an audit finds among the rows that a first look has drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from isoscope.engine.sample import Sample
from isoscope.look.finding import Finding
from isoscope.look.next_steps import Step

# the findings of an audit that no other finding of a first look is about
_NAMES = ("mixture", "padded_rows", "odd_lengths", "outliers", "near_duplicates")


def faults(drawn: Sample, n: int, steps: Callable[..., Step]) -> tuple[Finding, ...]:
    """Return what is wrong with the rows drawn; nothing where they are healthy.

    Args:
        drawn: the rows.
        n: how many rows they were drawn from.
        steps: makes the next step.
    """
    from isoscope.audit.audit import audit  # which imports the findings of this package

    size = len(drawn.space)
    found = audit(drawn.space, max_rows=max(size, 8), progress=False)
    places = drawn.rows.tolist()
    among = "" if size == n else f"Among {size:,} rows drawn at random: "
    return tuple(
        replace(
            one,
            headline=f"{among}{one.headline[0].lower()}{one.headline[1:]}" if among else one.headline,
            step=steps("audit"),
            listed={kind: _placed(rows, places) for kind, rows in one.listed.items()},
            examples=[replace(each, rows=tuple(_placed(each.rows, places))) for each in one.examples],
        )
        for one in found.findings
        if one.name in _NAMES and one.severity in ("serious", "moderate")
    )


def _placed(rows: Sequence[Any], places: Sequence[int]) -> list[Any]:
    """Return the rows of the source that rows of the sample are, in groups as they are; not the distances."""
    return [
        _placed(row, places) if isinstance(row, list) else places[row] if isinstance(row, int) else row
        for row in rows
    ]
