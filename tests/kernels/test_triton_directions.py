"""Sums over directions under Triton's interpreter, against unit vectors in float64."""

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
@pytest.mark.parametrize(
    ("n", "d", "scale"), [(300, 48, 1.0), (7, 2, 1e-30), (65, 300, 1e30), (1, 33, 1.0), (2000, 5, 1.0)]
)
def test_sums_are_those_of_unit_vectors(n: int, d: int, scale: float, monkeypatch) -> None:
    from isoscope.kernels import triton_directions

    monkeypatch.setattr(triton_directions, "_PROGRAMS", 3)  # several tiles a program
    X = torch.randn(d, n, generator=torch.Generator().manual_seed(0)).T * scale  # columns are not contiguous
    X[n // 2] = 0
    units, norms = triton_directions.direction_sums(X)
    wide = X.double()
    lengths = wide.norm(dim=1)
    u = wide / lengths.clamp(min=1e-300)[:, None]
    torch.testing.assert_close(units, torch.stack([u.sum(dim=0), (u * u).sum(dim=0)]), rtol=1e-12, atol=1e-12)
    expected = [lengths.sum(), (lengths**2).sum(), lengths.min(), lengths.max(), (lengths == 0).sum()]
    torch.testing.assert_close(norms, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=0)
