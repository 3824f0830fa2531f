"""`Drawing`: a figure that a study declares, and that is drawn when the page is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.figures import INK, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHED = (0, (3, 1.5))
_STYLE: dict[str, Any] = {
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
}


@dataclass(frozen=True)
class Drawing:
    """A figure to be drawn.

    Attributes:
        caption: caption on the page.
        stem: stem of the file names.
        inches: width and height.
        draw: a function that draws on an empty figure, or returns another one.
        dpi: resolution of the .png.
    """

    caption: str
    stem: str
    inches: tuple[float, float]
    draw: Callable[[Figure], Figure | None]
    dpi: int = 300

    def save(self, folder: Path) -> Path:
        """Write STEM.pdf for a paper and STEM.png for a page, and return the latter."""
        with new_figure(self.inches) as figure:
            from matplotlib import rc_context  # new_figure has imported it: a page without figures need not

            with rc_context(_STYLE):  # type: ignore[arg-type]
                figure = self.draw(figure) or figure
                for suffix in (".pdf", ".png"):
                    path = save_figure(figure, folder / f"{self.stem}{suffix}", dpi=self.dpi)
        return path
