"""The figure of *Should I whiten?*: what every correction gains on every task, a panel an encoder."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from isoscope.figures import INK, new_figure, save_figure
from isoscope_papers.corrections.run import Outcome
from isoscope_papers.corrections.tallies import GROUPS, HELPS, HURTS, corrections_of, tries

_DARK = 0.5  # of the last colour: dots are white from here on
_MOST = 0.15  # gains beyond are drawn in the last colour
CAPTION = (
    "What each correction gains over none on held-out items; purple is a loss, orange a gain, beyond ±0.15 "
    "in the last colour; a dot where it is significant after Holm's adjustment"
)


def draw_figures(outcomes: Sequence[Outcome], folder: Path) -> dict[str, Path]:
    """Write `corrections-gains` as .png and .pdf: where the .png lies, by its caption."""
    if not outcomes:
        return {}
    stem = folder / "corrections-gains"
    columns = _columns(outcomes)
    with new_figure((7.4, 0.9 + 1.75 * len(outcomes))) as figure:
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
            panel.set_title(found.title, loc="left", color=INK, pad=14 if panel is panels[0] else 6)
            panel.tick_params(length=0)
            panel.spines[:].set_visible(False)
            for edge in _edges(columns):
                panel.axvline(edge - 0.5, color="white", linewidth=2)
        for first, last in itertools.pairwise([0, *_edges(columns), len(columns)]):
            panels[0].text(
                (first + last - 1) / 2, -0.8, columns[first][0], ha="center", fontsize=6.5, color=INK
            )
        panels[-1].set_xticks(range(len(columns)), [c[2] for c in columns], rotation=90, fontsize=5.5)
        figure.colorbar(image, ax=list(panels), label="gain", shrink=0.5, extend="both")
        for suffix in (".pdf", ".png"):
            written = save_figure(figure, stem.with_suffix(suffix), dpi=200)
    return {CAPTION: written}


def _columns(outcomes: Sequence[Outcome]) -> list[tuple[str, str, str]]:
    """Group, data set and its title, of all that any setup has."""
    found = {}
    for group in GROUPS:
        for one in outcomes:
            for name in corrections_of(one)[:1]:
                for result, _ in tries(one, group, name):
                    found[group, result.dataset] = result.title
    return [(group, name, title) for (group, name), title in found.items()]


def _edges(columns: Sequence[tuple[str, str, str]]) -> list[int]:
    return [i for i in range(1, len(columns)) if columns[i][0] != columns[i - 1][0]]


def _gains(
    found: Outcome, names: Sequence[str], columns: Sequence[tuple[str, str, str]]
) -> tuple[np.ndarray, np.ndarray]:
    """(corrections, columns) gains, NaN where none, and where they are significant."""
    gains = np.full((len(names), len(columns)), np.nan)
    marks = np.zeros(gains.shape, dtype=bool)
    place = {(group, name): i for i, (group, name, _) in enumerate(columns)}
    for row, correction in enumerate(names):
        for group in GROUPS:
            for result, one in tries(found, group, correction):
                if one.gain is not None:
                    at = place[group, result.dataset]
                    gains[row, at] = one.gain
                    marks[row, at] = one.verdict in (HELPS, HURTS)
    return gains, marks
