"""A comparison for reading: as Markdown for the documentation, as one HTML page that needs no other file."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from isoscope.errors import FileError, InputError
from isoscope.io.atomic import write_atomically
from isoscope.io.sealed import write_json
from isoscope_papers.verdicts import Row, Verdict

_MARKS = {
    Verdict.REPRODUCED: "✓",
    Verdict.DIFFERS: "✗",
    Verdict.NOT_COMPARABLE: "≠",
    Verdict.UNPUBLISHED: "",
}
_STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --line: #ddd; --good: #1a7f4b; --bad: #b3261e;
  --soft: #777; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181b; --line: #3a3d42;
  --good: #5cc98f; --bad: #ff8a80; --soft: #9a9a9a; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { margin-top: 2.4rem; font-size: 1.2rem; }
ul { font-size: .85rem; padding-left: 1.2rem; } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .32rem .55rem; border-bottom: 1px solid var(--line); text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.good { color: var(--good); } .bad { color: var(--bad); } .soft { color: var(--soft); }
figure { margin: 1.5rem 0; background: #fff; padding: .75rem; border: 1px solid var(--line); }
figure img { max-width: 100%; max-height: 25rem; display: block; margin: auto; }
figcaption { color: #555; font-size: .85rem; }
"""


Drawn = TypeVar("Drawn")


@dataclass(frozen=True)
class Section:
    """A heading, what to know, notes, a table (heads, then rows of cells), and figures by caption."""

    title: str
    text: str
    notes: tuple[str, ...]
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    figures: Mapping[str, Path]


def compared(row: Row) -> str:
    """One cell: ours, and theirs with a mark where they have one."""
    if row.verdict is Verdict.UNPUBLISHED:
        return row.ours_shown
    if row.verdict is Verdict.REPRODUCED and row.ours_shown == row.published_shown:
        return f"{row.ours_shown} {_MARKS[row.verdict]}"
    return f"{row.ours_shown} ({row.published_shown}) {_MARKS[row.verdict]}"


def table(rows: Sequence[Row]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Heads and cells: a line a setup, a column a quantity."""
    quantities = list(dict.fromkeys(row.quantity for row in rows))
    setups = list(dict.fromkeys(row.setup for row in rows))
    found = {(row.setup, row.quantity): compared(row) for row in rows}
    cells = tuple(
        (setup, *(found.get((setup, quantity), "—") for quantity in quantities)) for setup in setups
    )
    return ("setup", *quantities), cells


def make_folder(folder: Path) -> None:
    """The folder for a report, made where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror or error}") from error


def in_folder(
    draw: Callable[[Path], dict[str, Drawn]], folder: Path | None
) -> tuple[dict[str, Drawn], tuple[str, ...]]:
    """The figures `draw` makes in the folder; or none, and a note that says why."""
    if folder is None:
        return {}, ()
    make_folder(folder)
    try:
        return draw(folder), ()
    except FileError:
        raise
    except InputError as error:  # matplotlib is not installed
        return {}, (f"No figures: {error}",)


def write_pages(
    folder: Path,
    stem: str,
    *,
    title: str,
    intro: str,
    sections: Sequence[Section],
    results: Mapping[str, Any],
    command: str,
) -> list[Path]:
    """`stem`.json with everything unrounded, `stem`.md for the documentation, `stem`.html to open."""
    texts = {
        f"{stem}.md": as_markdown(title, intro, sections, command=command),
        f"{stem}.html": as_html(title, intro, sections),
    }
    make_folder(folder)
    return [
        write_json(folder / f"{stem}.json", results, indent=2),
        *(
            write_atomically(folder / name, lambda place, text=text: place.write_text(text, encoding="utf-8"))  # type: ignore[misc]
            for name, text in texts.items()
        ),
    ]


def as_markdown(title: str, intro: str, sections: Sequence[Section], *, command: str) -> str:
    """The whole comparison as a page of documentation."""
    lines = [f"<!-- written by `{command}`; do not edit -->", f"# {title}", "", _plain(intro)]
    for section in sections:
        lines += ["", f"## {_plain(section.title)}", "", _plain(section.text)]
        if section.cells:
            lines += ["", _line(section.heads), "|" + "---|" * len(section.heads)]
            lines += [_line(cells) for cells in section.cells]
        lines += ["", *(f"- {_plain(note)}" for note in section.notes)]
        for caption, path in section.figures.items():
            lines += ["", f"![{caption}]({path.name})", "", f"*{caption}.*"]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(cell).replace("|", "\\|") for cell in cells) + " |"


def _plain(text: str) -> str:
    """A text that Markdown takes for no tag and no emphasis."""
    return text.replace("<", "&lt;").replace("*", "\\*")


def as_html(title: str, intro: str, sections: Sequence[Section]) -> str:
    """The same as one file: figures inside, every text escaped, no scripts, nothing fetched."""
    body = "\n".join(_html_section(section) for section in sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1><p>{escape(intro)}</p>{body}</body></html>\n"
    )


def _html_section(section: Section) -> str:
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in section.heads)
    lines = "".join("<tr>" + "".join(map(_html_cell, cells)) + "</tr>" for cells in section.cells)
    drawn = "".join(_html_figure(caption, path) for caption, path in section.figures.items())
    shown = f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'
    notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
    listed = f'<ul class="soft">{notes}</ul>' if notes else ""
    text = f"<h2>{escape(section.title)}</h2><p>{escape(section.text)}</p>"
    return f"{text}{shown if lines else ''}{listed}{drawn}"


def _html_cell(text: str) -> str:
    kinds = {"✓": "good", "✗": "bad", "≠": "soft"}
    kind = kinds.get(text[-1:], "")
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def _html_figure(caption: str, path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    picture = f'<img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"
