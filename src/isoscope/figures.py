"""How isoscope's figures look, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.errors import FileError, InputError
from isoscope.io.atomic import check_place, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#222222"
# told apart by readers who see no red or green, in grey too for neighbours
PALETTE = ("#1b6ca8", "#c4572e", "#3a9a6b", "#8a5fbf", "#b0892c", "#4aa5b8", "#b84a7d", "#6b6b6b")
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
    """An empty figure in isoscope's style, to be filled and saved inside."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "a figure needs matplotlib, which is not installed: pip install 'isoscope[figures]'"
        ) from None
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        yield Figure(figsize=inches, layout="constrained")


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
