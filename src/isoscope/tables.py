"""Tables of results: by rich for terminals, as plain text, as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Literal

from isoscope.printable import printable

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 110
_ROOM = 66  # of the 80 characters of a terminal, for what is of no use in halves
_LONGEST = 33
_BETWEEN = 3  # characters from one column to the next


@dataclass(frozen=True)
class Grid:
    """A table before it is drawn: texts only, which may come from anywhere.

    Attributes:
        title: above it; may be empty.
        heads: one a column.
        rows: of cells.
        numbers: the heads of columns that go to the right.

    >>> grid = Grid("", ("city", "km"), [("Ulm", "9"), ("Bern", "120")], numbers=("km",))
    >>> print(as_text([grid], ["note: by road"]))
     city    km
     ──────────
     Ulm      9
     Bern   120
    <BLANKLINE>
    note: by road
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[str] = ()

    def to_rich(self) -> Table:
        """For terminals; no cell is taken for markup."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        title = Text(printable(self.title)) if self.title else None
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        whole = self._whole()
        for place, head in enumerate(self.heads):
            side: Literal["right", "left"] = "right" if head in self.numbers else "left"
            table.add_column(printable(head), justify=side, overflow="fold", no_wrap=place in whole)
        for row in self.rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        return table

    def _whole(self) -> set[int]:
        """Columns that stay on one line in a narrow terminal, from the left: names, and numbers."""
        room, whole = _ROOM, set()
        for place, head in enumerate(self.heads):
            width = max([len(head), *(len(row[place]) for row in self.rows)]) + _BETWEEN
            if (place == 0 or head in self.numbers) and width <= min(room, _LONGEST):
                room -= width
                whole.add(place)
        return whole

    def to_html(self) -> str:
        """For notebooks; no cell is taken for a tag."""
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        heads = "".join(f"<th>{html.escape(head)}</th>" for head in self.heads)
        lines = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def as_text(grids: Iterable[Grid], lines: Iterable[str]) -> str:
    """Tables, then lines, without colour, 110 characters wide."""
    from isoscope.console import Terminal

    page = StringIO()
    console = Terminal(width=_WIDTH, file=page, no_color=True, force_terminal=False)
    for grid in grids:
        console.print(grid.to_rich())
    for line in lines:
        console.say(line)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")


def as_html(grids: Iterable[Grid], lines: Iterable[str]) -> str:
    """Tables, then lines, for a notebook."""
    shown = [*(grid.to_html() for grid in grids), *(f"<p>{html.escape(line)}</p>" for line in lines)]
    return "".join(shown)
