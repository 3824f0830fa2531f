"""`RemoveDimensions`: the few dimensions that decide how similar all vectors look, taken away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from isoscope.corrections.correction import Correction, Fitted
from isoscope.corrections.maps import Map, Selection
from isoscope.corrections.scaling import Columns
from isoscope.errors import InputError, check_choice, check_whole
from isoscope.metrics.dimensions import contributions_of
from isoscope.statistics.directions import Directions

_BY = ("mean_cosine", "variance")


@dataclass(frozen=True, eq=False)
class _Axes:
    """What is known of the axes: sums of directions and each dimension's spread."""

    directions: Directions
    columns: Columns

    @classmethod
    def of(cls, block: Tensor) -> _Axes:
        return cls(Directions.of(block), Columns.of(block))

    def merge(self, other: _Axes) -> _Axes:
        return _Axes(self.directions.merge(other.directions), self.columns.merge(other.columns))


class RemoveDimensions(Correction):
    """Rogue dimensions taken away: those that add most to the mean cosine, or to the variance.

        c_j = ((Σ u_j)² − Σ u_j²)/(n(n − 1)),   u = x/‖x‖,   or the variance of x_j

    Paper: Timkey, van Schijndel 2021, All Bark and No Bite.

    Args:
        n_dimensions: how many to take away.
        by: "mean_cosine" or "variance".
        dimensions: which to take away, instead of looking for them.
        zero: set them to 0 and keep d dimensions, instead of d − n.

    Attributes:
        dimensions_: (n,) those taken away, the strongest first.
        kept_: (d,) which of all dimensions are kept.

    >>> RemoveDimensions(1).fit_transform([[9.0, 1.0], [9.0, -1.0], [8.0, 0.5]]).tolist()
    [[1.0], [-1.0], [0.5]]
    """

    _axes: ClassVar[dict[str, str]] = {"dimensions_": "n", "kept_": "d"}
    _statistic_of = _Axes.of
    dimensions_ = Fitted("(n,) the dimensions taken away, the strongest first.")
    kept_ = Fitted("(d,) which dimensions are kept.")

    def __init__(
        self,
        n_dimensions: int = 1,
        *,
        by: str = "mean_cosine",
        dimensions: Sequence[int] | None = None,
        zero: bool = False,
    ) -> None:
        self.n_dimensions = n_dimensions
        self.by = by
        self.dimensions = dimensions
        self.zero = zero

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the dimensions that are kept; of all with zero=True."""
        names = super().get_feature_names_out(input_features)
        return names if self.zero else names[self.kept_]

    def _check_parameters(self, n_dims: int) -> None:
        check_choice("by", self.by, _BY)
        if self.dimensions is not None:
            given = [check_whole("dimensions", j, least=0, most=n_dims - 1) for j in self.dimensions]
            if not given or len(set(given)) != len(given):
                raise InputError(argument="dimensions", got=given, wanted="different whole numbers")
        n = check_whole(
            "n_dimensions", self.n_dimensions if self.dimensions is None else len(self.dimensions)
        )
        if n >= n_dims:
            raise InputError(
                argument="n_dimensions",
                got=n,
                wanted=f"below the number of dimensions of X, n_features = {n_dims}",
            )

    def _solve(self, statistic: _Axes) -> dict[str, Tensor]:
        d, device = statistic.columns.mean.shape[0], statistic.columns.mean.device
        if self.dimensions is not None:
            removed = torch.tensor([int(j) for j in self.dimensions], device=device)
        else:
            removed = self._strengths(statistic).sort(descending=True, stable=True).indices
            removed = removed[: self.n_dimensions]
        kept = torch.ones(d, dtype=torch.bool, device=device)
        kept[removed] = False
        return {"dimensions_": removed, "kept_": kept}

    def _strengths(self, statistic: _Axes) -> Tensor:
        if self.by == "variance":
            return statistic.columns.variance
        if statistic.directions.count < 2:
            raise InputError(
                f"RemoveDimensions needs at least 2 vectors with a direction; got n_samples = "
                f"{statistic.columns.count}, {statistic.directions.n_zero} of them zero"
            )
        return contributions_of(statistic.directions)

    def _map(self, solution: dict[str, Tensor]) -> Map:
        return Selection(solution["kept_"].double(), zero=self.zero)
