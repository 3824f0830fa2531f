"""The collapse law in closed form: IsoScore of collapsed labels, and where the first motion takes it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from isoscope.errors import InputError
from isoscope.metrics.frontier import whole


def collapse_value(counts: Sequence[float] | Tensor, n_dims: int) -> float:
    """Compute the IsoScore of labels that have collapsed to the corners of a regular simplex.

        PR = (1 − s₂)²/(s₂ − 2·s₃ + s₂²),   s_m = Σ_k p_k^m,   collapse value = (PR − 1)/(d − 1)

    where p_k is the share of rows with label k. Balanced labels have PR = K − 1, so (K − 2)/(d − 1); two
    labels have 0 in any proportions. That labels of different size end so is an assumption. A regular simplex
    has room for K ≤ d + 1 labels. For more the value is 1: where squared loss with a bias takes balanced
    labels, and an upper bound for all others, which can end well below (docs/collapse-law.md). Range [0, 1].
    Paper: Papyan, Han, Donoho 2020 for the simplex.

    Args:
        counts: the number of rows, or the share, of each label.
        n_dims: d, the number of dimensions.

    >>> round(collapse_value([50] * 10, 65), 6)  # (K − 2)/(d − 1)
    0.125
    >>> round(collapse_value([90, 10], 64), 6), round(collapse_value([1] * 65, 64), 6)
    (0.0, 1.0)
    """
    p = torch.as_tensor(counts, dtype=torch.float64)
    p = p[p > 0] / p.sum()
    if len(p) < 2:
        raise InputError(argument="counts", got=f"{len(p)} label", wanted="at least 2 labels with rows")
    d = whole("n_dims", n_dims, 2)
    if len(p) > d + 1:
        return 1.0
    second, third = p.square().sum(), p.pow(3).sum()
    participation = float((1 - second).square() / (second - 2 * third + second.square()))
    return min(1.0, max(0.0, (participation - 1) / (d - 1)))


def collapse_value_of_sets(indicator: Tensor, n_dims: int) -> float:
    """Compute the IsoScore of rows with sets of labels, each the sum of the directions of its labels.

        PR = tr(C)²/‖C‖_F²,   C the covariance of the (n, L) indicator;   (PR − 1)/(d − 1)

    with directions of one length at right angles, an assumption. For L > d + 1, which do not fit, it is
    1, an upper bound. For sets of one label it is `collapse_value`.

    >>> one_each = torch.eye(10).repeat(5, 1)
    >>> round(collapse_value_of_sets(one_each, 64), 12) == round(8 / 63, 12)
    True
    """
    if indicator.shape[1] > n_dims + 1:
        return 1.0
    centred = indicator.double() - indicator.double().mean(dim=0)
    C = centred.T @ centred
    participation = float(C.trace().square() / C.square().sum())
    return min(1.0, max(0.0, (participation - 1) / (n_dims - 1)))


def isoscore_derivative(covariance: Tensor, motion: Tensor) -> float:
    """Compute the derivative of IsoScore as the covariance moves.

        dIsoScore = 2·c·⟨I − c·Σ, dΣ⟩/(d − 1),   c = tr Σ/‖Σ‖_F²

    Args:
        covariance: (d, d) Σ.
        motion: (d, d) dΣ.
    """
    d = len(covariance)
    c = covariance.trace() / covariance.square().sum()
    return float(2 * c * (motion.trace() - c * (covariance * motion).sum()) / (d - 1))
