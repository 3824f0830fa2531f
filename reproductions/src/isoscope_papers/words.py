"""Formats of numbers in pages, tables and findings."""

from __future__ import annotations

import re
from collections.abc import Sequence


def minus(text: str) -> str:
    """Write true minus signs before digits.

    >>> minus("-0.5 … 0.2, all-but-1")
    '−0.5 … 0.2, all-but-1'
    """
    return re.sub(r"(?<!\w)-(?=\d)", "−", text)


def number(value: float | None, digits: int = 3) -> str:
    """Format a number with its decimals and thousands separators; a dash for None.

    >>> number(10662, 0), number(-0.5, 2), number(None)
    ('10,662', '−0.50', '—')
    """
    return "—" if value is None else minus(f"{value:,.{digits}f}")


def signed(value: float | None, digits: int | None = 3) -> str:
    """Format a number with its sign; `digits` None shows all digits.

    >>> signed(-0.5, 2), signed(0.25, None)
    ('−0.50', '+0.25')
    """
    if value is None:
        return "—"
    return minus(f"{value:+g}" if digits is None else f"{value:+.{digits}f}")


def between(low: float, high: float, digits: int = 3) -> str:
    """Format the ends of an interval, with their signs.

    >>> between(-0.5, 0.25, 2)
    '−0.50 … +0.25'
    """
    return f"{signed(low, digits)} … {signed(high, digits)}"


def span(values: Sequence[float], digits: int = 3) -> str:
    """Format the range of some values, or the one value they share.

    >>> span([0.1, 0.25, -0.5], 2)
    '−0.50 … 0.25'
    """
    if not values:
        return "—"
    low, high = number(min(values), digits), number(max(values), digits)
    return low if low == high else f"{low} … {high}"
