"""The style of figures, and how they are drawn and written to files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import FileError, InputError, not_installed
from isoscope.io.atomic import check_place, write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
# distinguishable for colour-blind readers; neighbours also differ in grey
PALETTE = ("#1b6ca8", "#c4572e", "#3a9a6b", "#8a5fbf", "#b0892c", "#4aa5b8", "#b84a7d", "#6b6b6b")
ONE_COLUMN = (3.4, 2.5)  # inches: one column of a paper
_STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


@contextmanager
def new_figure(inches: tuple[float, float]) -> Iterator[Figure]:
    """Yield an empty figure in the style of isoscope; draw and save it inside the `with` block."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise not_installed("A figure", "matplotlib", extra="figures") from None
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        yield Figure(figsize=inches, layout="constrained")


@contextmanager
def panels(
    n_rows: int,
    n_columns: int,
    inches: tuple[float, float],
    *,
    axes: Any = None,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    dpi: int = 300,
    **options: Any,
) -> Iterator[list[Axes]]:
    """Yield the Axes of all panels, row by row; write the figure to `path` at the end.

    Args:
        n_rows, n_columns: the number of rows and columns of panels.
        inches: the width and height of a new figure.
        axes: Axes to draw on, one for each panel, in any nesting; by default those of a new figure.
        path: the file to write; by default the figure is only drawn.
        title: the title above all panels.
        dpi: the resolution of a .png file.
        options: further options of `Figure.subplots`.
    """
    with new_figure(inches) as figure:
        if axes is None:
            axes = figure.subplots(n_rows, n_columns, squeeze=False, **options)
        flat: list[Axes] = np.asarray(axes, dtype=object).flatten().tolist()
        if len(flat) != n_rows * n_columns:
            raise InputError(
                argument="axes", got=len(flat), wanted=f"{n_rows * n_columns} Axes, one for each panel"
            )
        yield flat
        if title:
            figure_of(flat[0]).suptitle(title, fontsize=9, color=INK)
        if path is not None:
            save_figure(figure_of(flat[0]), Path(path), dpi=dpi)


def axes_for(ax: Axes | None, inches: tuple[float, float] = ONE_COLUMN) -> Axes:
    """Return `ax`, or the Axes of a new figure."""
    if ax is not None:
        return ax
    with new_figure(inches) as figure:
        return figure.subplots()


def figure_of(ax: Axes) -> Figure:
    """Return the figure that Axes belong to."""
    figure: Any = ax.figure
    return figure.figure  # the root figure of a SubFigure


def save_figure(figure: Figure, path: Path, *, dpi: int = 300) -> Path:
    """Write a figure in the format of the suffix: .png, .pdf, .svg or another one of matplotlib."""
    kinds = figure.canvas.get_supported_filetypes()
    kind = path.suffix.removeprefix(".").lower()
    if kind not in kinds:
        raise FileError(
            f"the name of a figure must end in one of {', '.join(sorted(kinds))}, got {str(path)!r}"
        )
    check_place(path)
    metadata = {"CreationDate": None} if kind == "pdf" else None  # equal figures give equal files
    return write_atomically(
        path, lambda beside: figure.savefig(beside, dpi=dpi, format=kind, metadata=metadata)
    )
