"""`TradeOff`: what was reached for each weight, beside the exact frontier."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

from isoscope.engine.readings import Reading, Readings, View
from isoscope.tables import Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUANTITIES = ("isoscore", "silhouette", "between_share", "cross_entropy", "accuracy")
_SHOWN = ("isoscore", "silhouette", "lowest_silhouette", *QUANTITIES[2:], "ceiling", "distance")


@dataclass(frozen=True)
class TradeOffPoint:
    """One space, measured exactly.

    Attributes:
        weight: of the first objective; None for the vectors as they came.
        isoscore, silhouette, between_share: of the vectors.
        lowest_silhouette: the mean silhouette of the label where it is lowest.
        cross_entropy, accuracy: of the logistic regression fitted to them.
        ceiling, distance: the largest IsoScore that so many points can have at this share, and how far it is.
    """

    weight: float | None
    isoscore: float
    silhouette: float
    lowest_silhouette: float
    between_share: float
    cross_entropy: float
    accuracy: float
    ceiling: float
    distance: float


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff(View):
    """What two objectives can have at once.

    Attributes:
        start: the vectors as they came.
        points: one for each weight, from 0, the second objective alone, to 1, the first alone.
        frontier: what spaces built on the frontier measure (columns of equal length).
        objectives: the two that were traded.
        n, n_labels, n_dims: points, K and d.
        configuration: every setting.
        spaces: (weights, n, d) the vectors reached, where they are at hand; not in `to_dict`.
    """

    start: TradeOffPoint
    points: tuple[TradeOffPoint, ...]
    frontier: Mapping[str, tuple[float, ...]]
    objectives: tuple[str, str]
    n: int
    n_labels: int
    n_dims: int
    configuration: Mapping[str, Any]
    spaces: Tensor | None = field(default=None, repr=False)

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> TradeOff:
        """What `to_dict` gave."""
        first, second = kept["objectives"]
        return cls(
            start=TradeOffPoint(**kept["start"]),
            points=tuple(TradeOffPoint(**point) for point in kept["points"]),
            frontier={name: tuple(column) for name, column in kept["frontier"].items()},
            objectives=(first, second),
            n=kept["n"],
            n_labels=kept["n_labels"],
            n_dims=kept["n_dims"],
            configuration=kept["configuration"],
        )

    @property
    def readings(self) -> Readings:
        """Every quantity by `weight`; that of the vectors as they came is None."""
        return Readings(
            [
                Reading(name, getattr(point, name), ceiling=ceiling, group={"weight": point.weight})
                for point in (self.start, *self.points)
                for name in _SHOWN
                for ceiling in [point.ceiling if name == "isoscore" else None]
            ]
        )

    @property
    def title(self) -> str:
        """What was traded, in one line."""
        return f"{self.n:,} vectors, {self.n_labels} labels, {self.n_dims} dimensions"

    def grids(self) -> Iterable[Grid]:
        """Return the start, then a row for each weight."""
        rows = [
            (
                "start" if point.weight is None else f"{point.weight:.3g}",
                *(getattr(point, name) for name in _SHOWN),
            )
            for point in (self.start, *self.points)
        ]
        heads = (f"weight of\n{self.objectives[0]}", *(name.replace("_", "\n") for name in _SHOWN))
        return [Grid("", heads, rows, heads)]

    def figure(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure:
        """The points under the exact frontier, and the two objectives against each other."""
        from isoscope.training.trade_off_figure import draw

        return draw(self, path, **options)
