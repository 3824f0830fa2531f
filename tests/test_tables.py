from __future__ import annotations

from io import StringIO

from rich.console import Console

from isoscope.tables import Grid, as_html, as_text


def test_no_cell_is_markup_or_a_tag() -> None:
    grid = Grid("[b]title", ("head",), [("[red]x[/red] <script>",)])
    text, page = as_text([grid], ["[i]line <b>"]), as_html([grid], ["[i]line <b>"])
    for part in ("[b]title", "[red]x[/red] <script>", "[i]line <b>"):
        assert part in text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<p>[i]line &lt;b&gt;</p>" in page
    assert page.startswith("<table><caption>[b]title</caption><thead><tr><th>head</th>")


def test_numbers_go_to_the_right() -> None:
    text = as_text([Grid("", ("name", "n"), [("a", "1"), ("b", "1000")], ("n",))], [])
    assert [line.rstrip()[-4:] for line in text.splitlines()[2:]] == ["   1", "1000"]


def drawn(grid: Grid, width: int) -> str:
    console = Console(width=width, file=StringIO(), no_color=True, force_terminal=False)
    console.print(grid.to_rich())
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_names_and_numbers_stay_whole_in_a_narrow_terminal() -> None:
    heads = ("metric", "A", "B", "B − A", "95 % interval", "")
    name, number = "dimensions_for_variance", "1.318e-07"
    verdict = "no difference seen"
    row = (name, number, number, f"−{number}", f"−{number} … −{number}", verdict)
    text = drawn(Grid("", heads, [row], ("A", "B", "B − A")), 80)
    assert f"{name}   {number}   {number}   −{number}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_long_name_leaves_room_for_the_rest() -> None:
    text = drawn(Grid("", ("label", "rows"), [("x" * 300, "1,234")], ("rows",)), 80)
    assert "1,234" in text
    assert text.count("x") == 300
