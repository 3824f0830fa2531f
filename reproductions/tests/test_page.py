from __future__ import annotations

from pathlib import Path

from isoscope_papers.figures import Drawing
from isoscope_papers.page import Section, as_html, as_markdown
from isoscope_papers.rows import equal, table, within

ROWS = [
    equal("one", "items", 5, 5, comparable=True),
    within("one", "r", 0.5, 0.9, tolerance=0.1, comparable=True, digits=2),
    equal("two", "items", 6, 5, comparable=False),
]


def test_a_line_a_setup_and_a_column_a_quantity() -> None:
    heads, cells = table(ROWS)
    assert heads == ("setup", "items", "r")
    assert cells == (("one", "5 ✓", "0.50 (0.90) ✗"), ("two", "6 (5) ≠", "—"))


FIGURE = Drawing("A caption", "figure-1", (1.0, 1.0), lambda figure: figure.subplots() and None)


def test_markdown_says_what_wrote_it_and_points_to_figures() -> None:
    section = Section("Part", "plain", ("a note",), *table(ROWS), (FIGURE,))
    page = as_markdown("Title", "Intro.", [section], command="isoscope reproduce x", figures="../there")
    assert page.startswith("<!-- written by `isoscope reproduce x`; do not edit -->\n# Title")
    assert "| one | 5 ✓ | 0.50 (0.90) ✗ |" in page
    assert "![A caption](../there/figure-1.png)" in page
    assert "- a note" in page


def test_html_is_one_file_and_escapes_every_text(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    section = Section(hostile, hostile, (hostile,), (hostile,), ((hostile,),), (FIGURE,))
    assert FIGURE.save(tmp_path).with_suffix(".pdf").exists()
    page = as_html(hostile, hostile, [section], figures=tmp_path)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 8
    assert 'src="data:image/png;base64,iVBORw' in page
    assert "http" not in page
