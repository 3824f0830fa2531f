"""`Center`, `Standardize` and `Normalize`, which treat each dimension or each vector separately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from isoscope.corrections.correction import Correction, Fitted
from isoscope.corrections.maps import Map, Scale, UnitLength


@dataclass(frozen=True, eq=False)
class Columns:
    """The count n, the mean (d,) and Σ(x − mean)² (d,) of each dimension, in float64."""

    count: int
    mean: Tensor
    scatter: Tensor

    @classmethod
    def of(cls, block: Tensor) -> Columns:
        """Compute them for a block in float64, relative to its first row to limit rounding errors."""
        moved = block - block[0]
        mean = moved.mean(dim=0)
        return cls(len(block), mean + block[0], (moved - mean).square_().sum(dim=0))

    def merge(self, other: Columns) -> Columns:
        """Return the statistic of both sets of vectors together."""
        count = self.count + other.count
        step = other.mean - self.mean
        scatter = self.scatter + other.scatter + step.square() * (self.count * other.count / count)
        return Columns(count, self.mean + step * (other.count / count), scatter)

    @property
    def variance(self) -> Tensor:
        """The variance of each dimension (d,), with divisor n."""
        return self.scatter / self.count

    @property
    def constant(self) -> Tensor:
        """Which dimensions (d,) are constant up to rounding."""
        rounding = self.count * torch.finfo(torch.float64).eps
        return self.variance <= rounding * self.variance + (rounding * self.mean).square()


class Center(Correction):
    """Subtract the mean.

        y = x − m

    If the vectors share an offset, their mean cosine falls to about 0. Distances do not change. A zero
    vector becomes −m: remove zero vectors first.

    Attributes:
        mean_: (d,) m.

    >>> Center().fit_transform([[1.0, 0.0], [3.0, 4.0]]).tolist()
    [[-1.0, -2.0], [1.0, 2.0]]
    """

    _axes: ClassVar[dict[str, str]] = {"mean_": "d"}
    _statistic_of = Columns.of
    mean_ = Fitted("(d,) the mean of the vectors fitted on.")

    def inverse_transform(self, X: Any) -> Any:
        """Return the original vectors."""
        return self._undone(X, lambda known: Scale(-known["mean_"]))

    def _solve(self, statistic: Columns) -> dict[str, Tensor]:
        return {"mean_": statistic.mean}

    def _map(self, solution: dict[str, Tensor]) -> Map:
        return Scale(solution["mean_"])


class Standardize(Correction):
    """Scale every dimension to mean 0 and standard deviation 1.

        y_j = (x_j − m_j)/s_j,   s_j² the variance with divisor n

    A constant dimension keeps its scale: s_j = 1. This is StandardScaler of scikit-learn.

    Attributes:
        mean_, scale_: (d,) m and s.

    >>> Standardize().fit_transform([[1.0, 5.0], [3.0, 5.0]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """

    _axes: ClassVar[dict[str, str]] = {"mean_": "d", "scale_": "d"}
    _statistic_of = Columns.of
    mean_ = Fitted("(d,) the mean of the vectors fitted on.")
    scale_ = Fitted("(d,) their standard deviations, 1 where a dimension is constant.")

    def inverse_transform(self, X: Any) -> Any:
        """Return the original vectors."""
        return self._undone(
            X, lambda known: Scale(-known["mean_"] / known["scale_"], known["scale_"].reciprocal())
        )

    def _solve(self, statistic: Columns) -> dict[str, Tensor]:
        scale = torch.where(statistic.constant, 1.0, statistic.variance.sqrt())
        return {"mean_": statistic.mean, "scale_": scale}

    def _map(self, solution: dict[str, Tensor]) -> Map:
        return Scale(solution["mean_"], solution["scale_"])


class Normalize(Correction):
    """Scale every vector to length 1, so that dot products are cosines.

        y = x/‖x‖,   a zero vector stays zero

    There is nothing to fit: `transform` can be called at once.

    >>> Normalize().transform([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """

    def transform(self, X: Any) -> Any:
        """Return the vectors scaled to length 1."""
        if not self.__sklearn_is_fitted__():
            return Normalize().fit(X).transform(X)
        return super().transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _gather(self, rows: Tensor) -> None:
        self._statistic = rows.shape[1]

    def _solve(self, statistic: int) -> dict[str, Tensor]:  # noqa: ARG002
        return {}

    def _map(self, solution: dict[str, Tensor]) -> Map:  # noqa: ARG002
        return UnitLength(self.n_features_in_)
