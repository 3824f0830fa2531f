from __future__ import annotations

import pytest
import torch

from isoscope.kernels.products import sum_of_squares, symmetric_product


@pytest.mark.parametrize("d", [1, 7, 191, 192, 385, 500])
def test_symmetric_product(d: int) -> None:
    U = torch.randn(50, d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    product = symmetric_product(U)
    assert torch.allclose(product, U.T @ U, rtol=0, atol=1e-13 * 50)
    assert torch.equal(product, product.T)  # libraries may round U·V and V·U differently


def test_gradients_pass() -> None:
    U = torch.randn(5, 200, dtype=torch.float64, requires_grad=True)
    symmetric_product(U).sum().backward()
    assert U.grad is not None
    assert torch.allclose(sum_of_squares(U), sum_of_squares(U.detach()))
