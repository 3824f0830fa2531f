from __future__ import annotations

import ast
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isoscope
from isoscope.console import Terminal
from isoscope.printable import printable
from isoscope.progress import Bar
from isoscope.tables import Grid
from isoscope.terminal import Spelled, guarded, unguarded

ROOT = Path(isoscope.__file__).parent


@pytest.mark.slow
@given(st.text() | st.just("\udcff"))
def test_what_is_spelled_out_prints_and_says_the_same(text: str) -> None:
    spelled = printable(text)
    assert spelled.isprintable()
    assert json.loads(printable(json.dumps([text], ensure_ascii=False))) == [text]


def test_streams_spell_out_and_are_no_terminals() -> None:
    page = io.StringIO()
    page.isatty = lambda: True  # type: ignore[method-assign]
    stream = Spelled(page)
    print("a\x1b[31m", "b\x85", file=stream)
    assert page.getvalue() == "a\\u001b[31m b\\u0085\n"
    assert not stream.isatty()
    assert not hasattr(stream, "buffer")  # through which bytes would pass as they are
    assert unguarded(stream) is page


def test_a_closed_stream_takes_everything() -> None:
    Spelled(None).write("into nothing")


def test_the_border_is_taken_down_again() -> None:
    before = sys.stdout, sys.stderr
    with guarded():
        assert isinstance(sys.stdout, Spelled)
    assert (sys.stdout, sys.stderr) == before


def test_cells_and_lines_are_taken_for_text() -> None:
    page = io.StringIO()
    console = Terminal(file=page, width=60)
    console.print(
        Grid("[b]t[/b]\x1b[1m", ("[i]h", "n"), [("[link=x]c[/link]\x1b]8;;x\x07", ":bug:")]).to_rich()
    )
    assert "\x1b" not in page.getvalue()
    for words in ("[b]t[/b]\\u001b[1m", "[i]h", "[link=x]c[/link]\\u001b]8;;x\\u0007", ":bug:"):
        assert words in page.getvalue()


def test_the_bar_is_drawn_past_the_border(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    page = io.StringIO()
    page.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", page)
    with guarded(), Bar() as bar:
        bar.step("[red]a\x1b[31;5m", at_once=True)
        bar.share(0.5)
        print("meanwhile \x1b[31;5m", file=sys.stderr)
    assert "\x1b[31;5m" not in page.getvalue()
    assert "[red]a\\u001b[31;5m" in page.getvalue()
    assert "meanwhile \\u001b[31;5m" in page.getvalue()
    assert "\x1b[2K" in page.getvalue()


PRINTERS = {"terminal.py", "console.py"}
BY_ITSELF = {"print", "typer.echo", "typer.secho", "Console", "sys.stdout.write", "sys.stderr.write"}
FIXED = {"__init__.py"}  # "interrupted", while all else is still imported


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_prints_past_the_printer(path: Path) -> None:
    if path.name in PRINTERS | FIXED or path.parts[-2] == "tables":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.Call) and ast.unparse(node.func) in BY_ITSELF), f"line {node.lineno}"
