from __future__ import annotations

import math
from dataclasses import dataclass
from io import StringIO

from rich.console import Console

from isoscope.results import Result
from isoscope.tables import Grid, shown, signed, span


@dataclass(repr=False)
class Page(Result):
    content: list[Grid]
    said: list[str]

    @property
    def title(self) -> str:
        return "[u]top <i>"

    def grids(self) -> list[Grid]:
        return self.content

    def lines(self) -> list[str]:
        return self.said


def test_no_cell_is_markup_or_a_tag() -> None:
    grid = Grid("[b]title", ("head",), [("[red]x[/red] <script>",)])
    shown_page = Page([grid], ["[i]line <b>"])
    text, page = str(shown_page), shown_page._repr_html_()
    for part in ("[u]top <i>", "[b]title", "[red]x[/red] <script>", "[i]line <b>"):
        assert part in text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<p>[i]line &lt;b&gt;</p>" in page
    assert ">[b]title</caption><thead><tr><th" in page


def test_numbers_go_to_the_right() -> None:
    text = str(Page([Grid("", ("name", "n"), [("a", "1"), ("b", "1000")], ("n",))], []))
    assert [line.rstrip()[-4:] for line in text.splitlines()[4:]] == ["   1", "1000"]


def test_columns_of_numbers_go_to_the_right_and_none_is_a_dash() -> None:
    grid = Grid("", ("name", "value"), [("a", 0.25), ("b", 12000), ("c", None), ("d", float("nan"))])
    assert [line.rstrip()[-6:].strip() for line in str(Page([grid], [])).splitlines()[4:]] == [
        "0.2500", "12,000", "–", "–",
    ]  # fmt: skip
    assert '<td style="text-align:right">12,000</td>' in grid.to_html()


def test_one_way_of_writing_numbers() -> None:
    assert [shown(v) for v in (0, 3, 3.0, 0.5, 1e-5, 1234.5, 2e6, math.inf, -math.inf, None)] == [
        "0", "3", "3", "0.5000", "1.000e-05", "1,234.5", "2.000e+06", "∞", "−∞", "–",
    ]  # fmt: skip
    assert [shown(v, 1) for v in (1234.56, 0.04, None)] == ["1,234.6", "0.0", "–"]
    assert [signed(v) for v in (0.5, -0.5, 0.0, None)] == ["+0.5000", "−0.5000", "0.0000", "–"]
    assert (span((0.1, 0.2)), span((-0.1, 0.2), signed), span(None)) == (
        "0.1000 … 0.2000", "−0.1000 … +0.2000", "",
    )  # fmt: skip


def drawn(grid: Grid, width: int) -> str:
    console = Console(width=width, file=StringIO(), no_color=True, force_terminal=False)
    console.print(grid.to_rich(width))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_names_and_numbers_stay_whole_in_a_narrow_terminal() -> None:
    heads = ("metric", "A", "B", "B − A", "95 % interval", "")
    name, number = "dimensions_for_variance", "1.318e-07"
    verdict = "no difference seen"
    row = (name, number, number, f"−{number}", f"−{number} … −{number}", verdict)
    text = drawn(Grid("", heads, [row], ("A", "B", "B − A")), 80)
    assert f"{name}  {number}  {number}  −{number}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_only_a_table_that_would_not_fit_is_set_closer() -> None:
    prose = Grid("", ("metric", "value", "meaning"), [("isoscore", 0.5, "a sentence " * 9)])
    assert "isoscore   0.5000   a sentence" in drawn(prose, 80)
    numbers = Grid("", [f"column {place}" for place in range(7)], [[0.5] * 7])  # 7 × 11
    assert "column 0   column 1" in drawn(numbers, 80)
    assert "column 0  column 1" in drawn(numbers, 72)


def test_a_long_name_leaves_room_for_the_rest() -> None:
    text = drawn(Grid("", ("label", "rows"), [("x" * 300, "1,234")], ("rows",)), 80)
    assert "1,234" in text
    assert text.count("x") == 300
