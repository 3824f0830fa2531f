"""Silhouettes of labels and of points, exact or estimated as the planner decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.engine.plan import silhouette_policy
from isoscope.labels import Labels
from isoscope.metrics.silhouette_estimate import estimate_silhouette_by_cluster
from isoscope.metrics.silhouettes import silhouettes
from isoscope.statistics.anchors import AnchorRows
from isoscope.statistics.gathered import Statistics

_PER_LABEL = 60  # points that show the spread of a label, where not all silhouettes are computed
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class LabelSilhouette:
    """The silhouette of one label.

    Attributes:
        name, n: the label, and its number of points.
        mean: the mean silhouette of its points.
        interval: the 95 % interval of the mean; None where the mean is exact.
        quantiles: the 10, 25, 50, 75 and 90 % quantiles of the silhouettes of its points.
    """

    name: Any
    n: int
    mean: float
    interval: tuple[float, float] | None
    quantiles: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Silhouettes:
    """Silhouettes of every label, and of some points.

    Attributes:
        labels: one entry for each label, in their order.
        points: (m,) silhouettes of the rows that were requested, in their order.
        is_exact: whether the silhouette of every point was computed.
    """

    labels: tuple[LabelSilhouette, ...]
    points: Tensor
    is_exact: bool

    @classmethod
    def of(cls, shelf: Statistics, *, rows: Tensor) -> Silhouettes:
        """Compute the silhouettes of a labelled space from its statistics, and those of the points in `rows`.

        >>> from isoscope.space import Space
        >>> space = Space([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]], labels=["a", "a", "b", "b"])
        >>> silhouettes = Silhouettes.of(Statistics(space), rows=torch.tensor([0]))
        >>> [round(label.mean, 3) for label in silhouettes.labels]
        [0.754, 0.754]
        """
        labels, rows = shelf.labels, rows.cpu()
        is_exact = has_exact_silhouettes(shelf)
        if is_exact:
            means: dict[Any, tuple[float, Any]] = {}
            values = silhouettes(shelf.separation).cpu()
            spread = torch.arange(len(values))
            points = values[rows]
        else:
            tolerance = silhouette_policy(len(labels), by_label=True).tolerance
            estimates = estimate_silhouette_by_cluster(shelf.space, tolerance=tolerance, seed=shelf.seed)
            means = {
                name: (one.value, None if one.standard_error == 0 else one.interval)
                for name, one in estimates.items()
            }
            spread = _some_of_each(labels, shelf.seed)
            index = torch.cat([rows, spread])
            exact = AnchorRows.of(shelf.rows, labels).exact(index.to(labels.codes.device))
            values = silhouettes(exact, counted=False).cpu()
            is_single = (labels.counts == 1)[labels.codes].cpu()
            values = torch.where(is_single[index], 0.0, values)
            points, values = values[: len(rows)], values[len(rows) :]
        entries, codes = [], labels.codes.cpu()[spread]
        for code, (name, count) in enumerate(zip(labels.names, labels.counts.tolist(), strict=True)):
            own = values[codes == code]
            mean, interval = means[name] if means else (float(own.mean()), None)
            quantiles = own.double().quantile(torch.tensor(_QUANTILES, dtype=torch.float64)).tolist()
            entries.append(LabelSilhouette(name, count, mean, interval, tuple(quantiles)))
        return cls(tuple(entries), points, is_exact)


def has_exact_silhouettes(shelf: Statistics) -> bool:
    """Return whether silhouettes are computed from all pairs: few points, or the sums are known already."""
    return "separation" in vars(shelf) or silhouette_policy(len(shelf.space)).exact


def _some_of_each(labels: Labels, seed: int) -> Tensor:
    """Return up to `_PER_LABEL` random rows of each label."""
    codes = labels.codes.cpu()
    shuffled = torch.randperm(len(codes), generator=torch.Generator().manual_seed(seed))
    order = shuffled[codes[shuffled].argsort(stable=True)]
    counts = labels.counts.cpu()
    place = torch.arange(len(codes)) - (counts.cumsum(0) - counts)[codes[order]]
    return order[place < _PER_LABEL]
