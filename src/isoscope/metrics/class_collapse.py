"""Neural collapse label by label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from isoscope.metrics.neural_collapse import as_collapse, need_means
from isoscope.results import Result


@dataclass(frozen=True, repr=False)
class ClassCollapse(Result):
    """The parts that each label has in neural collapse, in sorted order of labels.

    Attributes:
        labels: the K labels.
        counts: rows of each, or their weights.
        nc1: variance within the label over that between means, direction by direction; the mean
            over rows is `nc1`.
        relative_lengths: ‖μ_k − μ‖ over its mean over labels; 1 for a simplex.
        largest_cosines: the largest cosine of the label's mean with another, about μ; −1/(K−1) for a simplex.
        nc4: share of the label's rows nearer to the mean of another; their mean over rows is `nc4`.
        nc4_debiased: the same with each row left out of its own mean, less the noise that this adds.
    """

    labels: tuple[Any, ...]
    counts: tuple[float, ...]
    nc1: tuple[float, ...]
    relative_lengths: tuple[float, ...]
    largest_cosines: tuple[float, ...]
    nc4: tuple[float, ...]
    nc4_debiased: tuple[float, ...]

    @property
    def title(self) -> str:
        """How many rows and labels there are."""
        return f"neural collapse of {sum(self.counts):,g} vectors with {len(self.labels):,} labels"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {
            "label": self.labels,
            "n": self.counts,
            "nc1": self.nc1,
            "relative_length": self.relative_lengths,
            "largest_cosine": self.largest_cosines,
            "nc4": self.nc4,
            "nc4_debiased": self.nc4_debiased,
        }


def class_collapse(X: Any, labels: Any = None) -> ClassCollapse:
    """Compute NC1, NC2 and NC4 of each label: which of them have collapsed, and which stand apart.

    Paper: Papyan et al. 2020; see `nc1`, `nc2_equinorm`, `nc2_equiangular` and `nc4`.

    Args:
        X: a labelled Space, (n, d) vectors in any array, or LabelCollapse.
        labels: one label for each vector.

    >>> print(class_collapse([[0.0], [1.0], [4.0], [4.0]], labels=["a", "a", "b", "b"]).nc1)
    (0.0408..., 0.0)
    """
    collapse = as_collapse(X, labels)
    groups = collapse.moments
    need_means(groups, "class_collapse")
    present = groups.counts > 0
    counts, means = groups.counts[present], groups.coordinates[present]
    lengths = means.norm(dim=1)
    units = means / torch.where(lengths > 0, lengths, 1.0)[:, None]
    cosines = (units @ units.T).fill_diagonal_(-torch.inf).amax(dim=1)
    parts = (collapse.squares, collapse.wrong, collapse.wrong_left_out)
    squares, wrong, left_out = (sums[present] / counts for sums in parts)
    names = tuple(name for name, there in zip(groups.names, present.tolist(), strict=True) if there)
    numbers = (squares, lengths / lengths.mean(), cosines, wrong, left_out)
    return ClassCollapse(names, tuple(counts.tolist()), *(tuple(column.tolist()) for column in numbers))
