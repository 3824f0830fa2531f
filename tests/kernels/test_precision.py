from __future__ import annotations

import pytest
import torch

from isoscope.kernels import precision
from isoscope.kernels.precision import crowded_squares


def rows(kind: str) -> torch.Tensor:
    X = torch.randn(120, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    if kind == "a few far off":
        X[:3] *= 1e5
    elif kind == "far from zero":
        X += 1e6
    elif kind == "duplicates":
        X = X[torch.arange(120) // 60]
    elif kind == "nearly equal":
        X = X[:1] + 1e-9 * X
    return X


@pytest.mark.parametrize("kind", ["plain", "a few far off", "far from zero", "duplicates", "nearly equal"])
def test_squares_are_those_of_differences(kind: str) -> None:
    X = rows(kind)
    wanted = (X[:, None] - X[None]).square().sum(dim=2)
    found = crowded_squares(X, X[20:])
    torch.testing.assert_close(found, wanted[:, 20:], rtol=1e-7, atol=0)


def test_few_rows_far_off_need_no_difference_of_every_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "direct_distances", lambda a, b: pytest.fail("by difference"))
    crowded_squares(rows("a few far off"), rows("a few far off"))
    with pytest.raises(pytest.fail.Exception, match="by difference"):
        crowded_squares(rows("duplicates"), rows("duplicates"))
