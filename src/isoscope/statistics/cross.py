"""`CrossMoments`: two spaces over the same items, and what varies in both together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, block_rows
from isoscope.errors import InputError, ShapeError, UndefinedError
from isoscope.kernels.precision import LEAST_SUM
from isoscope.statistics.declared import declare


@dataclass(frozen=True, eq=False)
class CrossMoments:
    """With u = x − mean x and v = y − mean y, summed over the rows, in float64:

        A = Σ u uᵀ,   B = Σ v vᵀ,   C = Σ u vᵀ,   Σ ‖u‖⁴,   Σ ‖v‖⁴,   Σ ‖u‖² ‖v‖²

    Blocks of rows can be taken alone and merged: linear CKA, plain or debiased, and the Procrustes distance
    then take one pass.

    Attributes:
        count: rows.
        left_mean, right_mean: (d,) and (e,) means of x and y.
        left, right, cross: A (d, d), B (e, e) and C (d, e).
        left_quartic, right_quartic, cross_quartic: the last three.
        cubics: Σ ‖u‖² u (d,), Σ ‖v‖² v (e,), Σ ‖u‖² v (e,) and Σ ‖v‖² u (d,), which merging needs; None
            where these moments will not be merged.

    >>> CrossMoments.of([[0.0], [2.0]], [[0.0, 1.0], [0.0, 3.0]]).cross
    tensor([[0., 2.]], dtype=torch.float64)
    """

    count: int
    left_mean: Tensor
    right_mean: Tensor
    left: Tensor
    right: Tensor
    cross: Tensor
    left_quartic: Tensor
    right_quartic: Tensor
    cross_quartic: Tensor
    cubics: tuple[Tensor, Tensor, Tensor, Tensor] | None = None

    @classmethod
    def of(cls, X: Any, Y: Any = None) -> CrossMoments:
        """Row i of X goes with row i of Y; dimensions may differ. CrossMoments pass through unchanged."""
        if isinstance(X, CrossMoments):
            return X
        x, y = as_matrix(X).detach(), as_matrix(Y, name="Y").detach()
        if len(x) != len(y):
            raise ShapeError(
                f"has {len(y)} rows", argument="Y", wanted=f"{len(x)}, the items of `X` in the same order"
            )
        y = y.to(x.device)
        means = _mean(x), _mean(y)
        sums: list[Tensor] = []
        for u, v in centred_pairs(x, y, *means):
            p, q = u.square().sum(dim=1), v.square().sum(dim=1)
            part = [u.T @ u, v.T @ v, u.T @ v, p @ p, q @ q, p @ q, p @ u, q @ v, p @ v, q @ u]
            sums = part if not sums else [total + more for total, more in zip(sums, part, strict=True)]
        return cls._gathered(len(x), *means, sums)

    def merge(self, other: CrossMoments) -> CrossMoments:
        """Return the moments of the rows of both, about their common means."""
        steps = other.left_mean - self.left_mean, other.right_mean - self.right_mean
        n = self.count + other.count
        share = other.count / n
        first = self._moved(*(step * share for step in steps))
        second = other._moved(*(step * (share - 1) for step in steps))
        sums = [a + b for a, b in zip(first, second, strict=True)]
        means = self.left_mean + steps[0] * share, self.right_mean + steps[1] * share
        return CrossMoments._gathered(n, *means, sums)

    @classmethod
    def _gathered(cls, n: int, left_mean: Tensor, right_mean: Tensor, sums: list[Tensor]) -> CrossMoments:
        left, right, cross, left_quartic, right_quartic, cross_quartic, pu, qv, pv, qu = sums
        quartics = left_quartic, right_quartic, cross_quartic
        return cls(n, left_mean, right_mean, left, right, cross, *quartics, cubics=(pu, qv, pv, qu))

    def _moved(self, m: Tensor, k: Tensor) -> list[Tensor]:
        """Return all sums about the means plus m and k, using Σu = 0 and Σv = 0."""
        assert self.cubics is not None, "taken to be used at once"
        n, a, b = self.count, self.left.trace(), self.right.trace()
        pu, qv, pv, qu = self.cubics
        mm, kk = m @ m, k @ k
        Am, Bk, Ck, mC = self.left @ m, self.right @ k, self.cross @ k, m @ self.cross
        return [
            self.left + n * torch.outer(m, m),
            self.right + n * torch.outer(k, k),
            self.cross + n * torch.outer(m, k),
            self.left_quartic - 4 * pu @ m + 2 * mm * a + 4 * m @ Am + n * mm * mm,
            self.right_quartic - 4 * qv @ k + 2 * kk * b + 4 * k @ Bk + n * kk * kk,
            self.cross_quartic - 2 * (pv @ k + qu @ m) + kk * a + mm * b + 4 * mC @ k + n * mm * kk,
            pu - m * a - 2 * Am - n * mm * m,
            qv - k * b - 2 * Bk - n * kk * k,
            pv - k * a - 2 * mC - n * mm * k,
            qu - m * b - 2 * Ck - n * kk * m,
        ]

    def need_rows(self, what: str, n: int = 2) -> None:
        """Raise UndefinedError unless there are n rows, InputError where their squares lose digits."""
        if self.count < n:
            raise UndefinedError(f"{what} needs at least {n} rows; there are {self.count}")
        for side, name in ((self.left, "X"), (self.right, "Y")):
            if bool(side.any()) and not LEAST_SUM < float(side.trace().square()) < math.inf:
                raise InputError(
                    "leaves the range that float64 can square twice (about 1e-72 to 1e75)",
                    argument=name,
                    hint="divide it by its largest value",
                )

    def need_spread(self, what: str, n: int = 2) -> None:
        """Raise as `need_rows`, and UndefinedError unless the rows differ in both spaces."""
        self.need_rows(what, n)
        for side, name in ((self.left, "X"), (self.right, "Y")):
            if not bool(side.trace() > 0):
                raise UndefinedError(f"{what} is undefined: all {self.count} points of {name} are equal")

    @cached_property
    def nuclear_norm(self) -> Tensor:
        """‖C‖_*, the sum of the singular values of C."""
        return torch.linalg.svdvals(self.cross).sum()


def centred_pairs(x: Tensor, y: Tensor, x_mean: Tensor, y_mean: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield blocks of the rows of x and of y less their means, in float64."""
    step = block_rows(max(x.shape[1], y.shape[1]))
    for x_block, y_block in zip(x.split(step), y.split(step), strict=True):
        yield x_block.double() - x_mean, y_block.double() - y_mean


