"""`Center`, `Standardize` and `Normalize`: corrections that look at each dimension, or each vector, alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from isoscope.corrections.correction import Correction, Fitted
from isoscope.corrections.maps import Map, Scale, UnitLength


@dataclass(frozen=True, eq=False)
class Columns:
    """Of each dimension: count n, mean (d,) and Σ(x − mean)² (d,), in float64; exact under any split."""

    count: int
    mean: Tensor
    scatter: Tensor

    @classmethod
    def of(cls, block: Tensor) -> Columns:
        """Of a block in float64; its first row is taken off before sums, so an offset gathers no rounding."""
        moved = block - block[0]
        mean = moved.mean(dim=0)
        return cls(len(block), mean + block[0], (moved - mean).square_().sum(dim=0))

    def merge(self, other: Columns) -> Columns:
        """Of both sets of vectors together."""
        count = self.count + other.count
        step = other.mean - self.mean
        scatter = self.scatter + other.scatter + step.square() * (self.count * other.count / count)
        return Columns(count, self.mean + step * (other.count / count), scatter)

    @property
    def variance(self) -> Tensor:
        """(d,) with divisor n."""
        return self.scatter / self.count

    @property
    def constant(self) -> Tensor:
        """(d,) which dimensions vary by no more than rounding leaves of their own size."""
        rounding = self.count * torch.finfo(torch.float64).eps
        return self.variance <= rounding * self.variance + (rounding * self.mean).square()


class Center(Correction):
    """The mean taken off.

        y = x − m

    Mean cosines fall to about 0 where vectors share an offset; distances stay as they are.

    Attributes:
        mean_: (d,) m.

    >>> Center().fit_transform([[1.0, 0.0], [3.0, 4.0]]).tolist()
    [[-1.0, -2.0], [1.0, 2.0]]
    """

    _axes: ClassVar[dict[str, str]] = {"mean_": "d"}
    _statistic_of = Columns.of
    mean_ = Fitted("(d,) the mean of the vectors fitted on.")

    def inverse_transform(self, X: Any) -> Any:
        """The vectors before."""
        return self._undone(X, lambda known: Scale(-known["mean_"]))

    def _solve(self, statistic: Columns) -> dict[str, Tensor]:
        return {"mean_": statistic.mean}

    def _map(self, solution: dict[str, Tensor]) -> Map:
        return Scale(solution["mean_"])


class Standardize(Correction):
    """Every dimension at mean 0 and standard deviation 1.

        y_j = (x_j − m_j)/s_j,   s_j² the variance with divisor n

    A constant dimension keeps its scale: s_j = 1. As scikit-learn's StandardScaler.

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
        """The vectors before."""
        return self._undone(
            X, lambda known: Scale(-known["mean_"] / known["scale_"], known["scale_"].reciprocal())
        )

    def _solve(self, statistic: Columns) -> dict[str, Tensor]:
        scale = torch.where(statistic.constant, 1.0, statistic.variance.sqrt())
        return {"mean_": statistic.mean, "scale_": scale}

    def _map(self, solution: dict[str, Tensor]) -> Map:
        return Scale(solution["mean_"], solution["scale_"])


class Normalize(Correction):
    """Every vector at length 1, so that products are cosines.

        y = x/‖x‖,   a zero vector stays zero

    There is nothing to learn: transform needs no fit.

    >>> Normalize().transform([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """

    def transform(self, X: Any) -> Any:
        """Vectors at length 1."""
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
