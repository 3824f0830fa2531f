"""Sums on a device, taken here without one, against moments in float64."""

from __future__ import annotations

import pytest
import torch

from isoscope import Moments
from isoscope.kernels import centered


@pytest.mark.parametrize("fourth", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_sums_of_a_device_are_the_moments(fourth: bool, offset: float) -> None:
    X = torch.randn(700, 32, generator=torch.Generator().manual_seed(0)) * torch.linspace(0.1, 3, 32) + offset
    found = centered.block_sums(X, fourth=fourth, n_rows=256)
    exact = Moments.of(X.double())
    mean, rest, scatter, *fourths = found
    torch.testing.assert_close(mean + rest, exact.mean, rtol=1e-7 if offset else 0, atol=1e-7)
    assert float((scatter - exact.scatter).norm() / exact.scatter.norm()) < 1e-6
    assert len(fourths) == 2 * fourth
    for ours, wanted in zip(fourths, (exact.cubic, exact.quartic), strict=fourth):
        assert float((ours - wanted).norm() / wanted.norm()) < 1e-5
