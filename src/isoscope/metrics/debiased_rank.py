"""The spectrum of the population that rows were drawn from, and RankMe without the bias of few rows."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isoscope.errors import UndefinedError
from isoscope.kernels.precision import LEAST_SUM
from isoscope.metrics.registry import metric
from isoscope.metrics.spectrum import uncentred_spectrum
from isoscope.statistics.moments import Moments

_N_VALUES = 120  # eigenvalues that the population may have, evenly spaced in their logarithm
_N_RIDGES = 60  # points at which degrees of freedom are compared
_BELOW, _LEAST = 1e-2, 1e-8  # the smallest of them, as a share of the smallest and largest one measured
_CERTAIN = 1e3  # weight of the shares' sum and of the trace, which are known
_SQUARE = 30.0  # weight of the trace of the square, which is unbiased but varies
_SMOOTH = 1e-3  # weight of the shares' squares: of spectra that fit alike, the most even one


@metric(
    family="quality",
    needs=("moments",),
    range=(0.0, math.inf),
    high="isotropic about the origin",
    better="high",
    invariances=("rotation", "scale"),
    paper="Garrido, Balestriero, Najman, LeCun 2023, RankMe; El Karoui 2008, Spectrum estimation",
    sentence="without the bias of few rows, the vectors use about {value:.1f} dimensions, mean included",
)
def rankme_debiased(X: Any) -> float:
    """Compute RankMe of the population that the rows were drawn from: without the bias of few rows.

        exp(−Σ p_i log p_i),   p_i = √t_i/Σ √t,   t the eigenvalues of E[x xᵀ]

    RankMe of a sample cannot exceed n. The eigenvalues t are estimated from those of the sample by the
    Marchenko–Pastur equation: a ridge x on the sample acts as another one, 1/v, on the population, so that

        Σ_i t_i/(t_i + 1/v) = n·(1 − x·v),   v(x) = mean over the n eigenvalues s of X Xᵀ/n of 1/(s + x)

    holds for every x as n and d grow. Of all spectra on a grid with the right trace, the one that comes
    closest by least squares is taken, and its trace of the square is held to an unbiased estimate. What n
    rows cannot resolve, eigenvalues below 1/v(0) where n < d, is filled in evenly; so there is no standard
    error, and with n far below d a bias of some ten per cent is left. Rows have to be independent. Range
    (0, d] up to the grid; high is isotropic about the origin. Invariant to rotation and one scale.
    Paper: Garrido et al. 2023, RankMe; El Karoui 2008.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(64, 300))  # RankMe of the population is 300, of X 61
    >>> 280 < rankme_debiased(X) < 305
    True
    """
    values, shares = population_spectrum(X)
    roots = values.sqrt()
    total = shares @ roots
    entropy = total.log() - shares @ (roots * torch.where(roots > 0, roots, 1.0).log()) / total
    return Moments.of(X).n_dims * math.exp(float(entropy))


def population_spectrum(X: Any) -> tuple[Tensor, Tensor]:
    """Estimate the eigenvalues of E[x xᵀ], not centred, and the share of the d dimensions that has each.

    See `rankme_debiased`. Returns two arrays of float64: values in ascending order, beginning with 0, in
    units of their mean, and shares that add up to 1.

    Args:
        X: (n, d) vectors in any array, or Moments.
    """
    from scipy.optimize import nnls

    moments = Moments.of(X)
    n, d = moments.count, moments.n_dims
    sample, square = _sample(moments)
    floor = float(sample[-1])
    ridges = _spaced(floor * _BELOW, float(sample[0]) * 10, _N_RIDGES).to(sample)
    zeros = max(n - len(sample), 0) / ridges
    v = ((1 / (sample[:, None] + ridges)).sum(dim=0) + zeros) / n
    freedom = (1 - ridges * v) * n / d
    least = max(floor * _BELOW, float(sample[0]) * _LEAST)
    values = torch.cat([sample.new_zeros(1), _spaced(least, float(sample[0]), _N_VALUES).to(sample)])
    rows = [
        values * v[:, None] / (1 + values * v[:, None]),
        _CERTAIN * torch.ones_like(values)[None],
        _CERTAIN * values[None],
        _SQUARE * values.square()[None] / square,
        _SMOOTH * torch.eye(len(values)).to(values),
    ]
    known = torch.tensor([_CERTAIN, _CERTAIN, _SQUARE]).to(values)
    wanted = torch.cat([freedom, known, torch.zeros_like(values)])
    shares, _ = nnls(torch.cat(rows).cpu().numpy(), wanted.cpu().numpy(), maxiter=100 * len(values))
    shares = torch.from_numpy(shares).to(values)
    return values, shares / shares.sum()


def _spaced(low: float, high: float, n: int) -> Tensor:
    """Return n numbers from low to high, evenly spaced in their logarithm."""
    return torch.linspace(math.log(low), math.log(high), n, dtype=torch.float64).exp()


def _sample(moments: Moments) -> tuple[Tensor, float]:
    """Return the eigenvalues of Σ x xᵀ/n above rounding and an unbiased tr(E[x xᵀ]²)/d.

    Both in units of tr/d: the mean of the eigenvalues.
    """
    n, d = moments.count, moments.n_dims
    if n < 2:
        raise UndefinedError(f"rankme_debiased needs at least 2 vectors; there is {n:g}")
    squares = uncentred_spectrum(moments).detach()
    total = float(squares.sum())
    if not total > LEAST_SUM:
        raise UndefinedError(f"rankme_debiased is undefined: all {n:g} vectors are zero")
    shares = squares[squares > 0] / total
    quartic = float(moments.moved(-moments.mean)[1]) / total / total  # Σ‖x‖⁴
    square = (float(shares @ shares) - quartic) * n / (n - 1)  # tr(E[x xᵀ]²)/(tr E[x xᵀ])²
    if not square > 1e-12:
        raise UndefinedError(
            f"rankme_debiased is undefined: {n:g} vectors at right angles show no direction twice; add some"
        )
    return shares * d, square * d
