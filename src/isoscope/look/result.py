"""`Look`: what `look` returns, as text, HTML, JSON and data frames."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope._version import __version__
from isoscope.engine.readings import Readings, View
from isoscope.look.finding import Example, Finding
from isoscope.look.references import nearest_and_ends
from isoscope.metrics.thresholds import SEVERITIES, threshold_of
from isoscope.printable import printable
from isoscope.tables import Grid, escaped

if TYPE_CHECKING:
    from rich.text import Text

    from isoscope.console import Terminal

_STYLES = {"serious": "red", "moderate": "yellow", "unclear": "cyan", "healthy": "green"}
_COLORS = {"serious": "#c0392b", "moderate": "#b7791f", "unclear": "#2b7a8c", "healthy": "#2e7d4f"}
_INDENT = 11  # of all lines of a finding but the first: as wide as the severity
_WIDEST = 100  # characters of a line of prose
_ROWS, _TEXTS = 6, 2  # of an example that a line shows
_LONGEST = 60  # characters of a text


class Findings(View):
    """A result that consists of findings.

    Attributes:
        findings: the worst first.
    """

    if TYPE_CHECKING:  # fields of those that are built on it

        @property
        def findings(self) -> tuple[Finding, ...]:
            """The findings."""

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(f"there is no finding {name!r}; there are {', '.join(f.name for f in self.findings)}")

    @property
    def detailed(self) -> tuple[Finding, ...]:
        """The findings that are written out."""
        return self.findings

    def grids(self) -> Iterable[Grid]:
        """Return no tables: the findings are written out."""
        return ()

    @property
    def verdict(self) -> str:
        """How many findings there are of each severity, in one sentence."""
        counts = Counter(finding.severity for finding in self.findings)
        if not counts["serious"] and not counts["moderate"]:
            return "Nothing stands out."
        listed = [f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity]]
        return f"{len(self.findings)} findings: {', '.join(listed)}."

    def show(self, console: Terminal | None = None) -> None:
        """Print the findings to the terminal, at its width; commands stay on one line."""
        from rich.text import Text

        from isoscope.console import Terminal

        console = console or Terminal()
        width = min(console.width, _WIDEST)
        console.say(self.title, style="bold")
        console.say(self.verdict)
        for grid in self.grids():
            console.print(grid.to_rich(console.width))
        for finding in self.detailed:
            console.print()
            style = _STYLES[finding.severity]
            _print(
                console,
                finding.headline,
                width,
                "bold",
                Text(f"{finding.severity:<{_INDENT}}", f"bold {style}"),
            )
            if comparison(finding):
                console.print(_compared(finding, width), soft_wrap=True)
            _print(console, finding.meaning, width)
            for example in finding.examples:
                _print(console, shown_example(example), width, "dim")
            step = Text.assemble(("try".ljust(_INDENT), "dim"), (str(finding.step), "cyan"))
            console.print(step, soft_wrap=True)
        console.print()
        for line in self.lines():
            for part in textwrap.wrap(line, width):
                console.print(Text(part, "dim"))

    def _html(self) -> str:
        """Return the findings as HTML."""
        grids = "".join(grid.to_html() for grid in self.grids())
        rows = "".join(map(_html, self.detailed))
        lines = "".join(f"<p><small>{escaped(line)}</small></p>" for line in self.lines())
        return (
            f"<p><strong>{escaped(self.title)}</strong><br>{escaped(self.verdict)}</p>{grids}"
            f'<table style="max-width:60em">{rows}</table>{lines}'
        )


@dataclass(frozen=True, repr=False)
class Look(Findings):
    """The findings of a first look, the worst first.

    Attributes:
        findings: one for each question asked.
        readings: every number, one row a reading; the column `rows` has how many rows it is from.
        name: what was looked at.
        n: vectors. d: dimensions. n_labels: distinct labels, or None.
        n_sampled: rows drawn for neighbours; n where all were taken.
        dtype: what the vectors are held as.
        notes: how the input was read.
        seed: of the sample.
        seconds: how long it took.
    """

    findings: tuple[Finding, ...]
    readings: Readings
    name: str | None
    n: int
    d: int
    n_labels: int | None
    n_sampled: int
    dtype: str
    notes: tuple[str, ...]
    seed: int
    seconds: float

    @property
    def title(self) -> str:
        """What was looked at, in one line."""
        labels = f", {self.n_labels:,} labels" if self.n_labels else ""
        return f"{self.name or 'space'}: {self.n:,} vectors × {self.d:,} dimensions ({self.dtype}){labels}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        return {
            "isoscope": __version__,
            "name": self.name,
            "n": self.n,
            "d": self.d,
            "n_labels": self.n_labels,
            "n_sampled": self.n_sampled,
            "dtype": self.dtype,
            "seed": self.seed,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def lines(self) -> list[str]:
        """Return what was sampled, and the notes."""
        sampled = (
            f"Neighbours: searched among {self.n_sampled:,} of {self.n:,} rows, drawn at random "
            f"(seed {self.seed}). Everything else: all rows."
            if self.n_sampled < self.n
            else f"Everything was computed from all {self.n:,} rows."
        )
        is_command = any(finding.step.is_command for finding in self.findings)
        advise = "isoscope advise FILE --labels LABELS" if is_command else "iso.advise(X, labels=labels)"
        return [
            f"{sampled} ± is half of a 95 % interval.",
            "Comparisons run from the lowest value to the highest; each name is a model and what it encoded.",
            f"The thresholds are rules of thumb; `{advise}` tests whether a correction helps your task.",
            *(f"note: {note}" for note in self.notes),
        ]


def comparison(finding: Finding) -> list[tuple[str, str, bool]]:
    """Return the names and numbers that a line compares, in order of size; the caller's is marked True."""
    value = finding.reading.value
    if value is None or not finding.references:
        return []
    shown, more = nearest_and_ends(finding.references, value), finding.more_decimals
    entries: dict[str, tuple[float, str, bool]] = {}
    for name, number in shown.items():  # numbers that are written alike are shown once
        if finding.write(number, more) != finding.write(value, more):
            entries.setdefault(finding.write(number), (number, name, False))
    ordered = sorted([*entries.values(), (value, "yours", True)], key=lambda entry: entry[0])
    return [(name, finding.text if own else finding.write(number), own) for number, name, own in ordered]


