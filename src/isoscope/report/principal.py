"""`Principal`: the principal directions of a space, their variances, and its mean."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, blocks
from isoscope.statistics.moments import Moments


@dataclass(frozen=True, eq=False)
class Principal:
    """The directions that hold variance, the strongest first, with products taken in float64.

    Attributes:
        n_dims: d, of the vectors.
        eigenvalues: (r,) variances with divisor n − 1, none of them rounding.
        basis: (d, r) the directions, one a column.
        mean: (d,) of the vectors.

    >>> Principal.of([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).eigenvalues.tolist()
    [6.0, 0.666...]
    """

    n_dims: int
    eigenvalues: Tensor
    basis: Tensor
    mean: Tensor

    @classmethod
    def of(cls, X: Any) -> Principal:
        """The principal directions of any array."""
        if isinstance(X, Principal):
            return X
        matrix = as_matrix(X).detach()
        moments = reduce(Moments.merge, (Moments.of(block.double()) for block in blocks(matrix)))
        moments.need_spread("principal directions")
        values, vectors = _decomposed(moments)
        kept = values > _noise(values, max(moments.count, moments.n_dims))
        return cls(
            moments.n_dims, values[kept] / (moments.count - 1), _signed(vectors[:, kept]), moments.mean
        )

    @property
    def rank(self) -> int:
        """r, how many directions hold variance."""
        return len(self.eigenvalues)

    def coordinates(self, X: Any) -> Tensor:
        """(n, r) float64 coordinates of vectors about the mean."""
        return (as_matrix(X).detach().double() - self.mean) @ self.basis


def _decomposed(moments: Moments) -> tuple[Tensor, Tensor]:
    """Eigenvalues of the scatter, largest first, and eigenvectors; on the smaller side."""
    if moments.factor is None:
        values, vectors = torch.linalg.eigh(moments.scatter)
        return values.flip(0), vectors.flip(1)
    _, roots, rows = torch.linalg.svd(moments.factor, full_matrices=False)
    return roots.square(), rows.T


def _noise(values: Tensor, size: float) -> float:
    """An eigenvalue up to here is rounding: what lies below 0 shows how far that reaches."""
    return max(float(values[0]) * size * 2**-52, -2 * float(values[-1]))


def _signed(basis: Tensor) -> Tensor:
    """Each direction with its largest coordinate positive, so that the same space gives the same picture."""
    largest = basis.gather(0, basis.abs().argmax(dim=0, keepdim=True))
    return basis * torch.where(largest < 0, -1.0, 1.0)
