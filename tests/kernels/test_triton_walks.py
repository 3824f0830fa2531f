"""Kernels that pass over rows once, under Triton's interpreter, against the same by torch."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
HAS_TRITON = find_spec("triton") is not None
interpreted = pytest.mark.skipif(not (INTERPRETED and HAS_TRITON), reason="run by test_under_the_interpreter")


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED or not HAS_TRITON, reason="wants Triton, outside its interpreter")
def test_under_the_interpreter(interpret) -> None:
    assert " passed" in interpret(__file__)


@interpreted
@pytest.mark.parametrize("K", [3, 150])
def test_root_mean_squares_to_the_own_and_the_nearest_other_cluster(K: int) -> None:
    from isoscope.kernels.triton_proxies import mean_square_roots

    g = torch.Generator().manual_seed(0)
    U, centers = torch.randn(200, 70, generator=g), torch.randn(K, 70, generator=g)
    U[0] = 1e6  # too far out for half precision
    codes = torch.randint(0, K, (200,), generator=g)
    offsets, larger = 70 + torch.rand(K, generator=g), 1 + torch.rand(K, generator=g)
    squares = U.square().sum(dim=1)
    inside, outside = mean_square_roots(U, squares, codes, centers, offsets, larger)
    squared = offsets + squares.double()[:, None] - 2 * U.double() @ centers.T.double()
    own = (squared.gather(1, codes[:, None])[:, 0] * larger[codes]).clamp(min=0).sqrt()
    other = squared.scatter(1, codes[:, None], torch.inf).amin(dim=1).clamp(min=0).sqrt()
    assert torch.isfinite(inside).all()
    assert torch.isfinite(outside).all()
    torch.testing.assert_close(inside[1:].double(), own[1:], rtol=2e-6, atol=1e-5)
    torch.testing.assert_close(outside[1:].double(), other[1:], rtol=2e-6, atol=1e-5)


@interpreted
@pytest.mark.parametrize("shape", [(70, 300), (5, 3), (33, 1)], ids=str)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8], ids=str)
def test_checksums_are_those_of_torch(shape: tuple[int, int], dtype: torch.dtype) -> None:
    from isoscope.engine.checksums import weighted_sum
    from isoscope.kernels.triton_checksum import checksum_of_bits

    limits = torch.iinfo(dtype)
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(limits.min, limits.max, shape, dtype=dtype, generator=generator)
    assert int(checksum_of_bits(bits)) == weighted_sum([bits])
