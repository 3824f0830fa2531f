"""Tables of results, for terminals and notebooks, and how numbers are written in them."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isoscope.printable import printable

if TYPE_CHECKING:
    from rich.table import Table

_ROOM = 66  # of the 80 characters of a terminal, for what is of no use in halves
_LONGEST = 33
_PROSE = 24  # characters that a column of sentences can be cut to and still be read
_BETWEEN = 3  # characters from one column to the next
_ROUNDING = 1e-12
_ROUNDING_FLOAT32 = 1e-7
_MANY = 8  # columns; more are set closer, as are those that would not fit


Cell = str | float | None


def shown(value: float | None, digits: int | None = None) -> str:
    """Return a number as tables show it: counts whole, else four decimals, fewer if large; a dash for none.

    `digits` is the number of decimals, for columns that are narrow.

    >>> [shown(value) for value in (12000, 0.25, 123.456, 2e-7, None)]
    ['12,000', '0.2500', '123.46', '2.000e-07', '–']
    """
    if value is None or math.isnan(value):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if digits is not None:
        return f"{value:,.{digits}f}"
    size = abs(value)
    if value == int(value) and 1 < size < 1e6:
        return f"{int(value):,}"
    if size >= 1e6 or 0 < size < 1e-4:
        return f"{value:.3e}"
    if size >= 1000:
        return f"{value:,.1f}"
    return f"{value:.4f}" if size < 100 else f"{value:.2f}"


def percent(share: float, digits: int = 0) -> str:
    """Return a share in per cent, with so many decimals.

    >>> percent(0.256), percent(-0.0001, 1)
    ('26 %', '0.0 %')
    """
    return f"{100 * share:z,.{digits}f} %"


def signed(value: float | None, *, of: float = 0.0) -> str:
    """Return a difference as tables show it, with its sign; one that is rounding alone as 0.

    `of` is the size of what differs: below 1e-7 of it, a difference is the rounding of float32.

    >>> signed(0.25), signed(2e-10), signed(2e-10, of=1.0)
    ('+0.2500', '+2.000e-10', '0.0000')
    """
    least = max(_ROUNDING, _ROUNDING_FLOAT32 * of)
    if value is None or math.isnan(value) or abs(value) < least:
        return shown(0.0 if isinstance(value, float) and abs(value) < least else value)
    return f"{'+' if value > 0 else '−'}{shown(abs(value))}"


def span(interval: tuple[float, float] | None, write: Callable[[float], str] = shown) -> str:
    """Return an interval as tables show it; nothing for none."""
    return "" if interval is None else " … ".join(map(write, interval))


def escaped(text: str) -> str:
    """Return a text for HTML: no tag, and nothing that does not print."""
    return html.escape(printable(text))


@dataclass(frozen=True)
class Grid:
    """A table before it is drawn. Its texts may come from anywhere: none is taken for markup or a tag.

    Attributes:
        title: above it; may be empty.
        heads: one a column.
        rows: of cells, texts or numbers; numbers are written by `shown`.
        numbers: the heads of columns of texts that go to the right, as columns of numbers do.

    >>> Grid("", ("city", "km"), [("Ulm", 9), ("<Bern>", 120)]).to_html().count("&lt;")
    1
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: Sequence[str] = ()

    def to_rich(self, width: int | None = None) -> Table:
        """Return the table for a terminal of so many characters."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        title = Text(printable(self.title)) if self.title else None
        texts, right = self.cells(), self._right()
        whole = self._whole(texts, right)
        widths = [_width(head, [row[place] for row in texts]) for place, head in enumerate(self.heads)]
        needed = sum(min(one, _PROSE) + _BETWEEN for one in widths)
        is_close = len(self.heads) > _MANY or (width is not None and needed > width)
        padding = (0, 0, 0, 1) if is_close else (0, 1)
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=padding)
        for place, head in enumerate(self.heads):
            side: Literal["right", "left"] = "right" if place in right else "left"
            table.add_column(
                Text(printable(head, keep="\n")), justify=side, overflow="fold", no_wrap=place in whole,
                vertical="bottom" if "\n" in head else "top",
            )  # fmt: skip
        for row in texts:
            table.add_row(*(Text(printable(cell)) for cell in row))
        return table

    def to_html(self) -> str:
        """Return the table for a notebook."""
        style = "text-align:left;font-style:italic"
        caption = f'<caption style="{style}">{escaped(self.title)}</caption>' if self.title else ""
        right = self._right()
        sides = ["right" if place in right else "left" for place in range(len(self.heads))]
        head = _html_row("th", self.names(), sides)
        body = "".join(_html_row("td", row, sides) for row in self.cells())
        return f'<table style="margin-bottom:1em">{caption}<thead>{head}</thead><tbody>{body}</tbody></table>'

    def names(self) -> list[str]:
        """Return the heads, each on one line."""
        return [head.replace("-\n", "").replace("\n", " ") for head in self.heads]

    def cells(self) -> list[list[str]]:
        """Return the rows as texts."""
        return [[cell if isinstance(cell, str) else shown(cell) for cell in row] for row in self.rows]

    def _right(self) -> set[int]:
        """Return the places of columns that go to the right."""
        columns = [[row[place] for row in self.rows] for place in range(len(self.heads))]
        return {
            place
            for place, (head, cells) in enumerate(zip(self.heads, columns, strict=True))
            if head in self.numbers or (any(_number(c) for c in cells) and all(map(_number_or_gap, cells)))
        }

    def _whole(self, texts: list[list[str]], right: set[int]) -> set[int]:
        """Return the columns that stay on one line in a narrow terminal, from the left: names and numbers."""
        room, whole = _ROOM, set()
        for place, head in enumerate(self.heads):
            width = _width(head, [row[place] for row in texts]) + _BETWEEN
            if (place == 0 or place in right) and width <= min(room, _LONGEST):
                room -= width
                whole.add(place)
        return whole


def _width(head: str, cells: Sequence[str]) -> int:
    return max(map(len, [*head.split("\n"), *cells]))


def _number(cell: Cell) -> bool:
    return not isinstance(cell, str)


def _number_or_gap(cell: Cell) -> bool:
    return not isinstance(cell, str) or not cell or cell.startswith("…")


def _html_row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    pairs = zip(cells, sides, strict=True)
    return (
        "<tr>"
        + "".join(f'<{tag} style="text-align:{side}">{escaped(cell)}</{tag}>' for cell, side in pairs)
        + "</tr>"
    )
