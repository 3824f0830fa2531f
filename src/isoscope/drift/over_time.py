"""`drift_over_time`: each window of time of one file against the first, or against the one before."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from isoscope._version import __version__
from isoscope.drift.drift import N_PERMUTATIONS, TOLERATE, compare_snapshots
from isoscope.drift.result import Drift
from isoscope.drift.snapshot import SAMPLE, Snapshot
from isoscope.drift.windows import windows_of
from isoscope.engine.kept import rows_of, shelf_of
from isoscope.engine.readings import Readings, View
from isoscope.engine.sliced_measurement import shown_p_value
from isoscope.engine.slices import holm
from isoscope.errors import InputError, check_choice
from isoscope.labels import as_labels
from isoscope.progress import Bar
from isoscope.tables import Cell, Grid, percent, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGAINST = ("first", "previous")
_FEWEST = 20  # rows of a window that is compared


@dataclass(frozen=True, repr=False)
class DriftOverTime(View):
    """The drift of each window of time.

    Attributes:
        name: what was measured.
        date: the column of dates.
        every: how long a window is.
        against: what each window is compared with, "first" or "previous".
        drifts: one for each window but the first, in the order of time; their p-values are adjusted by Holm's
            method for the number of windows.
        left_out: windows of fewer than 20 rows, which are not compared, with their rows.
        n: rows.
        snapshots: those of the windows, by name, to be saved.
    """

    name: str
    date: str
    every: str
    against: str
    drifts: tuple[Drift, ...]
    left_out: dict[str, int]
    n: int
    snapshots: dict[str, Snapshot]

    def __getitem__(self, window: str) -> Drift:
        for one in self.drifts:
            if one.name_b == window:
                return one
        raise KeyError(f"{window!r} is not one of {', '.join(one.name_b for one in self.drifts)}")

    def __len__(self) -> int:
        return len(self.drifts)

    @property
    def alarm(self) -> bool:
        """Whether any window drifted above what is tolerated."""
        return any(one.alarm for one in self.drifts)

    @property
    def readings(self) -> Readings:
        """The readings of every window."""
        return Readings(
            [
                replace(row, group={"window": one.name_b, **row.group})
                for one in self.drifts
                for row in one.rows
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        return {
            "isoscope": __version__,
            "name": self.name,
            "date": self.date,
            "every": self.every,
            "against": self.against,
            "n": self.n,
            "alarm": self.alarm,
            "left_out": self.left_out,
            "windows": [one.to_dict() for one in self.drifts],
        }

    @property
    def title(self) -> str:
        """What was compared, in one line."""
        first = self.drifts[0].name_a
        than = f"the first ({first})" if self.against == "first" else "the one before"
        return f"{self.name}: {self.n:,} rows; every {self.every} by {self.date}, against {than}"

    @property
    def opening(self) -> str:
        """How many windows drifted."""
        above = [one.name_b for one in self.drifts if one.alarm]
        tolerated = f"tolerated {percent(self.drifts[0].tolerate, 1)}"
        if not above:
            return f"no {self.every} of {len(self)} drifted above what is tolerated ({tolerated})"
        since = f"the first is {above[0]}"
        return f"{len(above)} of {len(self)} drifted above what is tolerated ({tolerated}); {since}"

    def grids(self) -> Iterable[Grid]:
        """Return one row a window."""
        rows: list[tuple[Cell, ...]] = []
        for one in self.drifts:
            came = next((change for change in one.clusters if change.changed and change.difference > 0), None)
            rows.append(
                (
                    one.name_b,
                    one.n_b,
                    percent(max(one.drift, 0.0), 1),
                    span(one.interval, lambda value: percent(max(value, 0.0), 1)),
                    shown_p_value(one.p_value),
                    one.verdict,
                    ""
                    if came is None
                    else f"+{percent(came.difference, 1)} {' · '.join(came.texts[:1])}"[:60],
                )
            )
        heads = (
            self.every,
            "rows",
            "drift",
            "95 % interval",
            "p",
            "tolerated drift",
            "cluster that grew most",
        )
        n_columns = len(heads) if any(row[-1] for row in rows) else len(heads) - 1
        yield Grid("", heads[:n_columns], [row[:n_columns] for row in rows], ("drift", "p"))

    def lines(self) -> list[str]:
        """Return what the p-values are, and which windows were left out."""
        lines = []
        if any(one.p_value is not None for one in self.drifts):
            lines.append(f"p: of no difference at all, adjusted for the {len(self):,} tests (Holm)")
        if self.left_out:
            names = ", ".join(f"{name} ({n})" for name, n in self.left_out.items())
            lines.append(f"note: fewer than {_FEWEST} rows, not compared: {names}")
        return lines

    def plot(self, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the drift of each window with its interval, and what is tolerated."""
        from isoscope.drift.figure import draw_over_time

        return draw_over_time(self, path, ax=ax)


