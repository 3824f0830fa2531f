"""The silhouette of every label, and of the points shown: exact for all points, or exact for some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.labels import Labels
from isoscope.metrics.silhouette_estimate import estimate_silhouette_by_cluster
from isoscope.metrics.silhouettes import silhouettes
from isoscope.space import Space
from isoscope.statistics.anchors import AnchorRows
from isoscope.statistics.pairs import Separation

EXACT_ROWS = 20_000  # up to here every point's silhouette is computed: a second or two
TOLERANCE = 0.005  # half the interval of a label's estimate
_PER_LABEL = 60  # points whose silhouettes show a label's spread, where not all are computed
_SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class LabelSilhouette:
    """The silhouette of one label: its mean, an interval where it is estimated, and its spread.

    quantiles: silhouettes that 10, 25, 50, 75 and 90 % of the label's points stay under.
    """

    name: Any
    count: int
    mean: float
    interval: tuple[float, float] | None
    quantiles: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Silhouettes:
    """By label, in the labels' order; and of the points that were asked for.

    Attributes:
        labels: one entry each.
        points: (m,) silhouettes of the rows asked for, in their order.
        is_exact: every point's was computed.
    """

    labels: tuple[LabelSilhouette, ...]
    points: Tensor
    is_exact: bool

    @classmethod
    def of(
        cls, X: Any, labels: Labels, *, rows: Tensor, seed: int = 0, exact_rows: int = EXACT_ROWS
    ) -> Silhouettes:
        """Of labelled vectors; `rows` numbers the points that are shown.

        >>> from isoscope.labels import as_labels
        >>> X = [[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]]
        >>> found = Silhouettes.of(X, as_labels(["a", "a", "b", "b"]), rows=torch.tensor([0]))
        >>> [round(label.mean, 3) for label in found.labels]
        [0.754, 0.754]
        """
        matrix = as_matrix(X).detach()
        if len(matrix) <= exact_rows:
            return _exact(matrix, labels, rows)
        return _sampled(matrix, labels, rows, seed)


def _exact(matrix: Tensor, labels: Labels, rows: Tensor) -> Silhouettes:
    values = silhouettes(Separation.of(matrix, labels)).cpu()
    entries = []
    for code, (name, count) in enumerate(zip(labels.names, labels.counts.tolist(), strict=True)):
        own = values[labels.codes.cpu() == code]
        entries.append(LabelSilhouette(name, count, float(own.mean()), None, _quantiles(own)))
    return Silhouettes(tuple(entries), values[rows.cpu()], True)


def _sampled(matrix: Tensor, labels: Labels, rows: Tensor, seed: int) -> Silhouettes:
    """Labels by anchors, with an interval each; their spread by some of their points."""
    estimates = estimate_silhouette_by_cluster(
        Space(matrix, labels=labels), labels, tolerance=TOLERANCE, seed=seed
    )
    spread = _some_of_each(labels, seed)
    index = torch.cat([rows.cpu(), spread]).to(matrix.device)
    values = silhouettes(AnchorRows.of(matrix, labels).exact(index), counted=False).cpu()
    alone = (labels.counts == 1)[labels.codes]
    values = torch.where(alone[index].cpu(), 0.0, values)
    shown, codes = values[len(rows) :], labels.codes.cpu()[spread]
    entries = []
    for code, (name, count) in enumerate(zip(labels.names, labels.counts.tolist(), strict=True)):
        found = estimates[name]
        interval = None if found.standard_error == 0 else found.interval
        entries.append(LabelSilhouette(name, count, found.value, interval, _quantiles(shown[codes == code])))
    return Silhouettes(tuple(entries), values[: len(rows)], False)


def _some_of_each(labels: Labels, seed: int) -> Tensor:
    """Numbers of up to `_PER_LABEL` rows of each label, drawn by the seed."""
    codes = labels.codes.cpu()
    shuffled = torch.randperm(len(codes), generator=torch.Generator().manual_seed(seed))
    order = shuffled[codes[shuffled].argsort(stable=True)]
    counts = labels.counts.cpu()
    place = torch.arange(len(codes)) - (counts.cumsum(0) - counts)[codes[order]]
    return order[place < _PER_LABEL]


def _quantiles(values: Tensor) -> tuple[float, ...]:
    return tuple(values.double().quantile(torch.tensor(_SHOWN, dtype=torch.float64)).tolist())
