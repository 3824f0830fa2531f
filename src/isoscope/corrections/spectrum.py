"""Principal directions of a covariance from its moments, with signs fixed and the numerical rank known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isoscope.errors import InputError
from isoscope.statistics.moments import Moments


@dataclass(frozen=True, eq=False)
class Principal:
    """Eigenvalues (d,) of the covariance, largest first, its eigenvectors (d, d), one a row, and its rank."""

    values: Tensor
    directions: Tensor
    rank: int


def principal(moments: Moments, what: str) -> Principal:
    """The eigendecomposition; each direction's largest coordinate is positive: no sign is left to chance.

    The rank counts eigenvalues above max(n, d)·ε of the largest: below, they are rounding.
    """
    n, d = moments.count, moments.n_dims
    if n < 2:
        raise InputError(f"{what} needs at least 2 vectors to have directions; got n_samples = {n}")
    if not moments.trace > 0:
        raise InputError(f"{what}: X has {n} points that are all equal; wanted points that differ")
    values, vectors = torch.linalg.eigh(moments.covariance)
    values, directions = values.flip(0).clamp(min=0), vectors.T.flip(0).contiguous()
    largest = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    floor = max(n, d) * torch.finfo(values.dtype).eps * values[0]
    rank = min(int((values > floor).sum()), int(n) - 1)
    return Principal(values, directions * largest.sign(), rank)


def ledoit_wolf(moments: Moments) -> float:
    """The share of the average variance that Ledoit and Wolf (2004) mix into a covariance, in [0, 1].

    γ = min(β²/δ², 1),   β² = (Σ‖u‖⁴/n − ‖S‖²)/n,   δ² = ‖S − (tr S/d)·1‖²,   S = A/n
    """
    n, d = moments.count, moments.n_dims
    frobenius = float(moments.squared_frobenius) / n**2
    distance = frobenius - float(moments.trace) ** 2 / (d * n**2)
    noise = (float(moments.quartic) / n - frobenius) / n
    return 1.0 if distance <= 0 else min(max(noise / distance, 0.0), 1.0)


def check_components(n_components: object, most: int, *, name: str = "n_components") -> None:
    """Raise InputError unless it is a whole number from 1 to `most`."""
    whole = isinstance(n_components, int) and not isinstance(n_components, bool)
    if not whole or not 1 <= n_components <= most:  # type: ignore[operator]
        raise InputError(f"{name} is {n_components!r}; wanted a whole number from 1 to {most}")
