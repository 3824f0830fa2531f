"""`EigenvalueNoise`: how much each variance along a principal direction owes to each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.statistics.declared import declare
from isoscope.statistics.moments import Moments
from isoscope.statistics.principal import Principal

N_RANKS = 100  # of the strongest directions


@dataclass(frozen=True, eq=False)
class EigenvalueNoise:
    """Products of the squared coordinates of rows along the strongest principal directions, summed over rows.

    With z the coordinates of a row, the influence of the row on log λ_k is z_k²/λ_k − 1, whatever the
    distribution of the rows; so the sums of products of these are the covariances of the log λ.

    Attributes:
        products: (r, r) float64, Σ z_k² z_l², with r the rank, at most 100.
    """

    products: Tensor

    @classmethod
    def of(cls, X: Any, moments: Moments) -> EigenvalueNoise:
        """One pass over any array that is part of what `moments` was taken over."""
        matrix = as_matrix(X).detach()
        directions, mean = _directions(moments)
        products = directions.new_zeros(len(directions), len(directions))
        for rows in blocks(matrix):
            squares = ((rows.double() - mean) @ directions.T).square()
            products = products + squares.T @ squares
        return cls(products)

    def merge(self, other: EigenvalueNoise) -> EigenvalueNoise:
        """Return the sums over the rows of both."""
        return EigenvalueNoise(self.products + other.products)

    def log_variance(self, slope: Tensor, values: Tensor, count: float) -> float:
        """Return the variance of Σ slope_k log λ_k over samples of so many rows; the slopes add up to 0.

        Args:
            slope: (r,) a factor for each rank, from the first on.
            values: (r,) the eigenvalues λ, of divisor n − 1.
            count: n.
        """
        r = len(slope)
        scaled = slope / values * count / (count - 1)
        return max(float(scaled @ self.products[:r, :r] @ scaled), 0.0) / (count * (count - 1))


def _directions(moments: Moments) -> tuple[Tensor, Tensor]:
    """Return the strongest directions and the mean, kept with the moments for the next block of rows."""
    held: tuple[Tensor, Tensor] | None = vars(moments).get("strongest")
    if held is None:
        principal = Principal.of(moments)
        held = vars(moments)["strongest"] = (principal.directions[:N_RANKS].detach(), principal.mean.detach())
    return held


declare(
    "eigenvalue_noise",
    EigenvalueNoise,
    lambda space, shelf: EigenvalueNoise.of(space, shelf.moments),
    builds_on="moments",
    operations=lambda d: 2 * d * min(d, N_RANKS) + 2 * min(d, N_RANKS) ** 2,
    bytes_held=lambda _n, d, _k: 8 * min(d, N_RANKS) ** 2,
)
