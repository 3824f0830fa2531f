"""Sums of products of which one triangle is held."""

from __future__ import annotations

import pytest
import torch

from isoscope.kernels.products import panels
from isoscope.kernels.symmetric_sum import SymmetricSum

CPU = torch.device("cpu")


def rows_of(n: int, d: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return rows whose coordinates differ in size."""
    draw = torch.Generator().manual_seed(0)
    return (torch.randn(n, d, generator=draw) * torch.linspace(1, 9, d)).to(dtype)


def largest_error(total: SymmetricSum, X: torch.Tensor) -> float:
    """Return the largest difference from products in float64, in root mean squares of the coordinates."""
    wide = X.double().T @ X.double()
    sizes = wide.diagonal().sqrt()
    assert torch.equal(total.matrix(), total.matrix().T)
    assert torch.equal(total.diagonal, total.matrix().diagonal())
    return float(((total.matrix() - wide).abs() / (sizes[:, None] * sizes)).max())


@pytest.mark.parametrize("d", [1, 30, 191, 400])
@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_blocks_add_up(d: int, dtype: torch.dtype, within: float) -> None:
    X = rows_of(9000, d, dtype)
    total = SymmetricSum(d, CPU)
    for block in (X[:1], X[1:8700], X[8700:]):
        total.add(block)
    assert largest_error(total, X) < within


@pytest.mark.parametrize("n", [1, 900, 1024, 5000])
@pytest.mark.parametrize("d", [30, 400])
def test_products_of_half_precision_parts(n: int, d: int) -> None:
    """Two parts hold 16 bits of a number, so that the error of a mean square is about 2⁻¹⁸."""
    X, total = rows_of(n, d), SymmetricSum(d, CPU)
    total.add_split(X)
    assert largest_error(total, X) < (2**-15 if n < 100 else 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_of_half_precision_rows_are_exact(dtype: torch.dtype) -> None:
    X, total = rows_of(5000, 400, dtype), SymmetricSum(400, CPU)
    total.add_exact(X)
    assert largest_error(total, X) < 1e-6


def test_little_more_than_one_triangle_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    zeros = torch.zeros
    monkeypatch.setattr(
        torch, "zeros", lambda *shape, **how: held.append(shape[0] * shape[1]) or zeros(*shape, **how)
    )
    SymmetricSum(1024, CPU)
    assert sum(held) == sum((stop - start) * (1024 - start) for start, stop in panels(1024))
    assert sum(held) < 0.57 * 1024**2
