"""Windows of time: days, weeks, months, quarters or years, and the one each row falls into."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from typing import Any

from isoscope.errors import InputError, check_choice

_WINDOWS: dict[str, Callable[[date], str]] = {
    "day": lambda day: day.isoformat(),
    "week": lambda day: (day - timedelta(days=day.weekday())).isoformat(),  # its Monday
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
}
EVERY = tuple(_WINDOWS)


def windows_of(values: Iterable[Any], every: str) -> list[str]:
    """Return the window of each date; names of windows sort as time does.

    Args:
        values: dates or times, or their texts as ISO 8601 writes them.
        every: day, week, month, quarter or year.

    >>> windows_of(["2024-05-01", "2024-05-06T10:00:00"], "week")
    ['2024-04-29', '2024-05-06']
    """
    check_choice("every", every, EVERY)
    name = _WINDOWS[every]
    return [name(_day(value)) for value in values]


def _day(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return datetime.fromisoformat(str(value).strip()).date()
    except ValueError:
        pass
    try:
        return date.fromisoformat(str(value).strip()[:10])
    except ValueError:
        raise InputError(
            f"has {str(value)!r:.60}", argument="date", wanted="dates such as 2024-05-31, or 20240531"
        ) from None
