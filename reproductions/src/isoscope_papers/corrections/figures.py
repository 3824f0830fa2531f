"""The figure of *Should I whiten?*: what every correction gains on every task, a panel an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from isoscope.figures import INK
from isoscope_papers.corrections.run import Outcome
from isoscope_papers.corrections.tallies import GROUPS, HELPS, HURTS, corrections_of, tries
from isoscope_papers.figures import Drawing

_DARK = 0.5  # of the last colour: dots are white from here on
_MOST = 0.15  # gains beyond are drawn in the last colour
_CAPTION = (
    "What each correction gains over none on held-out items; purple is a loss, orange a gain, beyond ±0.15 "
    "in the last colour; a dot where it is significant after Holm's adjustment"
)


def gains_figure(outcomes: Sequence[Outcome]) -> Drawing:
    """Return the gains of all encoders."""
    inches = (7.4, 0.9 + 1.75 * len(outcomes))
    return Drawing(_CAPTION, "corrections-gains", inches, partial(_draw, outcomes), dpi=200)


def _draw(outcomes: Sequence[Outcome], figure: Figure) -> None:
    columns = _columns(outcomes)
    edges = [i for i in range(1, len(columns)) if columns[i][0] != columns[i - 1][0]]
    panels = figure.subplots(len(outcomes), 1, sharex=True, squeeze=False)[:, 0]
    for panel, found in zip(panels, outcomes, strict=True):
        names = corrections_of(found)
        gains, marks = _gains(found, names, columns)
        image = panel.imshow(gains, cmap="PuOr_r", vmin=-_MOST, vmax=_MOST, aspect="auto")
        is_dark = np.abs(gains) > _DARK * _MOST
        for which, color in ((marks & ~is_dark, INK), (marks & is_dark, "white")):
            rows, places = np.nonzero(which)
            panel.plot(places, rows, ".", color=color, markersize=2.6)
        panel.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], fontsize=5.5)
        panel.set_title(found.title, pad=14 if panel is panels[0] else 6)
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        for edge in edges:
            panel.axvline(edge - 0.5, color="white", linewidth=2)
    for first, last in pairwise([0, *edges, len(columns)]):
        panels[0].text((first + last - 1) / 2, -0.8, columns[first][0], ha="center", fontsize=6.5, color=INK)
    panels[-1].set_xticks(range(len(columns)), [title for *_, title in columns], rotation=90, fontsize=5.5)
    figure.colorbar(image, ax=list(panels), label="gain", shrink=0.5, extend="both")


def _columns(outcomes: Sequence[Outcome]) -> list[tuple[str, str, str]]:
    """Return group, data set and its title, of all that any setup has."""
    found = {
        (group, result.dataset): result.title
        for group in GROUPS
        for one in outcomes
        for name in corrections_of(one)[:1]
        for result, _ in tries(one, group, name)
    }
    return [(group, name, title) for (group, name), title in found.items()]


def _gains(
    found: Outcome, names: Sequence[str], columns: Sequence[tuple[str, str, str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return (corrections, columns) gains, NaN where none, and where they are significant."""
    gains = np.full((len(names), len(columns)), np.nan)
    marks = np.zeros(gains.shape, dtype=bool)
    for at, (group, dataset, _) in enumerate(columns):
        for row, correction in enumerate(names):
            for result, one in tries(found, group, correction):
                if result.dataset == dataset and one.gain is not None:
                    gains[row, at] = one.gain
                    marks[row, at] = one.verdict in (HELPS, HURTS)
    return gains, marks
