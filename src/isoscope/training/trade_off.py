"""`trade_off`: find how much isotropy and how much clustering vectors can have at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.engine.readings import Reading, Readings, View
from isoscope.errors import InputError, check_choice, check_positive, check_seed, check_whole
from isoscope.labels import Labels, as_clusters
from isoscope.metrics.clusters import softmax_regression
from isoscope.metrics.frontier import isotropy_ceiling, scatter_decomposition
from isoscope.metrics.frontier_space import frontier_space
from isoscope.metrics.silhouettes import silhouette_by_cluster, silhouette_score
from isoscope.progress import Bar
from isoscope.space import known_rows
from isoscope.tables import Grid, shown
from isoscope.training.weighted_objectives import OBJECTIVES, Problems

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUANTITIES = ("isoscore", "silhouette", "between_share", "cross_entropy", "accuracy")
_SHOWN = ("isoscore", "silhouette", "lowest_silhouette", *QUANTITIES[2:], "ceiling", "distance")
_SCALARIZATIONS = ("chebyshev", "linear")
_SUM = 0.05  # weight of the sum of both shortfalls, so that no point gives away either objective
_N_FRONTIER = 21  # number of spaces on the frontier that are measured for comparison


@dataclass(frozen=True)
class TradeOffPoint:
    """One space, measured exactly.

    Attributes:
        weight: weight of the first objective; None for the original vectors.
        isoscore, silhouette, between_share: the metrics of the vectors.
        lowest_silhouette: the mean silhouette of the label for which it is lowest.
        cross_entropy, accuracy: of the logistic regression fitted to the vectors.
        ceiling: the largest IsoScore that this many points can have at this `between_share`.
        distance: `ceiling` minus `isoscore`.
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
    """The values that two objectives can reach at once.

    Attributes:
        start: the original vectors.
        points: one point for each weight, from 0 (only the second objective) to 1 (only the first).
        frontier: the metrics of spaces constructed on the frontier (columns of equal length).
        objectives: names of the two objectives.
        n, n_labels, n_dims: number of vectors, labels K and dimensions d.
        configuration: all settings.
        spaces: (weights, n, d) the optimised vectors; None after `from_dict`, since `to_dict` omits them.
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
    def from_dict(cls, values: Mapping[str, Any]) -> TradeOff:
        """Return the trade-off that `to_dict` was called on, without its vectors."""
        first, second = values["objectives"]
        return cls(
            start=TradeOffPoint(**values["start"]),
            points=tuple(TradeOffPoint(**point) for point in values["points"]),
            frontier={name: tuple(column) for name, column in values["frontier"].items()},
            objectives=(first, second),
            n=values["n"],
            n_labels=values["n_labels"],
            n_dims=values["n_dims"],
            configuration=values["configuration"],
        )

    @property
    def readings(self) -> Readings:
        """Every quantity by `weight`, which is None for the original vectors."""
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
        """The number of vectors, labels and dimensions."""
        return f"{self.n:,} vectors, {self.n_labels} labels, {self.n_dims} dimensions"

    def grids(self) -> Iterable[Grid]:
        """Return one table: a row for the original vectors, then one for each weight."""
        rows = [
            (
                "start" if point.weight is None else f"{point.weight:.3g}",
                *(shown(getattr(point, name), 4) for name in _SHOWN),
            )
            for point in (self.start, *self.points)
        ]
        heads = (f"weight of\n{self.objectives[0]}", *(name.replace("_", "\n") for name in _SHOWN))
        return [Grid("", heads, rows, heads)]

    def figure(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure:
        """Draw the points under the exact frontier, and the two objectives against each other."""
        from isoscope.training.frontier_figure import draw_trade_off

        return draw_trade_off(self, path, **options)


@torch.inference_mode(False)
@torch.enable_grad()
def trade_off(
    X: Any,
    y: Any = None,
    *,
    objectives: tuple[str, str] = ("isoscore", "silhouette"),
    weights: int | Iterable[float] = 9,
    scalarization: str = "chebyshev",
    steps: int = 300,
    learning_rate: float = 0.05,
    weight_decay: float = 1e-3,
    sample: int | None = 500,
    seed: int = 0,
    progress: bool | None = None,
) -> TradeOff:
    """Find the values that two objectives can reach at once, by optimising the vectors for both.

    For each weight w of the first objective, Adam optimises a copy of X (all copies at once) for

        "linear":     max  w·f₁ + (1 − w)·f₂
        "chebyshev":  min  max(w·(f₁* − f₁)/r₁, (1 − w)·(f₂* − f₂)/r₂) + 0.05·their sum

    Here f₁* and f₂* are the values that each objective reaches alone, and r₁ and r₂ are the ranges between
    these and the values at the other end. The linear form finds only the convex part of the reachable
    values; the Chebyshev form finds all of them. Every point is then measured exactly and compared with the
    exact frontier, which no point can pass. All objectives are computed on vectors scaled to a variance of
    1, so the overall scale has no effect.

    Args:
        X: (n, d) vectors in any array, or a labelled Space.
        y: one label for each vector; not needed where X has labels.
        objectives: two of isoscore, silhouette, between_share, cross_entropy, accuracy. For the last two, a
            linear classifier is trained together with the vectors. Lower cross-entropy is better.
        weights: the number of weights, evenly spaced from 0 to 1, or the weights themselves. "chebyshev"
            always adds 0 and 1.
        scalarization: "chebyshev" or "linear".
        steps, learning_rate: settings of Adam. The vectors have a variance of 1 in each dimension.
        weight_decay: λ in the penalty λ/2·‖C‖² on the classifier's weights.
        sample: largest number of vectors, drawn at random; None uses all. The time grows with n².
        seed: seed of the sample, and of the small noise added in directions that X does not use.
        progress: show a progress bar; None shows it on a terminal when work takes over a second.

    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 3
    >>> result = trade_off(rng.normal(size=(3, 6))[y] + rng.normal(size=(60, 6)), y, weights=3, steps=100)
    >>> [point.silhouette > 0.9 for point in result.points], result.points[-1].isoscore > 0.99
    ([True, False, False], True)
    >>> all(point.isoscore < point.ceiling + 1e-9 for point in result.points)
    True
    """
    first, second = _checked(objectives, scalarization)
    check_seed(seed)
    for name, value in (("steps", steps), ("sample", 1 if sample is None else sample)):
        check_whole(name, value)
    check_positive("learning_rate", learning_rate)
    check_positive("weight_decay", weight_decay)
    rows, labels = _drawn(X, y, sample, seed)
    listed = _weights(weights, ends=scalarization == "chebyshev")
    problems = Problems(rows, labels, (first, second), weight_decay, seed)
    ends = torch.tensor([w for w in listed if w in (0, 1)], dtype=torch.float64)
    inner = torch.tensor([w for w in listed if w not in (0, 1)], dtype=torch.float64)
    with Bar(show=progress) as bar:
        options: dict[str, Any] = {"steps": steps, "learning_rate": learning_rate, "share": bar.share}
        optimised: dict[float, Tensor] = {}
        if len(ends):
            bar.step("each alone")
            optimised |= zip(ends.tolist(), problems.optimised(ends, _linear(ends), **options), strict=True)
        if len(inner):
            bar.step("both")
            goal = _linear(inner)
            if scalarization == "chebyshev":
                reached = problems.values(
                    torch.stack([optimised[0.0], optimised[1.0]])
                )  # (2 ends, 2 objectives)
                goal = _chebyshev(inner, best=reached.amax(dim=0), worst=reached.amin(dim=0))
            optimised |= zip(inner.tolist(), problems.optimised(inner, goal, **options), strict=True)
    spaces = [optimised[w] for w in listed]
    return TradeOff(
        start=_measured(None, rows, labels, weight_decay),
        points=tuple(_measured(w, Z, labels, weight_decay) for w, Z in zip(listed, spaces, strict=True)),
        frontier=_on_frontier(rows, labels, weight_decay),
        objectives=(first, second),
        n=len(rows),
        n_labels=labels.n_labels,
        n_dims=int(rows.shape[1]),
        configuration={
            "scalarization": scalarization,
            "steps": steps,
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "sample": sample,
            "seed": seed,
        },
        spaces=torch.stack(spaces),
    )


def _checked(objectives: tuple[str, str], scalarization: str) -> tuple[str, str]:
    named = tuple(objectives) if isinstance(objectives, list | tuple) else (objectives,)
    if len(named) != 2 or len(set(named)) != 2 or any(name not in OBJECTIVES for name in named):
        raise InputError(argument="objectives", got=objectives, wanted=f"two of {', '.join(OBJECTIVES)}")
    check_choice("scalarization", scalarization, _SCALARIZATIONS)
    return named[0], named[1]


def _weights(weights: int | Iterable[float], *, ends: bool) -> list[float]:
    if isinstance(weights, int):
        listed = np.linspace(0, 1, max(2, check_whole("weights", weights))).tolist()
    else:
        try:
            listed = sorted({float(w) for w in weights} | ({0.0, 1.0} if ends else set()))
        except (TypeError, ValueError):
            listed = []
    if not listed or not all(0 <= w <= 1 for w in listed):
        raise InputError(argument="weights", got=weights, wanted="numbers from 0 to 1, or how many")
    return listed


def _drawn(X: Any, y: Any, sample: int | None, seed: int) -> tuple[Tensor, Labels]:
    """Return a sample of rows in float64, centred and scaled to a variance of 1, and their labels."""
    matrix = as_matrix(X).detach()
    labels = as_clusters(known_rows(X, y, "labels"), n=len(matrix)).to(matrix.device)
    if sample is not None and len(matrix) > sample:
        chosen = torch.randperm(len(matrix), generator=torch.Generator().manual_seed(seed))[:sample]
        chosen = chosen.sort().values.to(matrix.device)
        matrix = matrix[chosen]
        labels = as_clusters(Labels(labels.codes[chosen], labels.names), n=len(matrix))
    rows = matrix.double() - matrix.double().mean(dim=0)
    scatter_decomposition(rows, labels)  # refuses one dimension and equal points
    return rows / rows.square().mean().sqrt(), labels


def _linear(weights: Tensor) -> Any:
    def loss(values: Tensor) -> Tensor:
        w = weights.to(values)
        return -(w * values[:, 0] + (1 - w) * values[:, 1])

    return loss


def _chebyshev(weights: Tensor, *, best: Tensor, worst: Tensor) -> Any:
    ranges = (best - worst).clamp(min=1e-9)

    def loss(values: Tensor) -> Tensor:
        w = weights.to(values)
        shortfalls = torch.stack([w, 1 - w], dim=1) * (best - values) / ranges
        return shortfalls.amax(dim=1) + _SUM * shortfalls.sum(dim=1)

    return loss


def _measured(weight: float | None, rows: Tensor, labels: Labels, weight_decay: float) -> TradeOffPoint:
    split = scatter_decomposition(rows, labels)
    cross_entropy, accuracy = classified(rows, labels, weight_decay)
    ceiling = isotropy_ceiling(split.n_labels, split.n_dims, between=split.between_share, n_points=len(rows))
    return TradeOffPoint(
        weight=weight,
        isoscore=split.isoscore,
        silhouette=float(silhouette_score(rows, labels)),
        lowest_silhouette=min(silhouette_by_cluster(rows, labels).values()),
        between_share=split.between_share,
        cross_entropy=cross_entropy,
        accuracy=accuracy,
        ceiling=ceiling,
        distance=max(0.0, ceiling - split.isoscore),
    )


def classified(rows: Tensor, labels: Labels, weight_decay: float) -> tuple[float, float]:
    """Return the cross-entropy and accuracy of a logistic regression on vectors scaled to a variance of 1."""
    scaled = (rows - rows.mean(dim=0)) / (rows - rows.mean(dim=0)).square().mean().sqrt()
    vectors, codes = scaled.cpu().numpy(), labels.codes.cpu().numpy()
    model = softmax_regression(weight_decay * len(codes), n_labels=labels.n_labels, max_iter=1000)
    model.fit(vectors, codes)
    chances = model.predict_proba(vectors)
    own = chances[np.arange(len(codes)), codes].clip(min=1e-300)
    return float(-np.log(own).mean()), float((chances.argmax(axis=1) == codes).mean())


def _on_frontier(rows: Tensor, labels: Labels, weight_decay: float) -> dict[str, tuple[float, ...]]:
    """Measure spaces constructed on the frontier, with these labels and dimensions, over `between_share`."""
    counts, d = labels.counts.tolist(), int(rows.shape[1])
    ordered = Labels(labels.codes.cpu().sort().values, labels.names)
    columns: dict[str, list[float]] = {name: [] for name in QUANTITIES}
    for share in np.linspace(0, 1, _N_FRONTIER):
        space = frontier_space(counts, d, between=float(share))
        point = _measured(None, space.vectors, ordered, weight_decay)
        for name in QUANTITIES:
            columns[name].append(getattr(point, name))
    return {name: tuple(column) for name, column in columns.items()}
