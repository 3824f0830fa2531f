"""When float32 algebra can be trusted for squared distances, and what to do when it cannot."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from isoscope.arrays import blocks
from isoscope.errors import InputError
from isoscope.kernels.selection import medians

# ‖a‖² + ‖b‖² − 2a·b under this share of its largest term has lost too many digits to cancellation
NEAR = {torch.float32: 1e-3, torch.float64: 1e-8}
_CENTERED = 2.0  # a mean within so many units of zero costs products at most two bits
_PLAIN_UNITS = (2.0**-16, 2.0**16)  # lengths whose squares are far from overflow need no unit
_NARROW = 32  # up to here a product is so cheap that float64 costs nothing
CROWDED = 0.1  # share of near pairs above which all pairs of a tile are taken again together
DIRECT_BYTES = 2 * 2**20  # of rows in float64 that are taken by direct difference at a time
LEAST_SUM = 1e-290  # below, squares and fourth powers are held with fewer digits or none
# float32 squares and cubes are trusted while a coordinate's mean square lies in here; outside, float64
_FLOAT32_RANGE = (1e-17, 1e17)
FEW_ROWS = 0.25  # a share of Σ‖u‖⁴ in (Σ‖u‖²)² that four rows far from all others make
_FLAT = 1e-12  # a mean square spread under this share of the squared mean may be nothing but rounding
_VANISHED = 1e-305  # stands for squares that underflow, so that a sum of them is refused as too small

_P = ParamSpec("_P")
_R = TypeVar("_R")


def full_precision(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run a function's products as written, whatever autocast or TF32 setting surrounds the caller."""

    @wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        tf32 = torch.backends.cuda.matmul.allow_tf32
        if not (tf32 or torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu")):
            return function(*args, **kwargs)  # nothing to guard against: entering both costs 20 µs
        torch.backends.cuda.matmul.allow_tf32 = False
        try:
            with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
                return function(*args, **kwargs)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = tf32

    return guarded


def pair_dtype(X: Tensor) -> torch.dtype:
    """Return the type for products of rows of X."""
    return torch.float64 if X.dtype == torch.float64 or X.shape[1] <= _NARROW else torch.float32


def center_and_unit(X: Tensor) -> tuple[Tensor, float]:
    """(d,) the mean in float64, and the root mean square distance to it (1 if all points are equal)."""
    n = X.shape[0]
    center = torch.stack([block.double().sum(dim=0) for block in blocks(X)]).sum(dim=0) / n
    largest = max(float((block.double() - center).abs().max()) for block in blocks(X)) or 1.0
    square = sum(float(((block.double() - center) / largest).square().sum()) for block in blocks(X)) / n
    return center, largest * (square**0.5 or 1.0)


def check_spread(spread: float, *, differ: bool = False) -> None:
    """Raise InputError where a sum of squares is so large or small that float64 holds fewer digits of it.

    A sum of 0 is refused too where what was squared is known to `differ` from 0.
    """
    if not spread < math.inf:
        raise InputError("X is too large for float64 to square (over about 1e150); divide it by its largest")
    if 0 < spread < LEAST_SUM or (differ and spread == 0):
        raise InputError(
            "X is too small for float64 to square (under about 1e-145); divide it by its largest"
        )


def seen_squares(squares: Tensor, steps: Tensor) -> Tensor:
    """Return sums of the squares of steps; where all underflow to 0, a number that `check_spread` refuses."""
    if bool(squares.any()) or not bool(steps.any()):
        return squares
    return squares + _VANISHED


def two_sum(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return a + b, rounded, and exactly what rounding left of it.

    >>> two_sum(torch.tensor(1e16).double(), torch.tensor(1.0).double())[1]
    tensor(1., dtype=torch.float64)
    """
    total = a + b
    added = total - a
    return total, (a - (total - added)) + (b - added)


def length_unit(rows: Tensor, origin: Tensor) -> float:
    """Return a power of two near the root mean square distance of some rows to the origin, or 0."""
    steps = rows.double() - origin.double()
    largest = float(steps.abs().max())
    if not 0 < largest < math.inf:
        return 0.0
    return float(
        2.0 ** round(math.log2(largest * float((steps / largest).square().sum(dim=1).mean().sqrt())))
    )


def hangs_on_few(spread: float, quartic: float) -> bool:
    """Whether a few rows make so much of Σ‖u‖⁴ that what the others add to ‖A‖² needs float64."""
    return quartic > FEW_ROWS * spread * spread  # a power of floats may overflow


def float32_suits(spread: float, quartic: float, n: float, d: int) -> bool:
    """Whether sums in float32 keep their digits: of n rows in d dimensions with this Σ‖u‖² and Σ‖u‖⁴."""
    return _FLOAT32_RANGE[0] < spread / (n * d) < _FLOAT32_RANGE[1] and not hangs_on_few(spread, quartic)


def is_flat(spread: float, mean_square: float, n: float) -> bool:
    """Whether the spread of n rows with a mean of this squared length may be the rounding of equal rows."""
    return spread <= _FLAT * n * mean_square


@dataclass(frozen=True, eq=False)
class Frame:
    """How rows are placed for products: about a centre and in a unit, where they need either.

    Attributes:
        center: (d,) of the type products are taken in, so that subtracting it is exact to rounding; None
            where the points lie about zero.
        unit: the length that one stands for, a power of two.
        dtype: the type products are taken in.
        n_dims: d.
    """

    center: Tensor | None
    unit: float
    dtype: torch.dtype
    n_dims: int

    @classmethod
    def of(cls, rows: Tensor) -> Frame:
        """From some of the rows: a centre and a unit only have to be near."""
        dtype = pair_dtype(rows)
        origin = rows.double().mean(dim=0).to(dtype)
        unit = length_unit(rows, origin) or length_unit(rows, torch.zeros_like(origin)) or 1.0
        far = float(torch.linalg.vector_norm(origin.double() / unit)) > _CENTERED
        plain = _PLAIN_UNITS[0] <= unit <= _PLAIN_UNITS[1]
        return cls(origin if far else None, 1.0 if plain else unit, dtype, rows.shape[1])

    def place(self, rows: Tensor) -> Tensor:
        """Return the rows in the frame, without a copy if nothing changes."""
        placed = rows.to(self.dtype)
        if self.center is not None:
            placed = placed - self.center
        return placed if self.unit == 1 else placed * (1 / self.unit)

    def residuals(self, rows: Tensor, means: Tensor) -> Tensor:
        """Rows minus their means, which are float64 and in the frame, without loss."""
        about = 0.0 if self.center is None else self.center.double()
        return ((rows.double() - about) / self.unit - means).to(self.dtype)


def direct_distances(A: Tensor, B: Tensor) -> Tensor:
    """Return (a, b) distances between all rows of A and of B by difference, never by products."""
    return torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist")


def crowded_squares(A: Tensor, B: Tensor, *, near: float = NEAR[torch.float64]) -> Tensor:
    """Return (a, b) squared distances between float64 rows of which many pairs are near each other.

    By products about the middle of B, and by difference what even float64 products cannot tell. A few rows
    far from all others make all the rest near by comparison; they need no difference pair by pair. What is
    under the share `near` of its largest term is taken by difference.
    """
    middle = medians(B, dim=0)
    a, b = A - middle, B - middle
    a_squares, b_squares = a.square().sum(dim=1), b.square().sum(dim=1)
    squares = torch.addmm(a_squares[:, None] + b_squares, a, b.T, alpha=-2)
    close = squares < near * (a_squares[:, None] + b_squares)
    if int(close.sum()) > CROWDED * squares.numel():
        return direct_distances(A, B).square()
    i, j = close.nonzero(as_tuple=True)
    squares[i, j] = direct_squares(A, i, B, j, 1.0)
    return squares


def direct_squares(A: Tensor, i: Tensor, B: Tensor, j: Tensor, unit: float) -> Tensor:
    """(p,) ‖(A[i] − B[j])/unit‖² for p pairs of rows, by direct difference in float64."""
    chunk = max(1, DIRECT_BYTES // (8 * A.shape[1]))
    parts = [
        ((A[i[start : start + chunk]].double() - B[j[start : start + chunk]].double()) / unit)
        .square()
        .sum(dim=1)
        for start in range(0, len(i), chunk)
    ]
    return torch.cat(parts) if parts else A.new_empty(0, dtype=torch.float64)
