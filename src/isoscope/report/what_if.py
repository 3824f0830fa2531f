"""`WhatIf`: what the sliders of the page compute, from the same numbers that are embedded in it.

The page removes the k strongest principal directions and whitens the others by a strength s. Both are
diagonal in the principal basis, so little has to be embedded: the variances, the mean, and the coordinates
of a sample of points. `assets/what_if.js` has the same formulas; tests hold the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import InputError
from isoscope.statistics.directions import unit_rows
from isoscope.statistics.principal import Principal

MAX_REMOVED = 16  # directions the slider goes to


@dataclass(frozen=True, eq=False)
class WhatIf:
    """A space as it would be after its k strongest directions are removed and the others whitened by s.

        z_j ← 0 for j ≤ k,   z_j λ_j^(−s/2) otherwise;   λ_j ← λ_j^(1−s)

    with z the coordinates about the mean. s = 0 leaves the variances as they are, s = 1 makes them equal.
    Without removal and whitening the mean may be left in (`center=False`): that is the space as it came.

    Attributes:
        n_dims: d.
        eigenvalues: (r,) float64, of all vectors.
        coordinates: (m, r) float32, of the sampled points about the mean.
        mean: (r,) float64, the mean in the principal basis.
        mean_residual: length of the mean outside the principal directions.

    >>> X = [[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    >>> what_if = WhatIf.of(X)
    >>> what_if.isoscore(strength=1.0), what_if.isoscore(n_removed=1)
    (1.0, 0.0)
    """

    n_dims: int
    eigenvalues: Tensor
    coordinates: Tensor
    mean: Tensor
    mean_residual: float

    @classmethod
    def of(cls, X: Any, *, principal: Principal | None = None, rows: Tensor | None = None) -> WhatIf:
        """Of a space, with the sample of points that `rows` numbers; by default all of them."""
        matrix = as_matrix(X).detach()
        principal = principal or Principal.of(matrix)
        sample = matrix if rows is None else matrix[rows]
        mean = principal.directions @ principal.mean
        outside = principal.mean - mean @ principal.directions
        return cls(
            principal.n_dims,
            principal.eigenvalues,
            principal.coordinates(sample).float(),
            mean,
            float(outside.norm()),
        )

    @property
    def rank(self) -> int:
        """r, how many directions hold variance."""
        return len(self.eigenvalues)

    @property
    def max_removed(self) -> int:
        """How many directions can be removed: one has to stay."""
        return min(MAX_REMOVED, self.rank - 1)

    def spectrum(self, *, n_removed: int = 0, strength: float = 0.0) -> Tensor:
        """(r − k,) the variances that are left, in the order of the directions."""
        self._check(n_removed, strength)
        return self.eigenvalues[n_removed:] ** (1 - strength)

    def isoscore(self, *, n_removed: int = 0, strength: float = 0.0) -> float:
        """IsoScore of all vectors: ((Σ λ)²/Σ λ² − 1)/(d − 1)."""
        values = self.spectrum(n_removed=n_removed, strength=strength)
        values = values / values.sum()
        return float((1 / values.square().sum() - 1).clamp(min=0) / (self.n_dims - 1))

    def effective_rank(self, *, n_removed: int = 0, strength: float = 0.0) -> float:
        """exp of the entropy of the variances' shares, of all vectors."""
        values = self.spectrum(n_removed=n_removed, strength=strength)
        p = values / values.sum()
        return float((-(p * p.log()).sum()).exp())

    def points(self, *, n_removed: int = 0, strength: float = 0.0, center: bool = True) -> Tensor:
        """(m, r − k) the sampled points; with the mean in, one more column where it leaves the directions."""
        self._check(n_removed, strength, center=center)
        scaled = self.coordinates[:, n_removed:].double() * self.eigenvalues[n_removed:] ** (-strength / 2)
        if center:
            return scaled
        outside = torch.full((len(scaled), 1), self.mean_residual, dtype=torch.float64)
        return torch.cat([scaled + self.mean, outside], dim=1)

    def mean_cosine(self, *, n_removed: int = 0, strength: float = 0.0, center: bool = True) -> float | None:
        """Mean cosine over all pairs of the sampled points; None where fewer than two have a direction."""
        points = self.points(n_removed=n_removed, strength=strength, center=center)
        units, norms = unit_rows(points)
        n = int((norms > 0).sum())
        if n < 2:
            return None
        total = units.double().sum(dim=0)
        return float((total @ total - n) / (n * (n - 1)))

    def _check(self, n_removed: int, strength: float, *, center: bool = True) -> None:
        if not 0 <= n_removed < self.rank:
            raise InputError(
                f"n_removed is {n_removed}; wanted 0 to {self.rank - 1}: the rank is {self.rank}"
            )
        if not 0 <= strength <= 1:
            raise InputError(f"strength is {strength}; wanted 0 (as it is) to 1 (all variances equal)")
        if not center and (n_removed or strength):
            raise InputError("center is False; removing directions and whitening are about the mean")