def drift_over_time(
    X: Any,
    date: Any,
    *,
    every: str = "week",
    against: str = "first",
    tolerate: float = TOLERATE,
    n_permutations: int = N_PERMUTATIONS,
    n_clusters: int | None = None,
    n_texts: int = 5,
    texts: Any = None,
    sample: int = SAMPLE,
    seed: int = 0,
    progress: bool | None = None,
    vectors: str | None = None,
    device: Any = None,
) -> DriftOverTime:
    """Compare the rows of each window of time with those of the first one, or of the one before.

    Args:
        X: vectors in any array, a path, a data frame, an opened file.
        date: the date of each row: a column of X, a file, or the values; as ISO 8601 writes them.
        every: how long a window is: day, week, month, quarter or year.
        against: what each window is compared with, "first" or "previous".
        texts: the text of each row: a column of X, a file, or the values.
        tolerate, n_permutations, n_clusters, n_texts, sample, seed, progress, vectors, device: as `drift`
            takes them.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> X[200:] += 2
    >>> days = ["2024-05-01"] * 100 + ["2024-05-08"] * 100 + ["2024-05-15"] * 100
    >>> [one.verdict for one in drift_over_time(X, days, n_permutations=0).drifts]
    ['unclear', 'above']
    """
    check_choice("against", against, AGAINST)
    shelf = shelf_of(
        X,
        seed=seed,
        vectors=vectors,
        device=device,
        texts=texts,
        apart=[date] if isinstance(date, str) else (),
    )
    also = [texts] if isinstance(texts, str) else []
    values = rows_of(X, date, "date", vectors=vectors, apart=also)
    days = as_labels(values, n=len(shelf.space), name="date")
    names = windows_of(days.names, every)
    order = sorted(set(names))
    places = torch.tensor([order.index(name) for name in names])[days.codes.cpu()]
    snapshots: dict[str, Snapshot] = {}
    left_out: dict[str, int] = {}
    for place, name in enumerate(order):
        rows = (places == place).nonzero().flatten()
        if len(rows) < _FEWEST:
            left_out[name] = len(rows)
            continue
        taken = replace(shelf.space.take(rows.to(shelf.space.device)), name=name)
        snapshots[name] = Snapshot.of(taken, sample=sample, seed=seed)
    if len(snapshots) < 2:
        raise InputError(
            f"has {len(snapshots)} {every}(s) of {_FEWEST} rows or more",
            argument="date",
            wanted="two or more",
            hint="choose shorter windows with every",
        )
    windows = list(snapshots)
    drifts: list[Drift] = []
    for place, window in enumerate(windows[1:]):
        reference = windows[0] if against == "first" else windows[place]
        with Bar(show=progress) as bar:
            drifts.append(
                compare_snapshots(
                    snapshots[reference], snapshots[window], tolerate=tolerate, n_permutations=n_permutations,
                    n_clusters=n_clusters, n_texts=n_texts, seed=seed, bar=bar,
                )
            )  # fmt: skip
    return DriftOverTime(
        name=shelf.space.name or "X",
        date=date if isinstance(date, str) else "date",
        every=every,
        against=against,
        drifts=_adjusted(drifts),
        left_out=left_out,
        n=len(shelf.space),
        snapshots=snapshots,
    )


def _adjusted(drifts: Sequence[Drift]) -> tuple[Drift, ...]:
    p_values = [one.p_value for one in drifts if one.p_value is not None]
    if len(p_values) < len(drifts):
        return tuple(drifts)
    return tuple(replace(one, p_value=p) for one, p in zip(drifts, holm(p_values), strict=True))
