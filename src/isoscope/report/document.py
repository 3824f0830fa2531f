"""`report`: one page about a space."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoscope.engine.kept import shelf_of
from isoscope.engine.readings import Readings, View
from isoscope.errors import FileError, InputError, Setting, check_seed, not_installed
from isoscope.figures import ONE_COLUMN, new_figure
from isoscope.io.atomic import check_place, why, write_atomically
from isoscope.io.targets import PAGE, check_target
from isoscope.measurement import Measurement
from isoscope.queries.opened import columns_of, queries_beside
from isoscope.report.contents import contents
from isoscope.report.evidence import Evidence, gather
from isoscope.report.page import assemble
from isoscope.report.plots import write_figures
from isoscope.report.runs import load_run
from isoscope.tables import Grid
from isoscope.tracking.trajectory import Trajectory

if TYPE_CHECKING:
    from isoscope.report.notebook_widget import ReportWidget


@dataclass(frozen=True, eq=False, repr=False)
class Report(View):
    """A page about one space; `save` writes it to a file.

    Attributes:
        html: the page, self-contained.
        contents: the data in the page, by section.
        measurement: the readings in its table.
        evidence: everything that was computed for it.
        path: the file it was written to; None where it was not written.
        figures: the files of the plots that were written.
    """

    html: str = field(repr=False)
    contents: dict[str, Any] = field(repr=False)
    measurement: Measurement = field(repr=False)
    evidence: Evidence = field(repr=False)
    path: Path | None = None
    figures: tuple[Path, ...] = ()

    @property
    def readings(self) -> Readings:
        """The readings in its table."""
        return self.measurement.readings

    @property
    def title(self) -> str:
        """What was measured, in one line."""
        return self.measurement.title

    def grids(self) -> Iterable[Grid]:
        """Return the table of readings."""
        return self.measurement.grids()

    def lines(self) -> list[str]:
        """Return the headline, and the path of the page."""
        sentences = [sentence.replace("\u00a0", " ") for sentence in self.headline]
        return [*sentences, *([] if self.path is None else [f"wrote {self.path}"])]

    def to_dict(self) -> dict[str, Any]:
        """Return the data in the page."""
        return self.contents

    def _html(self) -> str:
        """Return the page."""
        return self.html

    def _repr_html_(self) -> str:
        """Return the page in a sandboxed frame, so that its scripts cannot reach the notebook."""
        page = escape(self.html)
        style = "width:100%;height:800px;border:0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    @property
    def headline(self) -> list[str]:
        """Two to four sentences that describe the space."""
        return list(self.contents["headline"])

    @property
    def thresholds(self) -> dict[str, Any] | None:
        """The similarity thresholds; None where no two vectors have a direction.

        `one_percent` and `one_permille` are the cosines that this share of random pairs exceeds, None where
        there are too few pairs to tell. `best` has the threshold between pairs of the same label and other
        pairs that has the best balanced accuracy, with the shares of both above it, the precision and the
        AUC; None without labels. `queries` has the cosines that as many pairs of a query and a row that is
        not relevant to it exceed; None without queries. `is_exact` is whether all pairs were used, and
        `n_pairs` how many of each kind; where not all were used, they were drawn at random.
        """
        cosines = self.contents["cosines"]
        if cosines is None:
            return None
        shares = {name: cosines[name] if known else None for name, known in cosines["knows"].items()}
        searched = self.contents["search"]
        queries = searched and {one["name"]: one["cosine"] for one in searched["thresholds"]}
        rest = {name: cosines[name] for name in ("best", "is_exact", "n_pairs")}
        return {**shares, "queries": queries, **rest}

    @property
    def n_bytes(self) -> int:
        """The size of the page."""
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
            raise not_installed("A widget", "anywidget", extra="widget") from None
        if self.contents["what_if"] is None:
            raise InputError(
                "varies along fewer than 2 directions", argument="X", wanted="2 or more for a widget"
            )
        return ReportWidget(self.contents)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file and return its path; a failed write leaves no partial file."""
        place = check_target(path, PAGE)
        return write_atomically(place, lambda beside: beside.write_text(self.html, encoding="utf-8"))


