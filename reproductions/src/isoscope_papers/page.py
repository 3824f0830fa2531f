"""Write the results of a study as Markdown for the documentation, and as one self-contained HTML page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from isoscope.errors import FileError
from isoscope.io import write_atomically
from isoscope_papers.figures import Drawing
from isoscope_papers.verdict import Verdict

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
  font-variant-numeric: tabular-nums; }
th, td:not(.words) { white-space: nowrap; } .words { text-align: left; min-width: 14rem; }
th:first-child, td:first-child { text-align: left; }
.good { color: var(--good); } .bad { color: var(--bad); } .soft { color: var(--soft); }
figure { margin: 1.5rem 0; background: #fff; padding: .75rem; border: 1px solid var(--line); }
figure img { max-width: 100%; max-height: 25rem; display: block; margin: auto; }
figcaption { color: #555; font-size: .85rem; }
"""
_KINDS = {
    Verdict.HELD.mark: "good",
    Verdict.NOT_HELD.mark: "bad",
    Verdict.NOT_TESTABLE.mark: "soft",
}
_WORDS = 24  # letters from which a cell is text that may be broken into lines


@dataclass(frozen=True)
class Section:
    """A heading, an introduction, a table (heads, then rows of cells), notes, and figures."""

    title: str
    text: str = ""
    notes: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()
    figures: tuple[Drawing, ...] = ()


def make_folder(folder: Path) -> Path:
    """Make a folder where it is missing, and return it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made: {error.strerror or error}") from error
    return folder


def write_text(path: Path, text: str) -> Path:
    """Write a file atomically, and return its path."""
    return write_atomically(path, lambda place: place.write_text(text, encoding="utf-8"))


def as_markdown(
    title: str, intro: str, sections: Sequence[Section], *, command: str, figures: str = "."
) -> str:
    """Return a page in Markdown; `figures` is the relative path to the folder of figures."""
    lines = [f"<!-- written by `{command}`; do not edit -->", f"# {title}", "", plain(intro)]
    for section in sections:
        lines += ["", f"## {plain(section.title)}", "", plain(section.text)]
        if section.cells:
            lines += ["", *markdown_table(section.heads, section.cells)]
        lines += ["", *(f"- {plain(note)}" for note in section.notes)]
        for one in section.figures:
            caption, path = plain(one.caption), Path(figures, f"{one.stem}.png").as_posix()
            lines += ["", f"![{caption}]({path})", "", f"*{caption}.*"]
    return "\n".join(lines) + "\n"


def markdown_table(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [_line(heads), "|" + "---|" * len(heads), *map(_line, cells)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(plain(cell).replace("|", "\\|") for cell in cells) + " |"


def plain(text: str) -> str:
    """Escape characters that Markdown would read as a tag or as emphasis."""
    return text.replace("<", "&lt;").replace("*", "\\*")


def as_html(title: str, intro: str, sections: Sequence[Section], *, figures: Path) -> str:
    """Return a page in HTML with embedded figures, without scripts or external files."""
    body = "\n".join(_html_section(section, figures) for section in sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1><p>{escape(intro)}</p>{body}</body></html>\n"
    )


def _html_section(section: Section, folder: Path) -> str:
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in section.heads)
    lines = "".join("<tr>" + "".join(map(_html_cell, cells)) + "</tr>" for cells in section.cells)
    figures = "".join(_html_figure(one.caption, folder / f"{one.stem}.png") for one in section.figures)
    table = f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'
    notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
    listed = f'<ul class="soft">{notes}</ul>' if notes else ""
    text = f"<h2>{escape(section.title)}</h2><p>{escape(section.text)}</p>"
    return f"{text}{table if lines else ''}{listed}{figures}"


def _html_cell(text: str) -> str:
    kind = _KINDS.get(text[-1:]) or _KINDS.get(text[:1], "")
    classes = " ".join(part for part in (kind, "words" if len(text) > _WORDS else "") if part)
    return f'<td class="{classes}">{escape(text)}</td>' if classes else f"<td>{escape(text)}</td>"


def _html_figure(caption: str, path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    picture = f'<img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"
