from __future__ import annotations

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
