"""A checksum changes with any value of a tensor, with their order, and with nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from isoscope.engine.checksums import checksum, weighted_sum

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=CUDA)]


def _in_blocks(values: Tensor) -> int:
    return weighted_sum(values.split(7))


@pytest.mark.parametrize("of", [checksum, _in_blocks], ids=["of the device", "weighted sum"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("device", DEVICES)
def test_any_change_changes_it(of, dtype: torch.dtype, device: str) -> None:
    X = (10 * torch.randn(50, 6, generator=torch.Generator().manual_seed(0))).to(dtype).to(device)
    before = of(X)
    assert of(X.clone()) == before == of(X.T.contiguous().T)
    ones = [X.clone() for _ in range(X.numel())]
    for place, changed in enumerate(ones):
        changed.view(-1)[place] += 1
    others = [-X, X.flip(0), X.flip(1), X.roll(1, 0), X + 1, torch.zeros_like(X), X[:-1]]
    assert before not in [of(changed) for changed in (*ones, *others)]


@pytest.mark.parametrize("device", DEVICES)
def test_it_does_not_depend_on_how_rows_are_cut(device: str) -> None:
    X = torch.randn(50, 6, device=device)
    assert weighted_sum(X.split(7)) == weighted_sum(X.split(50)) == weighted_sum(X.split(1))


def test_one_dimension_and_no_values() -> None:
    assert checksum(torch.ones(3)) != checksum(torch.tensor([1.0, 1.0, 2.0]))
    assert checksum(torch.empty(0, 4)) == weighted_sum([]) == 0
