"""A paper's claims put to the test on some space: held, did not hold, or it depends; with the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Holding(StrEnum):
    """What a test of a claim comes to."""

    HELD = "held"
    NOT_HELD = "did not hold"
    DEPENDS = "depends"


_MARKS = {Holding.HELD: " ✓", Holding.NOT_HELD: " ✗", Holding.DEPENDS: ""}


@dataclass(frozen=True)
class Claim:
    """One claim on one space.

    Attributes:
        claim: what is claimed, with the bound it is tested by.
        subject: which model or space.
        holding: what came of it.
        evidence: the figures, in words.
    """

    claim: str
    subject: str
    holding: Holding
    evidence: str

    @property
    def shown(self) -> str:
        """The verdict with its mark."""
        return f"{self.holding}{_MARKS[self.holding]}"

    def to_dict(self) -> dict[str, str]:
        """JSON-ready."""
        return {
            "claim": self.claim,
            "subject": self.subject,
            "holding": str(self.holding),
            "evidence": self.evidence,
        }


def judged(held: Sequence[bool]) -> Holding:
    """Held where all are true, not held where none is, else it depends.

    >>> str(judged([True, True])), str(judged([True, False])), str(judged([False]))
    ('held', 'depends', 'did not hold')
    """
    if all(held):
        return Holding.HELD
    return Holding.DEPENDS if any(held) else Holding.NOT_HELD


def claims_table(claims: Sequence[Claim]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Heads and cells for a page, claim by claim."""
    order = list(dict.fromkeys(one.claim for one in claims))
    listed = sorted(claims, key=lambda one: order.index(one.claim))
    cells = tuple((one.claim, one.subject, one.shown, one.evidence) for one in listed)
    return ("claim", "on", "verdict", "figures"), cells
