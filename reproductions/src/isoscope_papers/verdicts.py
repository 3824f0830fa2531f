"""Ours beside published: one quantity of one setup, and whether it is reproduced."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a comparison comes to."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not comparable"
    UNPUBLISHED = "not published"


@dataclass(frozen=True)
class Row:
    """One quantity of one setup.

    Attributes:
        setup: which setup, with its encoder.
        quantity: what is compared.
        ours: our value; None where it is undefined.
        published: theirs: a number, a bound such as "< -0.998", or None.
        verdict: whether it is reproduced.
        digits: decimals to show; 0 for whole numbers.
    """

    setup: str
    quantity: str
    ours: float | None
    published: float | str | None
    verdict: Verdict
    digits: int = 3

    @property
    def ours_shown(self) -> str:
        """Our value, rounded for reading."""
        return "—" if self.ours is None else shown(self.ours, self.digits)

    @property
    def published_shown(self) -> str:
        """Theirs, as they give it."""
        if self.published is None or isinstance(self.published, str):
            return self.published or "—"
        return shown(self.published, self.digits)

    def to_dict(self) -> dict[str, object]:
        """JSON-ready, unrounded."""
        return {
            "setup": self.setup,
            "quantity": self.quantity,
            "ours": self.ours,
            "published": self.published,
            "verdict": str(self.verdict),
        }


def shown(value: float, digits: int) -> str:
    """A number for reading: whole ones with thousands apart, others with their decimals."""
    return f"{value:,.0f}" if digits == 0 else f"{value:.{digits}f}"


def equal(setup: str, quantity: str, ours: int, published: int | None, *, comparable: bool) -> Row:
    """Whole numbers that have to be the same."""
    return Row(setup, quantity, ours, published, _verdict(comparable, published, ours == published), 0)


def within(
    setup: str,
    quantity: str,
    ours: float | None,
    published: float | None,
    *,
    tolerance: float,
    comparable: bool,
    digits: int = 5,
) -> Row:
    """A number that has to be within a tolerance of theirs."""
    close = ours is not None and published is not None and abs(ours - published) <= tolerance
    return Row(setup, quantity, ours, published, _verdict(comparable, published, close), digits)


def below(
    setup: str,
    quantity: str,
    ours: float | None,
    bound: float | None,
    *,
    comparable: bool,
    published: float | None = None,
    digits: int = 5,
) -> Row:
    """A number that has to be under a bound they state; shown with their own number where they give it."""
    under = ours is not None and bound is not None and ours < bound
    theirs = f"< {bound}" if bound is not None and published is None else published
    return Row(setup, quantity, ours, theirs, _verdict(comparable, bound, under), digits)


def unpublished(setup: str, quantity: str, ours: float | None, digits: int = 3) -> Row:
    """A number they show in a figure at most."""
    return Row(setup, quantity, ours, None, Verdict.UNPUBLISHED, digits)


def _verdict(comparable: bool, published: object, holds: bool) -> Verdict:
    if published is None:
        return Verdict.UNPUBLISHED
    if not comparable:
        return Verdict.NOT_COMPARABLE
    return Verdict.REPRODUCED if holds else Verdict.DIFFERS