def rotated_residual(pairs: Iterable[tuple[Tensor, Tensor]], cross: Tensor) -> Tensor:
    """Return min_Q Σ ‖u − Q v‖² from the rows, the shorter vectors filled with zeros.

        Σ ‖Lᵀu − Rᵀv‖² + ‖u − L Lᵀu‖² + ‖v − R Rᵀv‖²,   C = Σ u vᵀ = L S Rᵀ

    Nothing cancels, as it does in Σ ‖u‖² + Σ ‖v‖² − 2‖C‖_* where the spaces are nearly the same.
    """
    left, _, right = torch.linalg.svd(cross, full_matrices=False)
    total = cross.new_zeros(())
    for u, v in pairs:
        a, b = u @ left, v @ right.T
        total = total + (a - b).square().sum()
        total = total + (u - a @ left.T).square().sum() + (v - b @ right).square().sum()
    return total


def _mean(X: Tensor) -> Tensor:
    """(d,) float64, block by block: no copy of all of X is made."""
    total = torch.zeros(X.shape[1], dtype=torch.float64, device=X.device)
    for block in X.split(block_rows(X.shape[1])):
        total += block.double().sum(dim=0)
    return total / len(X)


declare(  # operations: three products of d × d, and sums
    "cross_moments", CrossMoments, lambda space, _: CrossMoments.of(space.vectors, space.partners),
    operations=lambda d: 6 * d * d, bytes_held=lambda _n, d, _k: 8 * d * (3 * d + 6), groups="partners",
)  # fmt: skip