def shown_example(example: Example) -> str:
    """Return an example in one line: its rows, what is said of them, and the first texts."""
    numbers = ", ".join(f"{row:,}" for row in example.rows[:_ROWS]) + (
        ", …" if len(example.rows) > _ROWS else ""
    )
    parts = [f"{'row' if len(example.rows) == 1 else 'rows'} {numbers}", example.detail]
    texts = [f"“{_shortened(text)}”" for text in dict.fromkeys(example.texts)]
    return ": ".join([", ".join(filter(None, parts)), *([" · ".join(texts[:_TEXTS])] if texts else [])])


def _shortened(text: str) -> str:
    """Return a text in one line that prints."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"


def _quantity(finding: Finding) -> str:
    """Return what is compared, and which end is a finding."""
    threshold = threshold_of(finding.name)
    return f"{finding.quantity} ({'high' if threshold.serious > threshold.moderate else 'low'} is flagged)"


def _compared(finding: Finding, width: int) -> Text:
    """Return the quantity, and the caller's number among those of known spaces, wrapped at the width."""
    from rich.text import Text

    indent = " " * _INDENT
    text = Text(f"{indent}{_quantity(finding)}:")
    at, compared = len(text), comparison(finding)
    for place, (name, number, own) in enumerate(compared, 1):
        part = f" {name} {number}{' ·' if place < len(compared) else ''}"
        if at + len(part) > width:
            text.append(f"\n{indent}")
            at, part = _INDENT, part[1:]
        text.append(part, "bold" if own else "dim")
        at += len(part)
    return text


def _print(console: Terminal, line: str, width: int, style: str = "", before: Text | None = None) -> None:
    from rich.text import Text

    for place, part in enumerate(textwrap.wrap(line, width - _INDENT)):
        start = before if before is not None and not place else Text(" " * _INDENT)
        console.print(Text.assemble(start, (part, style)), soft_wrap=True)


def _html(finding: Finding) -> str:
    parts = [
        f"<b>{escaped(name)} {escaped(number)}</b>" if own else escaped(f"{name} {number}")
        for name, number, own in comparison(finding)
    ]
    compared = f"{escaped(_quantity(finding))}: {' · '.join(parts)}<br>" if parts else ""
    examples = "".join(f"<small>{escaped(shown_example(one))}</small><br>" for one in finding.examples)
    color = _COLORS[finding.severity]
    cell = "text-align:left;vertical-align:top"
    return (
        f'<tr><td style="{cell};color:{color}"><b>{finding.severity}</b></td><td style="{cell}">'
        f"<b>{escaped(finding.headline)}</b><br>{compared}"
        f"{escaped(finding.meaning)}<br>{examples}<code>{escaped(str(finding.step))}</code></td></tr>"
    )
