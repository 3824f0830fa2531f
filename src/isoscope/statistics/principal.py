"""`Principal`: the principal directions of a space, their variances, and its mean."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.errors import InputError
from isoscope.statistics.moments import Moments


@dataclass(frozen=True, eq=False)
class Principal:
    """The directions that hold variance, the strongest first; all in float64.

    Attributes:
        eigenvalues: (r,) of the covariance, divisor n − 1, none of them rounding.
        directions: (r, d) its eigenvectors, one a row, each with its largest coordinate positive.
        mean: (d,) of the vectors.

    >>> Principal.of([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).eigenvalues.tolist()
    [6.0, 0.666...]
    """

    eigenvalues: Tensor
    directions: Tensor
    mean: Tensor

    @classmethod
    def of(cls, X: Any, *, what: str = "a principal direction") -> Principal:
        """Of any array, or of moments, on the smaller side; `what` is named where there are none.

        Eigenvalues that may be rounding are left out.
        """
        if isinstance(X, Principal):
            return X
        moments = wide_moments(X)
        n, d = moments.count, moments.n_dims
        if n < 2:
            raise InputError(f"has n_samples = {n}", argument="X", wanted=f"at least 2 vectors for {what}")
        if not moments.trace > 0:
            raise InputError(f"has {n} equal points", argument="X", wanted=f"points that differ for {what}")
        values, directions = _decomposed(moments)
        rank = min(int((values > rounding(values, max(n, d))).sum()), int(n) - 1)
        return cls(values[:rank] / (n - 1), _signed(directions[:rank]), moments.mean)

    @property
    def rank(self) -> int:
        """r, how many directions hold variance."""
        return len(self.eigenvalues)

    @property
    def n_dims(self) -> int:
        """d, of the vectors."""
        return len(self.mean)

    def coordinates(self, X: Any) -> Tensor:
        """(n, r) float64 coordinates of vectors about the mean."""
        return (as_matrix(X).detach().double() - self.mean) @ self.directions.T

    def completed(self) -> Principal:
        """With all d directions: those without variance, at eigenvalue 0, make the basis whole."""
        basis = torch.linalg.qr(self.directions.T, mode="complete").Q.T
        rest = _signed(basis[self.rank :])
        values = torch.cat([self.eigenvalues, self.eigenvalues.new_zeros(len(rest))])
        return Principal(values, torch.cat([self.directions, rest]), self.mean)


def wide_moments(X: Any) -> Moments:
    """Moments with products in float64, one block at a time, whatever came in; Moments pass through."""
    if isinstance(X, Moments):
        return X
    return reduce(Moments.merge, (Moments.of(block.double()) for block in blocks(as_matrix(X).detach())))


def rounding(eigenvalues: Tensor, size: int) -> float:
    """Below this an eigenvalue is rounding: size · 2^−52 of the largest, or twice the most negative one.

    A scatter has no negative eigenvalues, so what is below 0 shows how far rounding reaches; products of
    float32 vectors reach about 1e-7 of the largest eigenvalue, in both directions, whatever n and d.
    """
    return max(float(eigenvalues[0]) * size * 2**-52, -2 * float(eigenvalues[-1]))


def _decomposed(moments: Moments) -> tuple[Tensor, Tensor]:
    """Eigenvalues of the scatter, largest first, and eigenvectors, one a row."""
    if moments.factor is None:
        values, vectors = torch.linalg.eigh(moments.scatter)
        return values.flip(0), vectors.T.flip(0)
    _, roots, directions = torch.linalg.svd(moments.factor, full_matrices=False)
    return roots.square(), directions


def _signed(directions: Tensor) -> Tensor:
    """Each with its largest coordinate positive: no sign is left to chance."""
    largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    return directions * torch.where(largest < 0, -1.0, 1.0)


def ledoit_wolf(moments: Moments) -> float:
    """Return the share of the average variance that Ledoit and Wolf (2004) mix into a covariance, in [0, 1].

    γ = min(β²/δ², 1),   β² = (Σ‖u‖⁴/n − ‖S‖²)/n,   δ² = ‖S − (tr S/d)·1‖²,   S = A/n
    """
    n, d = moments.count, moments.n_dims
    frobenius = float(moments.squared_frobenius) / n**2
    distance = frobenius - float(moments.trace) ** 2 / (d * n**2)
    noise = (float(moments.quartic) / n - frobenius) / n
    return 1.0 if distance <= 0 else min(max(noise / distance, 0.0), 1.0)
