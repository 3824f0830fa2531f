from __future__ import annotations

import pytest
import torch

from isoscope.kernels.products import split_product, sum_of_squares, symmetric_product


@pytest.mark.parametrize("d", [1, 7, 191, 192, 385, 500])
def test_symmetric_product(d: int) -> None:
    U = torch.randn(50, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    product = symmetric_product(U)
    assert torch.allclose(product, U.T @ U, rtol=0, atol=1e-13 * 50)
    assert torch.equal(product, product.T)  # libraries may round U·V and V·U differently


@pytest.mark.parametrize("n", [1, 900, 1024, 9000])
def test_products_of_half_precision_parts(n: int) -> None:
    """Two parts hold 16 bits of a number, so that the error of a mean square is about 2⁻¹⁸."""
    U = torch.randn(n, 30, generator=torch.Generator().manual_seed(0)) * torch.linspace(1, 9, 30)
    wide = U.double().T @ U.double()
    error = (split_product(U) - wide).abs() / (wide.diagonal().sqrt()[:, None] * wide.diagonal().sqrt())
    assert error.max() < 2**-15
    assert n < 100 or error.max() < 1e-5
    assert torch.equal(split_product(U), split_product(U).T)


def test_gradients_pass() -> None:
    U = torch.randn(5, 200, dtype=torch.float64, requires_grad=True)
    symmetric_product(U).sum().backward()
    assert U.grad is not None
    assert torch.allclose(sum_of_squares(U), sum_of_squares(U.detach()))
