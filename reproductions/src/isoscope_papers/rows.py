"""Our values beside the published ones, and their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isoscope_papers.verdict import Finding, Verdict
from isoscope_papers.words import minus, number

OTHER_DATA = "other data, vectors or protocol than the paper's"
Table = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]


@dataclass(frozen=True)
class Row:
    """One quantity of one setup.

    Attributes:
        setup: the setup, with its encoder.
        quantity: the name of the quantity.
        ours: our value; None where it is undefined.
        published: the published value: a number, a bound such as "< -0.998", or None.
        verdict: whether it was reproduced; None where nothing is published.
        digits: number of decimals to show; 0 for whole numbers.
    """

    setup: str
    quantity: str
    ours: float | None
    published: float | str | None = None
    verdict: Verdict | None = None
    digits: int = 3

    @property
    def ours_shown(self) -> str:
        """Return our value, rounded."""
        return number(self.ours, self.digits)

    @property
    def published_shown(self) -> str:
        """Return the published value as printed."""
        if self.published is None or isinstance(self.published, str):
            return self.published or "—"
        return number(self.published, self.digits)

    @property
    def cell(self) -> str:
        """Return our value, and the published one with a mark."""
        if self.verdict is None:
            return self.ours_shown
        if self.verdict is Verdict.HELD and self.ours_shown == self.published_shown:
            return f"{self.ours_shown} {self.verdict.mark}"
        return f"{self.ours_shown} ({self.published_shown}) {self.verdict.mark}"

    def finding(self, claim: str, *, evidence: str = "", why: str = OTHER_DATA) -> Finding:
        """Return this row as a test of a claim; `why` is the reason if it cannot be compared."""
        verdict = self.verdict or Verdict.NOT_TESTABLE
        condition = why if verdict is Verdict.NOT_TESTABLE else ""
        return Finding(claim, self.setup, verdict, self.ours_shown, condition, evidence)

    def to_dict(self) -> dict[str, object]:
        """Return the unrounded values, JSON-ready."""
        verdict = None if self.verdict is None else str(self.verdict)
        return {
            "setup": self.setup, "quantity": self.quantity, "ours": self.ours, "published": self.published,
            "verdict": verdict,
        }  # fmt: skip


def equal(setup: str, quantity: str, ours: int, published: int | None, *, comparable: bool) -> Row:
    """Compare whole numbers, which must be equal."""
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
    """Compare numbers, which must agree within a tolerance."""
    close = ours is not None and published is not None and abs(ours - published) <= tolerance
    return Row(setup, quantity, ours, published, _verdict(comparable, published, close), digits)


def below(
    setup: str, quantity: str, ours: float | None, bound: float | None, *, comparable: bool, digits: int = 5
) -> Row:
    """Compare a number with a published upper bound."""
    under = ours is not None and bound is not None and ours < bound
    theirs = None if bound is None else minus(f"< {bound}")
    return Row(setup, quantity, ours, theirs, _verdict(comparable, bound, under), digits)


def above(
    setup: str, quantity: str, ours: float | None, bound: float | None, *, comparable: bool, digits: int = 5
) -> Row:
    """Compare a number with a published lower bound."""
    over = ours is not None and bound is not None and ours > bound
    theirs = None if bound is None else minus(f"> {bound}")
    return Row(setup, quantity, ours, theirs, _verdict(comparable, bound, over), digits)


def unpublished(setup: str, quantity: str, ours: float | None, digits: int = 3) -> Row:
    """Show a number that is not published, or only in a figure."""
    return Row(setup, quantity, ours, digits=digits)


def _verdict(comparable: bool, published: object, holds: bool) -> Verdict | None:
    if published is None:
        return None
    if not comparable:
        return Verdict.NOT_TESTABLE
    return Verdict.HELD if holds else Verdict.NOT_HELD


def table(rows: Sequence[Row]) -> Table:
    """Return heads and cells, with one line per setup and one column per quantity."""
    quantities = list(dict.fromkeys(row.quantity for row in rows))
    setups = list(dict.fromkeys(row.setup for row in rows))
    cells = {(row.setup, row.quantity): row.cell for row in rows}
    lines = tuple(
        (setup, *(cells.get((setup, quantity), "—") for quantity in quantities)) for setup in setups
    )
    return ("setup", *quantities), lines
