"""The style of isoscope's figures, and the one way they are drawn and written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.errors import FileError, InputError
from isoscope.io.atomic import check_place, write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
# told apart by readers who see no red or green, in grey too for neighbours
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
    """Yield an empty figure in isoscope's style, to be filled and saved inside."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "a figure needs matplotlib, which is not installed: pip install 'isoscope[figures]'"
        ) from None
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
    """Yield Axes to draw on, row by row: the caller's, or those of a new figure, which is written to `path`.

    Args:
        n_rows, n_columns: of the panels.
        inches: width and height of a new figure.
        axes: the caller's Axes, as many as there are panels, in any nesting.
        path: where to write the figure they are on; only drawn where not given.
        title: above all panels.
        dpi: of a .png.
        options: of `Figure.subplots`.
    """
    with new_figure(inches) as figure:
        if axes is None:
            axes = figure.subplots(n_rows, n_columns, squeeze=False, **options)
        flat: list[Axes] = np.asarray(axes, dtype=object).flatten().tolist()
        if len(flat) != n_rows * n_columns:
            raise InputError(f"axes: {n_rows * n_columns} panels are drawn, got {len(flat)} Axes.")
        yield flat
        if title:
            figure_of(flat[0]).suptitle(title, fontsize=9, color=INK)
        if path is not None:
            save_figure(figure_of(flat[0]), Path(path), dpi=dpi)


def axes_for(ax: Axes | None, inches: tuple[float, float] = ONE_COLUMN) -> Axes:
    """Return the caller's Axes, or those of a new figure (`ax.figure`)."""
    if ax is not None:
        return ax
    with new_figure(inches) as figure:
        return figure.subplots()


def figure_of(ax: Axes) -> Figure:
    """Return the whole figure that Axes belong to."""
    figure: Any = ax.figure
    return figure.figure  # of a SubFigure, the figure it is part of


def save_figure(figure: Figure, path: Path, *, dpi: int = 300) -> Path:
    """Write .png, .pdf, .svg or another kind matplotlib knows, by the path's suffix; all or nothing."""
    kinds = figure.canvas.get_supported_filetypes()
    kind = path.suffix.removeprefix(".").lower()
    if kind not in kinds:
        raise FileError(f"{path} is of a kind that is not drawn; wanted one of {', '.join(sorted(kinds))}")
    check_place(path)
    undated = {"CreationDate": None} if kind == "pdf" else None  # the same figure, the same file
    return write_atomically(
        path, lambda beside: figure.savefig(beside, dpi=dpi, format=kind, metadata=undated)
    )
