"""`KernelAlignment`: the centred kernel alignment of several spaces of the same items, with its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from isoscope.arrays import as_matrix
from isoscope.errors import ShapeError, UndefinedError

MIN_ROWS = 5  # of a block: one is left out, and the unbiased estimate takes four
_MAX_ROWS = 4096  # of a block
_KERNEL_BYTES = 2**29  # of the n × n products of all spaces in a block
_PRODUCT_BYTES = 2**26  # of rows that are multiplied at once


@dataclass(frozen=True, eq=False)
class KernelAlignment:
    """The Hilbert-Schmidt independence criterion (HSIC) of all pairs of L spaces, with the linear kernel.

    A block of m rows gives HSIC from m × m products, however many dimensions the spaces have, and its
    covariances by leaving each row out in turn, exactly. HSIC is a mean over pairs of rows: what pairs alone
    add to its variance is counted twice by leaving out rows (Efron, Stein 1981), and is taken off once; it is
    half of the jackknife's variance where the spaces have nothing in common. The unbiased HSIC of several
    blocks (Song et al. 2012) is their mean, weighted by their rows, which is how one pass over many rows goes
    (Nguyen et al. 2021). The plain one is biased by the number of rows of a block, so it takes all at once.

    Attributes:
        count: rows.
        hsic: (L, L) Σ_b m_b HSIC_b over the blocks b.
        covariances: (4, L, L) Σ_b m_b² cov_b of HSIC_ij with itself, with HSIC_ii and with HSIC_jj, and of
            HSIC_ii with HSIC_jj, by the jackknife.
        pair_covariances: (4, L, L) the same of what comes from pairs of rows alone.
        debias: whether the unbiased estimate was taken.
    """

    count: int
    hsic: Tensor
    covariances: Tensor
    pair_covariances: Tensor
    debias: bool

    @classmethod
    def of(cls, spaces: Sequence[Any], *, debias: bool = True, seed: int = 0) -> KernelAlignment:
        """Return the alignment of L arrays, (n, d) each with its own d; row i is the same item in all.

        More rows than `block_rows(L)` are dealt to blocks of equal size at random, by `seed`: blocks of rows
        that were sorted would not be like the whole.
        """
        rows = [as_matrix(space, name=f"spaces[{i}]").detach() for i, space in enumerate(spaces)]
        n = len(rows[0])
        for i, other in enumerate(rows):
            if len(other) != n:
                raise ShapeError(
                    f"has {len(other):,} rows", argument=f"spaces[{i}]", wanted=f"{n:,}, as the first has"
                )
        if n < MIN_ROWS:
            raise UndefinedError(f"a kernel alignment with its error needs {MIN_ROWS} rows; there are {n}")
        n_blocks = -(-n // block_rows(len(rows))) if debias else 1
        if n_blocks == 1:
            return _of_block(rows, debias)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        dealt = (order[n * block // n_blocks : n * (block + 1) // n_blocks] for block in range(n_blocks))
        parts = (_of_block([one[some.to(one.device)] for one in rows], debias) for some in dealt)
        return reduce(KernelAlignment.merge, parts)

    def merge(self, other: KernelAlignment) -> KernelAlignment:
        """Return the alignment of the rows of both; both are debiased."""
        if not (self.debias and other.debias):
            raise UndefinedError("the plain HSIC takes all rows at once", hint="pass debias=True")
        return KernelAlignment(
            self.count + other.count,
            self.hsic + other.hsic,
            self.covariances + other.covariances,
            self.pair_covariances + other.pair_covariances,
            True,
        )

    def cka(self) -> tuple[Tensor, Tensor]:
        """Return (L, L) linear CKA of all pairs and its standard errors; NaN where it is undefined."""
        H = self.hsic / self.count
        diagonal = torch.where(H.diagonal() > 0, H.diagonal(), math.nan)
        value = H / (diagonal[:, None] * diagonal).sqrt()
        jackknife, pairs = (
            _variance_of_ratio(H, diagonal, covariances / self.count**2)
            for covariances in (self.covariances, self.pair_covariances)
        )
        variance = torch.maximum(jackknife - pairs, pairs)  # pairs are a part of it
        exact = torch.eye(len(H), dtype=torch.bool, device=H.device) & torch.isfinite(value)
        value, variance = value.clamp(max=1).masked_fill(exact, 1), variance.masked_fill(exact, 0)
        return value, variance.clamp(min=0).sqrt()


def _variance_of_ratio(H: Tensor, diagonal: Tensor, covariances: Tensor) -> Tensor:
    """Return (L, L) variances of H_ij/√(H_ii H_jj) by the delta method."""
    own, left, right, both = covariances
    ii, jj = diagonal[:, None], diagonal
    scale = (ii * jj).sqrt()
    value, variances = H / scale, own.diagonal()
    of_scale = variances[:, None] / ii**2 + variances / jj**2 + 2 * both / (ii * jj)
    return own / scale**2 + value**2 / 4 * of_scale - value / scale * (left / ii + right / jj)


def block_rows(n_spaces: int) -> int:
    """Return how many rows of so many spaces a block takes at most."""
    return min(_MAX_ROWS, math.isqrt(_KERNEL_BYTES // (8 * n_spaces)))


def _of_block(spaces: Sequence[Tensor], debias: bool) -> KernelAlignment:
    m = len(spaces[0])
    kernels = torch.stack([_centred_kernel(rows).to(spaces[0].device) for rows in spaces])
    squares = kernels.diagonal(dim1=1, dim2=2)  # (L, m): p of every space
    traces = squares.sum(dim=1)
    products = _row_products(kernels)  # (m, L, L): Σ_s K_i[r, s] K_j[r, s]
    frobenius, quartic = products.sum(dim=0), squares @ squares.T
    p, q = squares.T[:, :, None], squares.T[:, None, :]  # of each row r, (m, L, 1) and (m, 1, L)
    a, s = m / (m - 1), 1 / (m - 1)
    left_frobenius = frobenius - 2 * a * products + a**2 * p * q
    of_pairs = _covariances_of_pairs(kernels, squares)
    if not debias:
        return _gathered(frobenius / (m - 1) ** 2, left_frobenius / (m - 2) ** 2, of_pairs, False)
    cubic = torch.einsum("jrs,is->rij", kernels, squares)  # v_r · Σ_t p_t v_t, p of space i and v of space j
    about_others = (
        quartic + 2 * s * (cubic + cubic.transpose(1, 2)) + 4 * s**2 * products + m * s**4 * p * q
        + s**2 * (q * traces[:, None] + p * traces)
    )  # fmt: skip
    left_quartic = about_others - a**4 * p * q
    left_traces = (traces[:, None] - a * p) * (traces - a * q)
    whole = _unbiased(frobenius, quartic, traces[:, None] * traces, m)
    return _gathered(whole, _unbiased(left_frobenius, left_quartic, left_traces, m - 1), of_pairs, True)


def _covariances_of_pairs(kernels: Tensor, squares: Tensor) -> Tensor:
    """Return (4, L, L) covariances of HSIC that come from pairs of rows alone, in the order of `covariances`.

    HSIC_ij is the mean over pairs r ≠ s of h = A_i A_j, with A the kernels without diagonal, centred so that
    rows add up to 0. What h has beyond the means of its row and column, g, adds 2·mean(g g′)/m² to a
    covariance.
    """
    L, m, _ = kernels.shape
    sides = squares[:, :, None] + squares[:, None, :]
    centred = kernels + sides / (m - 2) - squares.sum(dim=1)[:, None, None] / ((m - 1) * (m - 2))
    centred.diagonal(dim1=1, dim2=2).zero_()
    covariances = kernels.new_zeros(4, L, L)
    own = [_beyond_rows(one.square()) for one in centred]
    for i in range(L):
        for j in range(i + 1):
            h = own[i] if i == j else _beyond_rows(centred[i] * centred[j])
            parts = [(h * h).sum(), (h * own[i]).sum(), (h * own[j]).sum(), (own[i] * own[j]).sum()]
            covariances[:, i, j] = covariances[:, j, i] = torch.stack(parts)
            covariances[1:3, j, i] = covariances[1:3, i, j].flip(0)
    return 2 / (m * (m - 1) * m**2) * covariances


def _beyond_rows(h: Tensor) -> Tensor:
    """Return a symmetric (m, m) table without diagonal, less what its rows and columns explain."""
    m = len(h)
    means = h.sum(dim=1) / (m - 2)
    rest = h - means[:, None] - means + h.sum() / ((m - 1) * (m - 2))
    return rest.fill_diagonal_(0.0)


def _gathered(whole: Tensor, left_out: Tensor, of_pairs: Tensor, debias: bool) -> KernelAlignment:
    """Return HSIC of a block of m rows, and its covariances by the jackknife and from pairs."""
    m = len(left_out)
    spread = left_out - left_out.mean(dim=0)
    own = spread.diagonal(dim1=1, dim2=2)  # (m, L)
    covariances = torch.stack(
        [
            spread.square().sum(dim=0),
            torch.einsum("rij,ri->ij", spread, own),
            torch.einsum("rij,rj->ij", spread, own),
            own.T @ own,
        ]
    )
    return KernelAlignment(m, m * whole, m**2 * (m - 1) / m * covariances, m**2 * of_pairs, debias)


def _unbiased(frobenius: Tensor, quartic: Tensor, traces: Tensor, n: int) -> Tensor:
    """Return the estimate of Song et al. 2012 for centred rows."""
    return (frobenius - n / (n - 2) * quartic + traces / ((n - 1) * (n - 2))) / (n * (n - 3))


def _centred_kernel(rows: Tensor) -> Tensor:
    """(m, m) products of the centred rows."""
    centred = rows.double()
    centred = centred - centred.mean(dim=0)
    return centred @ centred.T


def _row_products(kernels: Tensor) -> Tensor:
    """(m, L, L) products of the rows r of all pairs of kernels."""
    L, m, _ = kernels.shape
    step = max(1, _PRODUCT_BYTES // (8 * L * m))
    parts = [part.transpose(0, 1) for part in kernels.split(step, dim=1)]
    return torch.cat([part @ part.transpose(1, 2) for part in parts])
