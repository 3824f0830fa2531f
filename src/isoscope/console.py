"""Tables, lines and bars for terminals: styled by isoscope, never by the texts shown."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from isoscope.printable import printable
from isoscope.terminal import unguarded


class Terminal(Console):
    r"""A console that takes no text for markup and spells out what does not print.

    >>> from io import StringIO
    >>> page = StringIO()
    >>> Terminal(file=page).say("[red]one\x1b[31m line[/red]\n:bug:")
    >>> page.getvalue()
    '[red]one\\u001b[31m line[/red]\\n:bug:\n'
    """

    def __init__(self, *, stderr: bool = False, file: IO[str] | None = None, **options: Any) -> None:
        out = unguarded(sys.stderr if stderr else sys.stdout) if file is None else file
        super().__init__(file=out, markup=False, emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, where rich would end the process with exit code 1."""
        raise BrokenPipeError

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of what is shown, their texts spelled out."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text, keep="\n"))

    def say(self, line: str, *, whole: bool = False, style: str | None = None) -> None:
        """Print one paragraph, wrapped at the width unless `whole`."""
        self.print(printable(line), soft_wrap=whole, style=style)
