"""`report`: a space on one page, and the figures of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.engine.kept import shelf_of
from isoscope.engine.readings import Readings, View
from isoscope.errors import FileError, InputError, check_seed
from isoscope.figures import ONE_COLUMN, new_figure
from isoscope.io.atomic import check_place, why, write_atomically
from isoscope.measurement import Measurement
from isoscope.report.contents import contents
from isoscope.report.evidence import Evidence, gather
from isoscope.report.page import assemble
from isoscope.report.plots import write_figures
from isoscope.report.runs import load_run
from isoscope.tables import Grid
from isoscope.tracking.trajectory import Trajectory

if TYPE_CHECKING:
    from isoscope.report.notebook_widget import ReportWidget

_SUFFIXES = (".html", ".htm")


@dataclass(frozen=True, eq=False, repr=False)
class Report(View):
    """A page about one space, made; `save` writes it.

    Attributes:
        html: the page, self-contained.
        contents: what is embedded in it, section by section.
        measurement: the readings in its table.
        path: where it was written; None where it was not.
        figures: the files of the figures that were written.
    """

    html: str = field(repr=False)
    contents: dict[str, Any] = field(repr=False)
    measurement: Measurement = field(repr=False)
    evidence: Evidence = field(repr=False)
    path: Path | None = None
    figures: tuple[Path, ...] = ()

    @property
    def readings(self) -> Readings:
        """The readings of its table."""
        return self.measurement.readings

    @property
    def title(self) -> str:
        """What was measured, in one line."""
        return self.measurement.title

    def grids(self) -> Iterable[Grid]:
        """Return the table of its readings."""
        return self.measurement.grids()

    def lines(self) -> list[str]:
        """Return the headline, and where the page was written."""
        sentences = [sentence.replace("\u00a0", " ") for sentence in self.headline]
        return [*sentences, *([] if self.path is None else [f"wrote {self.path}"])]

    def to_dict(self) -> dict[str, Any]:
        """Return what is embedded in the page."""
        return self.contents

    def to_html(self) -> str:
        """Return the page."""
        return self.html

    def _repr_html_(self) -> str:
        """Return the page in a frame that keeps its scripts from the notebook."""
        page = escape(self.html)
        style = "width:100%;height:800px;border:0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    @property
    def headline(self) -> list[str]:
        """What the space is like, in sentences."""
        return list(self.contents["headline"])

    @property
    def n_bytes(self) -> int:
        """The page's weight."""
        return len(self.html.encode())

    def widget(self) -> ReportWidget:
        """Return a notebook widget: the page's sliders, and points whose selection is `widget.selected`.

        Raises:
            InputError: anywidget is not installed, or there is nothing to show: fewer than 2 directions.
        """
        try:
            from isoscope.report.notebook_widget import ReportWidget
        except ModuleNotFoundError as error:
            if error.name not in ("anywidget", "traitlets"):
                raise
            raise InputError(
                "A widget needs anywidget, which is not installed", hint="pip install 'isoscope[widget]'"
            ) from None
        if self.contents["what_if"] is None:
            raise InputError(
                "varies along fewer than 2 directions", argument="X", wanted="2 or more for a widget"
            )
        return ReportWidget(self.contents)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; all or nothing."""
        place = check_page(path)
        return write_atomically(place, lambda beside: beside.write_text(self.html, encoding="utf-8"))


def report(
    X: Any,
    *,
    labels: Any = None,
    texts: Any = None,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    run: str | os.PathLike[str] | Trajectory | None = None,
    figures: str | os.PathLike[str] | None = None,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | None = None,
    device: Any = None,
) -> Report:
    """Write a page about a space: words, numbers and pictures, and what corrections would do.

    One HTML file that opens anywhere and loads nothing. Points beyond 3,000 are sampled for pictures, pairs
    beyond 200,000 for cosines; the page says so. Texts and labels are shown, never run.

    Args:
        X: (n, d) vectors in any array, a path, a data frame, a Space, an opened file (`open_vectors`,
            `open_texts`), or a Measurement: the page shows its readings, and what it has computed is not
            computed again.
        labels: one label a row, or the name of a column of X or of a file.
        texts: the text of each row, shown beside its point, or the name of a column of X or of a file.
        path: where to write the page, .html; without it, call `save` on what is returned.
        title: of the page; by default the space's name.
        run: the folder of a training run, or a Trajectory: its curves are shown too.
        figures: a folder for the same plots as PDF and PNG (needs matplotlib).
        seed: of everything sampled.
        progress: show a progress bar; None shows it on a terminal.
        vectors: the column of a table that holds the vectors, where it has several.
        device: where to compute, such as "cuda"; by default where the vectors are.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 8))
    >>> made = report(X, labels=X[:, 0] > 0, title="Noise")
    >>> made.headline[0]
    'Of 8 dimensions the variance fills about 8 and is spread over them almost evenly, ...'
    """
    check_seed(seed)
    place = None if path is None else check_page(path)
    folder = None if figures is None else _figure_folder(figures)
    followed = None if run is None else load_run(run)
    shelf = shelf_of(X, seed=seed, vectors=vectors, device=device, labels=labels, texts=texts)
    if shelf.space.weights is not None:
        raise InputError(
            "has weights, and a report counts every vector once", argument="X", hint="leave the weights out"
        )
    is_measured = isinstance(X, Measurement) and labels is None and seed == X.seed
    evidence = gather(shelf, X if is_measured else None, run=followed, progress=progress)
    shown = contents(evidence, title=title, progress=progress)
    made = Report(assemble(shown), shown, evidence.measurement, evidence)
    if folder is not None:
        made = replace(made, figures=tuple(write_figures(evidence, folder)))
    return made if place is None else replace(made, path=made.save(place))


def widget(
    X: Any,
    *,
    labels: Any = None,
    texts: Any = None,
    title: str | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> ReportWidget:
    """Show a space in a notebook: sliders for corrections, and points to select.

    Moving a slider removes principal directions or whitens, and updates the numbers and pictures at once. The
    rows of selected points are in `selected`, in Python: `texts[row] for row in w.selected`. At most 3,000
    points are shown, drawn at random.

    Args:
        X: (n, d) vectors, in any form that `report` takes.
        labels: one label for each row.
        texts: the text of each row, shown beside its point.
        title: by default the name of the space.
        seed: the seed of everything sampled.
        progress: show a progress bar; None shows it on a terminal.

    Raises:
        InputError: anywidget is not installed; `pip install 'isoscope[widget]'` installs it.
    """
    return report(X, labels=labels, texts=texts, title=title, seed=seed, progress=progress).widget()


def check_page(path: str | os.PathLike[str]) -> Path:
    """Return where a page is to be written, tried before the work."""
    place = Path(path)
    if place.suffix.lower() not in _SUFFIXES:
        raise FileError(f"{place} has the suffix {place.suffix!r}; wanted a page, such as report.html")
    check_place(place)
    return place


def _figure_folder(figures: str | os.PathLike[str]) -> Path:
    """Make the folder of the figures; whether they can be drawn is found out before the work."""
    with new_figure(ONE_COLUMN):
        pass
    folder = Path(figures)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be made a folder for figures: {why(error)}") from error
    check_place(folder / "spectrum.pdf")
    return folder
