"""What few points on CUDA give in one recording each, where the general way takes tens of launches."""

from __future__ import annotations

import torch
from torch import Tensor

from isoscope.kernels.precision import full_precision
from isoscope.kernels.products import sum_of_squares
from isoscope.kernels.recorded import replayed
from isoscope.labels import Labels
from isoscope.statistics.directions import CONE, unit_rows
from isoscope.statistics.fused import FEW_POINTS, Fields, reduced

_NEAR_MEAN = 1e-6  # under this share of its terms a squared distance to a mean loses digits


def takes(X: Tensor) -> bool:
    """Return whether points are so few, and on CUDA."""
    return X.is_cuda and len(X) <= FEW_POINTS and not X.requires_grad


def squared_cosine_fields(X: Tensor, labels: Labels) -> Fields | None:
    """Cohesion, separation and nearest cluster by squared distances of unit vectors.

    None where rows have no direction, lie in a narrow cone, or are so near a mean that products lose digits.
    """
    if not takes(X):
        return None
    *fields, is_trusted = replayed(_cosine_fields, X, labels.codes, n_clusters=labels.n_labels)
    return (fields[0], fields[1], fields[2]) if bool(is_trusted) else None


@full_precision
def _cosine_fields(X: Tensor, codes: Tensor, n_clusters: int) -> tuple[Tensor, ...]:
    """Σ_{j∈k} ‖u − u_j‖² = n_k ‖u − μ_k‖² + Σ_{j∈k} ‖u_j − μ_k‖², about the mean of all; nothing waits."""
    units, norms = unit_rows(X)
    point = units.mean(dim=0)
    U = units - point
    members = U.new_zeros(len(X), n_clusters).scatter_(1, codes[:, None], 1)
    counts = members.sum(dim=0)
    means = members.T @ U / counts[:, None]
    within = members.T @ sum_of_squares(U - means[codes])
    terms = sum_of_squares(U)[:, None] + sum_of_squares(means)
    squares = torch.addmm(terms, U, means.T, alpha=-2)
    is_trusted = (norms > 0).all() & (torch.linalg.vector_norm(point) <= CONE)
    is_trusted &= (squares >= _NEAR_MEAN * terms).all()
    return *reduced(squares * counts + within, codes, counts), is_trusted


@full_precision
def distances_to(X: Tensor, chosen: Tensor) -> Tensor:
    """Return (n, m) float64 distances of points to those chosen, by products about the mean; nothing waits.

    They are for sums: a pair that is close for its distance to the mean keeps fewer digits.
    """
    U = X.double()
    U = U - U.mean(dim=0)
    squares = sum_of_squares(U)
    products = torch.addmm(squares[:, None], U, U[chosen].T, alpha=-2).add_(squares[chosen])
    return products.clamp_(min=0).scatter_(0, chosen[None], 0.0).sqrt_()  # a point to itself