def report(
    X: Any,
    labels: Any = None,
    *,
    queries: Any = None,
    relevance: Any = None,
    ids: str | None = None,
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
    """Make a page about a space: text, numbers, charts, and the effect of corrections.

    The page is one HTML file that loads nothing. Its scatter plot shows at most 3,000 points and its
    histograms at most 200,000 pairs of each kind, drawn at random; the page says so. Texts and labels are
    shown as text and are never executed.

    Args:
        X: (n, d) vectors in any array, a path, a data frame, a Space, an opened file (`open_vectors`,
            `open_texts`), or a Measurement, whose readings are shown and whose statistics are used again.
        labels: one label for each row, or the name of a column of X or of a file.
        queries: vectors that search the rows of X: similarity thresholds are then also those of a query and
            a row, and hubs those of the queries.
        relevance: which rows are relevant to a query, as `isoscope.queries.as_queries` takes it: thresholds
            are then those of rows that are not relevant, and the page says how well the others are found.
        ids: the column of X and of the queries that the pairs of the relevance name.
        texts: one text for each row, shown beside its point, or the name of a column of X or of a file.
        path: the .html file to write; by default nothing is written, and `save` of the result writes it.
        title: the title of the page; by default the name of the space.
        run: the folder of a training run, or a Trajectory, whose curves are shown too.
        figures: a folder for the plots as PDF and PNG (needs matplotlib).
        seed: the seed of everything that is sampled.
        progress: show a progress bar; None shows it on a terminal.
        vectors: the column of a table that holds the vectors, where it has several.
        device: where to compute, such as "cuda", or several devices, as in `measure`; by default where the
            vectors are.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 8))
    >>> made = report(X, labels=X[:, 0] > 0, title="Noise")
    >>> made.headline[0]
    'The variance is spread almost evenly, so the space is close to isotropic: ...'
    """
    check_seed(seed)
    place = None if path is None else check_target(path, PAGE)
    folder = None if figures is None else _figure_folder(figures)
    trajectory = None if run is None else load_run(run)
    if isinstance(labels, str) and labels.lower().endswith((".html", ".htm")):
        raise InputError(
            argument="labels",
            got=labels,
            wanted="the labels of the rows",
            hint=Setting("path", labels, to="write the page"),
        )
    apart = [side[1] for side in columns_of(relevance, ids)]
    shelf = shelf_of(X, seed=seed, vectors=vectors, device=device, apart=apart, labels=labels, texts=texts)
    if shelf.space.weights is not None:
        raise InputError(
            "has weights, and a report counts every vector once", argument="X", hint="leave the weights out"
        )
    asked = queries_beside(
        X, queries, shelf.space, relevance=relevance, ids=ids, vectors=vectors, apart=apart
    )
    is_measured = isinstance(X, Measurement) and labels is None and seed == X.seed
    evidence = gather(shelf, X if is_measured else None, run=trajectory, queries=asked, progress=progress)
    shown = contents(evidence, title=title, progress=progress)
    made = Report(assemble(shown), shown, evidence.measurement, evidence)
    if folder is not None:
        made = replace(made, figures=tuple(write_figures(evidence, folder)))
    return made if place is None else replace(made, path=made.save(place))


def widget(
    X: Any,
    labels: Any = None,
    *,
    texts: Any = None,
    title: str | None = None,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | None = None,
    device: Any = None,
) -> ReportWidget:
    """Show a space in a notebook: sliders for corrections, and points to select.

    Moving a slider removes principal directions or whitens, and updates the numbers and pictures at once. The
    rows of selected points are in `selected`, in Python: `texts[row] for row in w.selected`. At most 3,000
    points are shown, drawn at random.

    Args:
        X: (n, d) vectors, in any form that `report` takes.
        labels: one label for each row, or the name of a column of X or of a file.
        texts: the text of each row, shown beside its point, or the name of a column of X or of a file.
        title: by default the name of the space.
        seed: the seed of everything sampled.
        progress: show a progress bar; None shows it on a terminal.
        vectors: the column of a table that holds the vectors, where it has several.
        device: the device to compute on, such as "cuda", or several, as in `measure`; by default that of the
            vectors.

    Raises:
        InputError: anywidget is not installed; `pip install 'isoscope[widget]'` installs it.
    """
    options = {"title": title, "seed": seed, "progress": progress, "vectors": vectors, "device": device}
    return report(X, labels=labels, texts=texts, **options).widget()


def _figure_folder(figures: str | os.PathLike[str]) -> Path:
    """Make the folder for the plots, after checking that they can be drawn."""
    with new_figure(ONE_COLUMN):
        pass
    folder = Path(figures)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the folder {folder} cannot be created: {why(error)}") from error
    check_place(folder / "spectrum.pdf")
    return folder
